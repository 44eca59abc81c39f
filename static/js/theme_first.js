// The theme, on every page. Before anything is painted, so that a chosen theme never flashes: modules
// run too late for that.
{
  const KEY = 'headlight.theme';
  const { dataset } = document.documentElement;

  /** @param {string|null} theme */
  const choose = (theme) => {
    if (theme === 'light' || theme === 'dark') dataset.theme = theme;
    else delete dataset.theme;
  };
  try {
    choose(localStorage.getItem(KEY));
  } catch {
    // Storage may be forbidden; the system's theme is used.
  }

  document.addEventListener('DOMContentLoaded', () => {
    const radio = document.querySelector(`#theme [value="${dataset.theme ?? 'system'}"]`);
    if (radio instanceof HTMLInputElement) radio.checked = true;
  });
  // Before the listeners of the page, which draw in the new colours.
  document.addEventListener(
    'change',
    ({ target }) => {
      if (!(target instanceof HTMLInputElement) || target.name !== 'theme') return;
      choose(target.value);
      try {
        localStorage.setItem(KEY, target.value);
      } catch {
        // The choice then lasts until the page is left.
      }
    },
    true,
  );
}
