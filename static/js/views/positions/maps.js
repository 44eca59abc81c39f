/**
 * Maps of positions, what their rows share, and the cosine similarity of rows.
 */

import { amount, signed, tick } from '../../words/numbers.js';
import { positionLabels, quoted } from '../../words/tokens.js';
import { extent, range } from '../../trace/trace.js';
import { chart } from '../../plot/chart.js';
import { cell } from '../../plot/marks/mark.js';
import { band } from '../../plot/scales.js';
import { choosing, queryOf } from '../../state/state.js';

/**
 * @import { Side } from '../../trace/attention.js'
 * @import { Request } from '../../plot/grid.js'
 * @import { Datum } from '../../plot/marks/mark.js'
 */

/**
 * @typedef {Object} Subject of all parts of the view
 * @property {'encoder'|'decoder'} stack
 * @property {string} site of the encoding that was added
 * @property {Side} side whose tokens the stack reads
 * @property {Token[]} tokens
 * @property {Matrix|null} encoding position × dimension; null: none was added
 * @property {string} scheme of a model without an added encoding; '' if one is added
 * @property {number} heads
 */

/**
 * @typedef {Object} Part of the view, with its own switches, panels and figures
 * @property {(trace: Trace, state: ViewState, subject: Subject) => Control[]} controls
 * @property {(subject: Subject, state: ViewState, trace: Trace) => string[]} panels
 * @property {(trace: Trace, state: ViewState, subject: Subject) => Record<string, Ask>} [asks]
 * @property {(trace: Trace, state: ViewState, subject: Subject) => Figure} figure
 */

/** @typedef {Meaning<Datum> & Pick<Chart, 'table'|'sentence'|'cursor'>} Said what is said of a map */

/**
 * Make a band of positions: cells over it mark their token in the sentence and choose it.
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {{side: Side, tokens: Token[]}} subject
 * @param {Partial<Band>} [options]
 * @returns {Band}
 */
export function positionBand(trace, state, { side, tokens }, options) {
  return band(positionLabels(tokens), {
    title: 'position',
    tokens: {
      side,
      query: queryOf(state, trace, side),
      choose: (position) => choosing(trace, side, position),
    },
    ...options,
  });
}

/** Say where the chosen token is, while nothing is pointed at. @param {Trace} trace @param {ViewState} state @param {{side: Side, tokens: Token[]}} subject */
export function restOf(trace, state, { side, tokens }) {
  const query = queryOf(state, trace, side);
  return { readout: `${quoted(tokens[query])} stands at position ${query}` };
}

/**
 * Draw a map of positions by dimensions on the diverging scale.
 * @param {Matrix} matrix
 * @param {{y: Band, dimensions: string[], axis: string, reach: number, bar: string, isZoomable?: boolean} & Said} channels `reach`: the end of the colour scale on both sides; `bar`: the title of its bar
 * @param {Frame} frame
 */
export function dimensionMap(matrix, channels, frame) {
  const { y, dimensions, axis, reach, bar, isZoomable, ...said } = channels;
  const { table, sentence, cursor, ...meaning } = said;
  return chart(
    {
      x: band(dimensions, { title: axis, side: 'top', space: 44 }),
      y,
      marks: [
        cell(matrix, {
          ramp: { ...RAMP, title: bar, domain: [-reach, reach], isDiverging: true },
          gap: [0, 0],
          format: fourDigits,
          ...meaning,
        }),
      ],
      size: { row: [3, 22], isZoomable },
      table,
      sentence,
      cursor,
    },
    frame,
  );
}

/** @type {Pick<Ramp, 'legend'|'write'>} */
const RAMP = { legend: 'side', write: (value) => amount(value, 3) };

/** @param {number} value */
const fourDigits = (value) => signed(value, 4);

/**
 * Draw a square map of positions by positions.
 * @param {Matrix} matrix
 * @param {{y: Band, axis: string, ramp: Ramp} & Said} channels `axis`: what a column is
 * @param {Frame} frame
 */
export function pairMap(matrix, { y, axis, ramp, table, sentence, cursor, ...said }, frame) {
  return chart(
    {
      x: band(range(matrix.columns).map(String), { title: axis, isSlanted: false }),
      y,
      marks: [
        cell(matrix, {
          ramp: { ...RAMP, ...ramp },
          gap: [0, 0],
          format: fourDigits,
          tokens: ({ row, column }) => ({ query: row, key: column }),
          ...said,
        }),
      ],
      size: { isSquare: true },
      table: { ...table, columns: { title: axis, labels: y.labels } },
      sentence,
      cursor,
    },
    frame,
  );
}

/**
 * The scale is symmetric, so that zero has the middle colour.
 * @param {Float64Array} data
 * @returns {number}
 */
export function findReach(data) {
  return extent({ data }) || 1;
}

/**
 * Draw a map of positions by dimensions or pairs.
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {Subject} subject
 * @param {Matrix} matrix
 * @param {Mapped} mapped
 */
export function positionMap(trace, state, subject, matrix, mapped) {
  const { name, axis, reach, bar, quantity, request, say } = mapped;
  return {
    summary: `${name}: ${matrix.rows} positions by ${matrix.columns} ${axis}s, none further from 0 than ${tick(reach)}.`,
    ...dimensionMap(
      matrix,
      {
        y: positionBand(trace, state, subject),
        dimensions: range(matrix.columns).map(String),
        axis,
        reach,
        bar,
        isZoomable: true,
        say,
        name: ({ row, column }) => `position ${row}, ${axis} ${column}`,
        table: { quantity, request: request ?? { capture: [subject.site] } },
        sentence: { rest: restOf(trace, state, subject) },
        cursor: { isReadFromStart: true },
      },
      state,
    ),
  };
}

/** @typedef {{name: string, axis: string, reach: number, bar: string, quantity: string, request?: Request, say: (datum: Datum) => string}} Mapped what a map shows; `bar`: the title of the bar of colours */

/**
 * Return the cosine similarity of every two rows: their dot product over the product of their
 * norms. The similarities of a zero row are 0.
 * @param {Matrix} matrix
 * @returns {Matrix} rows × rows, between −1 and 1
 */
export function cosineSimilarity({ rows, columns, data }) {
  const lengths = Float64Array.from({ length: rows }, (_, row) =>
    Math.sqrt(dot(data, row, row, columns)),
  );
  const cosines = new Float64Array(rows * rows);
  for (let a = 0; a < rows; a += 1) {
    for (let b = a; b < rows; b += 1) {
      const product = lengths[a] * lengths[b];
      const cosine =
        product === 0 ? 0 : Math.max(-1, Math.min(1, dot(data, a, b, columns) / product));
      cosines[a * rows + b] = cosine;
      cosines[b * rows + a] = cosine;
    }
  }
  return { rows, columns: rows, data: cosines };
}

/** @type {WeakMap<Matrix, Matrix>} */
const known = new WeakMap();

/**
 * Return the same, cached by matrix: for a long text it takes longer than drawing.
 * @param {Matrix} matrix not modified by the caller
 */
export function computeSimilarity(matrix) {
  const similarity = known.get(matrix) ?? cosineSimilarity(matrix);
  known.set(matrix, similarity);
  return similarity;
}

/** @param {Float64Array} data @param {number} a @param {number} b @param {number} columns */
function dot(data, a, b, columns) {
  let sum = 0;
  for (let i = 0; i < columns; i += 1) sum += data[a * columns + i] * data[b * columns + i];
  return sum;
}
