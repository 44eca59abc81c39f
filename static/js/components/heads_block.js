/**
 * The side of the Attention view that heads are chosen from: all of them at a glance, the range of
 * their colours, and where in this sentence the well-known kinds of head are.
 */

import { share } from '../core/number.js';
import { strongestHeads } from '../core/patterns.js';
import { placeOf } from '../core/places.js';
import { element } from './element.js';
import { createHeads } from './heads.js';

const RANGES = [['one', '0 to 1'], ['head', '0 to each head’s strongest']];

/**
 * @param {{onState: (patch: Partial<import('../core/state.js').State>) => void}} handlers
 */
export function createHeadsBlock({ onState }) {
  const heads = createHeads({ onChoose: (layer, head) => onState({ layer, head }) });
  const range = rangeControl((value) => onState({ range: value }));
  const patterns = element('div', { class: 'patterns' });
  const block = element('section', { class: 'heads-block', 'aria-label': 'All heads' },
    element('div', { class: 'heads-head' }, element('h2', {}, 'All heads'), range),
    heads.element,
    patterns,
  );
  let shown = {};
  let found = [];

  return {
    element: block,
    /**
     * @param {import('../core/trace.js').Trace} trace
     * @param {import('../core/state.js').State & import('../core/figure.js').Frame} state
     */
    show(trace, state) {
      range.querySelector(`[value="${state.range}"]`).checked = true;
      heads.show(trace, { ...state, width: block.clientWidth });
      const place = placeOf(state, trace);
      if (trace !== shown.trace || place?.id !== shown.place) {
        shown = { trace, place: place?.id };
        found = strongestHeads(trace, place);
        patterns.replaceChildren(...patternList(found, onState));
      }
      patterns.querySelectorAll('button').forEach((button, index) => {
        button.setAttribute('aria-pressed', String(found[index].layer === state.layer && found[index].head === state.head));
      });
    },
  };
}

function rangeControl(onChange) {
  const radios = RANGES.map(([value, label]) =>
    element('label', {}, element('input', { type: 'radio', name: 'range', value }), element('span', {}, label)),
  );
  const control = element('fieldset', { class: 'heads-range' },
    element('legend', { class: 'unseen' }, 'Range of the colours'),
    element('span', { 'aria-hidden': 'true' }, 'Colours'),
    element('div', { class: 'segmented' }, ...radios),
  );
  control.addEventListener('change', ({ target }) => onChange(target.value));
  return control;
}

function patternList(found, onState) {
  if (found.length === 0) return [];
  return [
    element('h2', {}, 'Heads worth a look'),
    element('p', { class: 'patterns-note' }, 'For each pattern, the head that follows it most in this sentence, with its mean weight there.'),
    element('ul', {}, ...found.map(({ title, help, layer, head, score }) =>
      element('li', {}, element('button', { type: 'button', title: help, onclick: () => onState({ layer, head }) },
        element('span', { class: 'patterns-title' }, title),
        element('span', { class: 'patterns-place' }, `layer ${layer}, head ${head}`),
        element('span', { class: 'patterns-score' }, share(score, 2)),
      )),
    )),
  ];
}
