// Buttons that copy a text of the page. They show only where there are scripts; the text can be selected without.

for (const button of document.querySelectorAll("[data-copy]")) {
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", async () => {
    const said = button.textContent;
    try {
      await navigator.clipboard.writeText(document.querySelector(button.dataset.copy).textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(document.querySelector(button.dataset.copy));
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = said; }, 1500);
  });
}
