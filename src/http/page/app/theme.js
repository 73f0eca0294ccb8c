const THEMES = ['auto', 'light', 'dark'];

/** Light or dark as the system says, unless somebody chose; the choice stays in this browser. @param {HTMLButtonElement} button */
export function attachThemeSwitch(button) {
  const root = document.documentElement;
  const name = () => {
    button.textContent = `Theme: ${root.dataset.theme}`;
  };
  button.onclick = () => {
    const next = THEMES[(THEMES.indexOf(root.dataset.theme ?? 'auto') + 1) % THEMES.length] ?? 'auto';
    root.dataset.theme = next;
    localStorage.setItem('theme', next);
    name();
  };
  name();
}
