/**
 * The finding of a view that is no view of a head, in one sentence computed from the trace.
 * `sentences/` has the families of sentences: each says something only where it is known to be true.
 */

import { isRating } from '../trace/attention.js';
import { explainExperts } from './sentences/experts.js';
import { explainNext } from './sentences/next.js';
import { explainReward } from './sentences/reward.js';

/** @typedef {{query: number|null, source?: number|null, layer: number|null}} Chosen */

/** @type {Record<string, (trace: Trace, chosen: Chosen) => string>} */
const FINDINGS = { next_token: explainNext, experts: explainExperts };

/**
 * Return the finding of a view. Of a reward model it is the reward, whatever is open.
 * @param {Trace} trace
 * @param {string} view
 * @param {Chosen} chosen
 * @returns {string} '' if there is nothing to say
 */
export function writeFinding(trace, view, chosen) {
  if (isRating(trace)) return explainReward(trace);
  return FINDINGS[view]?.(trace, chosen) ?? '';
}
