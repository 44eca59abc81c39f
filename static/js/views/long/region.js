/**
 * The part of a map that the overview shows: whole, closer, further, moved. A region counts tokens;
 * of what is pooled, each bin has as many of them as the server's rule gives it.
 */

import { grouped } from '../../data/format.js';

/** The most bins a side. */
export const BINS = 256;
/** The fewest tokens a side that are worth looking at. */
const LEAST = 8;
/** The share of a side by which a step moves. */
const STEP = 0.25;

/** @typedef {[number, number]} Part the first token, and the one after the last */
/** @typedef {{queries: Part, keys: Part}} Region */

/**
 * @param {number} length in tokens
 * @returns {number} tokens of a bin: ceil(length / 256), the rule of `resolution`
 */
export function binWidth(length) {
  return Math.max(1, Math.ceil(length / BINS));
}

/**
 * @param {number} count tokens of the text
 * @returns {Region}
 */
export function wholeOf(count) {
  return { queries: [0, count], keys: [0, count] };
}

/**
 * The region that a link names; the whole map if it names none in this text.
 * @param {number[]} written first and last of queries and of keys
 * @param {number} count tokens of the text
 * @returns {Region}
 */
export function regionOf(written, count) {
  const [first, last, begin, end] = written;
  const isIn = written.length === 4 && first < last && begin < end && last <= count && end <= count;
  return isIn ? { queries: [first, last], keys: [begin, end] } : wholeOf(count);
}

/**
 * @param {Region} region
 * @param {number} count tokens of the text
 * @returns {number[]} as a link has it; empty for the whole map
 */
export function writtenOf({ queries, keys }, count) {
  const isWhole = [queries, keys].every(([from, to]) => from === 0 && to === count);
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
 * @param {number} count tokens of the text
 * @param {{query: number, key: number}} [about] by default the middle
 * @returns {Region}
 */
export function zoomed({ queries, keys }, factor, count, about) {
  /** @param {Part} part @param {number} [place] */
  const side = ([first, last], place = (first + last) / 2) => {
    const length = Math.min(count, Math.max(LEAST, Math.round((last - first) * factor)));
    return within(place - ((place - first) * length) / (last - first), length, count);
  };
  return { queries: side(queries, about?.query), keys: side(keys, about?.key) };
}

/**
 * The region moved by quarters of its sides; it stops at the ends of the text.
 * @param {Region} region
 * @param {{down?: number, right?: number}} by
 * @param {number} count tokens of the text
 * @returns {Region}
 */
export function moved({ queries, keys }, { down = 0, right = 0 }, count) {
  /** @param {Part} part @param {number} steps */
  const side = ([first, last], steps) => {
    const step = Math.max(1, Math.round((last - first) * STEP));
    return within(first + steps * step, last - first, count);
  };
  return { queries: side(queries, down), keys: side(keys, right) };
}

/**
 * The region that a key leads to.
 * @param {string} key `+`, `-`, `0`, `Shift+ArrowUp`
 * @param {Region} region
 * @param {number} count tokens of the text
 * @param {{query: number, key: number}} [about]
 * @returns {Region|null} null for any other key
 */
export function regionAfter(key, region, count, about) {
  /** @type {Record<string, () => Region>} */
  const moves = {
    '+': () => zoomed(region, 0.5, count, about),
    '-': () => zoomed(region, 2, count, about),
    0: () => wholeOf(count),
    'Shift+ArrowUp': () => moved(region, { down: -1 }, count),
    'Shift+ArrowDown': () => moved(region, { down: 1 }, count),
    'Shift+ArrowLeft': () => moved(region, { right: -1 }, count),
    'Shift+ArrowRight': () => moved(region, { right: 1 }, count),
  };
  return moves[key]?.() ?? null;
}

/**
 * The tokens of each bin of a part.
 * @param {Part} part
 * @returns {Part[]}
 */
export function binsOf([first, last]) {
  const width = binWidth(last - first);
  return Array.from({ length: Math.ceil((last - first) / width) }, (_, bin) => [
    first + bin * width,
    Math.min(last, first + (bin + 1) * width),
  ]);
}

/**
 * What a cell of a region stands for.
 * @param {Region} region
 * @param {'mean'|'max'} pool
 * @returns {string} `exact`, or `mean of 64 × 64 tokens`
 */
export function resolutionInWords({ queries, keys }, pool) {
  const [down, across] = [queries, keys].map(([from, to]) => binWidth(to - from));
  if (down === 1 && across === 1) return 'exact';
  return `${pool === 'max' ? 'maximum' : 'mean'} of ${grouped(down)} × ${grouped(across)} tokens`;
}
