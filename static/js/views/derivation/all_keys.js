/**
 * All keys of one query side by side: a row for each key, a column for each dimension of the head,
 * and in each cell query × key. A row sums to the product that the score is made of.
 */

import { decimal, share, signed } from '../../data/format.js';
import { named, quoted, tokenLabels } from '../../data/text.js';
import { diverging } from '../../plot/colour.js';
import { isNarrow } from '../../plot/figure.js';
import { squaresFigure } from '../../plot/square_map.js';
import { productFormula } from './derivation.js';

/**
 * @import { Figure, Frame, Palette } from '../../plot/figure.js'
 * @import { Grid } from '../../plot/grid.js'
 * @import { Subject } from './steps.js'
 */

const TITLE = 'All keys of this query';
/** Pixels for the sum and the weight beside each row. */
const BESIDE = 92;
const LEAST_PITCH = 11;
const MOST_CELL = 26;

/**
 * @param {Subject} subject
 * @param {Frame} state
 * @returns {Figure}
 */
export function allKeysFigure(subject, state) {
  const { now, keys, queries } = subject;
  const { rows, columns } = now.metKeys;
  const query = quoted(queries[now.query]);
  const data = now.metKeys.data.map((value, at) => value * now.met.query[at % columns]);
  const most = data.reduce((largest, value) => Math.max(largest, Math.abs(value)), 0) || 1;
  const room = Math.min(state.width - BESIDE, 120 + columns * MOST_CELL);
  const drawing = squaresFigure(
    {
      matrix: { rows, columns, data },
      rows: tokenLabels(keys),
      columns: Array.from({ length: columns }, (_, dimension) => String(dimension)),
      titles: { rows: 'key', columns: 'dimension of the head' },
      quantity: 'query × key',
      scale: { bottom: -most, top: most, colours: diverging(state.palette.theme) },
      numbers: (value) => decimal(value, 1),
    },
    { ...state, width: room, height: Math.max(state.height, rows * (LEAST_PITCH + 1)) },
  );
  const [best] = now.row.weights.reduce(
    ([at, weight], one, key) => (one > weight ? [key, one] : [at, weight]),
    [0, -1],
  );
  return {
    title: TITLE,
    help: `The query of ${query} times each key, dimension by dimension. A row sums to query · key, the number beside it; behind the arrow is the weight.`,
    formula: productFormula(now),
    facts: [
      ['keys', String(rows)],
      ['dimensions', String(columns)],
      ['highest weight', `${share(now.row.weights[best])} for ${quoted(keys[best])}`],
    ],
    summary: `Query × key of ${query}: ${rows} keys by ${columns} dimensions.`,
    data: [...drawing.data, sumsTrace(subject, state.palette)],
    layout: widened(drawing.layout, isNarrow(room)),
    grid: gridOf(subject, data),
  };
}

/**
 * The sum of each row and its weight.
 * @param {Subject} subject
 * @param {Palette} palette
 */
function sumsTrace({ now }, palette) {
  const { products, weights, scores } = now.row;
  return {
    type: 'scatter',
    mode: 'text',
    x: Array.from(products, () => now.metKeys.columns - 0.4),
    y: Array.from(products, (_, key) => key),
    text: Array.from(products, (product, key) =>
      scores[key] === -Infinity ? 'masked' : `${signed(product, 1)} → ${share(weights[key], 2)}`,
    ),
    textposition: 'middle right',
    textfont: {
      size: 11,
      color: Array.from(products, (_, key) => (key === now.key ? palette.key : palette.ink)),
    },
    cliponaxis: false,
    hoverinfo: 'none',
  };
}

/**
 * The layout with room for the sums between the map and its colour bar.
 * @param {import('../../plot/figure.js').Layout} layout
 * @param {boolean} isBarBelow
 */
function widened(layout, isBarBelow) {
  const { margin, annotations, width } = layout;
  const [title, ...others] = annotations;
  return {
    ...layout,
    width: width + BESIDE,
    margin: { ...margin, r: margin.r + BESIDE },
    annotations: [isBarBelow ? title : { ...title, xshift: title.xshift + BESIDE }, ...others],
  };
}

/**
 * @param {Subject} subject
 * @param {Float64Array} data
 * @returns {Grid}
 */
function gridOf({ now, keys, queries, place, name, request }, data) {
  const { rows, columns } = now.metKeys;
  /** @param {number} key @param {number} dimension */
  const value = (key, dimension) => data[key * columns + dimension];
  /** @param {number} key @param {number} dimension */
  const product = (key, dimension) =>
    `${signed(now.met.query[dimension], 2)} × ${signed(now.metKeys.data[key * columns + dimension], 2)} = ${signed(value(key, dimension), 3)}`;
  /** @param {number} key */
  const sum = (key) =>
    now.row.scores[key] === -Infinity
      ? 'masked'
      : `sum ${signed(now.row.products[key], 2)}, weight ${share(now.row.weights[key])}`;
  return {
    rows,
    columns,
    sides: { rows: place.columns, columns: place.columns },
    rowTitle: 'key',
    columnTitle: 'dimension',
    rowLabels: tokenLabels(keys),
    columnLabels: Array.from({ length: columns }, (_, dimension) => `dimension ${dimension}`),
    quantity: `query × key by dimension, query ${quoted(queries[now.query])}, ${name}`,
    request,
    made: { said: 'Each row of the keys is multiplied by the row of the query.' },
    value,
    format: (number) => decimal(number, 4),
    describe: (key, dimension) =>
      `${named(keys, key)}, dimension ${dimension}: ${product(key, dimension)}; ${sum(key)}`,
    tip: (key, dimension) => [
      `${named(keys, key)}, dimension ${dimension}`,
      product(key, dimension),
    ],
    tokens: (key) => ({ query: now.query, key }),
    query: null,
    rowOf: () => -1,
    choose: (key) => ({ key }),
    chooseHint: 'Enter derives the key under the cursor',
    note: 'Choose a row to derive that key.',
    chosen: { row: now.key },
    isSigned: true,
    start: { row: now.key, column: 0 },
    rest: { readout: `${named(keys, now.key)}: ${sum(now.key)}` },
  };
}
