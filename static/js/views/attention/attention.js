/**
 * Attention: one head's weights, every query by every key; or its scores, or several heads at once.
 */

import { noticeOf } from '../../api/request_cache.js';
import { FIELDS } from '../../state/attention_switches.js';
import { capitalised } from '../../data/text.js';
import { hasTwoSides, placeOf, placesOf } from '../../data/places.js';
import { choosing } from '../../state/state.js';
import { controlsFor } from './controls.js';
import { leastOf, matrixDrawing } from './drawing.js';
import { chosenIn, gridOf } from './grid.js';
import { notesOf, whyNot } from './notes.js';
import { asks, settingOf, subjectOf } from './subject.js';
import { wordingFor } from './wording.js';
import { linesFigure } from '../../plot/line_map.js';

export const attention = {
  id: 'attention',
  title: 'Attention',
  ...wordingFor('decoder'),
  needs: ['*.self_attention.weights', '*.cross_attention.weights', 'analyses.head_labels'],
  fields: FIELDS,
  overview: 'heads',
  wording: (trace, state) => {
    const setting = settingOf(trace, state);
    return setting ? wordingFor(setting.place.id, setting.switches) : {};
  },
  places: (trace) => (placesOf(trace).length > 1 ? placesOf(trace) : []),
  place: (trace, state) => placeOf(state, trace)?.id,
  asks,
  controls: (trace, state) => {
    const setting = settingOf(trace, state);
    return setting ? controlsFor(setting) : [];
  },
  figure,
};

/**
 * @param {import('../../data/trace.js').Trace} trace
 * @param {import('../../state/state.js').State & import('../../plot/figure.js').Frame} state
 * @returns {import('../../plot/figure.js').Figure}
 */
function figure(trace, state) {
  const setting = settingOf(trace, state);
  if (!setting) return { title: 'Attention', notice: 'This trace holds no attention weights.' };
  const awaited = Object.keys(asks(trace, state))
    .map((name) => noticeOf(state.answers?.[name]))
    .find(Boolean);
  if (awaited) return { title: 'Attention', notice: awaited };
  const subject = subjectOf(trace, state, setting);
  const { name, quantity, matrix } = subject;
  if (matrix.rows * matrix.columns === 0)
    return {
      title: capitalised(name),
      notice: 'Every token is hidden. Hide fewer of them to see the map.',
    };
  const chosen = chosenIn(trace, state, subject);
  return {
    title: capitalised(name) + quantity.suffix,
    summary: `${capitalised(quantity.noun)} of ${name}: ${matrix.rows} queries by ${matrix.columns} keys.`,
    ...(subject.switches.as === 'lines' ? asLines : asMatrix)(trace, state, subject, chosen),
    actions: actionsFor(trace, state, subject, chosen),
  };
}

function asMatrix(trace, state, subject) {
  return {
    ...matrixDrawing(state, subject),
    help: notesOf(trace, subject),
    grid: gridOf(trace, state, subject),
  };
}

/** Of the chosen query the lines stand out. */
function asLines(trace, state, subject, { row }) {
  const grid = gridOf(trace, state, subject);
  const { data, layout, geometry, left } = linesFigure({
    rows: grid.rowLabels,
    columns: grid.columnLabels,
    weights: subject.matrix,
    titles: { rows: 'query', columns: 'key' },
    quantity: subject.quantity.noun,
    palette: state.palette,
    width: state.width,
    height: state.height,
    threshold: Math.max(0, leastOf(subject)),
    ceiling: subject.scale.top,
    chosenRow: row < 0 ? null : row,
  });
  return {
    data,
    layout,
    help: notesOf(trace, subject, left),
    grid: { ...grid, geometry, kind: 'diagram of lines', thinned: undefined },
  };
}

/** The arithmetic of a cell can be opened where the cell is one head’s, of one query and one key. */
function actionsFor(
  trace,
  { layer, head },
  { place, switches, matrix, quantity, columns },
  { query, row, column },
) {
  if (whyNot(switches) || row < 0) return [];
  const value = matrix.data[row * matrix.columns + column];
  const label = Number.isNaN(value) ? 'Why is it hidden?' : `Why ${quantity.write(value)}?`;
  return [
    {
      label,
      patch: {
        view: 'why',
        ...choosing(trace, place.rows, query),
        key: columns[column].first,
        layer,
        head,
      },
    },
    {
      label: 'What if this head is off?',
      patch: { view: 'compare', ...switchedOff(trace, place, layer, head) },
    },
  ];
}

function switchedOff(trace, place, layer, head) {
  const where = hasTwoSides(trace) ? place.id : 'all';
  return {
    compare_with: 'edit',
    compare_edit: 'heads',
    compare_heads: [head],
    compare_layer: layer,
    compare_where: where,
  };
}
