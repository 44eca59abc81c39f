/**
 * Help on a view: a question mark that opens an explanation of switches, and the terms it uses.
 */

import { capitalised } from '../data/text.js';
import { element, placeBeside } from './dom.js';

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
    /** @param {Explained[]} explained */
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

/** @typedef {{title: string, parts: [string, string][]}} Explained words that belong together, each with its meaning */

/** An option that is only a number of something explains itself. */
const COUNTED = /^\S+ \d+$/;

/**
 * @param {import('./controls.js').Control[]} controls
 * @returns {Explained[]} only of those that have something to say
 */
export function explainedOf(controls) {
  return controls
    .map(({ label, help, options = [] }) => {
      const said = options
        .filter((option) => option.help && !COUNTED.test(option.help))
        .map((option) => [option.title, capitalised(option.help)]);
      const own = help ? [[label, capitalised(help)]] : [];
      return { title: said.length > 0 ? label : '', parts: [...own, ...said] };
    })
    .filter(({ parts }) => parts.length > 0);
}

export function createTerms() {
  const narrow = matchMedia('(max-width: 40rem)');
  const list = element('dl', { class: 'terms' });
  const details = element(
    'details',
    { class: 'terms-block' },
    element('summary', {}, 'What the words mean'),
    list,
  );
  const fold = () => {
    details.open = !narrow.matches;
  };
  narrow.addEventListener('change', fold);
  fold();

  return {
    element: details,

    /** @param {[string, string][]} terms */
    show(terms) {
      details.hidden = terms.length === 0;
      list.replaceChildren(
        ...terms.map(([word, meaning]) =>
          element(
            'div',
            {},
            element('dt', { class: `is-${word.replace(/\W/g, '-')}` }, word),
            element('dd', {}, meaning),
          ),
        ),
      );
    },
  };
}
