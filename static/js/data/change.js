/**
 * What changed between two passes: attention minus attention, over what both of them read.
 */

import { matrixAt } from './trace.js';
import { isCausal } from './sites.js';

/** @typedef {import('./trace.js').Matrix} Matrix */
/** @typedef {[number, number][]} Pairs index in A and index in B of the same thing */

/**
 * A head's weights; the future, which a decoder never sees, is NaN rather than 0.
 * @param {import('./trace.js').Trace} trace
 * @param {string} site
 * @param {number} head
 * @returns {Matrix}
 */
export function weightsSeen({ tensors }, site, head) {
  const matrix = matrixAt(tensors[site], head);
  if (!isCausal(site)) return matrix;
  for (let query = 0; query < matrix.rows; query += 1) {
    matrix.data.fill(NaN, query * matrix.columns + query + 1, (query + 1) * matrix.columns);
  }
  return matrix;
}

/**
 * @param {Matrix} a
 * @param {Matrix} b
 * @param {Pairs} rows
 * @param {Pairs} columns
 * @returns {Matrix} b − a; NaN where either sees nothing
 */
export function difference(a, b, rows, columns) {
  const data = new Float64Array(rows.length * columns.length);
  rows.forEach(([ai, bi], row) =>
    columns.forEach(([aj, bj], column) => {
      data[row * columns.length + column] =
        b.data[bi * b.columns + bj] - a.data[ai * a.columns + aj];
    }),
  );
  return { rows: rows.length, columns: columns.length, data };
}

/**
 * How much of a row's attention moved elsewhere: half the sum of its changes, the mean of all rows.
 * @param {Matrix} changes
 * @returns {number} 0 to 1
 */
export function meanMoved({ rows, data }) {
  const sum = data.reduce(
    (total, change) => (Number.isNaN(change) ? total : total + Math.abs(change)),
    0,
  );
  return rows === 0 ? 0 : sum / 2 / rows;
}

/**
 * The same of one head, without a matrix of its changes: what is hidden has no weight on either side.
 * @param {import('./trace.js').NamedArray} a weights by head, query and key
 * @param {import('./trace.js').NamedArray} b
 * @param {number} head
 * @param {Pairs} rows
 * @param {Pairs} columns
 * @returns {number} 0 to 1
 */
export function movedIn(a, b, head, rows, columns) {
  let sum = 0;
  for (const [i, j] of rows) {
    const [startA, startB] = [
      [a, i],
      [b, j],
    ].map(
      ([
        {
          shape: [, queries, keys],
        },
        row,
      ]) => (head * queries + row) * keys,
    );
    for (const [k, l] of columns)
      sum += Math.abs(b.data[startB + l] * b.scale - a.data[startA + k] * a.scale);
  }
  return rows.length === 0 ? 0 : sum / 2 / rows.length;
}
