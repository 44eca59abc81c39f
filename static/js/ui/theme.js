/**
 * Light, dark, or as the system has it; and the colours CSS resolves to, for canvas and Plotly.
 */

const KEY = 'headlight.theme';
const PROPERTIES = ['surface', 'sunken', 'ink', 'muted', 'line', 'query', 'key', 'beam'];
const systemIsDark = matchMedia('(prefers-color-scheme: dark)');

/**
 * @param {HTMLElement} fieldset radios named `theme`: light, dark, system
 * @param {() => void} onChange colours are different now
 */
export function createTheme(fieldset, onChange) {
  const chosen = document.documentElement.dataset.theme ?? 'system';
  fieldset.querySelector(`[value="${chosen}"]`).checked = true;
  fieldset.addEventListener('change', ({ target }) => {
    choose(target.value);
    onChange();
  });
  systemIsDark.addEventListener('change', onChange);
}

function choose(theme) {
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // Storage may be forbidden; the choice then lasts until the page is left.
  }
}

/**
 * @returns {import('../plot/figure.js').Frame['palette']} CSS custom properties as plain colours
 */
export function palette() {
  const probe = document.createElement('span');
  document.body.append(probe);
  const colours = Object.fromEntries(
    PROPERTIES.map((name) => {
      probe.style.color = `var(--${name})`;
      return [name, getComputedStyle(probe).color];
    }),
  );
  probe.remove();
  const font = getComputedStyle(document.body).fontFamily;
  return { theme: currentTheme(), font, ...colours };
}

function currentTheme() {
  return document.documentElement.dataset.theme ?? (systemIsDark.matches ? 'dark' : 'light');
}
