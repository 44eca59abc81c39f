/**
 * A state that fits a trace: a link may come from another model, and who follows none has chosen
 * nothing yet.
 */

import { tellingHead } from '../data/head_labels.js';
import { counted } from '../data/number.js';
import { hasTwoSides, placeOf, placesOf, tokensOf, weightsAt } from '../data/places.js';
import { clamp } from './state.js';

/**
 * Brings the state within what the trace holds; where nobody chose a head, opens a telling one.
 * @param {import('./state.js').State} state
 * @param {import('../data/trace.js').Trace} trace
 * @param {string[]} views
 * @returns {import('./state.js').State}
 */
export function normalized(state, trace, views) {
  const place = placeOf(state, trace);
  const layers = weightsAt(place, trace);
  const places = placesOf(trace).map(({ id }) => id);
  const within = clamp(state, {
    layers: layers.length,
    heads: layers.length > 0 ? trace.tensors[layers[0].site].shape[0] : 0,
    tokens: (trace.target_tokens ?? trace.tokens).length,
    sources: hasTwoSides(trace) ? trace.tokens.length : 0,
    keys: tokensOf(trace, place?.columns ?? 'source').length,
    views,
    places: places.length > 1 ? places : [],
  });
  if (within.layer !== null && within.head !== null) return within;
  const { layer, head } = tellingHead(trace, place);
  return { ...within, layer: within.layer ?? layer, head: within.head ?? head };
}

/**
 * How much was read of how much could be, and how fast: `9 tokens of at most 256, read in 20 ms`.
 * @param {import('../data/trace.js').Trace} trace
 */
export function readInWords({ tokens, target_tokens: target, card, timings }) {
  const total = Object.values(timings).reduce((sum, milliseconds) => sum + milliseconds, 0);
  const time = total > 0 ? `, read in ${Math.max(1, Math.round(total))} ms` : '';
  if (!target) return `${counted(tokens.length, 'token')} of at most ${card.max_tokens}${time}`;
  return `${tokens.length} + ${counted(target.length, 'token')} of at most ${card.max_tokens} each${time}`;
}
