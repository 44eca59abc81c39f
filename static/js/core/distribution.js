/**
 * Probability distributions, and how far apart two of them are.
 */

/**
 * @param {ArrayLike<number>} logits
 * @returns {Float64Array} softmax; the greatest is subtracted first, so nothing overflows
 */
export function softmax(logits) {
  let most = -Infinity;
  for (let at = 0; at < logits.length; at += 1) most = Math.max(most, logits[at]);
  const found = Float64Array.from(logits, (logit) => Math.exp(logit - most));
  const sum = found.reduce((total, part) => total + part, 0);
  return found.map((part) => part / sum);
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
