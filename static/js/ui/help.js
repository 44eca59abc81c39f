/**
 * A question mark that says what words and switches mean: by a press, a tap or a key, and read out.
 * Escape, or a press elsewhere, closes it.
 */

import { placeBeside } from './tour_stops.js';
import { element } from './element.js';

let count = 0;

/**
 * @param {string} title what is explained
 */
export function createHelp(title) {
  count += 1;
  const id = `help-${count}`;
  const list = element('div', {});
  const heading = element('p', { class: 'help-title' }, title);
  const box = element(
    'div',
    {
      class: 'help-box',
      id,
      popover: 'auto',
      role: 'region',
      'aria-label': title,
      tabindex: 0,
      autofocus: true,
    },
    heading,
    list,
  );
  const button = element(
    'button',
    { type: 'button', class: 'help-button', popovertarget: id, 'aria-label': title },
    '?',
  );
  const host = element('span', { class: 'help-host', hidden: true }, button, box);
  let said = '';

  function place() {
    const { left, top } = placeBeside(
      button.getBoundingClientRect(),
      { width: box.offsetWidth, height: box.offsetHeight },
      { width: document.documentElement.clientWidth, height: window.innerHeight },
    );
    box.style.left = `${left}px`;
    box.style.top = `${top}px`;
  }

  box.addEventListener('toggle', ({ newState }) => {
    const isOpen = newState === 'open';
    if (isOpen) place();
    box.classList.toggle('is-placed', isOpen);
  });
  window.addEventListener(
    'scroll',
    () => {
      if (box.matches(':popover-open')) place();
    },
    { passive: true },
  );

  return {
    element: host,
    /** @param {import('./explained.js').Explained[]} explained */
    show(explained) {
      host.hidden = explained.length === 0;
      if (JSON.stringify(explained) === said) return;
      said = JSON.stringify(explained);
      list.replaceChildren(
        ...explained.flatMap(({ title: group, parts }) =>
          [
            group ? element('h3', {}, group) : null,
            element(
              'dl',
              {},
              ...parts.flatMap(([word, meaning]) => [
                element('dt', {}, word),
                element('dd', {}, meaning),
              ]),
            ),
          ].filter(Boolean),
        ),
      );
    },
  };
}
