/**
 * A text and the tokens that a model wrote after it.
 */

import { counted } from './number.js';
import { hasTwoSides, isFilling } from './attention.js';

/** @typedef {import('../api/generation.js').Step} Step */

/**
 * Does this model write on?
 * @param {import('./trace.js').Trace} trace
 */
export function isWritable(trace) {
  return !hasTwoSides(trace) && !isFilling(trace);
}

/**
 * @param {import('./trace.js').Trace} trace
 * @param {Object} state
 * @returns {import('../api/generation.js').Subject}
 */
export function subjectOf(trace, state) {
  return { model: trace.model, text: trace.text, sampling: samplingOf(state) };
}

/** What is as the server has it anyway is left out, but for what a reader wants to see. */
function samplingOf({
  generate_temperature: temperature,
  generate_top_k: topK,
  generate_top_p: topP,
  generate_seed: seed,
}) {
  return {
    temperature,
    ...(topK > 0 && { top_k: Math.floor(topK) }),
    ...(topP < 1 && { top_p: topP }),
    seed: Math.floor(seed),
  };
}

/** @param {import('../api/generation.js').Subject} subject draws from what the model itself says */
export function isNatural({ sampling: { temperature, top_k: topK, top_p: topP } }) {
  return temperature === 1 && topK === undefined && topP === undefined;
}

/**
 * The tokens of the text, and those that were written after it.
 * @param {import('./trace.js').Trace} trace
 * @param {Step[]} steps
 * @returns {import('./trace.js').Token[]}
 */
export function tokensWith(trace, steps) {
  return [
    ...trace.tokens,
    ...steps.map(({ id, text, is_special }) => ({
      id,
      text,
      is_special,
      start: 0,
      end: 0,
      word: null,
      part: null,
    })),
  ];
}

/**
 * @param {Object} state
 * @param {Step[]} steps
 * @returns {number} the chosen step; unless somebody chose, the last; −1 where there is none
 */
export function chosenStep({ generate_step: step }, steps) {
  return step !== null && step < steps.length ? step : steps.length - 1;
}

/**
 * The row that predicted a step’s token.
 * @param {Step} step
 * @param {number} layer
 * @param {number} head
 * @returns {Float64Array|null} over all tokens before it; null: the model has no such head
 */
export function rowOfStep({ attention: { layers, heads, data } }, layer, head) {
  const row = data[layers.indexOf(layer)]?.[heads.indexOf(head)];
  return row ? Float64Array.from(row) : null;
}

/**
 * What is said beside the buttons.
 * @param {import('./trace.js').Trace} trace
 * @param {import('../api/generation.js').Writing} writing
 */
export function statusOf(trace, { steps, isReading, replay, reason, most }) {
  if (replay)
    return `Replaying ${counted(replay.of, 'token')}…${replay.read > 0 ? ` ${replay.read} so far` : ''}`;
  if (isReading) return 'Reading…';
  if (reason === 'server_stopping') return 'The server was told to stop; what is written is kept.';
  return (
    whyOver(trace, steps, most) ||
    (steps.length > 0 ? `${counted(steps.length, 'token')} written` : '')
  );
}

/**
 * Why nothing can come after these steps.
 * @param {import('./trace.js').Trace} trace
 * @param {Step[]} steps
 * @param {number} most tokens that the server writes
 * @returns {string} '' where something can
 */
export function whyOver({ tokens, card }, steps, most) {
  const last = steps.at(-1);
  if (last?.is_special && last.text === '</s>')
    return 'The text ends here: the model wrote its end mark.';
  if (tokens.length + steps.length >= card?.max_tokens)
    return `The text ends here: the model reads at most ${card.max_tokens} tokens.`;
  if (steps.length >= most) return `The text ends here: this server writes at most ${most} tokens.`;
  return '';
}
