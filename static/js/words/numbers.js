/**
 * Numbers as the page writes them. An exact 0 is `0`, a tiny number `<0.001`, and nearly all of it
 * `>0.999`, so that the numbers of a row never seem to add up to more than the row holds.
 */

const MINUS = '−';

/**
 * @param {number} value 0 or more
 * @param {number} digits
 * @param {number} [whole] what nothing goes beyond
 */
function bounded(value, digits, whole = Infinity) {
  const least = 10 ** -digits;
  const text = value.toFixed(digits);
  if (value === 0) return '0';
  if (Number(text) === 0) return `<${least.toFixed(digits)}`;
  if (value < whole && Number(text) === whole) return `>${(whole - least).toFixed(digits)}`;
  return text;
}

/**
 * Return a share of one: `0.312`.
 * @param {number} value between 0 and 1
 * @param {number} [digits]
 */
export function share(value, digits = 3) {
  return bounded(value, digits, 1);
}

/** Return a share for narrow spaces: `.31`. @param {number} value between 0 and 1 */
export function shortShare(value) {
  return share(value, 2).replace(/^([<>]?)0\./, '$1.');
}

/** @param {number} value @param {number} [digits] @returns {string} with a true minus sign */
export function signed(value, digits = 3) {
  const text = bounded(Math.abs(value), digits);
  if (value >= 0) return text;
  return text.startsWith('<') ? `>${MINUS}${text.slice(1)}` : MINUS + text;
}

/**
 * Return an amount of any size.
 * @param {number} value
 * @param {number} [figures] how many digits count
 * @returns {string} `123`, `−4.57`, `0.00183`
 */
export function amount(value, figures = 3) {
  return String(Number(value.toPrecision(figures))).replace('-', MINUS);
}

/**
 * Return the end of a scale, or a tick on it: no more digits than it needs.
 * @param {number} value
 * @returns {string} `0.6`, `−1`
 */
export function tick(value) {
  return String(Number(value.toFixed(3))).replace('-', MINUS);
}

/**
 * Return a number of any size, either sign: `−1.355`, and `2.4·10⁻⁵` where the digits would show
 * nothing of it.
 * @param {number} value
 * @param {number} [digits]
 */
export function decimal(value, digits = 3) {
  if (!Number.isFinite(value)) return value < 0 ? `${MINUS}∞` : '∞';
  if (value === 0 || Math.abs(value) >= 10 ** -digits) return signed(value, digits);
  return (value < 0 ? MINUS : '') + small(Math.abs(value));
}

/** @param {number} value between 0 and 1 @param {number} [digits] @returns {string} `31.2 %` */
export function percent(value, digits = 1) {
  return `${bounded(value * 100, digits, 100).replace('-', MINUS)} %`;
}

/**
 * Return a probability in a sentence; one that is not listed is under the least that is.
 * @param {number} probability between 0 and 1; NaN: not listed
 * @param {number} [least] that is listed
 */
export function chance(probability, least = 1) {
  if (Number.isNaN(probability)) return `under ${percent(least)}`;
  return percent(probability, probability < 0.1 ? 1 : 0);
}

/** @param {number} count a whole number @returns {string} `1,803` */
export function grouped(count) {
  return String(count).replace(/(?<=\d)(?=(\d{3})+$)/g, ','); // a locale’s formatter takes 20 ms to make
}

/**
 * Return how far two numbers that should be the same are apart: `4.2·10⁻⁸`.
 * @param {number} difference 0 or more
 */
export function small(difference) {
  if (difference === 0 || difference >= 1e-3) return share(difference);
  const [digits, power] = difference.toExponential(1).split('e-');
  return `${digits}·10⁻${[...power].map((digit) => '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(digit)]).join('')}`;
}

/** Return a number of bytes in the unit that suits it. @param {number} bytes */
export function inBytes(bytes) {
  return bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

/** @param {number} value @returns {string} `32,800`, `1.56`, `3.7·10⁻⁵` */
export function rough(value) {
  return value >= 100 ? grouped(Number(value.toPrecision(3))) : decimal(value, 2);
}
