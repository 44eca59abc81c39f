/**
 * Maps of positions, the parts that their grids share, and the cosine similarity of rows.
 */

import { extent, range, valueIn } from '../../data/trace.js';
import { signed, tick, positionLabels, quoted } from '../../data/format.js';
import { diverging } from '../../plot/colour.js';
import {
  baseLayout,
  colourBar,
  colourBarTitle,
  downwards,
  isNarrow,
  labelAxis,
  labelWidth,
  letteringFor,
  heatmapTrace,
  nested,
} from '../../plot/figure.js';
import { choosing, queryOf } from '../../state/state.js';

/**
 * @import { Side } from '../../data/attention.js'
 * @import { Ask, Matrix, Token, Trace } from '../../data/trace.js'
 * @import { Drawing, Figure, Frame, ViewState } from '../../plot/figure.js'
 * @import { Grid } from '../../plot/grid.js'
 * @import { State } from '../../state/state.js'
 * @import { Control } from '../../ui/controls.js'
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

const DIMENSION_SPACE = 44;
const NUMBER_SPACE = 26;
const ROW_HEIGHT = { least: 3, most: 22 };

/**
 * A map of positions by dimensions on the diverging scale.
 * @param {Matrix} matrix
 * @param {{labels: string[], dimensions: string[], axis: string, reach: number, quantity: string, rows?: string}} named `reach`: the end of the colour scale on both sides; `rows`: the meaning of a row, if not a position
 * @param {Frame} state
 * @returns {Drawing}
 */
export function dimensionMap(
  matrix,
  { labels, dimensions, axis, reach, quantity, rows = 'position' },
  state,
) {
  const { palette, width } = state;
  const margin = marginFor(labels, width);
  const pixels = width - margin.l - margin.r;
  const height = clampHeight(matrix.rows, state.height - margin.t - margin.b);
  const lettering = letteringFor(width);
  return {
    data: [
      heatmap(matrix, { zmin: -reach, zmax: reach, colours: diverging(palette.theme) }, state),
    ],
    layout: {
      ...baseLayout(palette, { width, height: height + margin.t + margin.b, margin }),
      annotations: [colourBarTitle(quantity, palette, orientationFor(width))],
      xaxis: {
        ...labelAxis({
          labels: dimensions,
          pixels,
          title: axis,
          palette,
          lettering,
          space: DIMENSION_SPACE,
        }),
        side: 'top',
      },
      yaxis: downwards(labelAxis({ labels, pixels: height, title: rows, palette, lettering })),
    },
  };
}

/**
 * A square map of positions by positions.
 * @param {Matrix} matrix
 * @param {{labels: string[], scale: {zmin: number, zmax: number, colours: Uint8Array}, quantity: string, axes: [string, string]}} named `axes`: what rows and columns are
 * @param {Frame} state
 * @returns {Drawing}
 */
export function pairMap(matrix, { labels, scale, quantity, axes: [rows, columns] }, state) {
  const { palette, width } = state;
  const margin = marginFor(labels, width);
  const side = Math.max(
    120,
    Math.min(width - margin.l - margin.r, state.height - margin.t - margin.b),
  );
  const lettering = letteringFor(width);
  const numbers = labels.map((_, position) => String(position));
  return {
    data: [heatmap(matrix, scale, state)],
    layout: {
      ...baseLayout(palette, {
        width: side + margin.l + margin.r,
        height: side + margin.t + margin.b,
        margin,
      }),
      annotations: [clear(colourBarTitle(quantity, palette, orientationFor(width)))],
      xaxis: {
        ...labelAxis({
          labels: numbers,
          pixels: side,
          title: columns,
          palette,
          lettering,
          space: NUMBER_SPACE,
        }),
        side: 'top',
      },
      yaxis: downwards(labelAxis({ labels, pixels: side, title: rows, palette, lettering })),
    },
  };
}

/**
 * @param {Matrix} matrix
 * @param {{zmin: number, zmax: number, colours: Uint8Array}} of
 * @param {Frame} state
 */
function heatmap(matrix, { zmin, zmax, colours }, { palette, width }) {
  const bar = { ...colourBar(palette, orientationFor(width)), ...endsAt(zmin, zmax) };
  return heatmapTrace(nested(matrix), { bottom: zmin, top: zmax, colours }, bar, [0, 0]);
}

/**
 * The title stands clear of its numbers: those of a bias have three decimals.
 * @param {ReturnType<typeof colourBarTitle>} title
 */
function clear(title) {
  return 'xshift' in title ? { ...title, xshift: title.xshift + 8 } : title;
}

/**
 * Ticks at both ends of the colour bar and at three values between.
 * @param {number} zmin
 * @param {number} zmax
 */
function endsAt(zmin, zmax) {
  const tickvals = [0, 1, 2, 3, 4].map((quarter) => zmin + ((zmax - zmin) * quarter) / 4);
  return { tickvals, ticktext: tickvals.map((value) => tick(Number(value.toPrecision(3)))) };
}

/** @param {number} width */
function orientationFor(width) {
  return isNarrow(width) ? 'h' : 'v';
}

/**
 * The scale is symmetric, so that zero has the middle colour.
 * @param {Float64Array} data
 * @returns {number}
 */
export function reachOf(data) {
  return extent({ data }) || 1;
}

/** @param {string[]} labels @param {number} width */
function marginFor(labels, width) {
  const left = labelWidth(labels, letteringFor(width)) + 30;
  return isNarrow(width) ? { l: left, r: 8, t: 48, b: 58 } : { l: left, r: 84, t: 48, b: 12 };
}

/** @param {number} rows @param {number} room */
function clampHeight(rows, room) {
  return Math.max(rows * ROW_HEIGHT.least, Math.min(rows * ROW_HEIGHT.most, Math.max(room, 200)));
}

/**
 * The part that all grids of positions share: a row is a position, and choosing it chooses its
 * token.
 * @param {Trace} trace
 * @param {State} state
 * @param {{site: string, side: Side, tokens: Token[]}} subject
 * @param {Matrix} matrix
 * @param {(row: number, column: number) => number} value
 */
export function sharedGrid(trace, state, { site, side, tokens }, { rows, columns }, value) {
  const query = queryOf(state, trace, side);
  return {
    rows,
    columns,
    sides: { rows: side, columns: side },
    rowTitle: 'position',
    request: { capture: [site] },
    value,
    format: (/** @type {number} */ number) => signed(number, 4),
    choose: (/** @type {number} */ row) => choosing(trace, side, row),
    chosen: { row: query },
    start: { row: query, column: 0 },
    isReadFromStart: true,
    rest: { readout: `${quoted(tokens[query])} stands at position ${query}` },
  };
}

/**
 * A map of positions by dimensions or pairs, and its grid.
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {Subject} subject
 * @param {Matrix} matrix
 * @param {Mapped} mapped
 */
export function positionMap(trace, state, subject, matrix, { name, axis, reach, bar, ...own }) {
  const value = valueIn(matrix);
  const labels = positionLabels(subject.tokens);
  const dimensions = range(matrix.columns).map(String);
  const lettering = letteringFor(state.width);
  return {
    summary: `${name}: ${matrix.rows} positions by ${matrix.columns} ${axis}s, none further from 0 than ${tick(reach)}.`,
    ...dimensionMap(matrix, { labels, dimensions, axis, reach, quantity: bar }, state),
    grid: {
      ...sharedGrid(trace, state, subject, matrix, value),
      columnTitle: axis,
      rowLabels: labels,
      columnLabels: dimensions,
      tip: (/** @type {number} */ row, /** @type {number} */ column) => [
        `position ${row}, ${axis} ${column}`,
        signed(value(row, column), 4),
      ],
      tokens: (/** @type {number} */ row) => ({ query: row }),
      thinned: { rows: lettering, columns: { ...lettering, space: DIMENSION_SPACE } },
      ...own,
    },
  };
}

/** @typedef {Pick<Grid, 'describe'|'quantity'> & Partial<Pick<Grid, 'request'>> & {name: string, axis: string, reach: number, bar: string}} Mapped what a map shows; `bar`: beside the colours */

/**
 * The cosine similarity of every two rows: their dot product over the product of their norms. The
 * similarities of a zero row are 0.
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
 * The same, cached by matrix: for a long text it takes longer than drawing.
 * @param {Matrix} matrix not modified by the caller
 */
export function similarityOf(matrix) {
  const found = known.get(matrix) ?? cosineSimilarity(matrix);
  known.set(matrix, found);
  return found;
}

/** @param {Float64Array} data @param {number} a @param {number} b @param {number} columns */
function dot(data, a, b, columns) {
  let sum = 0;
  for (let i = 0; i < columns; i += 1) sum += data[a * columns + i] * data[b * columns + i];
  return sum;
}

/**
 * The mean, minimum and maximum similarity at each distance |i − j|.
 * @param {Matrix} cosines square
 * @returns {{mean: Float64Array, least: Float64Array, most: Float64Array}} by distance, from 0 on
 */
export function byDistance({ rows, data }) {
  const mean = new Float64Array(rows);
  const least = new Float64Array(rows).fill(Infinity);
  const most = new Float64Array(rows).fill(-Infinity);
  for (let a = 0; a < rows; a += 1) {
    for (let b = a; b < rows; b += 1) {
      const cosine = data[a * rows + b];
      const distance = b - a;
      mean[distance] += cosine / (rows - distance);
      least[distance] = Math.min(least[distance], cosine);
      most[distance] = Math.max(most[distance], cosine);
    }
  }
  return { mean, least, most };
}
