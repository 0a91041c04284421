// A tree whose levels are fetched when they are opened, with a pane that describes the selected record. Without scripts,
// links lead to each level and to each record.

const pane = document.querySelector("[data-pane]");
let request;

function attach(root) {
  for (const details of root.querySelectorAll("details[data-level]")) {
    details.addEventListener("toggle", () => load(details), { once: true });
  }
}

async function load(details) {
  const place = details.querySelector(":scope > p");
  try {
    const response = await fetch(details.dataset.level);
    if (!response.ok) return;
    const level = document.createElement("div");
    level.innerHTML = await response.text();
    attach(level);
    place.replaceWith(...level.childNodes);
  } catch { /* Keep the link. */ }
}

async function describe(link) {
  request?.abort();
  request = new AbortController();
  try {
    const response = await fetch(link.dataset.summary, { signal: request.signal });
    if (!response.ok) return location.assign(link.href);
    pane.innerHTML = await response.text();
    document.querySelector(".tree [aria-current]")?.removeAttribute("aria-current");
    link.setAttribute("aria-current", "true");
  } catch (error) {
    if (error.name !== "AbortError") location.assign(link.href);
  }
}

if (pane) {
  pane.setAttribute("aria-live", "polite");
  document.addEventListener("click", (event) => {
    const link = event.target.closest(".tree a[data-summary]");
    const isPlain = !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0;
    // On a narrow screen there is no pane, and a second click opens the page.
    if (!link || !isPlain || pane.offsetParent === null || event.detail > 1 || link.hasAttribute("aria-current")) return;
    event.preventDefault();
    describe(link);
  });
}

attach(document);
