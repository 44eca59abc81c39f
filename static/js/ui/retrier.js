/**
 * Asks again on its own, while the page is looked at, until somebody says stop.
 */

import { mayHurry, pauseBefore } from '../api/retry.js';

/**
 * @param {() => void} act
 */
export function createRetrier(act) {
  let attempt = 0;
  let timer = 0;
  /** @type {{isDue: boolean, mayHurry: boolean}|null} */
  let waiting = null;

  function actIfDue(isNewChance = false) {
    if (!waiting || document.hidden || !(waiting.isDue || (isNewChance && waiting.mayHurry)))
      return;
    clearTimeout(timer);
    waiting = null;
    attempt += 1;
    act();
  }
  function fallDue() {
    if (waiting) waiting.isDue = true;
    actIfDue();
  }
  document.addEventListener('visibilitychange', () => actIfDue(true));
  window.addEventListener('online', () => actIfDue(true));

  return {
    /**
     * @param {import('../api/api.js').Problem} problem what came of the attempt before
     * @returns {boolean} will it ask again?
     */
    after(problem) {
      clearTimeout(timer);
      const pause = pauseBefore(problem, attempt);
      waiting = pause === null ? null : { isDue: false, mayHurry: mayHurry(problem) };
      if (waiting) timer = setTimeout(fallDue, pause);
      return waiting !== null;
    },

    stop() {
      clearTimeout(timer);
      waiting = null;
      attempt = 0;
    },
  };
}
