/**
 * The quantities of the Attention view, and how its switches combine. A link may hold incompatible
 * switches: rollout is made of weights, and scores are not shares that could be summed. The quantity
 * or the heads win, and a switch that is incompatible with them counts as not set.
 */

import { PAIR_PARTS } from '../trace/attention.js';
import { extent } from '../trace/trace.js';
import { share, signed } from '../words/numbers.js';
import { choice, counts, flag, standardsOf } from './state.js';

/**
 * @typedef {Object} Quantity
 * @property {string} title as a switch
 * @property {string} help as a switch
 * @property {string} noun what the numbers are
 * @property {string} suffix of the drawing’s title
 * @property {string} note what is to be known of it, in a sentence
 * @property {(value: number, digits?: number) => string} write
 * @property {(query: string, key: string, much: string) => string} say
 * @property {(query: string, key: string, much: string) => string} sayMost of the highest in a row
 * @property {(query: string, key: string, much: string) => string} sayLookedAt of the highest in a column
 */

/** @type {Quantity} */
const WEIGHTS = {
  title: 'Weights',
  help: 'How much each query attends to each key, after the softmax',
  noun: 'attention weight',
  suffix: '',
  note: '',
  write: share,
  say: (query, key, much) => `${query} attends to ${key} with weight ${much}`,
  sayMost: (query, key, much) => `${query} attends most to ${key} with weight ${much}`,
  sayLookedAt: (query, key, much) => `${key} is attended to most by ${query}, with weight ${much}`,
};

/** @type {Record<What, Quantity>} */
export const QUANTITIES = {
  weights: WEIGHTS,
  log: {
    ...WEIGHTS,
    title: 'Log',
    help: 'The weights on a logarithmic colour scale, which shows small ones',
    note: 'Colours show the logarithm of the weight, from 0.0001 up; numbers are weights.',
  },
  scores: {
    title: 'Scores',
    help: 'Before the softmax: query · key, scaled, plus the positional bias if there is one',
    noun: 'score before the softmax',
    suffix: ': scores before the softmax',
    note: 'Warm is above zero, blue below. The softmax turns a row of scores into a row of weights.',
    write: signed,
    say: (query, key, much) => `${query} gives ${key} a score of ${much}`,
    sayMost: (query, key, much) => `${query} gives its highest score to ${key}: ${much}`,
    sayLookedAt: (query, key, much) => `${key} gets its highest score from ${query}: ${much}`,
  },
  value_weighted: {
    title: 'Weight × value',
    help: 'The contribution of a key: its weight times the norm of its projected value',
    noun: 'weight × length of the projected value',
    suffix: ': weight × value',
    note: 'A weight times the length of the key’s value after W_O: a large weight on a short value adds little. Rows do not sum to 1.',
    write: signed,
    say: (query, key, much) => `${query} takes a vector of length ${much} from ${key}`,
    sayMost: (query, key, much) => `${query} takes most from ${key}: a vector of length ${much}`,
    sayLookedAt: (query, key, much) => `${key} gives most to ${query}: a vector of length ${much}`,
  },
};

/** Rollout has its own wording: it is not attention between layers. @type {Quantity} */
export const ROLLOUT = {
  ...WEIGHTS,
  noun: 'rollout',
  note: 'The share of a row’s token that originates from each column’s token, with attention averaged over heads and half of each layer passed on by the residual connection (attention rollout).',
  say: (query, key, much) => `${much} of ${query} originates from ${key}`,
  sayMost: (query, key, much) => `The largest share of ${query} originates from ${key}: ${much}`,
  sayLookedAt: (query, key, much) => `${key} contributes most to ${query}: ${much}`,
};

/**
 * The mapping of values to colours.
 * @typedef {Object} Scale
 * @property {number} bottom
 * @property {number} top
 * @property {boolean} isSigned zero is in the middle
 * @property {(value: number) => number} place of a value between bottom and top
 * @property {number[]} [ticks] places on the scale, if these are not values
 * @property {(place: number) => string} [write] a tick
 */

/** The decimal exponent of the smallest weight that the colours tell apart. */
const FLOOR = -4;

/**
 * @param {What} what
 * @param {Matrix} matrix
 * @param {{range: 'one'|'head', most: number}} wish `most`: the largest value of any head, for unbounded values
 * @returns {Scale}
 */
export function chooseScale(what, matrix, { range, most }) {
  const isOfHead = range === 'head';
  const plain = { bottom: 0, isSigned: false, place: (/** @type {number} */ value) => value };
  if (what === 'log') return logScale(isOfHead ? extent(matrix) || 1 : 1);
  if (what === 'scores') {
    const end = (isOfHead ? extent(matrix) : Math.max(most, extent(matrix))) || 1;
    return { ...plain, bottom: -end, top: end, isSigned: true };
  }
  if (what === 'value_weighted')
    return { ...plain, top: (isOfHead ? extent(matrix) : Math.max(most, extent(matrix))) || 1 };
  return { ...plain, top: isOfHead ? extent(matrix) || 1 : 1 };
}

/** @param {number} end */
function logScale(end) {
  const top = Math.max(Math.log10(end), FLOOR + 1);
  const powers = Array.from({ length: Math.floor(top) - FLOOR + 1 }, (_, step) => FLOOR + step);
  /** @param {number} power */
  const named = (power) => `${power === FLOOR ? '≤' : ''}${Number((10 ** power).toFixed(-FLOOR))}`;
  return {
    bottom: FLOOR,
    top,
    isSigned: false,
    place: (/** @type {number} */ value) => Math.max(FLOOR, Math.log10(value)),
    ticks: powers,
    write: named,
  };
}

/** @typedef {'weights'|'log'|'scores'|'value_weighted'} What */
/** @typedef {'auto'|'nothing'|'first'|'special'} Hidden */
/** @typedef {'head'|'heads'|'mean'|'max'|'rollout'} Which */

export const FIELDS = Object.freeze({
  attention_what: choice(['weights', 'log', 'scores', 'value_weighted']),
  attention_which: choice(['head', 'heads', 'mean', 'max', 'rollout']),
  attention_heads: counts(),
  attention_as: choice(['matrix', 'lines']),
  attention_rows: choice(['usual', 'written', 'next']),
  attention_words: flag(),
  attention_hide: choice(['auto', 'nothing', 'first', 'special']),
  attention_pair: choice(['all', 'first_first', 'second_second', 'first_second', 'second_first']),
});

const STANDARDS = standardsOf(FIELDS);

/**
 * Return true if lines can show a quantity. The width of a line is its value, so no value is
 * negative and the scale starts at 0.
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
 * @property {Hidden} hidden `auto`: nothing, or the first token where it hides the rest
 * @property {number} resting the share of the weight on the first token, if it is hidden for that
 * @property {boolean} isShare rows are shares of 1, before any is hidden
 * @property {typeof PAIR_PARTS[number]|null} pair the part of a pair of texts that is shown; null: all, or no pair
 */

/**
 * @param {ViewState} state
 * @param {{placeId: string, nHeads: number}} of what is looked at
 * @returns {Switches}
 */
export function readSwitches(state, { placeId, nHeads }) {
  /** @param {string} name */
  const set = (name) => state[`attention_${name}`] ?? STANDARDS[`attention_${name}`];
  const what = set('what');
  const isShare = what === 'weights' || what === 'log';
  const isPossible = set('which') !== 'rollout' || (isShare && placeId !== 'cross');
  /** @type {number[]} */
  const chosen = set('heads');
  const heads = chosen.filter((head) => head < nHeads);
  const hidden = set('hide');
  return {
    what,
    which: isPossible ? set('which') : 'head',
    heads: heads.length > 0 ? heads : [state.head],
    as: canBeLines(what) ? set('as') : 'matrix',
    isWords: isShare && set('words'),
    hidden,
    resting: 0,
    isShare,
    pair: PAIR_PARTS.find(({ from, to }) => `${from}_${to}` === set('pair')) ?? null,
  };
}

/**
 * Return true if this is one of the heads that are shown together.
 * @param {Switches} switches
 * @param {{layer: number, head: number}} state what is chosen
 * @param {{layer: number, head: number}} of
 */
export function isShown({ which, heads }, state, { layer, head }) {
  if (which === 'rollout') return layer <= state.layer;
  if (layer !== state.layer) return false;
  if (which === 'head') return head === state.head;
  return which === 'heads' ? heads.includes(head) : true;
}

/**
 * Return the change when a head is chosen in the overview: if several are shown, it joins them or
 * leaves them; in another layer it is the first of a new set.
 * @param {Switches} switches
 * @param {{layer: number, head: number}} state
 * @param {{layer: number, head: number}} chosen
 * @returns {Patch}
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
