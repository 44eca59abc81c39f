/**
 * The heads that changed: the share of each head's attention that moved between A and B.
 */

import { largestIn } from '../../trace/arithmetic.js';
import { extent, matrixAt, range, withoutFuture, buildMatrix, valueIn } from '../../trace/trace.js';
import { percent, tick } from '../../words/numbers.js';
import { heldWeightsAt, weightsAt } from '../../trace/attention.js';
import { chart } from '../../plot/chart.js';
import { cell } from '../../plot/marks/mark.js';
import { band } from '../../plot/scales.js';
import { createMemo } from '../../state/state.js';
import { byUnits, alignTokens } from './match.js';
import { isMapped, NO_ATTENTION, showing } from './sides.js';

/** @import { Pairs } from './match.js' @import { Side } from './sides.js' */

const WHAT_MOVED =
  'The share of a head’s attention that moved: half the sum of absolute changes of a row, averaged over rows.';
const STILL_ATTENDS = ' A head that is switched off still attends; only its output is 0.';
const CELL = 44;
/** The share that moves between two passes of equal weights, only from rounding. */
const ROUNDING = 1e-6;

/**
 * @param {{a: Side, b: Side}} sides of one model
 * @param {ViewState} state
 * @returns {Partial<Figure>}
 */
export function headsFigure({ a, b }, state) {
  if (!isMapped(a) || !isMapped(b)) return { notice: NO_ATTENTION };
  const moved = movedByHead(a, b);
  const places = heldWeightsAt(a.place, a.trace);
  const [layers, sites] = [places.map(({ layer }) => layer), places.map(({ site }) => site)];
  const most = extent(moved);
  const written = percentUpTo(most);
  return {
    help:
      WHAT_MOVED +
      (state.compare_with === 'edit' && state.compare_edit === 'heads' ? STILL_ATTENDS : ''),
    summary: `Change of attention by layer and head: ${moved.rows} layers of ${moved.columns} heads.`,
    ...chart(
      {
        x: band(range(moved.columns).map(String), { title: 'head' }),
        y: band(layers.map((layer) => `layer ${layer}`)),
        marks: [
          cell(moved, {
            ramp: { title: 'moved', domain: [0, most || 1], write: percentOnBar },
            text: ({ value }) => (Number.isNaN(value) ? '' : written(value)),
            format: (part) => percent(part),
            name: ({ row, column }) => `layer ${layers[row]}, head ${column}`,
            say: ({ row, column, value }) =>
              `Layer ${layers[row]}, head ${column}: ${percent(value)} of its attention moved between A and B`,
            choose: ({ row, column }) =>
              showing({ a }, state, { layer: layers[row], head: column }),
          }),
        ],
        size: { isSquare: true, row: CELL },
        table: {
          rows: { title: 'layer' },
          quantity: `share of attention that moved from A (${a.name}) to B (${b.name})`,
          request: { ...b.request, capture: sites },
          before: { ...a.request, capture: sites },
          made: 'The first answer is B, the second A: the drawing shows half the sum of absolute changes of a row, averaged over rows',
        },
        cursor: {
          chooseHint: 'Enter shows the head in the maps above',
          note: 'Choose a head to see it in the maps above.',
          start: largestIn(moved),
          chosen: { row: layers.indexOf(a.layer), column: a.head },
        },
      },
      state,
    ),
  };
}

/** Write a percentage; small ones have one more digit. @param {number} top */
function percentUpTo(top) {
  const digits = top < 0.1 ? 1 : 0;
  return (/** @type {number} */ value) => percent(value, digits).replace(' %', '');
}

/** @param {number} value */
function percentOnBar(value) {
  return `${tick(Number((100 * value).toPrecision(2)))} %`;
}

/**
 * Return a button to the head that changed most, unless it is open.
 * @param {{a: Side, b: Side}} sides of one model
 * @param {ViewState} state
 * @returns {{label: string, patch: Patch}[]}
 */
export function openMostChanged({ a, b }, state) {
  const most = mostChanged({ a, b });
  if (!isMapped(a) || !most || (most.layer === a.layer && most.head === a.head)) return [];
  const { layer, head } = most;
  return [
    {
      label: `Show the head that changed most: layer ${layer}, head ${head}`,
      patch: showing({ a }, state, { layer, head }),
    },
  ];
}

/**
 * Return the head whose attention changed most, and by how much.
 * @param {{a: Side, b: Side}} sides of one model
 * @returns {{layer: number, head: number, moved: number}|null} null: there are no maps, or nothing changed
 */
export function mostChanged({ a, b }) {
  if (!isMapped(a) || !isMapped(b)) return null;
  const shares = movedByHead(a, b);
  const { row, column } = largestIn(shares);
  const moved = shares.data[row * shares.columns + column];
  return moved > ROUNDING
    ? { layer: weightsAt(a.place, a.trace)[row].layer, head: column, moved }
    : null;
}

const memo = createMemo();

/** @param {MappedSide} a @param {MappedSide} b */
function movedByHead(a, b) {
  return memo([a.trace, b.trace, a.place.id], () => {
    const sites = weightsAt(a.place, a.trace);
    const [rows, columns] = [a.place.rows, a.place.columns].map((side) => alignTokens(a, b, side));
    const nHeads = a.trace.tensors[sites[0].site].shape[0];
    const data = sites.flatMap(({ site }) =>
      range(nHeads).map((head) => {
        const before = byUnits(weightsSeen(a.trace, site, head), rows.a, columns.a);
        const after = byUnits(weightsSeen(b.trace, site, head), rows.b, columns.b);
        return meanMoved(difference(before, after, rows.pairs, columns.pairs));
      }),
    );
    return { rows: sites.length, columns: nHeads, data: Float64Array.from(data) };
  });
}

/**
 * Return the weights of a head; the masked future of a decoder is NaN rather than 0.
 * @param {Trace} trace
 * @param {string} site
 * @param {number} head
 * @returns {Matrix}
 */
export function weightsSeen({ tensors }, site, head) {
  return withoutFuture(matrixAt(tensors[site], head), site);
}

/**
 * @param {Matrix} a
 * @param {Matrix} b
 * @param {Pairs} rows
 * @param {Pairs} columns
 * @returns {Matrix} b − a; NaN where either sees nothing
 */
export function difference(a, b, rows, columns) {
  const [inA, inB] = [valueIn(a), valueIn(b)];
  return buildMatrix(
    rows.length,
    columns.length,
    (row, column) => inB(rows[row][1], columns[column][1]) - inA(rows[row][0], columns[column][0]),
  );
}

/**
 * Return the share of attention that moved: half the sum of absolute changes of a row, averaged
 * over rows.
 * @param {Matrix} changes
 * @returns {number} 0 to 1
 */
export function meanMoved({ rows, data }) {
  const sum = data.reduce(
    (total, change) => (Number.isNaN(change) ? total : total + Math.abs(change)),
    0,
  );
  return rows === 0 ? 0 : sum / 2 / rows;
}
