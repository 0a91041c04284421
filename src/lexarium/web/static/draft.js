// Preview a form and similar names beside it. Without scripts, a button shows the same.

const WAIT = 300;
const form = document.querySelector("form[data-draft]"), place = document.querySelector("[data-preview]");
let timer, asked;

async function look() {
  asked?.abort();
  asked = new AbortController();
  try {
    const body = new URLSearchParams(new FormData(form));
    const answer = await fetch(form.dataset.draft, { method: "POST", body, signal: asked.signal });
    if (!answer.ok) return;
    const piece = document.createElement("template");
    piece.innerHTML = await answer.text();
    // A live region must stay the same element, and change only if its text differs.
    const said = place.querySelector("[role=status]"), now = piece.content.querySelector("[role=status]");
    if (said.innerHTML !== now.innerHTML) said.replaceChildren(...now.childNodes);
    now.remove();
    while (said.nextSibling) said.nextSibling.remove();
    place.append(piece.content);
  } catch { /* Keep the last preview. */ }
}

form.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(look, WAIT);
});
