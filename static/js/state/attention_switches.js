/**
 * What the Attention view is set to show. A link may ask for what does not go together: rollout is
 * made of weights, scores are no shares that could be summed. What is asked for of a quantity or of
 * heads wins, and what does not go with it is as if it were not set.
 */

import { choice, counts, flag, number, standardsOf } from './fields.js';

/** @typedef {'weights'|'log'|'scores'|'value_weighted'} What */
/** @typedef {'nothing'|'first'|'special'} Hidden */
/** @typedef {'head'|'heads'|'mean'|'max'|'rollout'} Which */

export const FIELDS = Object.freeze({
  attention_what: choice(['weights', 'log', 'scores', 'value_weighted']),
  attention_which: choice(['head', 'heads', 'mean', 'max', 'rollout']),
  attention_heads: counts(),
  attention_as: choice(['matrix', 'lines']),
  attention_words: flag(),
  attention_hide: choice(['nothing', 'first', 'special']),
  attention_renormalise: flag(),
  attention_threshold: number({ least: 0, most: 1, standard: 0 }),
  attention_order: choice(['layer', 'label']),
});

const STANDARDS = standardsOf(FIELDS);

/**
 * A line is as strong as what it stands for is large: there are none of less than nothing, and none on
 * a scale that starts elsewhere.
 * @param {What} what
 */
export function canBeLines(what) {
  return what === 'weights' || what === 'value_weighted';
}

/**
 * @typedef {Object} Switches
 * @property {What} what
 * @property {Which} which
 * @property {number[]} heads of a set, in order; never empty
 * @property {'matrix'|'lines'} as
 * @property {boolean} isWords
 * @property {Hidden} hidden
 * @property {boolean} isRenormalised
 * @property {number} threshold of a weight, or of the largest of the values that are weighted
 * @property {boolean} isShare rows are shares of 1, before any is hidden
 */

/**
 * @param {Object} state
 * @param {{placeId: string, nHeads: number}} of what is looked at
 * @returns {Switches}
 */
export function switchesOf(state, { placeId, nHeads }) {
  const set = (name) => state[`attention_${name}`] ?? STANDARDS[`attention_${name}`];
  const what = set('what');
  const isShare = what === 'weights' || what === 'log';
  const isPossible = set('which') !== 'rollout' || (isShare && placeId !== 'cross');
  const heads = set('heads').filter((head) => head < nHeads);
  const hidden = set('hide');
  return {
    what,
    which: isPossible ? set('which') : 'head',
    heads: heads.length > 0 ? heads : [state.head],
    as: canBeLines(what) ? set('as') : 'matrix',
    isWords: isShare && set('words'),
    hidden,
    isRenormalised: isShare && hidden !== 'nothing' && set('renormalise'),
    threshold: what === 'scores' ? 0 : set('threshold'),
    isShare,
  };
}

/**
 * Is this one of the heads that are shown together?
 * @param {Switches} switches
 * @param {{layer: number, head: number}} state what is chosen
 * @param {{layer: number, head: number}} of
 */
export function isShown({ which, heads }, state, { layer, head }) {
  if (which === 'rollout') return layer <= state.layer;
  if (layer !== state.layer) return false;
  return { head: head === state.head, heads: heads.includes(head) }[which] ?? true;
}

/**
 * What changes when a head is chosen among all of them: where several are shown, it joins them or
 * leaves them; in another layer it is the first of a new set.
 * @param {Switches} switches
 * @param {{layer: number, head: number}} state
 * @param {{layer: number, head: number}} chosen
 * @returns {Object}
 */
export function choosingHead({ which, heads }, state, { layer, head }) {
  if (which !== 'heads') return { layer, head };
  if (layer !== state.layer) return { layer, head, attention_heads: [head] };
  const others = heads.filter((each) => each !== head);
  if (others.length === 0) return { layer, head };
  return {
    attention_heads: heads.includes(head) ? others : [...heads, head].sort((a, b) => a - b),
  };
}
