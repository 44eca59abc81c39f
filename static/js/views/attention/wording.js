/** The help and the terms of the Attention view, by the attention that is shown and its switches. */

/** @import { Place } from '../../trace/attention.js' */

const ROLLOUT = {
  rollout:
    'an estimate of the tokens that a vector is mixed from: the weights of all layers multiplied, half of each layer taken as what the residual connection passes on',
};
const HEAD = { head: 'one of several attention maps that a layer computes in parallel' };

/** @type {Record<Place['id']|'written', {looking: string, that: string, query: string, key: string}>} */
const PLACES = {
  decoder: {
    looking: 'a token looking back',
    that: 'that earlier token',
    query: 'the token that attends',
    key: 'a token it attends to',
  },
  encoder: {
    looking: 'a token looking both ways',
    that: 'that token',
    query: 'the token that attends',
    key: 'a token it attends to',
  },
  cross: {
    looking: 'a token of the target looking at the source',
    that: 'that token',
    query: 'the token of the target that attends',
    key: 'a token of the source it attends to',
  },
  written: {
    looking: 'named by the token of the target that was written from it',
    that: 'that token of the source',
    query: 'the token of the target before the one that names the row',
    key: 'a token of the source it attends to',
  },
};

/** @type {Partial<Switches>} */
const STANDARD = { what: 'weights', which: 'head', as: 'matrix', isShare: true, hidden: 'nothing' };

/**
 * @param {keyof typeof PLACES} placeId
 * @param {Partial<Switches>} [switches]
 * @returns {{help: string, terms: Record<string, string>}}
 */
export function wordingFor(placeId, switches = STANDARD) {
  const place = PLACES[placeId];
  const [row, column] =
    switches.as === 'lines' ? ['at the left', 'at the right'] : ['a row', 'a column'];
  return {
    help: `${firstSentence(placeId, switches)}${sumsToOne(switches) ? ' A row sums to 1.' : ''}`,
    terms: {
      query: `${place.query} (${row})`,
      key: `${place.key} (${column})`,
      ...HEAD,
      ...(switches.which === 'rollout' && ROLLOUT),
    },
  };
}

/** @param {keyof typeof PLACES} placeId @param {Partial<Switches>} switches */
function firstSentence(placeId, { what, as }) {
  const { looking, that } = PLACES[placeId];
  const each = as === 'lines' ? `Each word at the left is ${looking}` : `Each row is ${looking}`;
  const mark = as === 'lines' ? 'the stronger its line' : 'the stronger a cell’s colour';
  if (what === 'scores')
    return `${each}: the warmer a cell’s colour, the higher the score of ${that}.`;
  if (placeId === 'cross' && what !== 'value_weighted')
    return `${each}: what it attends to helps to predict the token after it.`;
  return `${each}: ${mark}, the more it attends to ${that}.`;
}

/** Return true if the drawn rows sum to 1. @param {Partial<Switches>} switches */
function sumsToOne({ isShare, which, hidden }) {
  return isShare && which !== 'max' && hidden === 'nothing';
}
