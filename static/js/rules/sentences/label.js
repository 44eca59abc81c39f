/**
 * The sentence on what a head does over many sentences: its label with its share of the weights. It is
 * not said where this text, or the open row, does something else.
 */

import { choosePlace, labelledHeads, toldLabel, weightsAt } from '../../trace/attention.js';
import { rowsDoing } from '../../trace/label_here.js';
import { multiplies } from '../product.js';
import { percent, share } from '../../words/numbers.js';

/** By label: where the share of a head's weight is, of the queries that see such keys. @type {Record<string, (share: string) => string>} */
const SAID = {
  previous: (share) => `${share} of this head’s weight is on the token before`,
  next: (share) => `${share} of this head’s weight is on the token after`,
  current: (share) => `${share} of this head’s weight is on the token that reads`,
  sink: (share) =>
    `${share} of this head’s weight is on the first token, the first word or an end token`,
  punctuation: (share) => `${share} of this head’s weight is on punctuation`,
  induction: (share) =>
    `where a token came before, ${share} of this head’s weight is on what followed it`,
  repetition: (share) => `${share} of this head’s weight is on what followed the token before`,
  subject: (share) => `${share} of this head’s weight at a verb is on its subject`,
  antecedent: (share) => `${share} of this head’s weight at a pronoun is on its noun`,
  multiplicand: (share) =>
    `${share} of this head’s weight is on the first factor, while a partial product is written`,
  multiplier: (share) =>
    `${share} of this head’s weight is on the digit that multiplies, while a partial product is written`,
  column: (share) =>
    `${share} of this head’s weight is on the digits of the same place, while the sum is written`,
  carry: (share) =>
    `${share} of this head’s weight is on the digits one place lower, while the sum is written`,
  monotonic: (share) =>
    `this head goes through the other text word for word, with a score of ${share}`,
  broad: (share) => `this head’s weight has ${share} of the greatest entropy`,
};
/** By label: what it was measured on, if on texts that were made for it. @type {Record<string, string>} */
const MADE = {
  subject: 'Over many made sentences',
  antecedent: 'Over many made sentences',
  repetition: 'Where random tokens repeat',
};

/**
 * Return the sentence on the label of a head, if its model was measured and it has one.
 * @param {Trace} trace
 * @param {{where?: string, layer: number, head: number}} state
 * @param {number} query the row that is open
 * @returns {string} empty where the text or the row disagrees
 */
export function explainLabel(trace, state, query) {
  const place = choosePlace(state, trace);
  const at = weightsAt(place, trace).findIndex(({ layer }) => layer === state.layer);
  const head = labelledHeads(trace, place, query)[at]?.heads[state.head];
  const label = head && toldLabel(head);
  if (!place || !label || !SAID[label.id]) return '';
  const { id, score } = label;
  const texts = multiplies(trace.card ?? null) ? 'calculations' : 'sentences';
  const said = SAID[id](id === 'monotonic' ? share(score, 2) : percent(score, 0));
  const isHere = rowsDoing(trace, place, weightsAt(place, trace)[at].site, state.head, id)[query];
  return `${MADE[id] ?? `Over many ${texts}`}, ${said}${isHere ? '; at this token, too' : ''}.`;
}
