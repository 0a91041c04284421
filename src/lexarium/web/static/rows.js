// Aliases as rows of text, language and scope. The value stays in a text area, which is shown without scripts.

const SCOPES = ["exact", "narrow", "broad", "related", "hidden"];

function parse(line, language) {
  const parts = line.split("|"), rest = parts.splice(Math.max(1, parts.length - 2)).map((part) => part.trim());
  const text = parts.join("|").trim();
  if (rest.length === 1 && SCOPES.includes(rest[0])) return { text, language, scope: rest[0] };
  return { text, language: rest[0] ?? language, scope: rest[1] ?? "exact" };
}

function format({ text, language, scope }, usual) {
  const isOther = language !== usual, isScoped = scope !== "exact";
  if (text.includes("|") || (isOther && isScoped)) return [text, language, scope].join(" | ");
  return [text, ...(isOther ? [language] : []), ...(isScoped ? [scope] : [])].join(" | ");
}

function attach(area) {
  const usual = area.dataset.rows, label = document.querySelector(`label[for="${area.id}"]`);
  const group = document.createElement("div");
  group.setAttribute("role", "group");
  group.setAttribute("aria-label", label.textContent);
  group.tabIndex = -1;

  function add(alias) {
    const number = group.children.length + 1, row = document.createElement("div");
    row.className = "pair";
    const text = document.createElement("input"), language = document.createElement("input");
    const scope = document.createElement("select");
    Object.assign(text, { value: alias.text, ariaLabel: `Alias ${number}` });
    Object.assign(language, { value: alias.language, className: "short", ariaLabel: `Language of alias ${number}` });
    scope.append(...SCOPES.map((name) => new Option(name, name, false, name === alias.scope)));
    Object.assign(scope, { className: "short", ariaLabel: `Scope of alias ${number}` });
    for (const field of [text, language]) field.autocomplete = "off";
    row.append(text, language, scope);
    group.append(row);
  }

  function save() {
    const aliases = [...group.children].map((row) => {
      const [text, language, scope] = [...row.children].map((field) => field.value.trim());
      return { text, language: language || usual, scope };
    });
    area.value = aliases.filter(({ text }) => text).map((alias) => format(alias, usual)).join("\n");
    if (aliases.at(-1).text) add({ text: "", language: usual, scope: "exact" });
  }

  const lines = area.value.split("\n").filter((line) => line.trim());
  for (const line of [...lines, ""]) add(parse(line, usual));
  // Before the form sends its preview.
  group.addEventListener("input", save);
  group.addEventListener("change", save);
  area.hidden = true;
  area.after(group);
  document.getElementById(`${area.id}-hint`)?.remove();
  group.id = area.id;
  area.removeAttribute("id");
  label.removeAttribute("for");
}

document.querySelectorAll("textarea[data-rows]").forEach(attach);
