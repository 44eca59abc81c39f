/**
 * Which heads changed: for each of a place, how much of its rows moved from A to B.
 */

import { movedIn } from '../../data/change.js';
import { sequential } from '../../plot/colour.js';
import { extent, largestIn } from '../../data/matrix.js';
import { percent, tick } from '../../data/number.js';
import { weightsAt } from '../../data/places.js';
import { createMemo } from '../../state/memoize.js';
import { movedMade } from '../../data/steps.js';
import { matchOf } from './match.js';
import { showing } from './sides.js';
import { squaresFigure } from '../../plot/square_map.js';

const WHAT_MOVED =
  'How much of a head’s attention moved elsewhere: half the sum of a row’s changes, the mean of its rows.';
const STILL_ATTENDS = ' A head that is switched off still attends; it only writes nothing.';
const CELL = 44;
const AROUND = 80;

/**
 * @param {{a: import('./sides.js').Side, b: import('./sides.js').Side}} sides of one model
 * @param {Object} state
 * @returns {Partial<import('../../plot/figure.js').Figure>}
 */
export function headsFigure({ a, b }, state) {
  const moved = movedByHead(a, b);
  const layers = weightsAt(a.place, a.trace).map(({ layer }) => layer);
  const most = largestIn(moved);
  return {
    help:
      WHAT_MOVED +
      (state.compare_with === 'edit' && state.compare_edit === 'heads' ? STILL_ATTENDS : ''),
    summary: `Change of attention by layer and head: ${moved.rows} layers of ${moved.columns} heads.`,
    ...squaresFigure(
      {
        matrix: moved,
        rows: layers.map((layer) => `layer ${layer}`),
        columns: Array.from({ length: moved.columns }, (_, head) => String(head)),
        titles: { rows: '', columns: 'head' },
        quantity: 'moved',
        numbers: percentUpTo(extent(moved)),
        scale: {
          bottom: 0,
          top: extent(moved) || 1,
          colours: sequential(state.palette.theme),
          write: percentOnBar,
        },
      },
      { ...state, height: Math.min(state.height, moved.rows * CELL + AROUND) },
    ),
    grid: gridOf(moved, layers, most, { a, b }, state),
  };
}

/** Small changes have a digit more. */
function percentUpTo(top) {
  const digits = top < 0.1 ? 1 : 0;
  return (value) => percent(value, digits).replace(' %', '');
}

function percentOnBar(value) {
  return `${tick(Number((100 * value).toPrecision(2)))} %`;
}

/**
 * A way to the head that changed most, unless it is shown already.
 * @param {{a: import('./sides.js').Side, b: import('./sides.js').Side}} sides of one model
 * @param {Object} state
 * @returns {{label: string, patch: Object}[]}
 */
export function wayToMost({ a, b }, state) {
  const moved = movedByHead(a, b);
  const { row, column } = largestIn(moved);
  const { layer } = weightsAt(a.place, a.trace)[row];
  if (moved.data[row * moved.columns + column] === 0 || (layer === a.layer && column === a.head))
    return [];
  return [
    {
      label: `Show the head that changed most: layer ${layer}, head ${column}`,
      patch: showing({ a }, state, { layer, head: column }),
    },
  ];
}

const memo = createMemo();

function movedByHead(a, b) {
  return memo([a.trace, b.trace, a.place.id], () => countMoved(a, b));
}

function countMoved(a, b) {
  const sites = weightsAt(a.place, a.trace);
  const [rows, columns] = [a.place.rows, a.place.columns].map((side) => matchOf(a, b, side).pairs);
  const nHeads = a.trace.tensors[sites[0].site].shape[0];
  const data = sites.flatMap(({ site }) =>
    Array.from({ length: nHeads }, (_, head) =>
      movedIn(a.trace.tensors[site], b.trace.tensors[site], head, rows, columns),
    ),
  );
  return { rows: sites.length, columns: nHeads, data: Float64Array.from(data) };
}

function gridOf({ rows, columns, data }, layers, most, { a, b }, state) {
  const value = (row, column) => data[row * columns + column];
  const sites = weightsAt(a.place, a.trace).map(({ site }) => site);
  return {
    rows,
    columns,
    rowTitle: 'layer',
    columnTitle: 'head',
    rowLabels: layers.map((layer) => `layer ${layer}`),
    columnLabels: Array.from({ length: columns }, (_, head) => String(head)),
    quantity: `share of attention that moved from A (${a.name}) to B (${b.name})`,
    request: { ...b.request, capture: sites },
    before: { ...a.request, capture: sites },
    made: movedMade(
      sites,
      ...[a.place.rows, a.place.columns].map((side) => matchOf(a, b, side).pairs),
    ),
    value,
    format: (share) => percent(share),
    describe: (row, column) =>
      `Layer ${layers[row]}, head ${column}: ${percent(value(row, column))} of its attention moved between A and B`,
    tip: (row, column) => [`layer ${layers[row]}, head ${column}`, percent(value(row, column))],
    tokens: () => ({}),
    choose: (row, column) => showing({ a }, state, { layer: layers[row], head: column }),
    chooseHint: 'Enter shows the head in the maps above',
    note: 'Choose a head to see it in the maps above.',
    chosen: { row: layers.indexOf(a.layer), column: a.head },
    start: most,
  };
}
