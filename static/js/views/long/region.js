/**
 * The part of a map that the overview shows: whole, closer, further, moved. A region counts tokens;
 * of what is pooled, each bin has as many of them as the server's rule gives it.
 */

import { grouped } from '../../data/format.js';

/** The most bins a side. */
export const BINS = 256;
/** The fewest tokens a side that are worth looking at. */
export const LEAST = 8;
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

/**
 * @param {Size} size
 * @returns {Region}
 */
export function wholeOf({ queries, keys }) {
  return { queries: [0, queries], keys: [0, keys] };
}

/**
 * Can the server compute a region from the queries and keys that it keeps?
 * @param {Region} region
 */
export function isTile({ queries, keys }) {
  return (queries[1] - queries[0]) * (keys[1] - keys[0]) <= MOST_TILE_CELLS;
}

/**
 * The region widened to whole bins of the whole map.
 * @param {Region} region
 * @param {Size} size
 * @param {number} bins of the whole map a side, at most
 * @returns {Region}
 */
export function snapped({ queries, keys }, size, bins) {
  /** @param {Part} part @param {number} count @returns {Part} */
  const side = ([first, last], count) => {
    const width = binWidth(count, bins);
    return [Math.floor(first / width) * width, Math.min(count, Math.ceil(last / width) * width)];
  };
  return { queries: side(queries, size.queries), keys: side(keys, size.keys) };
}

/**
 * The region that a link names; the whole map if it names none in this text.
 * @param {number[]} written first and last of queries and of keys
 * @param {Size} size
 * @returns {Region}
 */
export function regionOf(written, size) {
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
export function writtenOf({ queries, keys }, size) {
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
 * The region with its sides multiplied, about a place that stays where it is seen.
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
 * The region moved by quarters of its sides; it stops at the ends of the text.
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
 * The region that a key leads to.
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
 * The tokens of each bin of a part.
 * @param {Part} part
 * @param {number} [width] tokens of a bin
 * @returns {Part[]}
 */
export function binsOf([first, last], width = binWidth(last - first)) {
  return Array.from({ length: Math.ceil((last - first) / width) }, (_, bin) => [
    first + bin * width,
    Math.min(last, first + (bin + 1) * width),
  ]);
}

/**
 * The tokens that a cell of these bins stands for.
 * @param {{down: number, across: number}} width tokens of a bin
 * @param {'mean'|'max'} pool
 * @returns {string} `exact`, or `mean of 64 × 64 tokens`
 */
export function resolutionInWords({ down, across }, pool) {
  if (down === 1 && across === 1) return 'exact';
  return `${pool === 'max' ? 'maximum' : 'mean'} of ${grouped(down)} × ${grouped(across)} tokens`;
}
