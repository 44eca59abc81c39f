/**
 * The sentence on what a head does over many sentences: its label with its share of the weights, and
 * whether the open row does the same.
 */

import { choosePlace, labelledHeads, toldLabel, tokensOf } from '../../trace/attention.js';
import { highestIn, rowOf } from '../../trace/trace.js';
import { percent, share } from '../../words/numbers.js';
import { matrixOf } from '../head_insight.js';

/** @import { Token, Trace } from '../../trace/trace.js' */

/** @typedef {{tokens: Token[], query: number, key: number}} Row of one text, and the key with its greatest weight */

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
  repetition: (share) =>
    `where random tokens repeat, ${share} of this head’s weight is on what followed the token before`,
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
/** Measured on sentences that were made for it. */
const MADE = ['subject', 'antecedent'];

/** By label: whether a row does it; null: the label says nothing of this row. @type {Record<string, (row: Row) => boolean|null>} */
const HERE = {
  previous: ({ query, key }) => (query > 0 ? key === query - 1 : null),
  next: ({ tokens, query, key }) => (query + 1 < tokens.length ? key === query + 1 : null),
  current: ({ query, key }) => (query > 0 ? key === query : null),
  sink: ({ tokens, query, key }) => (query > 0 && key !== query ? isResting(tokens, key) : null),
  punctuation: ({ tokens, key }) =>
    !tokens[key].is_special && !/[\p{L}\p{N}]/u.test(tokens[key].text),
  induction: followsSame,
  repetition: followsSame,
};

/** @param {Token[]} tokens @param {number} key */
function isResting(tokens, key) {
  const first = tokens.find(({ word }) => word !== null)?.word ?? NaN;
  const isEnd = key === tokens.length - 1 && tokens[key].is_special;
  return key === 0 || tokens[key].word === first || isEnd;
}

/** @param {Row} row */
function followsSame({ tokens, query, key }) {
  /** @param {number} at */
  const follows = (at) => at > 0 && at < query && tokens[at - 1].id === tokens[query].id;
  return tokens.some((_, at) => follows(at)) ? follows(key) : null;
}

/**
 * Return the sentence on the label of a head, if its model was measured and it has one.
 * @param {Trace} trace
 * @param {{where?: string, layer: number, head: number}} state
 * @param {number} query the row that is open
 * @returns {string}
 */
export function explainLabel(trace, state, query) {
  const place = choosePlace(state, trace);
  const head = labelledHeads(trace, place)[state.layer]?.heads[state.head];
  const label = head && toldLabel(head);
  if (!place || !label || !SAID[label.id]) return '';
  const { id, score } = label;
  const many = `Over many ${MADE.includes(id) ? 'made ' : ''}sentences`;
  const said = SAID[id](id === 'monotonic' ? share(score, 2) : percent(score, 0));
  const weights = matrixOf(trace, place, state.layer, state.head);
  const isHere =
    place.id !== 'cross' && weights && query >= 0 && query < weights.rows
      ? (HERE[id]?.({
          tokens: tokensOf(trace, place.rows),
          query,
          key: highestIn(rowOf(weights, query)),
        }) ?? null)
      : null;
  return `${many}, ${said}${isHere === null ? '' : isHere ? '; at this token, too' : '; not at this token'}.`;
}
