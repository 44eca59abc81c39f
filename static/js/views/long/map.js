/**
 * The map of a region as a figure: its cells, its cursor, and the numbers of its rows as narrow curves
 * beside it: how spread a row is, how much of it is on the first token, how far it looks.
 */

import { ceilingOf } from '../../data/arithmetic.js';
import { tilePath } from '../../api/calls.js';
import { valueIn } from '../../data/trace.js';
import { amount, grouped, share, percent, positionLabels, quoted } from '../../data/format.js';
import { sequential, translucent } from '../../plot/colour.js';
import { isNarrow } from '../../plot/figure.js';
import { squaresFigure } from '../../plot/map.js';
import { overviewAsk } from '../registry.js';
import {
  isPastTraining,
  LEAST,
  regionAfter,
  resolutionInWords,
  sizeOf,
  textsOf,
  writtenOf,
} from './subject.js';

/**
 * @import { Matrix, NamedArray, Token, Trace } from '../../data/trace.js'
 * @import { Drawing, Figure, Frame, ViewState } from '../../plot/figure.js'
 * @import { Box, Cell, Grid } from '../../plot/grid.js'
 * @import { Part, Region, Shown } from './subject.js'
 */

/** The share of the values that have a colour of their own. */
const COLOURED = 0.995;
/** The strongest cells that are named. */
const N_STRONGEST = 3;
/** Marks in the sentence are of single tokens; bins of more would mark a page of it. */
const MOST_MARKED = 16;

/** @typedef {{title: string, trace: Trace, state: ViewState, pool: 'mean'|'max', attention: string, whole: Shown, shown: Shown, tile: Record<string, string|number>|null}} Subject */

/** @param {Subject} subject @returns {Figure} */
export function mapFigure(subject) {
  const { title, trace, state, pool, attention, shown } = subject;
  const { matrix, region, rows, columns, width } = shown;
  const texts = textsOf(trace, state);
  const trained = trace.card?.trained_tokens ?? 0;
  const resolution = resolutionInWords(width, pool);
  const isExact = resolution === 'exact';
  // Far into a text all weights are near 0: from 0 to 1 a part of it would be blank.
  const isWhole = writtenOf(region, sizeOf(trace, state)).length === 0;
  const isToOne = isExact && isWhole && state.range === 'one';
  const top = isToOne ? 1 : ceilingOf(matrix.data, COLOURED);
  const found = state.answers?.rows?.trace;
  const isRefused = Boolean(state.answers?.rows?.problem); // in a saved page
  const strips = isRefused
    ? []
    : [
        ...stripsOf(found?.tensors, attention, state.head, rows),
        ...(isPastTraining(trace, state)
          ? [lossStrip(found?.analyses?.next_token?.following, rows)]
          : []),
      ];
  const grid = gridOf(subject, strips, top);
  /** @param {Cell} cell */
  const told = ({ row, column }) => grid.tip(row, column).join(', ');
  const most = strongestIn(matrix).map(told);
  const place = placeInWords(region, texts);
  const edges = edgesOf(shown, trained);
  const drawing = squaresFigure(
    {
      matrix,
      rows: labelsOf(rows, texts.rows),
      columns: labelsOf(columns, texts.columns),
      titles: { rows: 'query: attends', columns: 'key: attended to' },
      scale: {
        bottom: 0,
        top,
        ...(!isToOne && { ticks: { tickvals: [0, top], ticktext: ['0', `≥ ${amount(top, 2)}`] } }),
        colours: sequential(state.palette.theme),
      },
      quantity: isExact ? 'attention weight' : `weight, ${resolution}`,
    },
    { ...state, width: state.width - stripRoom(strips.length, state.width).all },
  );
  return {
    title: `${title}, ${resolution}`,
    summary: `${place}; ${resolution}. Strongest: ${most.join('; ')}.`,
    facts: [
      ['Region', place],
      ['Each cell', resolution],
      ...(grid.picked ? [['Marked', told(grid.picked)]] : []),
      ['Strongest', most[0] ?? 'none'],
      ...(Object.values(edges).some((edge) => edge !== null)
        ? [
            [
              'Trained length',
              `${grouped(trained)} tokens, the line; no later position was in training`,
            ],
          ]
        : []),
    ],
    ...withTrainedLine(withStrips(drawing, strips, state), shown, { ...edges, strips }, state),
    grid,
  };
}

/** @typedef {{down: number|null, across: number|null}} Edges in cells; null: not in sight */

/**
 * The end of the positions of the training.
 * @param {Shown} shown
 * @param {number} trained
 * @returns {Edges}
 */
function edgesOf({ region, width }, trained) {
  /** @param {Part} part @param {number} of @returns {number|null} */
  const edge = ([first, last], of) =>
    trained > first && trained < last ? (trained - first) / of - 0.5 : null;
  return { down: edge(region.queries, width.down), across: edge(region.keys, width.across) };
}

/**
 * A line after the last position that was in training, on both sides of the map and through the
 * numbers of the rows.
 * @param {Drawing} drawing
 * @param {Shown} shown
 * @param {Edges & {strips: Strip[]}} edges
 * @param {ViewState} state
 * @returns {Drawing}
 */
function withTrainedLine(
  { data, layout },
  { rows, columns },
  { down, across, strips },
  { palette },
) {
  const line = { color: palette.beam, width: 1.5, dash: 'dash' };
  const span =
    strips.length > 0 ? { xref: 'paper', x0: 0, x1: 1 } : { x0: -0.5, x1: columns.length - 0.5 };
  const shapes = [
    ...(down === null ? [] : [{ type: 'line', ...span, y0: down, y1: down, line }]),
    ...(across === null
      ? []
      : [{ type: 'line', x0: across, x1: across, y0: -0.5, y1: rows.length - 0.5, line }]),
  ];
  return { data, layout: { ...layout, shapes: [...(layout.shapes ?? []), ...shapes] } };
}

/** @param {Matrix} matrix @returns {Cell[]} the strongest first */
function strongestIn({ columns, data }) {
  /** @type {number[]} */
  const best = [];
  data.forEach((value, at) => {
    const last = best[N_STRONGEST - 1];
    if (!(value > 0) || (last !== undefined && value <= data[last])) return;
    const place = best.findIndex((other) => data[other] < value);
    best.splice(place < 0 ? best.length : place, 0, at);
    best.length = Math.min(best.length, N_STRONGEST);
  });
  return best.map((at) => ({ row: Math.floor(at / columns), column: at % columns }));
}

/**
 * @param {Subject} subject
 * @param {Strip[]} strips
 * @param {number} top of the colours
 * @returns {Grid}
 */
function gridOf({ trace, state, pool, whole, shown, tile }, strips, top) {
  const { matrix, region, rows, columns, width } = shown;
  const texts = textsOf(trace, state);
  const size = sizeOf(trace, state);
  const resolution = resolutionInWords(width, pool);
  const isExact = resolution === 'exact';
  const much = isExact ? 'weight' : pool === 'max' ? 'at most' : 'mean weight';
  const request = overviewAsk(trace.card);
  const value = valueIn(matrix);
  /** @type {(row: number, column: number) => string} */
  const written = (row, column) =>
    Number.isNaN(value(row, column)) ? 'not yet read' : share(value(row, column), 6);
  /** @type {(row: number, column: number) => string} */
  const name = (row, column) =>
    `${binInWords(rows[row], texts.rows)} → ${binInWords(columns[column], texts.columns)}`;
  /** @type {(key: string, at: {row: number, column: number}|null) => {long_region: number[]}|null} */
  const move = (key, at) => {
    const about = at && { query: middle(rows[at.row]), key: middle(columns[at.column]) };
    const next = regionAfter(key, region, size, about ?? undefined);
    return next && { long_region: writtenOf(next, size) };
  };
  /** @type {(row: number, column: number) => string} */
  const describe = (row, column) => {
    const own = stripsInWords(strips, row);
    return `${name(row, column)}, ${much} ${written(row, column)}${own && `; ${own}`}`;
  };
  const picked = cellOf(state.long_cell ?? [], rows, columns);
  return {
    rows: rows.length,
    columns: columns.length,
    rowTitle: 'query',
    columnTitle: 'key',
    rowLabels: labelsOf(rows, texts.rows),
    columnLabels: labelsOf(columns, texts.columns),
    quantity: `attention weight, ${resolution}, layer ${state.layer}, head ${state.head}`,
    request,
    ...(tile && { call: { path: tilePath(tile) } }),
    ofRows: columnsOf(strips),
    value,
    format: (number) => share(number, 6),
    describe,
    tip: (row, column) => [name(row, column), written(row, column)],
    tokens: (row, column) =>
      Math.max(rows[row][1] - rows[row][0], columns[column][1] - columns[column][0]) > MOST_MARKED
        ? {}
        : { query: positionsOf(rows[row]), key: positionsOf(columns[column]) },
    choose: (row, column) =>
      isExact
        ? { long_cell: [rows[row][0], columns[column][0]] }
        : (move('+', { row, column }) ?? {}),
    chooseHint: `Enter ${isExact ? 'marks the cell, +' : 'or +'} zooms in on it, − out, 0 to the whole text, Shift and arrows move`,
    note: `${isExact ? 'Click to mark a cell.' : 'Click to zoom in.'} ${isNarrow(state.width) ? 'Two fingers move and zoom.' : 'Drag to move; Ctrl and the wheel, or a pinch, zooms.'}`,
    start: picked ?? strongestIn(matrix)[0] ?? { row: 0, column: 0 },
    picked,
    query: null,
    move,
    pan: {
      box: boxOf(region),
      most: { across: size.keys, down: size.queries },
      least: LEAST,
      layers: [whole, shown].map((one) => ({ matrix: one.matrix, box: boxOf(one.region) })),
      colours: sequential(state.palette.theme),
      top,
      patch: ({ x0, x1, y0, y1 }) => ({
        long_region: writtenOf(
          { queries: rounded(y0, y1, size.queries), keys: rounded(x0, x1, size.keys) },
          size,
        ),
      }),
    },
  };
}

/** @param {Region} region @returns {Box} */
function boxOf({ queries: [y0, y1], keys: [x0, x1] }) {
  return { x0, x1, y0, y1 };
}

/** @param {number} from @param {number} to @param {number} count @returns {Part} */
function rounded(from, to, count) {
  const length = Math.min(count, Math.max(1, Math.round(to - from)));
  const first = Math.max(0, Math.min(count - length, Math.round(from)));
  return [first, first + length];
}

/**
 * The cell of a query and a key, or the bin that holds it.
 * @param {number[]} written
 * @param {Part[]} rows
 * @param {Part[]} columns
 */
function cellOf([query, key], rows, columns) {
  /** @param {Part[]} bins @param {number} at */
  const find = (bins, at) => bins.findIndex(([first, last]) => first <= at && at < last);
  const found = { row: find(rows, query), column: find(columns, key) };
  return found.row >= 0 && found.column >= 0 ? found : null;
}

/** @param {Region} region @param {{rows: Token[], columns: Token[]}} texts */
function placeInWords({ queries, keys }, { rows, columns }) {
  const of =
    rows === columns
      ? `of ${grouped(rows.length)} tokens`
      : `of ${grouped(rows.length)} × ${grouped(columns.length)} tokens`;
  return `Queries ${partInWords(queries)}, keys ${partInWords(keys)}, ${of}`;
}

/** @param {Part} part */
function middle([first, last]) {
  return (first + last) / 2;
}

/** @param {Part} part */
function positionsOf([first, last]) {
  return Array.from({ length: last - first }, (_, index) => first + index);
}

/** @param {Part} part */
function partInWords([first, last]) {
  return `${grouped(first)} to ${grouped(last - 1)}`;
}

/** @param {Part} part @param {Token[]} tokens */
function binInWords([first, last], tokens) {
  return last - first === 1
    ? `${quoted(tokens[first])} at ${grouped(first)}`
    : `tokens ${partInWords([first, last])}`;
}

/**
 * A token by its name; a bin by its first position.
 * @param {Part[]} bins
 * @param {Token[]} tokens
 */
function labelsOf(bins, tokens) {
  if (bins.some(([first, last]) => last - first > 1)) return bins.map(([first]) => grouped(first));
  return positionLabels(
    bins.map(([first]) => tokens[first]),
    (_, index) => bins[index][0],
  );
}

/** @typedef {{id: string, title: string, short: string, label: string, values: Float64Array, format: (value: number) => string}} Strip the mean of each bin of queries; NaN: none */

const TEXT_SIZE = 11;
/** Pixels after the map into which its last slanted label reaches. */
const LABELS = 34;

/** The sites of an attention whose numbers are shown, the unit of each and how it is written. */
const STATISTICS = [
  {
    id: 'entropy',
    title: 'Entropy',
    short: 'entropy',
    label: 'entropy of the row',
    unit: 1 / Math.LN2,
    format: (/** @type {number} */ value) => `${amount(value)} bits`,
  },
  {
    id: 'first_token',
    title: 'On the first',
    short: 'on first',
    label: 'weight on the first token',
    unit: 1,
    format: (/** @type {number} */ value) => percent(value),
  },
  {
    id: 'mean_distance',
    title: 'Distance',
    short: 'distance',
    label: 'mean distance',
    unit: 1,
    format: (/** @type {number} */ value) =>
      `${value < 1000 ? amount(value) : grouped(Math.round(value))} tokens`,
  },
];

/** Between two texts there is no distance. @param {string} attention its path */
export function statisticsOf(attention) {
  return STATISTICS.filter(
    ({ id }) => id !== 'mean_distance' || !attention.endsWith('cross_attention'),
  );
}

/**
 * The statistics of one head, by bins of queries.
 * @param {Record<string, NamedArray>|undefined} tensors absent: not known yet
 * @param {string} attention its path
 * @param {number} head
 * @param {Part[]} rows
 * @returns {Strip[]}
 */
export function stripsOf(tensors, attention, head, rows) {
  return statisticsOf(attention).map(({ id, unit, ...strip }) => {
    const found = tensors?.[`${attention}.${id}`];
    const count = found?.shape.at(-1) ?? 0;
    return { id, ...strip, values: means(found?.data, head * count, rows, unit) };
  });
}

/**
 * The loss of the token after each query, by bins of queries; the last token predicts none.
 * @param {NamedArray|undefined} following the probabilities that these tokens had
 * @param {Part[]} rows
 * @returns {Strip}
 */
export function lossStrip(following, rows) {
  const count = following?.shape[0] ?? 0;
  const losses = following && Float64Array.from(following.data, (value) => -Math.log2(value));
  const bins = rows.map(([first, last]) => /** @type {Part} */ ([first, Math.min(last, count)]));
  return {
    id: 'loss',
    title: 'Loss',
    short: 'loss',
    label: 'loss of the next token',
    values: means(losses, 0, bins),
    format: (value) => `${amount(value)} bits`,
  };
}

/**
 * @param {ArrayLike<number>|undefined} data
 * @param {number} offset
 * @param {Part[]} bins
 * @param {number} unit a factor
 */
function means(data, offset, bins, unit = 1) {
  return Float64Array.from(bins, ([first, last]) => {
    if (!data) return NaN;
    let sum = 0;
    for (let at = first; at < last; at += 1) sum += data[offset + at];
    return last > first ? (unit * sum) / (last - first) : NaN;
  });
}

/**
 * @param {Strip[]} strips
 * @param {number} row
 * @returns {string} `entropy of the row 3.2 bits, …`; '' if nothing is known
 */
export function stripsInWords(strips, row) {
  return strips
    .filter(({ values }) => !Number.isNaN(values[row]))
    .map(({ label, values, format }) => `${label} ${format(values[row])}`)
    .join(', ');
}

/** @param {Strip[]} strips @returns {Grid['ofRows']} */
export function columnsOf(strips) {
  return strips.map(({ label, values, format }) => ({
    label,
    value: (row) => values[row],
    format,
  }));
}

/**
 * @param {number} count of strips
 * @param {number} width pixels of the drawing
 * @returns {{each: number, gap: number, lead: number, all: number}} pixels
 */
export function stripRoom(count, width) {
  const [each, gap, lead] = isNarrow(width) ? [20, 5, 5] : [64, 14, LABELS];
  return { each, gap, lead, all: lead + count * each + (count - 1) * gap };
}

/**
 * The drawing of a map, with strips to its right whose rows are the map's.
 * @param {Drawing} drawing of a map that leaves their room
 * @param {Strip[]} strips
 * @param {Frame} frame
 * @returns {Drawing}
 */
export function withStrips({ data, layout }, strips, { palette, width }) {
  const room = stripRoom(strips.length, width);
  const across = layout.width - layout.margin.l - layout.margin.r;
  const all = across + room.all;
  const narrow = isNarrow(width);
  /** @param {number} at @returns {[number, number]} */
  const domain = (at) => {
    const start = across + room.lead + at * (room.each + room.gap);
    return [start / all, (start + room.each) / all];
  };
  const axes = strips.map(({ values }, at) => [
    `xaxis${at + 2}`,
    {
      domain: domain(at),
      anchor: 'y',
      range: [0, topOf(values)],
      showticklabels: false,
      ticks: '',
      showgrid: false,
      zeroline: true,
      zerolinecolor: palette.line,
      zerolinewidth: 1,
    },
  ]);
  const titles = strips.map(({ title, short, values, format }, at) => ({
    text: narrow
      ? short
      : `${title}<br>${Number.isNaN(values[0]) ? '' : `0 – ${format(topOf(values)).replace(' tokens', '')}`}`,
    showarrow: false,
    xref: 'paper',
    yref: 'paper',
    x: narrow ? (domain(at)[0] + domain(at)[1]) / 2 : domain(at)[0],
    xanchor: narrow ? 'center' : 'left',
    y: 1,
    yanchor: 'bottom',
    yshift: 6,
    align: 'left',
    ...(narrow && { textangle: -90 }),
    font: { size: narrow ? TEXT_SIZE - 1 : TEXT_SIZE, color: palette.muted },
  }));
  /** Of the map's own words only the colour bar's stand right of the strips. */
  const words = (layout.annotations ?? []).map((/** @type {any} */ one) =>
    one.yanchor === 'bottom' ? { ...one, x: one.x * (across / all) } : one,
  );
  return {
    data: [...data, ...strips.map((strip, at) => curve(strip, at, palette.query))],
    layout: {
      ...layout,
      width: layout.width + room.all,
      annotations: [...words, ...titles],
      xaxis: { ...layout.xaxis, domain: [0, across / all] },
      ...Object.fromEntries(axes),
    },
  };
}

/** @param {Float64Array} values */
function topOf(values) {
  return values.reduce((most, value) => (value > most ? value : most), 0) || 1;
}

/** @param {Strip} strip @param {number} at @param {string} color */
function curve({ values }, at, color) {
  // Each value is as high as its row: the first and the last reach to the edges.
  const rows = [-0.5, ...values.keys(), values.length - 0.5];
  const ends = [values[0], ...values, values[values.length - 1]];
  return {
    type: 'scatter',
    mode: 'lines',
    xaxis: `x${at + 2}`,
    yaxis: 'y',
    x: ends.map((value) => (Number.isNaN(value) ? null : value)),
    y: rows,
    fill: 'tozerox',
    fillcolor: translucent(color, 0.22),
    line: { color, width: 1, shape: 'vhv' },
    hoverinfo: 'none',
  };
}
