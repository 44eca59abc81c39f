// Before anything is painted, so that a chosen theme never flashes. Modules run too late for that.
try {
  const theme = localStorage.getItem('headlight.theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {
  // Storage may be forbidden; the system's theme is used.
}
