/**
 * Rotations of pairs of dimensions, recomputed here from the formula alone, so that what a model
 * captured can be checked. A pair (a, b) turned by an angle θ is
 *
 *     ⎡ cos θ   sin θ⎤ ⎡a⎤
 *     ⎣−sin θ   cos θ⎦ ⎣b⎦
 *
 * which carries (sin x, cos x) to (sin (x + θ), cos (x + θ)): the blocks of R(k), with R(k)·PE(p) =
 * PE(p + k). Rotary positions turn (even, odd) the other way round: by −θ.
 */

import { rowOf } from './trace.js';

/** @typedef {import('./trace.js').Matrix} Matrix */

const BASE = 10_000;

/**
 * How far each pair turns from one position to the next. Vaswani et al. 2017, section 3.5.
 * @param {number} width d_model or d_head
 * @returns {Float64Array} radians, by pair
 */
export function frequencies(width) {
  return Float64Array.from(
    { length: Math.floor(width / 2) },
    (_, pair) => BASE ** ((-2 * pair) / width),
  );
}

/**
 * @param {number} positions how many to go on; below zero: back
 * @param {number} width
 * @returns {Float64Array} radians, by pair
 */
export function anglesOf(positions, width) {
  return frequencies(width).map((frequency) => frequency * positions);
}

/**
 * The blocks on the diagonal of R; everything else in it is 0.
 * @param {Float64Array} angles by pair
 * @returns {Matrix} pair × the four numbers of its block, row by row
 */
export function blocksOf(angles) {
  const data = new Float64Array(angles.length * 4);
  angles.forEach((angle, pair) =>
    data.set([Math.cos(angle), Math.sin(angle), -Math.sin(angle), Math.cos(angle)], pair * 4),
  );
  return { rows: angles.length, columns: 4, data };
}

/**
 * @param {Float64Array} vector two numbers for each pair
 * @param {Float64Array} angles by pair
 * @returns {Float64Array} R · vector
 */
export function turned(vector, angles) {
  const { data: block } = blocksOf(angles);
  const result = Float64Array.from(vector);
  angles.forEach((_, pair) => {
    const [a, b] = [vector[2 * pair], vector[2 * pair + 1]];
    result[2 * pair] = block[4 * pair] * a + block[4 * pair + 1] * b;
    result[2 * pair + 1] = block[4 * pair + 2] * a + block[4 * pair + 3] * b;
  });
  return result;
}

/**
 * Rows that were turned here beside rows that were captured.
 * @param {Matrix} before
 * @param {Matrix} after
 * @param {{shift: number, angles: (position: number) => Float64Array}} by the row `position` of `before` becomes `position + shift` of `after`
 * @returns {{greatest: number, count: number, byPair: Float64Array}} the greatest difference between two numbers, how many rows were compared, and the greatest by pair
 */
export function checked(before, after, { shift, angles }) {
  const byPair = new Float64Array(Math.floor(before.columns / 2));
  const count = Math.max(0, Math.min(before.rows, after.rows - shift));
  for (let position = 0; position < count; position += 1) {
    const computed = turned(rowOf(before, position), angles(position));
    const captured = rowOf(after, position + shift);
    byPair.forEach((most, pair) => {
      byPair[pair] = Math.max(
        most,
        Math.abs(computed[2 * pair] - captured[2 * pair]),
        Math.abs(computed[2 * pair + 1] - captured[2 * pair + 1]),
      );
    });
  }
  return { greatest: byPair.reduce((most, value) => Math.max(most, value), 0), count, byPair };
}
