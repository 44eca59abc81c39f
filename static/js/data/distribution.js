/**
 * Probability distributions: made of scores, measured, and compared with each other.
 */

/**
 * The steps of a softmax. The greatest score is taken off first: it changes no weight, and no power grows past 1.
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

/**
 * @param {ArrayLike<number>} logits
 * @returns {Float64Array}
 */
export function softmax(logits) {
  return softmaxSteps(logits).weights;
}

/**
 * −Σ p·log p, how evenly a distribution spreads: 0 where one takes all, log n where n take the same.
 * @param {ArrayLike<number>} probabilities that sum to 1
 * @param {(value: number) => number} [log] `Math.log` gives nats, `Math.log2` bits
 */
export function entropyOf(probabilities, log = Math.log) {
  let sum = 0;
  for (let at = 0; at < probabilities.length; at += 1)
    if (probabilities[at] > 0) sum -= probabilities[at] * log(probabilities[at]);
  return sum;
}

/**
 * Half the sum of all changes: the share of probability that moved from some tokens to others.
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
 * Kullback and Leibler's divergence: the bits that are lost by expecting q where p is true.
 * @param {ArrayLike<number>} p
 * @param {ArrayLike<number>} q
 * @returns {number} 0 or more; Infinity where q rules out what p allows
 */
export function divergence(p, q) {
  let bits = 0;
  for (let at = 0; at < p.length; at += 1) if (p[at] > 0) bits += p[at] * Math.log2(p[at] / q[at]);
  return Math.max(0, bits);
}
