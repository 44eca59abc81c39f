/** The lines between two columns of words: which are drawn, where their numbers are, which is nearest. */

import { columnOf, highestIn, rowOf } from '../trace/trace.js';

/** @typedef {{row: number, column: number, weight: number}} Line */
/** @typedef {{x: number, y: number}} Point */
/** @typedef {{from: Point, to: Point}} Span where a line starts and ends, in pixels */

/** Pixels of a number on a line. */
export const NUMBER = { width: 34, height: 14, size: 13, letter: 7.2 };
/** Lines below this weight show their number only in the tooltip and the table. */
export const LEAST_NUMBER = 0.1;

/** Candidate positions of a number along its line, the best first. */
const PLACES = [0.5, 0.4, 0.6, 0.3, 0.7, 0.22, 0.78, 0.14, 0.86];
/** Within this many pixels the stronger line counts as the nearer. */
const PULL = 3;

/**
 * Return the pairs with a positive weight of at least the threshold, weakest first, so that the
 * strongest is drawn last; if there are too many, only the strongest.
 * @param {Matrix} weights NaN: there can be no line
 * @param {{threshold?: number, most?: number}} [limits]
 * @returns {{lines: Line[], left: number}} `left`: how many reach the threshold and are left out
 */
export function chooseLines({ columns, data }, { threshold = 0, most = Infinity } = {}) {
  /** @type {Line[]} */
  const lines = [];
  data.forEach((weight, at) => {
    if (weight > 0 && weight >= threshold)
      lines.push({ row: Math.floor(at / columns), column: at % columns, weight });
  });
  lines.sort((a, b) => a.weight - b.weight);
  const left = Math.max(0, lines.length - most);
  return { lines: lines.slice(left), left };
}

/**
 * Bin the lines by weight.
 * @param {Line[]} lines
 * @param {number} ceiling the weight of the strongest step
 * @param {number} steps
 * @returns {Line[][]} weakest first; empty steps are there too
 */
export function binned(lines, ceiling, steps) {
  /** @type {Line[][]} */
  const bins = Array.from({ length: steps }, () => []);
  for (const line of lines) {
    bins[Math.max(0, Math.min(steps - 1, Math.ceil((line.weight / ceiling) * steps) - 1))].push(
      line,
    );
  }
  return bins;
}

/**
 * Place numbers on their lines, strongest first, each at its first free candidate; a line without a
 * free candidate has no number.
 * @param {Line[]} lines
 * @param {(line: Line) => Span} spanOf
 * @param {{width: number, height: number}} size of a number, in pixels
 * @param {number} most numbers
 * @returns {{line: Line, at: Point}[]}
 */
export function numberPlaces(lines, spanOf, { width, height }, most) {
  /** @type {{line: Line, at: Point}[]} */
  const taken = [];
  /** @param {Point} point */
  const isFree = (point) =>
    taken.every(
      ({ at }) => Math.abs(at.x - point.x) >= width || Math.abs(at.y - point.y) >= height,
    );
  for (const line of [...lines].sort((a, b) => b.weight - a.weight)) {
    if (taken.length >= most) break;
    const span = spanOf(line);
    const at = PLACES.map((part) => along(span, part)).find(isFree);
    if (at) taken.push({ line, at });
  }
  return taken;
}

/** @param {Span} span @param {number} part of the way, 0 to 1 @returns {Point} */
export function along({ from, to }, part) {
  return { x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part };
}

/**
 * Return the line under a point or the nearest within reach; of equally near lines the stronger.
 * @param {Point} point
 * @param {Line[]} lines
 * @param {(line: Line) => Span} spanOf
 * @param {number} reach pixels
 * @param {number} ceiling the greatest weight
 * @returns {Line|null}
 */
export function nearestLine(point, lines, spanOf, reach, ceiling) {
  let best = null;
  let least = Infinity;
  for (const line of lines) {
    const distance = distanceTo(point, spanOf(line));
    const score = distance - (PULL * line.weight) / ceiling;
    if (distance <= reach && score < least) [best, least] = [line, score];
  }
  return best;
}

/** @param {Point} point @param {Span} span */
function distanceTo(point, { from, to }) {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const part = ((point.x - from.x) * dx + (point.y - from.y) * dy) / (dx * dx + dy * dy || 1);
  const nearest = along({ from, to }, Math.max(0, Math.min(1, part)));
  return Math.hypot(point.x - nearest.x, point.y - nearest.y);
}

/**
 * Return the strongest cell of a row or of a column.
 * @param {Matrix} weights
 * @param {{row: number, column?: undefined}|{row?: undefined, column: number}} of one of the two
 * @returns {number} index of the column, or of the row
 */
export function findStrongest(weights, { row, column }) {
  return highestIn(row === undefined ? columnOf(weights, column) : rowOf(weights, row));
}
