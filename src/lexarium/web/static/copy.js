// Buttons that copy a text of the page. Without scripts they are hidden, and the text can be selected.

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
