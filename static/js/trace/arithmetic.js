/**
 * Arithmetic on plain arrays: matrices, probability distributions, and rotations of pairs of
 * dimensions.
 *
 * Rotations are recomputed only from the formula, so that captured values can be checked. A pair
 * (a, b) rotated by an angle θ is
 *
 *     ⎡ cos θ   sin θ⎤ ⎡a⎤
 *     ⎣−sin θ   cos θ⎦ ⎣b⎦
 *
 * which carries (sin x, cos x) to (sin (x + θ), cos (x + θ)): the blocks of R(k), with R(k)·PE(p) =
 * PE(p + k). Rotary positions rotate (even, odd) the other way, by −θ.
 */

import { highestIn, rowOf } from './trace.js';
import { counted } from '../words/lists.js';
import { amount, grouped } from '../words/numbers.js';

/** @import { Cell } from '../plot/grid.js' */

/** @param {Matrix} matrix @returns {Cell} the cell with the largest absolute value */
export function largestIn({ columns, data }) {
  const best = highestIn(data.map(Math.abs));
  return { row: Math.floor(best / columns), column: best % columns };
}

/**
 * Return the value at the end of the colours: a few strong cells, the first token's above all,
 * would leave all others pale.
 * @param {Float64Array} values
 * @param {number} part of the positive values that the colours tell apart
 */
export function findCeiling(values, part) {
  const positive = values.filter((value) => value > 0).sort();
  return positive[Math.ceil(part * positive.length) - 1] || 1;
}

/**
 * Return the steps of a softmax. The greatest score is taken off first: it changes no weight, and
 * no power grows past 1.
 * @param {ArrayLike<number>} scores
 * @returns {{greatest: number, powers: Float64Array, total: number, weights: Float64Array}}
 */
export function softmaxSteps(scores) {
  let greatest = -Infinity;
  for (let at = 0; at < scores.length; at += 1) greatest = Math.max(greatest, scores[at]);
  const powers = Float64Array.from(scores, (score) => Math.exp(score - greatest));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return { greatest, powers, total, weights: powers.map((power) => power / total) };
}

/** @param {ArrayLike<number>} logits @returns {Float64Array} */
export function softmax(logits) {
  return softmaxSteps(logits).weights;
}

/**
 * Return −Σ p·log₂ p: how evenly a distribution spreads, in bits: 0 where one takes all, log₂ n
 * where n take the same.
 * @param {ArrayLike<number>} probabilities that sum to 1
 */
export function entropyInBits(probabilities) {
  let sum = 0;
  for (let at = 0; at < probabilities.length; at += 1)
    if (probabilities[at] > 0) sum -= probabilities[at] * Math.log2(probabilities[at]);
  return sum;
}

/**
 * Return half the sum of all changes: the share of probability that moved from some tokens to others.
 * @param {ArrayLike<number>} p
 * @param {ArrayLike<number>} q of the same length
 * @returns {number} 0 to 1
 */
export function totalVariation(p, q) {
  let sum = 0;
  for (let at = 0; at < p.length; at += 1) sum += Math.abs(q[at] - p[at]);
  return sum / 2;
}

/**
 * Return Kullback and Leibler's divergence: the bits that are lost by expecting q where p is true.
 * @param {ArrayLike<number>} p
 * @param {ArrayLike<number>} q
 * @returns {number} 0 or more; Infinity where q rules out what p allows
 */
export function divergence(p, q) {
  let bits = 0;
  for (let at = 0; at < p.length; at += 1) if (p[at] > 0) bits += p[at] * Math.log2(p[at] / q[at]);
  return Math.max(0, bits);
}

/** Of the speeds. Vaswani et al. 2017, section 3.5. */
export const BASE = 10_000;

/** @typedef {{first: number[], second: number[], speeds: number[], factor?: number}} Pairs the two dimensions of each pair, its radians per position, and the factor of what was turned */

/**
 * Return dimensions 2i and 2i + 1 as pairs, or i and i + width/2.
 * @param {number} width
 * @param {boolean} [isHalved]
 * @returns {Pairs}
 */
export function pairsOf(width, isHalved = false) {
  const speeds = [...frequencies(width)];
  const [step, apart] = isHalved ? [1, speeds.length] : [2, 1];
  const first = speeds.map((_, pair) => step * pair);
  return { first, second: first.map((dimension) => dimension + apart), speeds };
}

/**
 * Return the pairs by which an encoding holds the sine and the cosine of position × speed.
 * @param {Matrix} encoding
 * @returns {Pairs} neighbours, if no order gives the encoding
 */
export function findWaves(encoding) {
  const orders = [false, true].map((isHalved) => pairsOf(encoding.columns, isHalved));
  /** @param {Pairs} pairs */
  const isRight = ({ first, second, speeds }) =>
    speeds.every((speed, pair) => {
      const row = encoding.columns * (encoding.rows - 1);
      const angle = speed * (encoding.rows - 1);
      const off = [
        encoding.data[row + first[pair]] - Math.sin(angle),
        encoding.data[row + second[pair]] - Math.cos(angle),
      ];
      return Math.max(...off.map(Math.abs)) < 1e-3;
    });
  return orders.find(isRight) ?? orders[0];
}

/**
 * Return how far each pair turns from one position to the next. Vaswani et al. 2017, section 3.5.
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
 * @param {ArrayLike<number>} speeds radians per position, by pair
 * @returns {Float64Array} radians, by pair
 */
export function computeAngles(positions, speeds) {
  return Float64Array.from(speeds, (speed) => speed * positions);
}

/**
 * @param {Float64Array} vector two numbers for each pair; others stay
 * @param {Float64Array} angles by pair
 * @param {Pairs} [pairs]
 * @returns {Float64Array} R · vector
 */
export function turned(vector, angles, pairs = pairsOf(vector.length)) {
  const { first, second, factor = 1 } = pairs;
  const result = Float64Array.from(vector);
  angles.forEach((angle, pair) => {
    const [a, b] = [vector[first[pair]], vector[second[pair]]];
    const [sin, cos] = [Math.sin(angle), Math.cos(angle)];
    result[first[pair]] = factor * (cos * a + sin * b);
    result[second[pair]] = factor * (cos * b - sin * a);
  });
  return result;
}

/**
 * Compare rows that were rotated here with rows that were captured.
 * @param {Matrix} before
 * @param {Matrix} after
 * @param {{shift: number, angles: (position: number) => Float64Array, pairs?: Pairs}} by the row `position` of `before` becomes `position + shift` of `after`
 * @returns {{greatest: number, count: number}} the greatest difference between two numbers, and how many rows were compared
 */
export function checked(before, after, { shift, angles, pairs = pairsOf(before.columns) }) {
  const { first, second } = pairs;
  let greatest = 0;
  const count = Math.max(0, Math.min(before.rows, after.rows - shift));
  for (let position = 0; position < count; position += 1) {
    const computed = turned(rowOf(before, position), angles(position), pairs);
    const captured = rowOf(after, position + shift);
    for (const at of [...first, ...second])
      greatest = Math.max(greatest, Math.abs(computed[at] - captured[at]));
  }
  return { greatest, count };
}

const SIDE = /^\d{1,9}(\*\d{1,9})?(\+\d{1,9}(\*\d{1,9})?)*$/;

/**
 * Return the steps of a chain such as 47*23=940+141=1081: a step is right if it has the value of
 * the side before its equals sign. The side that is still being written is not a step yet.
 * @param {string} text
 * @param {boolean} isEnded the last side is whole
 * @returns {{text: string, value: number|null, expected: number|null, isRight: boolean}[]} none if the text is not a chain
 */
export function chainSteps(text, isEnded) {
  const sides = text.trim().split('=');
  const whole = isEnded ? sides : sides.slice(0, -1);
  if (whole.length < 2 || valueOfSide(whole[0]) === null) return [];
  const values = whole.map(valueOfSide);
  return whole
    .slice(1)
    .map((side, index) => ({
      text: side,
      value: values[index + 1],
      expected: values[index],
      isRight: values[index + 1] !== null && values[index + 1] === values[index],
    }));
}

/** Return a sum of numbers and products; null if it is another text. @param {string} side */
function valueOfSide(side) {
  if (!SIDE.test(side)) return null;
  return side
    .split('+')
    .map((term) => term.split('*').reduce((product, factor) => product * Number(factor), 1))
    .reduce((sum, term) => sum + term, 0);
}

/**
 * Return the formula of a rotation's speeds, and what the config of the model does to them.
 * @param {Rotation} rotation
 * @returns {string[][]} names and values
 */
export function speedFacts({ base, speeds, factor, scaling, n_tokens: length = 0 }) {
  if (!base) return [];
  const speed = `${grouped(base)}^(−i/${speeds.length}) radians per position`;
  const { rope_type: kind, ...settings } = scaling;
  const told = Object.entries(settings).map(([name, value]) => `${name} ${String(value)}`);
  return [
    ['Speed of pair i', kind ? `from ${speed}, scaled` : speed],
    ...(kind ? [['Scaling', [String(kind), ...told].join(', ')]] : []),
    ...(factor === 1 ? [] : [['Factor of the rotated numbers', amount(factor)]]),
    ...(length === 0 ? [] : [['Read for a text of', counted(length, 'token')]]),
  ];
}
