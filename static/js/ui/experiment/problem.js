/** Errors of a run: at the field of a wrong parameter, or as a notice with a button. */

import { advice, isWorthRetrying } from '../../api/calls.js';
import { asSentence } from '../../data/text.js';
import { element } from '../dom.js';

/**
 * @import { RunState } from '../../api/experiments.js'
 * @import { Field } from '../fields.js'
 */

/**
 * @param {Map<string, Field>} fields by parameter
 * @param {() => void} onRetry
 */
export function createProblem(fields, onRetry) {
  const host = element('div', { class: 'notice', role: 'alert', hidden: true });
  return {
    element: host,

    /** @param {RunState} state */
    show({ problem, isBroken }) {
      host.hidden = !problem;
      if (!problem) {
        host.replaceChildren();
        return;
      }
      const unplaced = problem.errors.filter(({ field, message }) => {
        const input = fields.get(field.split('.')[0]);
        input?.fail(message);
        return !input;
      });
      host.hidden = problem.errors.length > 0 && unplaced.length === 0;
      const lines = isBroken
        ? [
            'The run broke off',
            `${asSentence(problem.detail || problem.message)} The pictures show how far it came.`,
          ]
        : [
            problem.message,
            asSentence(unplaced.map(({ message }) => message).join('; ') || problem.detail),
          ];
      host.replaceChildren(
        element('p', { class: 'notice-title' }, lines[0]),
        element('p', {}, lines[1]),
        ...(isBroken || isWorthRetrying(problem)
          ? [
              element('p', { class: 'notice-advice' }, advice(problem)),
              element('button', { type: 'button', class: 'button', onclick: onRetry }, 'Try again'),
            ]
          : []),
      );
    },
  };
}
