/**
 * What the page is showing: the results, that there is nothing to read yet, or what went wrong; and
 * the line that says how the reading goes.
 */

import { createNotice } from './notice.js';
import { createWaiting } from './waiting.js';

/**
 * @param {(id: string) => HTMLElement} byId
 * @param {{onRetry: () => void, onOffer: (patch: Object) => void, onCancel: () => void}} handlers
 */
export function createPageStatus(byId, { onRetry, onOffer, onCancel }) {
  const [results, nothing, status] = ['results', 'empty', 'status'].map(byId);
  const notice = createNotice(byId('notice'), { onRetry, onOffer });
  const signal = createWaiting(
    { beam: byId('beam'), main: byId('main'), cancel: byId('cancel'), elapsed: byId('elapsed') },
    { onCancel },
  );
  const waiting = { forTrace: false, forAnswers: false };

  function show(part, words) {
    results.hidden = part !== results;
    nothing.hidden = part !== nothing;
    status.textContent = words;
  }

  return {
    /** @param {string} words how much was read */
    showResults(words) {
      notice.clear();
      show(results, words);
    },

    showNothing() {
      notice.clear();
      show(nothing, '');
    },

    /**
     * @param {import('../api/api.js').Problem} problem
     * @param {boolean} goesOn the page asks again on its own
     * @param {boolean} isKept what was shown before stays, paler
     */
    showProblem(problem, goesOn, isKept) {
      show(isKept ? results : null, isKept ? 'What is below is of before.' : '');
      results.classList.toggle('is-stale', isKept);
      notice.show(problem, goesOn);
    },

    /** @param {string} words */
    say(words) {
      status.textContent = words;
    },

    isReading: () => waiting.forTrace,

    /**
     * While the text is read, what is shown of the text before is paler.
     * @param {boolean} isWaiting
     */
    waitForTrace(isWaiting) {
      waiting.forTrace = isWaiting;
      signal(waiting.forTrace || waiting.forAnswers);
      for (const part of [results, byId('translation')])
        part.classList.toggle('is-stale', isWaiting);
      if (isWaiting && byId('notice').hidden) status.textContent = 'Reading…';
    },

    /** @param {boolean} isWaiting for what a view asks for besides */
    waitForAnswers(isWaiting) {
      waiting.forAnswers = isWaiting;
      signal(waiting.forTrace || waiting.forAnswers);
    },
  };
}
