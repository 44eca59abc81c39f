/**
 * A button that opens a short menu, by the ARIA pattern: arrow keys walk it, Escape closes it.
 * https://www.w3.org/WAI/ARIA/apg/patterns/menu-button/
 */

import { element } from './element.js';

let count = 0;

/** Pixels between the letters of an entry and the edge of its menu, and from there to the window's. */
const INSET = 12;
const MARGIN = 8;

/** Where a menu stands, from its button's left edge: below it, or as far aside as the window asks. */
function shift(left, width) {
  const most = document.documentElement.clientWidth - MARGIN - width;
  return Math.max(MARGIN, Math.min(left - INSET, most)) - left;
}

/**
 * @param {string} label
 * @param {string} title what it is for
 * @param {{label: string, help: string, act: () => void}[]} items
 */
export function createMenu(label, title, items) {
  count += 1;
  const id = `menu-${count}`;
  const entries = items.map(({ label: name, help, act }) =>
    element(
      'li',
      { role: 'none' },
      element(
        'button',
        {
          type: 'button',
          role: 'menuitem',
          tabindex: -1,
          onclick: () => {
            close(true);
            act();
          },
        },
        element('span', { class: 'menu-name' }, name),
        element('span', { class: 'menu-help' }, help),
      ),
    ),
  );
  const buttons = entries.map((entry) => entry.firstChild);
  const list = element(
    'ul',
    { class: 'menu-list', role: 'menu', id, 'aria-label': title, hidden: true },
    ...entries,
  );
  const button = element(
    'button',
    {
      type: 'button',
      class: 'menu-button',
      title,
      'aria-haspopup': 'menu',
      'aria-expanded': 'false',
      'aria-controls': id,
    },
    label,
  );
  const host = element('div', { class: 'menu' }, button, list);

  const leave = ({ target }) => {
    if (!host.contains(target)) close(false);
  };

  function open(first = 0) {
    document.addEventListener('pointerdown', leave); // only while it is open: the document outlives the menu
    list.hidden = false;
    button.setAttribute('aria-expanded', 'true');
    list.style.left = `${shift(button.getBoundingClientRect().left, list.offsetWidth)}px`;
    buttons.at(first).focus();
  }

  function close(isBack) {
    if (list.hidden) return;
    document.removeEventListener('pointerdown', leave);
    list.hidden = true;
    button.setAttribute('aria-expanded', 'false');
    if (isBack) button.focus();
  }

  button.addEventListener('click', () => (list.hidden ? open() : close(true)));
  host.addEventListener('keydown', (event) => {
    const act = reaction(event.key);
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  });
  host.addEventListener('focusout', ({ relatedTarget }) => {
    if (!host.contains(relatedTarget)) close(false);
  });

  /** What a key does, on the button or in the menu. */
  function reaction(key) {
    if (list.hidden) {
      return { ArrowDown: () => open(), ArrowUp: () => open(-1) }[key];
    }
    const at = buttons.indexOf(document.activeElement);
    const to = (index) => () => buttons.at(index % buttons.length).focus();
    const moves = {
      ArrowDown: to(at + 1),
      ArrowUp: to(at - 1),
      Home: to(0),
      End: to(-1),
      Escape: () => close(true),
    };
    if (moves[key]) return moves[key];
    const named = buttons.findIndex(
      (entry, index) =>
        index !== at && entry.textContent.toLowerCase().startsWith(key.toLowerCase()),
    );
    return key.length === 1 && key !== ' ' && named >= 0 ? to(named) : undefined;
  }

  return host;
}
