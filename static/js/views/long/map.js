/**
 * The map of a region as a figure: its cells, its cursor, and the numbers of its rows as narrow curves
 * next to it: how spread a row is, how much of it is on the first token, how far it looks.
 */

import { findCeiling } from '../../trace/arithmetic.js';
import { tilePath } from '../../api/calls.js';
import { amount, grouped, share, percent } from '../../words/numbers.js';
import { positionLabels, quoted } from '../../words/tokens.js';
import { chart } from '../../plot/chart.js';
import { isNarrow, band, linear } from '../../plot/scales.js';
import { cell } from '../../plot/marks/mark.js';
import { profile, ruleAt } from '../../plot/marks/decorations.js';
import { overviewAsk } from '../../api/answers.js';
import {
  isPastTraining,
  placeIn,
  regionAfter,
  resolutionInWords,
  sizeOf,
  textsOf,
  writeRegion,
} from './region.js';
import { panes } from '../../plot/panes.js';
import { roleBands } from '../../plot/roles.js';
import { structuresIn } from '../../rules/map_structure.js';

/**
 * @import { Table } from '../../plot/chart.js'
 * @import { Cell } from '../../plot/grid.js'
 * @import { Datum } from '../../plot/marks/mark.js'
 * @import { Part, Region, Shown } from './region.js'
 */

/** The share of the values that the colours tell apart. */
const COLOURED = 0.995;
/** The strongest cells that are named. */
const N_STRONGEST = 3;
/** Marks in the sentence are of single tokens; bins of more would mark a page of it. */
const MOST_MARKED = 16;

/** @typedef {{title: string, rows: Ask, trace: Trace, overview: Trace, state: ViewState, pool: 'mean'|'max', attention: string, shown: Shown, tile: Record<string, string|number>|null}} Subject */

/** @param {Subject} subject @returns {Figure} */
export function mapFigure(subject) {
  const { title, trace, state, pool, shown, tile } = subject;
  const { matrix, region, rows, columns, width } = shown;
  const { key, query, beam } = state.palette;
  const texts = textsOf(trace, state);
  const trained = trace.card?.trained_tokens ?? 0;
  const resolution = resolutionInWords(width, pool);
  const isExact = resolution === 'exact';
  // Far into a text all weights are near 0: from 0 to 1 a part of it would be blank.
  const isWhole = writeRegion(region, sizeOf(trace, state)).length === 0;
  const isToOne = isExact && isWhole && state.range === 'one';
  const top = isToOne ? 1 : findCeiling(matrix.data, COLOURED);
  const ramp = {
    title: isExact ? 'attention weight' : `weight, ${resolution}`,
    domain: /** @type {[number, number]} */ ([0, top]),
    ...(!isToOne && { ticks: [0, top], write: atLeast }),
  };
  const strips = stripsFor(subject);
  const meaning = meaningOf(subject, strips);
  /** @param {Cell} at */
  const told = ({ row, column }) => {
    const datum = { row, column, value: matrix.data[row * columns.length + column] };
    return `${meaning.name(datum)}, ${meaning.number(datum)}`;
  };
  const most = strongestIn(matrix);
  const picked = cellOf(state.long_cell ?? [], rows, columns);
  const place = placeInWords(region, texts);
  const lines = trainedLines(shown, trained, beam);
  const curves = state.answers?.rows?.trace;
  return {
    title: `${title}, ${resolution}`,
    held: curves ? [{ ask: subject.rows, trace: curves }] : [],
    summary: `${place}; ${resolution}. Strongest: ${most.map(told).join('; ')}.`,
    facts: [
      ['Region', place],
      ['Each cell', resolution],
      ...(picked ? [['Marked', told(picked)]] : []),
      ['Strongest', most[0] ? told(most[0]) : 'none'],
      ...structureFact(subject),
      ...(lines.length > 0
        ? [['Dashed line', `${grouped(trained)} tokens, the longest text seen in training`]]
        : []),
    ],
    ...chart(
      {
        x: band(labelsOf(columns, texts.columns), { title: 'key: attended to', ink: key }),
        y: band(labelsOf(rows, texts.rows), { title: 'query: attends', ink: query }),
        marks: [cell(matrix, { ramp, ...meaning }), ...lines, ...bandsOf(subject)],
        panes: panes(panesOf(strips, state)),
        size: { isSquare: true },
        table: {
          rows: { title: 'query' },
          columns: { title: 'key' },
          quantity: `attention weight, ${resolution}, layer ${state.layer}, head ${state.head}`,
          request: overviewAsk(trace.card),
          ...(tile && { call: { path: tilePath(tile) } }),
          ofRows: columnsOf(strips),
        },
        sentence: { query: null, parts: partsOf(subject) },
        cursor: cursorOf(subject, { isExact, picked, start: picked ?? most[0] }),
      },
      state,
    ),
  };
}

/**
 * @param {Subject} subject
 * @param {{isExact: boolean, picked: Cell|null, start?: Cell}} of
 * @returns {Partial<CellCursor>}
 */
function cursorOf(subject, { isExact, picked, start = { row: 0, column: 0 } }) {
  return {
    chooseHint: `Enter ${isExact ? 'marks the cell, +' : 'or +'} zooms in on it, − out, 0 to the whole text, Shift and arrows move`,
    note: isExact ? 'Click to mark a cell.' : 'Click to zoom in.',
    start,
    picked,
    move: movesOf(subject),
  };
}

/** Write a number at the top of colours, which stands for all above it. @param {number} value */
const atLeast = (value) => (value === 0 ? '0' : `≥ ${amount(value, 2)}`);

/** Return the bands of a conversation; a bin has the role of its first token. @param {Subject} subject */
function bandsOf({ trace, state, shown }) {
  const [rows, columns] = [shown.rows, shown.columns].map((bins) =>
    bins.map(([first]) => ({ first })),
  );
  return roleBands(trace, placeIn(trace, state), { rows, columns });
}

/** Mark the longest text of training. @param {Shown} shown @param {number} trained @param {string} stroke */
function trainedLines(shown, trained, stroke) {
  const { down, across } = edgesOf(shown, trained);
  const dashed = /** @type {const} */ ({ stroke, width: 1.5, dash: 'dash' });
  return [
    ...(down === null ? [] : [ruleAt(down, { of: 'y', ...dashed })]),
    ...(across === null ? [] : [ruleAt(across, dashed)]),
  ];
}

/** Return the structure of the head in the whole text, and its rank. @param {Subject} subject */
function structureFact({ overview, state }) {
  const ranked = structuresIn(overview, placeIn(overview, state));
  const at = ranked.findIndex(({ layer, head }) => layer === state.layer && head === state.head);
  if (at < 0) return [];
  const rank =
    at === 0 ? `the most of ${ranked.length} heads` : `rank ${at + 1} of ${ranked.length}`;
  const share = percent(ranked[at].structure);
  return [
    [
      'Structure',
      `${share} of its weight is not where query, key and distance each put it, ${rank}`,
    ],
  ];
}

/** @param {Subject} subject */
function stripsFor({ trace, state, attention, shown: { rows } }) {
  const { trace: answer, problem } = state.answers?.rows ?? {};
  if (problem) return []; // in a saved page
  const isPast = isPastTraining(trace, state);
  return [
    ...buildStrips(answer?.tensors, attention, state.head, rows),
    ...(isPast ? [lossStrip(answer?.analyses?.next_token?.following, rows)] : []),
  ];
}

/** @typedef {{down: number|null, across: number|null}} Edges in cells; null: not in sight */

/**
 * Return the end of the positions of the training.
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

/** @param {Matrix} matrix @returns {Cell[]} the strongest first */
function strongestIn({ columns, data }) {
  /** @type {number[]} */
  const best = [];
  data.forEach((value, at) => {
    const last = best[N_STRONGEST - 1];
    if (!(value > 0) || (last !== undefined && value <= data[last])) return;
    const place = best.findIndex((index) => data[index] < value);
    best.splice(place < 0 ? best.length : place, 0, at);
    best.length = Math.min(best.length, N_STRONGEST);
  });
  return best.map((at) => ({ row: Math.floor(at / columns), column: at % columns }));
}

/** @param {Subject} subject @param {Strip[]} strips */
function meaningOf({ trace, state, pool, shown }, strips) {
  const { rows, columns, width } = shown;
  const texts = textsOf(trace, state);
  const isExact = resolutionInWords(width, pool) === 'exact';
  const much = isExact ? 'weight' : pool === 'max' ? 'at most' : 'mean weight';
  const move = movesOf({ trace, state, shown });
  /** @param {Datum} of */
  const number = ({ value }) => (Number.isNaN(value) ? 'not yet read' : share(value, 6));
  /** @param {Datum} of */
  const name = ({ row, column }) =>
    `${binInWords(rows[row], texts.rows)} → ${binInWords(columns[column], texts.columns)}`;
  /** @type {Partial<Meaning<Datum>> & {name: typeof name, number: typeof number}} */
  const meaning = {
    format: (value) => share(value, 6),
    name,
    number,
    say: (datum) => {
      const words = stripsInWords(strips, datum.row);
      return `${name(datum)}, ${much} ${number(datum)}${words && `; ${words}`}`;
    },
    tokens: ({ row, column }) =>
      Math.max(rows[row][1] - rows[row][0], columns[column][1] - columns[column][0]) > MOST_MARKED
        ? {}
        : { query: positionsOf(rows[row]), key: positionsOf(columns[column]) },
    choose: ({ row, column }) =>
      isExact
        ? { long_cell: [rows[row][0], columns[column][0]] }
        : (move('+', { row, column }) ?? {}),
  };
  return meaning;
}

/** Return the change of the region that a key makes. @param {Pick<Subject, 'trace'|'state'|'shown'>} subject */
function movesOf({ trace, state, shown: { region, rows, columns } }) {
  const size = sizeOf(trace, state);
  /** @type {(key: string, at: Cell|null) => {long_region: number[]}|null} */
  return (key, at) => {
    const about = at && { query: middle(rows[at.row]), key: middle(columns[at.column]) };
    const next = regionAfter(key, region, size, about ?? undefined);
    return next && { long_region: writeRegion(next, size) };
  };
}

/**
 * Return the cell of a query and a key, or the bin that holds it.
 * @param {number[]} written
 * @param {Part[]} rows
 * @param {Part[]} columns
 */
function cellOf([query, key], rows, columns) {
  /** @param {Part[]} bins @param {number} at */
  const find = (bins, at) => bins.findIndex(([first, last]) => first <= at && at < last);
  const cell = { row: find(rows, query), column: find(columns, key) };
  return cell.row >= 0 && cell.column >= 0 ? cell : null;
}

/** Return the tokens of the region by side, those of its queries first. @param {Subject} subject */
function partsOf({ trace, state, shown: { region } }) {
  const { rows, columns } = placeIn(trace, state);
  const { queries, keys } = region;
  return rows === columns ? { [rows]: [queries, keys] } : { [rows]: [queries], [columns]: [keys] };
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

/**
 * Return the statistics of rows. Between two texts there is no distance.
 * @param {string} attention its path
 */
export function statisticsOf(attention) {
  return STATISTICS.filter(
    ({ id }) => id !== 'mean_distance' || !attention.endsWith('cross_attention'),
  );
}

/**
 * Return the statistics of one head, by bins of queries.
 * @param {Record<string, NamedArray>|undefined} tensors absent: not known yet
 * @param {string} attention its path
 * @param {number} head
 * @param {Part[]} rows
 * @returns {Strip[]}
 */
export function buildStrips(tensors, attention, head, rows) {
  return statisticsOf(attention).map(({ id, unit, ...strip }) => {
    const numbers = tensors?.[`${attention}.${id}`];
    const count = numbers?.shape.at(-1) ?? 0;
    return { id, ...strip, values: means(numbers?.data, head * count, rows, unit) };
  });
}

/**
 * Return the loss of the token after each query, by bins of queries; the last token predicts none.
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

/** @param {Strip[]} strips @returns {Table['ofRows']} */
export function columnsOf(strips) {
  return strips.map(({ label, values, format }) => ({
    label,
    value: (row) => values[row],
    format,
  }));
}

/** Pixels of a strip, before it, and before the first, into which the last slanted label reaches. */
const STRIP = { wide: [64, 14, 34], narrow: [20, 5, 5] };

/** @param {Strip[]} strips @param {Frame} frame @returns {Pane[]} */
function panesOf(strips, { palette, width }) {
  const narrow = isNarrow(width);
  const [pixels, gap, lead] = narrow ? STRIP.narrow : STRIP.wide;
  return strips.map(({ title, short, values, format }, at) => {
    const top = values.reduce((most, value) => (value > most ? value : most), 0) || 1;
    const reach = Number.isNaN(values[0]) ? '' : `0 – ${format(top).replace(' tokens', '')}`;
    return {
      x: linear('', { domain: [0, top], ticks: [], hasZero: true }),
      marks: [profile(values, { stroke: palette.query })],
      pixels,
      gap: at === 0 ? lead : gap,
      title: narrow ? [short] : [title, reach],
    };
  });
}
