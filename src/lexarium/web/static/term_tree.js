// The tree beside a term. Open branches stay open from page to page.

const tree = document.querySelector(".beside-term");
const key = "open-branches";
const open = new Set(JSON.parse(sessionStorage.getItem(key) ?? "[]"));

function remember(level, isOpen) {
  if (isOpen) open.add(level); else open.delete(level);
  sessionStorage.setItem(key, JSON.stringify([...open].slice(-100)));
}

// Fetched levels are those of the page about the hierarchy.
async function fetchLevel(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(answer.statusText);
  const level = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("ul");
  attach(level);
  return level;
}

async function load(details) {
  try {
    details.querySelector(":scope > p")?.replaceWith(await fetchLevel(details.dataset.level));
  } catch { /* Keep the link. */ }
}

// Replace some children by all of them, and keep branches open.
async function complete(link) {
  const list = link.closest("ul");
  try {
    const level = await fetchLevel(link.dataset.level);
    const shown = [...list.children].filter(item => item !== link.parentElement);
    for (const item of level.children) {
      const address = item.querySelector("a").getAttribute("href");
      const same = shown.find(other => getAddress(other) === address);
      if (same) item.replaceWith(same);
    }
    list.replaceWith(level);
    level.querySelector("a").focus();
  } catch { location.assign(link.href); }
}

function getAddress(item) {
  const name = item.querySelector(":scope > a, :scope > strong");
  return name.getAttribute("href") ?? location.pathname + location.search;
}

function attach(root) {
  for (const details of root.querySelectorAll("details[data-level]")) {
    details.addEventListener("toggle", () => {
      remember(details.dataset.level, details.open);
      if (details.open) load(details);
    });
    if (open.has(details.dataset.level)) details.open = true;
  }
  for (const link of root.querySelectorAll("a[data-level]")) {
    link.addEventListener("click", event => { event.preventDefault(); complete(link); });
  }
}

attach(tree);
const hierarchy = tree.querySelector("details");
// Before the click takes effect.
hierarchy.querySelector("summary").addEventListener("click", () => sessionStorage.setItem("tree-closed", hierarchy.open ? "1" : ""));
if (sessionStorage.getItem("tree-closed") || matchMedia("(max-width: 52rem)").matches) hierarchy.open = false;
const current = tree.querySelector("[aria-current]");
tree.scrollTop = Math.max(0, current.getBoundingClientRect().top - tree.getBoundingClientRect().top - tree.clientHeight / 2);
