/**
 * Attention: one head's weights, every query by every key; or its scores, or several heads at once.
 */

import { noticeOf } from '../core/answers.js';
import { FIELDS } from '../core/attention_switches.js';
import { capitalised } from '../core/text.js';
import { placeOf, placesOf } from '../core/places.js';
import { choosing } from '../core/state.js';
import { controlsFor } from './attention_controls.js';
import { matrixDrawing } from './attention_drawing.js';
import { chosenIn, gridOf } from './attention_grid.js';
import { notesOf } from './attention_notes.js';
import { asks, settingOf, subjectOf } from './attention_subject.js';

const HEAD = ['head', 'one of several attentions that a layer runs side by side'];
const SUM = ' A row sums to 1.';

export const attention = {
  id: 'attention',
  title: 'Attention',
  help: `Each row is a token looking back: the stronger a cell’s colour, the more of that earlier token it takes in.${SUM}`,
  terms: [
    ['query', 'the token that attends (a row)'],
    ['key', 'a token it attends to (a column)'],
    HEAD,
  ],
  needs: ['*.self_attention.weights', '*.cross_attention.weights', 'analyses.head_labels'],
  fields: FIELDS,
  overview: 'heads',
  wording: (trace, state) => WORDING[placeOf(state, trace)?.id] ?? {},
  places: (trace) => (placesOf(trace).length > 1 ? placesOf(trace) : []),
  place: (trace, state) => placeOf(state, trace)?.id,
  asks,
  controls: (trace, state) => {
    const setting = settingOf(trace, state);
    return setting ? controlsFor(setting) : [];
  },
  figure,
};

/** What is said differently where a token does not only look back. */
const WORDING = {
  encoder: {
    help: `Each row is a token looking both ways: the stronger a cell’s colour, the more of that token it takes in.${SUM}`,
  },
  cross: {
    help: `Each row is a token of the target looking at the source: what it takes in helps to choose the token that comes after it.${SUM}`,
    terms: [
      ['query', 'the token of the target that attends (a row)'],
      ['key', 'a token of the source it attends to (a column)'],
      HEAD,
    ],
  },
};

/**
 * @param {import('../core/trace.js').Trace} trace
 * @param {import('../core/state.js').State & import('../core/figure.js').Frame} state
 * @returns {import('../core/figure.js').Figure}
 */
function figure(trace, state) {
  const setting = settingOf(trace, state);
  if (!setting) return { title: 'Attention', notice: 'This trace holds no attention weights.' };
  const awaited = Object.keys(asks(trace, state)).map((name) => noticeOf(state.answers?.[name])).find(Boolean);
  if (awaited) return { title: 'Attention', notice: awaited };
  const subject = subjectOf(trace, state, setting);
  const { name, quantity, matrix } = subject;
  if (matrix.rows * matrix.columns === 0) return { title: capitalised(name), notice: 'Every token is hidden. Hide fewer of them to see the map.' };
  const chosen = chosenIn(trace, state, subject);
  return {
    title: capitalised(name) + quantity.suffix,
    summary: `${capitalised(quantity.noun)} of ${name}: ${matrix.rows} queries by ${matrix.columns} keys.`,
    help: notesOf(trace, subject),
    ...matrixDrawing(state, subject, chosen.isChosen ? chosen : null),
    grid: gridOf(trace, state, subject),
    actions: actionsFor(trace, state, subject, chosen),
  };
}

/** The arithmetic of a cell can be opened where the cell is one head’s, of one query and one key. */
function actionsFor(trace, { layer, head, key }, { place, switches, matrix, quantity, columns }, { query, row, column }) {
  if (switches.which !== 'head' || switches.isWords || switches.isRenormalised || row < 0) return [];
  const value = matrix.data[row * matrix.columns + column];
  const label = Number.isNaN(value) ? 'Why is it hidden?' : `Why ${quantity.write(value)}?`;
  return [{ label, patch: { view: 'why', ...choosing(trace, place.rows, query), key: columns[column].first, layer, head } }];
}
