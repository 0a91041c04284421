// Light or dark theme: that of the system unless the user chose one. Runs before the first paint.
(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const known = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const keep = (theme) => { try { localStorage.setItem("theme", theme); } catch { /* Storage is disabled: the choice lasts for this page. */ } };
  const isDark = () => (root.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
  const theme = known();
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  root.classList.add("scripted");

  addEventListener("DOMContentLoaded", () => {
    const button = document.querySelector("[data-theme-switch]");
    const tell = () => {
      button.textContent = isDark() ? "Light" : "Dark";
      button.setAttribute("aria-label", isDark() ? "Switch to light colours" : "Switch to dark colours");
    };
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      keep(root.dataset.theme);
      tell();
    });
    system.addEventListener("change", tell);
    tell();
  });
})();
