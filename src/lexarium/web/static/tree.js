// A tree whose levels are fetched when they are opened. Without it a link leads to each level.

function attach(root) {
  for (const details of root.querySelectorAll("details[data-level]")) {
    details.addEventListener("toggle", () => load(details), { once: true });
  }
}

async function load(details) {
  const place = details.querySelector(":scope > p");
  try {
    const answer = await fetch(details.dataset.level);
    if (!answer.ok) return;
    const level = document.createElement("div");
    level.innerHTML = await answer.text();
    attach(level);
    place.replaceWith(...level.childNodes);
  } catch { /* The link stays. */ }
}

attach(document);
