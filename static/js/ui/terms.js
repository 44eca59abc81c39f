/**
 * The words that a view uses, each with what it means. On a phone they are folded away, so that the
 * drawing is nearer.
 */

import { element } from './element.js';

const narrow = matchMedia('(max-width: 40rem)');

export function createTerms() {
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
