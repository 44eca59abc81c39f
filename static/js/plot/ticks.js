/**
 * Which labels of an axis to write so that none touches its neighbour.
 */

/**
 * @param {number} first first index shown
 * @param {number} last last index shown
 * @param {number} pixels length of the axis
 * @param {number} least pixels a label needs along the axis
 * @returns {number[]} indices, a power of two apart
 */
export function ticksFor(first, last, pixels, least) {
  const count = last - first + 1;
  const step = 2 ** Math.max(0, Math.ceil(Math.log2((count * least) / Math.max(pixels, 1))));
  const ticks = [];
  for (let index = Math.ceil(first / step) * step; index <= last; index += step) ticks.push(index);
  return ticks;
}

const ROUND = [1, 2, 2.5, 5, 10];

/**
 * Round numbers from 0 up, for an axis of amounts.
 * @param {number} end past which there is no tick
 * @param {number} most ticks besides that of 0
 * @returns {number[]}
 */
export function roundTicks(end, most) {
  const power = 10 ** Math.floor(Math.log10(end / most));
  const step = power * ROUND.find((factor) => factor * power * most >= end * (1 - 1e-9));
  return Array.from({ length: Math.floor(end / step + 1e-9) + 1 }, (_, count) => count * step);
}
