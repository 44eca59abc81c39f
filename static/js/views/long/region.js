/**
 * The subject of the overview: the attention of a place, its region and the numbers at hand for it. A
 * region counts tokens; of what is pooled, each bin has as many of them as the server's rule gives it.
 */

import { placesThat, tokensOf } from '../../trace/attention.js';
import { grouped } from '../../words/numbers.js';
import { isCausal, layersWith, matrixAt } from '../../trace/trace.js';
import { deepEqual } from '../../state/state.js';

/** @import { Place } from '../../trace/attention.js' */

/**
 * @typedef {Object} Shown one map, whole or a part
 * @property {Matrix} matrix NaN: after the query
 * @property {Region} region
 * @property {Part[]} rows bins of queries
 * @property {Part[]} columns bins of keys
 * @property {{down: number, across: number}} width tokens of a bin
 */

/**
 * Return the attentions of a model, of which a translator has three.
 * @param {Trace} trace
 * @returns {Place[]} the one that is shown first, first
 */
export function placesIn(trace) {
  const kind = trace.card?.kind ?? 'decoder';
  return placesThat(trace, ({ id }) => kind === 'encoder-decoder' || id === kind);
}

/** @param {Trace} trace @param {{where: string}} state @returns {Place} */
export function placeIn(trace, { where }) {
  const places = placesIn(trace);
  return places.find(({ id }) => id === where) ?? places[places.length - 1];
}

/**
 * Return the trace with the whole maps: the page's own, if its text is too long for any other view.
 * @param {Trace} trace
 * @param {ViewState} state
 * @returns {Trace|undefined}
 */
export function overviewOf(trace, state) {
  return trace.resolution ? trace : state.answers?.overview?.trace;
}

/** Return the path of an attention. @param {Trace} trace @param {ViewState} state */
export function attentionOf(trace, state) {
  const { stack, ending } = placeIn(trace, state);
  return `${stack}.layers.${Math.min(state.layer, (trace.card?.n_layers ?? Infinity) - 1)}.${ending}`;
}

/** @param {Trace} trace @param {ViewState} state @returns {{rows: Token[], columns: Token[]}} */
export function textsOf(trace, state) {
  const { rows, columns } = placeIn(trace, state);
  return { rows: tokensOf(trace, rows), columns: tokensOf(trace, columns) };
}

/** @param {Trace} trace @param {ViewState} state @returns {Size} */
export function sizeOf(trace, state) {
  const { rows, columns } = textsOf(trace, state);
  return { queries: rows.length, keys: columns.length };
}

/**
 * Return true if the text is longer than those of the training, so that its loss by position is of
 * use.
 * @param {Trace} trace
 * @param {ViewState} state
 */
export function isPastTraining(trace, state) {
  const { trained_tokens: trained = 0, kind } = trace.card ?? {};
  const { rows } = textsOf(trace, state);
  return kind === 'decoder' && trained > 0 && trained < rows.length;
}

/** @param {Trace} trace @param {ViewState} state */
export function regionIn(trace, state) {
  return readRegion(state.long_region ?? [], sizeOf(trace, state));
}

/**
 * Return the region for which a tile is asked; null: it is part of the whole map, or no finer.
 * @param {Trace} overview
 * @param {ViewState} state
 * @returns {Region|null}
 */
export function tiledRegion(overview, state) {
  const region = regionIn(overview, state);
  const size = sizeOf(overview, state);
  const bins = overview.resolution ?? 1;
  const isFine =
    writeRegion(region, size).length === 0 &&
    binWidth(size.queries, bins) === binWidth(size.queries) &&
    binWidth(size.keys, bins) === binWidth(size.keys);
  const attention = attentionOf(overview, state);
  const { queries, keys } = region;
  const { tile, tiles } = overview;
  const wanted = [attention, String(state.head), queries.join(':'), keys.join(':')];
  const isKept = tile
    ? deepEqual([tile.attention, tile.head, tile.queries, tile.keys], wanted)
    : (tiles?.includes(attention) ?? true);
  const nCells = (queries[1] - queries[0]) * (keys[1] - keys[0]);
  return isFine || !isKept || nCells > MOST_TILE_CELLS ? null : region;
}

/**
 * If every cell is exact, the server sends the weights once, as their mean.
 * @param {Record<string, NamedArray>} tensors
 * @param {string} prefix
 * @param {'mean'|'max'} pool
 */
function mapOf(tensors, prefix, pool) {
  return tensors[`${prefix}${pool}_map`] ?? tensors[`${prefix}mean_map`];
}

/**
 * Return the part of the whole map that a region covers, in whole bins.
 * @param {Trace} overview
 * @param {ViewState} state
 * @param {Region} wanted
 * @returns {Shown|null}
 */
export function ofWhole(overview, state, wanted) {
  const attention = attentionOf(overview, state);
  const map = mapOf(overview.tensors, `${attention}.`, state.long_pool ?? 'mean');
  if (!map) return null;
  const size = sizeOf(overview, state);
  const bins = overview.resolution ?? 1;
  const width = { down: binWidth(size.queries, bins), across: binWidth(size.keys, bins) };
  const region = snapped(wanted, size, bins);
  const whole = matrixAt(map, state.head);
  const rows = divideIntoBins(region.queries, width.down);
  const columns = divideIntoBins(region.keys, width.across);
  const [top, left] = [region.queries[0] / width.down, region.keys[0] / width.across];
  const data = new Float64Array(rows.length * columns.length);
  rows.forEach((_, row) => {
    const start = (top + row) * whole.columns + left;
    data.set(whole.data.subarray(start, start + columns.length), row * columns.length);
  });
  const matrix = { rows: rows.length, columns: columns.length, data };
  return withoutFuture({ matrix, region, rows, columns, width }, attention);
}

/**
 * @param {Pick<Trace, 'tensors'>} tile
 * @param {Region} region
 * @param {string} attention
 * @param {'mean'|'max'} pool
 * @returns {Shown|null}
 */
export function ofTile({ tensors }, region, attention, pool) {
  const map = mapOf(tensors, '', pool);
  if (!map) return null;
  const { queries, keys } = region;
  const shown = {
    matrix: matrixAt(map),
    region,
    rows: divideIntoBins(queries),
    columns: divideIntoBins(keys),
    width: { down: binWidth(queries[1] - queries[0]), across: binWidth(keys[1] - keys[0]) },
  };
  return withoutFuture(shown, attention);
}

/**
 * Cells whose keys all come after their queries hold no weight.
 * @param {Shown} shown
 * @param {string} attention
 * @returns {Shown}
 */
function withoutFuture(shown, attention) {
  if (!isCausal(`${attention}.weights`)) return shown;
  const { matrix, rows, columns } = shown;
  const data = matrix.data.map((value, at) => {
    const [key] = columns[at % matrix.columns];
    return key >= rows[Math.floor(at / matrix.columns)][1] ? NaN : value;
  });
  return { ...shown, matrix: { ...matrix, data } };
}

/**
 * Return a trace whose weights are the whole maps of all heads of a place, as the maps of a short text
 * are drawn.
 * @param {Trace} trace
 * @param {ViewState} state
 * @returns {Trace|null} null: they are not there yet
 */
export function traceOfMaps(trace, state) {
  const overview = overviewOf(trace, state);
  if (!overview) return null;
  const { stack, ending } = placeIn(overview, state);
  const map = `${state.long_pool ?? 'mean'}_map`;
  const tensors = layersWith(overview.tensors, `${ending}.${map}`, stack).map(({ site }) => [
    `${site.slice(0, -map.length)}weights`,
    overview.tensors[site],
  ]);
  return { ...overview, tensors: Object.fromEntries(tensors) };
}

/** The most bins a side. */
export const BINS = 256;
/** The fewest tokens a side that are worth looking at. */
const LEAST = 8;
/** The weights of which a server makes one tile; a larger region is part of the whole map. */
const MOST_TILE_CELLS = 2 ** 26;
/** The share of a side by which a step moves. */
const STEP = 0.25;

/** @typedef {[number, number]} Part the first token, and the one after the last */
/** @typedef {{queries: Part, keys: Part}} Region */
/** @typedef {{queries: number, keys: number}} Size tokens of the text that attends, and of the one attended to */

/**
 * @param {number} length in tokens
 * @param {number} [bins] the most of them
 * @returns {number} tokens of a bin: ceil(length / bins), the rule of `resolution`
 */
export function binWidth(length, bins = BINS) {
  return Math.max(1, Math.ceil(length / bins));
}

/** @param {Size} size @returns {Region} */
export function wholeOf({ queries, keys }) {
  return { queries: [0, queries], keys: [0, keys] };
}

/**
 * Return the region widened to whole bins of the whole map.
 * @param {Region} region
 * @param {Size} size
 * @param {number} bins of the whole map a side, at most
 * @returns {Region}
 */
function snapped({ queries, keys }, size, bins) {
  /** @param {Part} part @param {number} count @returns {Part} */
  const side = ([first, last], count) => {
    const width = binWidth(count, bins);
    return [Math.floor(first / width) * width, Math.min(count, Math.ceil(last / width) * width)];
  };
  return { queries: side(queries, size.queries), keys: side(keys, size.keys) };
}

/**
 * Return the region that a link names; the whole map if it names none in this text.
 * @param {number[]} written first and last of queries and of keys
 * @param {Size} size
 * @returns {Region}
 */
export function readRegion(written, size) {
  const [first, last, begin, end] = written;
  const isIn =
    written.length === 4 && first < last && begin < end && last <= size.queries && end <= size.keys;
  return isIn ? { queries: [first, last], keys: [begin, end] } : wholeOf(size);
}

/**
 * @param {Region} region
 * @param {Size} size
 * @returns {number[]} as a link has it; empty for the whole map
 */
export function writeRegion({ queries, keys }, size) {
  const isWhole = queries[1] - queries[0] === size.queries && keys[1] - keys[0] === size.keys;
  return isWhole ? [] : [...queries, ...keys];
}

/**
 * @param {number} from
 * @param {number} length
 * @param {number} count
 * @returns {Part} of this length, moved into the text
 */
function within(from, length, count) {
  const first = Math.max(0, Math.min(count - length, Math.round(from)));
  return [first, first + length];
}

/**
 * Return the region with its sides multiplied, about a place that stays where it is seen.
 * @param {Region} region
 * @param {number} factor under 1: closer
 * @param {Size} size
 * @param {{query: number, key: number}} [about] by default the middle
 * @returns {Region}
 */
export function zoomed({ queries, keys }, factor, size, about) {
  /** @param {Part} part @param {number} count @param {number} [place] */
  const side = ([first, last], count, place = (first + last) / 2) => {
    const length = Math.min(count, Math.max(LEAST, Math.round((last - first) * factor)));
    return within(place - ((place - first) * length) / (last - first), length, count);
  };
  return {
    queries: side(queries, size.queries, about?.query),
    keys: side(keys, size.keys, about?.key),
  };
}

/**
 * Return the region moved by quarters of its sides; it stops at the ends of the text.
 * @param {Region} region
 * @param {{down?: number, right?: number}} by
 * @param {Size} size
 * @returns {Region}
 */
export function moved({ queries, keys }, { down = 0, right = 0 }, size) {
  /** @param {Part} part @param {number} steps @param {number} count */
  const side = ([first, last], steps, count) => {
    const step = Math.max(1, Math.round((last - first) * STEP));
    return within(first + steps * step, last - first, count);
  };
  return { queries: side(queries, down, size.queries), keys: side(keys, right, size.keys) };
}

/**
 * Return the region that a key leads to.
 * @param {string} key `+`, `-`, `0`, `Shift+ArrowUp`
 * @param {Region} region
 * @param {Size} size
 * @param {{query: number, key: number}} [about]
 * @returns {Region|null} null for any other key
 */
export function regionAfter(key, region, size, about) {
  /** @type {Record<string, () => Region>} */
  const moves = {
    '+': () => zoomed(region, 0.5, size, about),
    '-': () => zoomed(region, 2, size, about),
    0: () => wholeOf(size),
    'Shift+ArrowUp': () => moved(region, { down: -1 }, size),
    'Shift+ArrowDown': () => moved(region, { down: 1 }, size),
    'Shift+ArrowLeft': () => moved(region, { right: -1 }, size),
    'Shift+ArrowRight': () => moved(region, { right: 1 }, size),
  };
  return moves[key]?.() ?? null;
}

/**
 * Return the tokens of each bin of a part.
 * @param {Part} part
 * @param {number} [width] tokens of a bin
 * @returns {Part[]}
 */
export function divideIntoBins([first, last], width = binWidth(last - first)) {
  return Array.from({ length: Math.ceil((last - first) / width) }, (_, bin) => [
    first + bin * width,
    Math.min(last, first + (bin + 1) * width),
  ]);
}

/**
 * Return the tokens that a cell of these bins covers.
 * @param {{down: number, across: number}} width tokens of a bin
 * @param {'mean'|'max'} pool
 * @returns {string} `exact`, or `mean of 64 × 64 tokens`
 */
export function resolutionInWords({ down, across }, pool) {
  if (down === 1 && across === 1) return 'exact';
  return `${pool === 'max' ? 'maximum' : 'mean'} of ${grouped(down)} × ${grouped(across)} tokens`;
}
