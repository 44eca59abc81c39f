/**
 * Overview: one head's map over a text of any length, pooled to a few bins a side, from the whole map
 * to exact cells. Each region is a tile that the server computes from the queries and keys it kept.
 */

import { noticeOf } from '../../api/request_cache.js';
import { largestIn } from '../../data/arithmetic.js';
import { tokensOf } from '../../data/attention.js';
import { amount, grouped, share } from '../../data/format.js';
import { positionLabels, quoted } from '../../data/text.js';
import { isCausal, matrixAt } from '../../data/trace.js';
import { sequential } from '../../plot/colour.js';
import { squaresFigure } from '../../plot/square_map.js';
import { entryOf } from '../registry.js';
import {
  BINS,
  binsOf,
  regionAfter,
  regionOf,
  resolutionInWords,
  wholeOf,
  writtenOf,
} from './region.js';

/**
 * @import { Ask, Matrix, Token, Trace } from '../../data/trace.js'
 * @import { Figure, View, ViewState } from '../../plot/figure.js'
 * @import { Grid } from '../../plot/grid.js'
 * @import { Control } from '../../ui/controls.js'
 * @import { Part, Region } from './region.js'
 */

const REQUEST = { capture: [], analyses: [], resolution: BINS };
/** The share of the pooled values that have a colour of their own. */
const COLOURED = 0.995;
/** Marks in the sentence are of single tokens; bins of more would mark a page of it. */
const MOST_MARKED = 16;

/** @type {View} */
export const long = {
  ...entryOf('long'),
  help: 'The map of the chosen head over the whole text, each cell the mean or maximum of a square of weights; closer, single weights.',
  terms: [
    ['mean of 64 × 64 tokens', 'the mean weight of 64 queries on 64 keys'],
    ['exact', 'every cell is one weight'],
  ],
  asks,
  controls,
  figure,
};

/**
 * The trace with the whole map: the page's own, if its text is too long for any other view.
 * @param {Trace} trace
 * @param {ViewState} state
 */
function overviewOf(trace, state) {
  return trace.resolution ? trace : state.answers?.overview?.trace;
}

/**
 * @param {Trace} trace
 * @param {ViewState} state
 */
function regionIn(trace, state) {
  return regionOf(state.long_region ?? [], trace.tokens.length);
}

/**
 * The map of the text, and the tile of a part of it.
 * @param {Trace} trace
 * @param {ViewState} state
 * @returns {Record<string, Ask>}
 */
function asks(trace, state) {
  /** @type {Record<string, Ask>} */
  const overview = trace.resolution ? {} : { overview: REQUEST };
  const found = overviewOf(trace, state);
  const tile = found && tileOf(found, state);
  return tile ? { ...overview, tile: { tile } } : overview;
}

/**
 * @param {Trace} overview
 * @param {ViewState} state
 * @returns {Record<string, string|number>|null} the query of a tile; null: the whole map is wanted
 */
function tileOf(overview, state) {
  const region = regionIn(overview, state);
  if (writtenOf(region, overview.tokens.length).length === 0) return null;
  return {
    id: overview.id,
    attention: attentionOf(overview, state),
    head: state.head,
    queries: region.queries.join(':'),
    keys: region.keys.join(':'),
    resolution: BINS,
  };
}

/**
 * The path of the chosen layer's self-attention.
 * @param {Trace} overview
 * @param {ViewState} state
 */
function attentionOf({ tensors, card }, { layer }) {
  const stack = Object.keys(tensors)[0]?.split('.')[0] ?? 'decoder';
  return `${stack}.layers.${Math.min(layer, (card?.n_layers ?? Infinity) - 1)}.self_attention`;
}

/**
 * @param {Trace} trace
 * @param {ViewState} state
 * @returns {Control[]}
 */
function controls(trace, state) {
  const count = trace.tokens.length;
  const region = regionIn(trace, state);
  const now = writtenOf(region, count);
  /** @param {string} label @param {string} key @returns {Control} */
  const button = (label, key) => {
    const next = writtenOf(regionAfter(key, region, count) ?? region, count);
    return {
      kind: 'button',
      label,
      patch: { long_region: next },
      disabled: next.join() === now.join(),
    };
  };
  return [
    {
      kind: 'choice',
      name: 'long_pool',
      label: 'Cells',
      value: state.long_pool,
      options: [
        { id: 'mean', title: 'Mean', help: 'Of the weights that a cell stands for' },
        { id: 'max', title: 'Maximum', help: 'Of these weights: single strong ones stay visible' },
      ],
    },
    button('Zoom in', '+'),
    button('Zoom out', '-'),
    button('Whole text', '0'),
    button('Left', 'Shift+ArrowLeft'),
    button('Right', 'Shift+ArrowRight'),
    button('Up', 'Shift+ArrowUp'),
    button('Down', 'Shift+ArrowDown'),
  ];
}

/**
 * @param {Trace} trace
 * @param {ViewState} state
 * @returns {Figure}
 */
function figure(trace, state) {
  const title = `Overview: layer ${state.layer}, head ${state.head}`;
  const overview = overviewOf(trace, state);
  if (!overview)
    return { title, notice: noticeOf(state.answers?.overview), isWaiting: isAwaited(state) };
  const tile = tileOf(overview, state);
  const part = tile ? state.answers?.tile?.trace : overview;
  if (!part) return { title, notice: noticeOf(state.answers?.tile), isWaiting: isAwaited(state) };
  const tokens = tokensOf(trace, 'source');
  const region = tile ? regionIn(overview, state) : wholeOf(tokens.length);
  const pool = state.long_pool ?? 'mean';
  const site = attentionOf(overview, state);
  const matrix = matrixOf(part, tile ? [] : [state.head], tile ? '' : `${site}.`, pool);
  if (!matrix) return { title, notice: `The trace has no map of ${site}.` };
  const rows = binsOf(region.queries);
  const columns = binsOf(region.keys);
  const shown = isCausal(`${site}.weights`) ? withoutFuture(matrix, rows, columns) : matrix;
  const trained = trace.card?.trained_tokens ?? 0;
  return drawn({ title, state, trained, tokens, region, pool, rows, columns, matrix: shown, tile });
}

/** @param {ViewState} state */
function isAwaited({ answers }) {
  return !Object.values(answers ?? {}).some(({ problem }) => problem);
}

/**
 * Where every cell is exact, the server sends the weights once, as their mean.
 * @param {Pick<Trace, 'tensors'>} part
 * @param {number[]} leading
 * @param {string} prefix
 * @param {'mean'|'max'} pool
 */
function matrixOf({ tensors }, leading, prefix, pool) {
  const found = tensors[`${prefix}${pool}_map`] ?? tensors[`${prefix}mean_map`];
  return found ? matrixAt(found, ...leading) : null;
}

/**
 * Cells whose keys all come after their queries hold no weight.
 * @param {Matrix} matrix
 * @param {Part[]} rows
 * @param {Part[]} columns
 * @returns {Matrix}
 */
function withoutFuture({ data, ...size }, rows, columns) {
  /** @param {number} at */
  const isFuture = (at) => columns[at % size.columns][0] >= rows[Math.floor(at / size.columns)][1];
  return { ...size, data: data.map((value, at) => (isFuture(at) ? NaN : value)) };
}

/** @typedef {{title: string, state: ViewState, trained: number, tokens: Token[], region: Region, pool: 'mean'|'max', rows: Part[], columns: Part[], matrix: Matrix, tile: Record<string, string|number>|null}} Subject */

/**
 * @param {Subject} subject
 * @returns {Figure}
 */
function drawn(subject) {
  const { title, state, trained, tokens, region, pool, rows, columns, matrix } = subject;
  const resolution = resolutionInWords(region, pool);
  const strongest = largestIn(matrix);
  const isExact = resolution === 'exact';
  const top = isExact && state.range === 'one' ? 1 : topOf(matrix, isExact ? 1 : COLOURED);
  const quantity = isExact ? 'attention weight' : `weight, ${resolution}`;
  const grid = gridOf(subject, strongest);
  const most = grid.describe(strongest.row, strongest.column);
  const place = `Queries ${partInWords(region.queries)}, keys ${partInWords(region.keys)}, of ${grouped(tokens.length)} tokens`;
  return {
    title: `${title}, ${resolution}`,
    summary: `${place}; ${resolution}. Strongest: ${most}.`,
    facts: [
      ['Region', place],
      ['Each cell', resolution],
      ['Strongest', most],
      ...(trained && trained < tokens.length
        ? [['Trained length', `${grouped(trained)} tokens; no later position was in training`]]
        : []),
    ],
    ...squaresFigure(
      {
        matrix,
        rows: labelsOf(rows, tokens),
        columns: labelsOf(columns, tokens),
        titles: { rows: 'query: attends', columns: 'key: attended to' },
        scale: {
          bottom: 0,
          top,
          ...(!isExact && {
            ticks: { tickvals: [0, top], ticktext: ['0', `≥ ${amount(top, 2)}`] },
          }),
          colours: sequential(state.palette.theme),
        },
        quantity,
      },
      state,
    ),
    grid,
  };
}

/**
 * The value at the end of the colours: a few strong bins, the first token's above all, would leave
 * all others pale.
 * @param {Matrix} matrix
 * @param {number} share of the positive values that are not above it
 */
function topOf({ data }, share) {
  const found = data.filter((value) => value > 0).sort();
  return found[Math.ceil(share * found.length) - 1] || 1;
}

/**
 * @param {Subject} subject
 * @param {{row: number, column: number}} strongest
 * @returns {Grid}
 */
function gridOf({ state, tokens, region, pool, rows, columns, matrix, tile }, strongest) {
  const count = tokens.length;
  const isExact = resolutionInWords(region, pool) === 'exact';
  const much = isExact ? 'weight' : pool === 'max' ? 'at most' : 'mean weight';
  /** @type {(row: number, column: number) => number} */
  const value = (row, column) => matrix.data[row * matrix.columns + column];
  /** @type {(row: number, column: number) => string} */
  const written = (row, column) =>
    Number.isNaN(value(row, column)) ? 'not yet read' : share(value(row, column), 6);
  /** @type {(row: number, column: number) => string} */
  const name = (row, column) =>
    `${binInWords(rows[row], tokens)} → ${binInWords(columns[column], tokens)}`;
  /** @type {(key: string, at: {row: number, column: number}|null) => {long_region: number[]}|null} */
  const move = (key, at) => {
    const about = at && { query: middle(rows[at.row]), key: middle(columns[at.column]) };
    const next = regionAfter(key, region, count, about ?? undefined);
    return next && { long_region: writtenOf(next, count) };
  };
  return {
    rows: rows.length,
    columns: columns.length,
    rowTitle: 'query',
    columnTitle: 'key',
    rowLabels: labelsOf(rows, tokens),
    columnLabels: labelsOf(columns, tokens),
    quantity: `attention weight, ${resolutionInWords(region, pool)}, layer ${state.layer}, head ${state.head}`,
    request: REQUEST,
    ...(tile && { call: { path: pathOf(tile) } }),
    value,
    format: (number) => share(number, 6),
    describe: (row, column) => `${name(row, column)}, ${much} ${written(row, column)}`,
    tip: (row, column) => [name(row, column), written(row, column)],
    tokens: (row, column) =>
      Math.max(rows[row][1] - rows[row][0], columns[column][1] - columns[column][0]) > MOST_MARKED
        ? {}
        : { query: positionsOf(rows[row]), key: positionsOf(columns[column]) },
    choose: (row, column) => move('+', { row, column }) ?? {},
    chooseHint:
      'Enter or + zooms in on the cell, − out, 0 to the whole text, Shift and arrows move',
    note: 'Click to zoom in; Ctrl and the wheel, or a pinch, zooms in and out.',
    start: strongest,
    query: null,
    move,
  };
}

/** @param {Record<string, string|number>} tile */
function pathOf({ id, ...query }) {
  const written = Object.entries(query).map(([name, value]) => [name, String(value)]);
  return `/api/v1/traces/${id}/tile?${new URLSearchParams(written)}`;
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

/**
 * @param {Part} part
 * @param {Token[]} tokens
 */
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
