/**
 * Tabs by the ARIA pattern: arrow keys move between them, one is open.
 * https://www.w3.org/WAI/ARIA/apg/patterns/tabs/
 */

import { element } from './element.js';

/**
 * @param {HTMLElement} host a tablist
 * @param {{id: string, title: string}[]} views
 * @param {{onChoose: (id: string) => void}} handlers
 */
export function createTabs(host, views, { onChoose }) {
  const tabs = views.map(({ id, title }) =>
    element(
      'button',
      {
        type: 'button',
        role: 'tab',
        id: `tab-${id}`,
        'aria-controls': `view-${id}`,
        onclick: () => onChoose(id),
      },
      title,
    ),
  );
  host.append(...tabs);
  host.addEventListener('keydown', (event) => {
    const index = next(event.key, tabs.indexOf(document.activeElement), tabs.length);
    if (index === null) return;
    event.preventDefault();
    tabs[index].focus();
    onChoose(views[index].id);
  });
  return {
    /**
     * @param {string} id
     * @param {string[]} titles of all of them
     */
    choose(id, titles) {
      tabs.forEach((tab, index) => {
        if (tab.textContent !== titles[index]) tab.textContent = titles[index];
        const isOpen = views[index].id === id;
        if (isOpen && tab.getAttribute('aria-selected') !== 'true') reveal(host, tab);
        tab.setAttribute('aria-selected', String(isOpen));
        tab.tabIndex = isOpen ? 0 : -1;
      });
    },
  };
}

/** Where the tabs do not fit side by side, brings one into the middle; nothing else scrolls. */
function reveal(host, tab) {
  host.scrollLeft = tab.offsetLeft - host.offsetLeft - (host.clientWidth - tab.offsetWidth) / 2;
}

function next(key, from, count) {
  if (from < 0) return null;
  if (key === 'Home') return 0;
  if (key === 'End') return count - 1;
  if (key === 'ArrowRight') return (from + 1) % count;
  if (key === 'ArrowLeft') return (from + count - 1) % count;
  return null;
}
