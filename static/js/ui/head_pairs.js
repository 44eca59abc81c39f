/**
 * "From this token to that one: which heads?": two tokens to choose, and the heads ranked by their
 * weight on the pair.
 */

import { labelledHeads, rankedByPair, tokensOf } from '../data/attention.js';
import { share } from '../data/format.js';
import { named, positionLabels } from '../data/text.js';
import { choosing, queryOf } from '../state/state.js';
import { button, element } from './dom.js';

/**
 * @import { Place } from '../data/attention.js'
 * @import { Trace } from '../data/trace.js'
 * @import { ViewState } from '../plot/figure.js'
 * @import { Patch } from '../state/state.js'
 */

const MOST = 6;

/** @param {{onState: (patch: Patch) => void}} handlers */
export function createHeadPairs({ onState }) {
  const from = element('select', { 'aria-label': 'From the token' });
  const to = element('select', { 'aria-label': 'To the token' });
  const none = button('No pair', () => onState({ key: null }), { class: 'button pair-none' });
  const note = element('p', { class: 'patterns-note', 'aria-live': 'polite' });
  const list = element('ul', {});
  /** @type {{trace: Trace, place: Place}|null} */
  let shown = null;
  let offered = '';
  const choose = () => {
    if (!shown || to.value === '') return;
    onState({
      ...choosing(shown.trace, shown.place.rows, Number(from.value)),
      key: Number(to.value),
    });
  };
  from.addEventListener('change', choose);
  to.addEventListener('change', choose);

  return {
    element: element(
      'div',
      { class: 'patterns head-pairs', role: 'group', 'aria-label': 'Heads by a pair of tokens' },
      element(
        'div',
        { class: 'pair-choice control' },
        'From (query, reads) ',
        from,
        ' to (key, is read) ',
        to,
        none,
      ),
      list,
      note,
    ),

    /** @param {Trace} trace @param {Place} place @param {ViewState} state */
    show(trace, place, state) {
      shown = { trace, place };
      const [rows, columns] = [place.rows, place.columns].map((side) => tokensOf(trace, side));
      const labels = [positionLabels(rows), positionLabels(columns)];
      const wanted = JSON.stringify(labels);
      if (wanted !== offered) {
        from.replaceChildren(...labels[0].map(optionOf));
        to.replaceChildren(
          element('option', { value: '' }, 'a token …'),
          ...labels[1].map(optionOf),
        );
        offered = wanted;
      }
      const query = queryOf(state, trace, place.rows);
      const key = state.key !== null && state.key < columns.length ? state.key : null;
      from.value = String(query);
      to.value = key === null ? '' : String(key);
      none.hidden = key === null;
      list.hidden = key === null;
      if (key === null) {
        note.textContent =
          'Choose two tokens, or a cell of the large map, to rank all heads by it.';
        return;
      }
      const ranked = rankedByPair(trace, place, query, key);
      note.textContent =
        ranked.length === 0
          ? `${named(rows, query)} cannot attend to ${named(columns, key)}, which comes later.`
          : `${countSaid(ranked.length)} from ${named(rows, query)}, the query, which reads, to ${named(columns, key)}, the key, which is read; the cell is marked on every map. Labels are of the whole text: a “sink” may still look here.`;
      const labelled = labelledHeads(trace, place);
      /** @param {number} layer @param {number} head */
      const labelAt = (layer, head) => labelled[layer]?.heads[head]?.label?.short ?? '';
      list.replaceChildren(
        ...ranked
          .slice(0, MOST)
          .map(({ layer, head, weight }) =>
            element(
              'li',
              {},
              element(
                'button',
                {
                  type: 'button',
                  'aria-pressed': String(layer === state.layer && head === state.head),
                  onclick: () => onState({ layer, head, attention_which: 'head' }),
                },
                element('span', { class: 'patterns-title' }, `Layer ${layer}, head ${head}`),
                element('span', { class: 'patterns-place' }, labelAt(layer, head)),
                element('span', { class: 'patterns-score' }, share(weight, 2)),
              ),
            ),
          ),
      );
    },
  };
}

/** @param {number} all heads */
function countSaid(all) {
  return all > MOST
    ? `The ${MOST} of ${all} heads with the greatest weight`
    : `The weight of all ${all} heads`;
}

/** @param {string} title @param {number} index */
function optionOf(title, index) {
  return element('option', { value: String(index) }, title);
}
