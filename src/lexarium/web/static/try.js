// Send requests from the API reference. The token is read from its field for each request and not stored.

const MAX_SHOWN = 20_000;
let description;

// The OpenAPI document, fetched when the first operation is opened.
function describe() {
  description ??= fetch("/openapi.json").then((response) => response.json());
  return description;
}

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function find(document_, id) {
  for (const [path, operations] of Object.entries(document_.paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      if (operation.operationId === id) return { path, method, operation };
    }
  }
  return null;
}

function resolve(document_, value) {
  return value?.$ref ? value.$ref.split("/").slice(1).reduce((place, key) => place[key], document_) : value;
}

function isList(schema = {}) {
  return schema.type === "array" || (schema.anyOf ?? []).some(isList);
}

function field(label, input) {
  return element("p", { className: "field" }, element("label", {}, label, input));
}

function build(document_, { path, method, operation }) {
  const parameters = (operation.parameters ?? []).map((item) => resolve(document_, item));
  const body = resolve(document_, operation.requestBody);
  const [mediaType, media] = Object.entries(body?.content ?? {})[0] ?? [];
  const inputs = parameters.map((parameter) => {
    const value = parameter.required || parameter.in === "path" ? parameter.example ?? "" : "";
    const placeholder = parameter.example === undefined ? "" : `such as ${parameter.example}`;
    return element("input", { value, placeholder, required: parameter.in === "path", autocomplete: "off", spellcheck: false });
  });
  const example = typeof media?.example === "string" ? media.example : JSON.stringify(media?.example ?? {}, null, 2);
  const content = mediaType && element("textarea", { value: example, rows: Math.min(12, example.split("\n").length + 1), spellcheck: false });
  const output = element("div", { className: "response" });
  output.setAttribute("role", "status");
  const form = element("form", { className: "try" },
    element("h3", {}, "Try it"),
    ...parameters.map((parameter, index) => field(`${parameter.name} (${parameter.in})`, inputs[index])),
    ...(content ? [field(`Body (${mediaType})`, content)] : []),
    element("button", { type: "submit" }, `Send ${method.toUpperCase()} request`), output);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const headers = new Headers(mediaType ? { "Content-Type": mediaType } : {}), query = new URLSearchParams();
    let target = path;
    parameters.forEach((parameter, index) => {
      const value = inputs[index].value;
      if (parameter.in === "path") target = target.replace(`{${parameter.name}}`, encodeURIComponent(value));
      else if (!value) return;
      else if (parameter.in === "header") headers.set(parameter.name, value);
      else for (const part of isList(parameter.schema) ? value.split(",") : [value]) query.append(parameter.name, part.trim());
    });
    const token = document.querySelector("#token").value.trim();
    if (token) headers.set("Authorization", `Bearer ${token}`);
    send(output, target + (query.size ? `?${query}` : ""), { method: method.toUpperCase(), headers, body: content?.value });
  });
  return form;
}

async function send(output, url, options) {
  output.replaceChildren("Sending …");
  const started = performance.now();
  try {
    // Without the session cookie: only the token counts.
    const response = await fetch(url, { ...options, credentials: "omit", cache: "no-store" });
    const text = await response.text(), time = Math.round(performance.now() - started);
    const type = response.headers.get("content-type") ?? "";
    const shown = /json/.test(type) && text.length < MAX_SHOWN ? pretty(text) : text;
    const more = shown.length > MAX_SHOWN ? [element("p", { className: "faint" }, `The first ${MAX_SHOWN} of ${shown.length} characters.`)] : [];
    const headers = ["content-type", "etag", "location", "retry-after"].filter((name) => response.headers.has(name));
    output.replaceChildren(
      element("p", {}, element("strong", {}, `${response.status} ${response.statusText}`), ` ${options.method} ${url}, ${time} ms`),
      element("p", { className: "faint small" }, headers.map((name) => `${name}: ${response.headers.get(name)}`).join(", ")),
      ...(shown ? [element("pre", { tabIndex: 0 }, shown.slice(0, MAX_SHOWN))] : []), ...more);
  } catch (error) {
    output.replaceChildren(element("p", { className: "gone" }, `The request failed: ${error.message}. Check the connection and send it again.`));
  }
}

function pretty(text) {
  try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
}

for (const details of document.querySelectorAll("details.operation")) {
  details.addEventListener("toggle", async () => {
    try {
      const document_ = await describe(), found = find(document_, details.id);
      if (found && !details.querySelector(".try")) details.querySelector("pre").after(build(document_, found));
    } catch { description = undefined; }
  }, { once: true });
}
