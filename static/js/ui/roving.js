/**
 * A row of buttons and links that is one stop of Tab: the arrow keys walk in it.
 * https://www.w3.org/WAI/ARIA/apg/practices/keyboard-interface/#kbd_roving_tabindex
 */

/** @type {Record<string, (at: number, count: number) => number>} */
const STEPS = {
  ArrowRight: (at, count) => (at + 1) % count,
  ArrowLeft: (at, count) => (at + count - 1) % count,
  Home: () => 0,
  End: (_, count) => count - 1,
};

/**
 * @param {HTMLElement} host whose buttons and links may come and go
 * @param {string} [chosen] the one that Tab reaches first, by a selector
 */
export function createRoving(host, chosen = '[aria-pressed="true"], [aria-current="true"]') {
  /** @returns {HTMLElement[]} */
  const stops = () =>
    [...host.querySelectorAll('button, a[href]')].flatMap((node) =>
      node instanceof HTMLElement && !node.closest('[popover]') ? [node] : [],
    );

  /** @param {HTMLElement|undefined} stop */
  function rove(stop) {
    for (const node of stops()) node.tabIndex = node === stop ? 0 : -1;
  }

  function fit() {
    // A menu that opens over the page is a stop of its own for each entry.
    for (const node of host.querySelectorAll('[popover] :is(button, a[href])'))
      if (node instanceof HTMLElement) node.tabIndex = 0;
    const nodes = stops();
    const held = nodes.find((node) => node === document.activeElement);
    rove(held ?? nodes.find((node) => node.matches(chosen)) ?? nodes[0]);
  }

  host.addEventListener('focusin', ({ target }) => {
    if (target instanceof HTMLElement && stops().includes(target)) rove(target);
  });
  host.addEventListener('keydown', (event) => {
    const nodes = stops().filter(({ offsetWidth }) => offsetWidth > 0);
    const at = nodes.findIndex((node) => node === event.target);
    const step = STEPS[event.key];
    if (at < 0 || !step || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    nodes[step(at, nodes.length)].focus();
  });
  const watcher = new MutationObserver(fit);
  watcher.observe(host, {
    childList: true,
    subtree: true,
    attributes: true,
    attributeFilter: ['aria-pressed', 'aria-current', 'popover'],
  });
  fit();
}
