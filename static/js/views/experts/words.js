/**
 * What is said of experts, in every drawing of theirs.
 */

import { share, shortShare } from '../../data/number.js';
import { choicesAt } from '../../data/routes.js';
import { named } from '../../data/text.js';
import { columnOf } from '../../data/trace.js';

/**
 * The expert that is looked at: the chosen one, or the one that weighs most for the chosen token.
 * @param {{experts_expert?: number|null}} state
 * @param {import('../../data/routes.js').Stage} stage
 * @param {number} query
 */
export function expertOf({ experts_expert: chosen = null }, { routing }, query) {
  return chosen !== null && chosen < routing.load.length
    ? chosen
    : choicesAt(routing, query)[0].expert;
}

/**
 * How much of every token an expert takes.
 * @param {import('../../data/routing.js').Routing} routing
 * @param {number} expert
 */
export function tintOf({ weights }, expert) {
  return columnOf(weights, expert);
}

/**
 * `“it” goes through expert 3 with weight 0.625 and expert 0 with weight 0.375 (layer 1)`
 * @param {import('../../data/trace.js').Token[]} tokens
 * @param {number} token
 * @param {import('../../data/routing.js').Routing} routing
 * @param {string} where
 */
export function choicesInWords(tokens, token, routing, where) {
  const parts = choicesAt(routing, token).map(
    ({ expert, weight }) => `expert ${expert} with weight ${share(weight)}`,
  );
  return `${named(tokens, token)} goes through ${parts.join(' and ')} (${where})`;
}

/**
 * `“it” goes through experts 3 (.63) and 0 (.38) in layer 0, 2 (.90) and 1 (.10) in layer 1`
 * @param {import('../../data/trace.js').Token[]} tokens
 * @param {number} token
 * @param {import('../../data/routes.js').Stage[]} stages
 */
export function wayInWords(tokens, token, stages) {
  const parts = stages.map(({ layer, routing }) => {
    const found = choicesAt(routing, token).map(
      ({ expert, weight }) => `${expert} (${shortShare(weight)})`,
    );
    return `${found.join(' and ')} in layer ${layer}`;
  });
  return `${named(tokens, token)} goes through ${stages.length * stages[0].routing.topK === 1 ? 'expert' : 'experts'} ${parts.join(', ')}`;
}
