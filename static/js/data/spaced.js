/**
 * A few of many: of a hundred dimensions nobody wants a hundred buttons, and the speeds of the pairs
 * fall so fast that powers of two show all there is.
 */

/**
 * @param {number} count
 * @returns {number[]} 0, the powers of two below count, and the last, ascending
 */
export function spaced(count) {
  return [...new Set([0, ...powersBelow(count), count - 1])];
}

/**
 * @param {number} count
 * @param {number} most how many there shall be
 * @returns {number[]} 0 and the largest powers of two below count, ascending
 */
export function telling(count, most) {
  return [0, ...powersBelow(count).slice(1 - most)];
}

function powersBelow(count) {
  const powers = [];
  for (let power = 1; power < count; power *= 2) powers.push(power);
  return powers;
}

/**
 * What was chosen of them, as far as it exists; if that is nothing, what tells most.
 * @param {number[]} chosen
 * @param {number} count
 * @param {number} most
 * @returns {number[]} ascending, none twice
 */
export function chosenOf(chosen, count, most) {
  const there = [...new Set(chosen)].filter((index) => index < count).sort((a, b) => a - b);
  return there.length > 0 ? there : telling(count, most);
}
