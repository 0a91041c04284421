// Suggestions while typing: a combobox with a list, as in the ARIA Authoring Practices. The form works without scripts.
// Choosing one opens its page (or `data-there`), or selects it in a form (the field `data-pick`).

const WAIT = 80;

function attach(input) {
  const list = document.createElement("ul");
  list.id = `${input.id}-list`;
  list.className = "suggestions";
  list.hidden = true;
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Suggestions");
  const status = document.createElement("p");
  status.className = "unseen";
  status.setAttribute("role", "status");
  input.closest(".search").append(list, status);
  for (const [name, value] of Object.entries({
    role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id,
  })) input.setAttribute(name, value);

  let timer, asked, active = -1, typed = input.value;

  const options = () => [...list.children];

  function choose(index) {
    active = index;
    options().forEach((option, place) => option.setAttribute("aria-selected", String(place === index)));
    const option = options()[index];
    if (option) {
      input.setAttribute("aria-activedescendant", option.id);
      option.scrollIntoView({ block: "nearest" });
    } else {
      input.removeAttribute("aria-activedescendant");
    }
  }

  function close() {
    clearTimeout(timer);
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    choose(-1);
  }

  function show(found) {
    list.replaceChildren(...found.map((each, place) => optionOf(each, place, list.id)));
    list.hidden = found.length === 0;
    input.setAttribute("aria-expanded", String(found.length > 0));
    status.textContent = found.length ? `${found.length} suggestions` : "No suggestions";
    choose(-1);
  }

  async function ask() {
    typed = input.value;
    asked?.abort();
    if (!typed.trim()) return close();
    asked = new AbortController();
    try {
      const wanted = new URLSearchParams({ prefix: typed, limit: 8 });
      const narrowing = document.getElementById(input.dataset.narrowedBy)?.selectedOptions[0];
      const collection = (narrowing ?? input).dataset.collection;
      if (collection) wanted.set("collection", collection);
      const vocabulary = input.dataset.vocabulary || input.form.querySelector("select[name=vocabulary]")?.value;
      if (vocabulary) wanted.set("vocabulary", vocabulary);
      const answer = await fetch(`/api/v1/suggest?${wanted}`, { signal: asked.signal });
      if (answer.ok && document.activeElement === input) show((await answer.json()).suggestions);
    } catch (error) {
      if (error.name !== "AbortError") close();
    }
  }

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, WAIT);
  });
  input.addEventListener("keydown", (event) => {
    const count = list.hidden ? 0 : list.children.length;
    if (event.key === "Escape" && count) {
      event.preventDefault();
      close();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!count) return ask();
      const step = event.key === "ArrowDown" ? 1 : -1;
      choose(((active + step + 1 + count + 1) % (count + 1)) - 1);
    } else if (event.key === "Enter" && active >= 0) {
      event.preventDefault();
      take(options()[active]);
    }
  });
  input.addEventListener("blur", close);
  // Before the field loses its focus, which closes the list.
  list.addEventListener("pointerdown", (event) => event.preventDefault());
  list.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option) take(option);
  });

  function take(option) {
    const { id, name, kind, vocabulary } = option.dataset;
    // Paths without a vocabulary refer to the main one.
    const rest = vocabulary && vocabulary !== "main" && !input.dataset.there ? `?vocabulary=${vocabulary}` : "";
    if ("fill" in input.dataset) {
      input.value = `${name} [${id}]`;
      close();
      input.dispatchEvent(new Event("input", { bubbles: true }));
      return clearTimeout(timer);
    }
    if (!input.dataset.pick) return location.assign((input.dataset.there ?? "/id/") + encodeURIComponent(id) + rest);
    tick(input, id, name, kind);
    input.value = "";
    status.textContent = `${name} is chosen`;
    close();
  }
}

function tick(input, id, name, kind) {
  const label = document.createElement("label"), radio = document.createElement("input"), told = document.createElement("span");
  const more = document.createElement("span");
  label.className = "tick";
  Object.assign(radio, { type: "radio", name: input.dataset.pick, value: id, checked: true });
  more.className = "faint";
  more.textContent = `${kind}, ${id}`;
  told.append(`${name} `, more);
  label.append(radio, " ", told);
  const choices = document.getElementById(`${input.dataset.pick}-choices`);
  const nothing = choices.querySelector("input[value='']")?.closest("label") ?? "";
  choices.replaceChildren(choices.querySelector("legend"), nothing, label);
}

function optionOf(each, place, list) {
  const option = document.createElement("li");
  option.id = `${list}-${place}`;
  option.setAttribute("role", "option");
  option.setAttribute("aria-selected", "false");
  Object.assign(option.dataset, { id: each.id, name: each.name, kind: each.collection.replaceAll("_", " ") });
  if (each.vocabulary) option.dataset.vocabulary = each.vocabulary;
  const name = document.createElement("span");
  name.append(...marked(each.text, each.highlight));
  const kind = document.createElement("span");
  kind.className = "faint";
  kind.textContent = (each.text === each.name ? "" : `${each.name}, `) + option.dataset.kind;
  option.append(name, " ", kind);
  return option;
}

// Highlights count code points, strings of JavaScript do not.
function marked(text, spans) {
  const points = [...text], pieces = [];
  let at = 0;
  for (const { start, end } of spans) {
    pieces.push(points.slice(at, start).join(""));
    const mark = document.createElement("mark");
    mark.textContent = points.slice(start, end).join("");
    pieces.push(mark);
    at = end;
  }
  return [...pieces, points.slice(at).join("")];
}

document.querySelectorAll("input[data-suggest]").forEach(attach);
