/**
 * When to ask the server again without being told to: while it cannot be reached, and a few times
 * where it says that it is busy or a proxy says that it is away. A refusal is never asked again.
 */

const FIRST = 1_000;
const LONGEST = 15_000;
/** A server that wants to be left alone for longer than this is left to the person. */
const PATIENCE = 120_000;
const MOST_TIMES = 5;
const AWAY = [502, 504];

/**
 * @param {import('./api.js').Problem} problem
 * @param {number} attempt how many times it was asked again already
 * @returns {number|null} milliseconds until the next attempt; null: none
 */
export function pauseBefore({ status, retryAfter }, attempt) {
  const growing = Math.min(LONGEST, FIRST * 2 ** attempt);
  if (status === 0) return growing;
  if (attempt >= MOST_TIMES) return null;
  if (AWAY.includes(status)) return growing;
  if (status !== 503 || retryAfter === undefined) return null;
  const pause = Math.max(retryAfter * 1000, growing);
  return pause <= PATIENCE ? pause : null;
}

/**
 * The seconds that a Retry-After header asks for.
 * @param {string|null} header seconds, or a date
 * @param {number} [now] milliseconds since 1970
 * @returns {number|undefined}
 */
export function retryAfterOf(header, now = Date.now()) {
  if (header === null || header.trim() === '') return undefined;
  if (/^\s*\d+\s*$/.test(header)) return Number(header);
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, (date - now) / 1000);
}

/**
 * May the next attempt come before its time, because the network is back or the page is looked at again?
 * Not where the server said how long to wait.
 * @param {import('./api.js').Problem} problem
 */
export function mayHurry({ status }) {
  return status === 0;
}
