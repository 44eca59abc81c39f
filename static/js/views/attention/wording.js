/**
 * What the Attention view says of itself: which way tokens look here, and what a row is as it is drawn.
 */

const HEAD = ['head', 'one of several attentions that a layer runs side by side'];

/** @type {Record<import('../../data/places.js').Place['id'], {looking: string, that: string, query: string, key: string}>} */
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
};

const STANDARD = { what: 'weights', which: 'head', as: 'matrix', isShare: true, hidden: 'nothing' };

/**
 * @param {import('../../data/places.js').Place['id']} placeId
 * @param {import('../../state/attention_switches.js').Switches} [switches]
 * @returns {{help: string, terms: [string, string][]}}
 */
export function wordingFor(placeId, switches = STANDARD) {
  const place = PLACES[placeId];
  const [row, column] =
    switches.as === 'lines' ? ['at the left', 'at the right'] : ['a row', 'a column'];
  return {
    help: `${firstSentence(placeId, switches)}${sumsToOne(switches) ? ' A row sums to 1.' : ''}`,
    terms: [['query', `${place.query} (${row})`], ['key', `${place.key} (${column})`], HEAD],
  };
}

function firstSentence(placeId, { what, as }) {
  const { looking, that } = PLACES[placeId];
  const each = as === 'lines' ? `Each word at the left is ${looking}` : `Each row is ${looking}`;
  const mark = as === 'lines' ? 'the stronger its line' : 'the stronger a cell’s colour';
  if (what === 'scores')
    return `${each}: the warmer a cell’s colour, the more it is drawn to ${that}.`;
  if (placeId === 'cross' && what !== 'value_weighted')
    return `${each}: what it takes in helps to choose the token that comes after it.`;
  return `${each}: ${mark}, the more of ${that} it takes in.`;
}

/** Is that what the drawing shows, whatever is hidden of it? */
function sumsToOne({ isShare, which, hidden, isRenormalised }) {
  return isShare && which !== 'max' && (hidden === 'nothing' || isRenormalised);
}
