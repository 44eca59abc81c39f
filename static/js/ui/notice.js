/**
 * Where the page says what went wrong, and what happens next.
 */

import { advice, isWorthRetrying } from '../api/api.js';
import { element } from './element.js';

/**
 * @param {HTMLElement} host an alert
 * @param {{onRetry: () => void, onOffer: (patch: Object) => void}} handlers
 */
export function createNotice(host, { onRetry, onOffer }) {
  let told = '';

  return {
    /**
     * @param {import('../api/api.js').Problem} problem
     * @param {boolean} goesOn the page asks again on its own
     */
    show(problem, goesOn) {
      const lines = [problem.message, problem.detail, advice(problem, goesOn)];
      host.hidden = false;
      // An alert that is written anew is read out anew, and a button in it loses the focus.
      if (told === lines.join('\n')) return;
      told = lines.join('\n');
      host.replaceChildren(
        element('p', { class: 'notice-title' }, lines[0]),
        element('p', {}, lines[1]),
        element('p', { class: 'notice-advice' }, lines[2]),
      );
      if (isWorthRetrying(problem)) {
        host.append(
          element('button', { type: 'button', class: 'button', onclick: onRetry }, 'Try again'),
        );
      }
      if (problem.offer) {
        const { label, patch } = problem.offer;
        host.append(
          element(
            'button',
            { type: 'button', class: 'button', onclick: () => onOffer(patch) },
            label,
          ),
        );
      }
    },
    clear() {
      told = '';
      host.hidden = true;
      host.replaceChildren();
    },
  };
}
