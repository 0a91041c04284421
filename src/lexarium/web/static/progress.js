// Update the progress bar of an import, and reload the page when the import has finished.

const progress = document.querySelector("[data-progress]");

async function update() {
  try {
    const response = await fetch(location.href, { cache: "no-store" });
    if (!response.ok) throw new Error(response.statusText);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const current = page.querySelector("[data-progress]");
    if (!current) return location.reload();
    progress.querySelector("[role=status]").textContent = current.querySelector("[role=status]").textContent;
    progress.querySelector("progress").value = current.querySelector("progress").value;
    progress.querySelector("progress").max = current.querySelector("progress").max;
  } catch { /* The server cannot be reached: try again. */ }
  setTimeout(update, 1000);
}

setTimeout(update, 500);
