// How far something is, told as it goes on; once it is through, the page that tells of it.

const place = document.querySelector("[data-progress]");

async function look() {
  try {
    const answer = await fetch(location.href, { cache: "no-store" });
    const now = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-progress]");
    if (!now) return location.reload();
    place.querySelector("[role=status]").textContent = now.querySelector("[role=status]").textContent;
    place.querySelector("progress").value = now.querySelector("progress").value;
    place.querySelector("progress").max = now.querySelector("progress").max;
  } catch { /* the server is away for a moment */ }
  setTimeout(look, 1000);
}

setTimeout(look, 500);
