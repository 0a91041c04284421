// The API reference: filter the operations, and open the details that a link leads to.

const box = document.querySelector("#filter");

function filter() {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const group of document.querySelectorAll(".group")) {
    let shown = 0;
    for (const each of group.querySelectorAll("details")) {
      const text = each.querySelector("summary").textContent.toLowerCase();
      each.hidden = !words.every((word) => text.includes(word));
      shown += each.hidden ? 0 : 1;
    }
    group.hidden = shown === 0;
  }
}

function open() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  if (target.closest("[hidden]")) {
    box.value = "";
    filter();
  }
  if (target.matches("details")) target.open = true;
  target.scrollIntoView();
}

box.addEventListener("input", filter);
window.addEventListener("hashchange", open);
open();
