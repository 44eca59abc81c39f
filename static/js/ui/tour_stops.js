/**
 * A walk through the page for who is new to it: what each stop points at, and what is said there.
 * Stops of views that the page does not have are left out, and so are those with nothing to see.
 */

/**
 * @typedef {Object} Stop
 * @property {string} id
 * @property {string} [view] that is opened for it
 * @property {string} target a selector of the part that is pointed at
 * @property {string} title
 * @property {string} text
 */

/** @type {Stop[]} */
export const STOPS = [
  {
    id: 'sentence',
    target: '#composer',
    title: 'Type a sentence',
    text: 'A small transformer reads it as you type. Each example below the box leads to something that one part of a model has learnt to do.',
  },
  {
    id: 'tokens',
    target: '#sentence',
    title: 'The sentence as the model has it',
    text: 'A model reads tokens: words, or pieces of words. Choose one, and everything below is about it; the colours say how much it takes in of the others.',
  },
  {
    id: 'heads',
    view: 'attention',
    target: '#view-attention .heads',
    title: 'Every head at a glance',
    text: 'Each small map is one head: who looks at whom. A slanted line looks at the token before, an upright one always at the same token. Choose a map to see it large.',
  },
  {
    id: 'map',
    view: 'attention',
    target: '#view-attention .panel',
    title: 'One head, large',
    text: 'A row is a token that looks, a column one that is looked at; a row sums to 1. Point at a cell, or walk there by arrow keys: the line below the sentence says it in words.',
  },
  {
    id: 'why',
    view: 'why',
    target: '#view-why .panel',
    title: 'Why a cell is what it is',
    text: 'The arithmetic behind one weight, with the very numbers of this pass: query times key, summed, scaled, and shared out among all keys.',
  },
  {
    id: 'experts',
    view: 'experts',
    target: '#view-experts .panel',
    title: 'Which experts it went to',
    text: 'In a mixture of experts a router sends each token to a few of them. A model without experts is called dense here, and nothing is drawn.',
  },
  {
    id: 'next',
    view: 'next_token',
    target: '#view-next_token .panel',
    title: 'What the model expects',
    text: 'Having read up to the chosen token, it gives every token of its vocabulary a probability of coming next. Press one, and the sentence goes on with it.',
  },
  {
    id: 'take',
    target: '.view:not([hidden]) .panel-head',
    title: 'Take it along',
    text: 'Every drawing is a picture, a table, a page that opens offline, and code that asks for the same numbers. The address holds all that you see: send it, and it opens like this.',
  },
];

/**
 * @param {string[]} views ids of those the page has
 * @returns {Stop[]}
 */
export function stopsFor(views) {
  return STOPS.filter(({ view }) => !view || views.includes(view));
}

/** @typedef {{left: number, top: number, width: number, height: number}} Box */

const GAP = 12;
const EDGE = 8;

/**
 * Where a card stands so that it does not cover what it speaks of: at its right, its left, below or
 * above it, and where there is no room for that, at the bottom.
 * @param {Box} target
 * @param {{width: number, height: number}} card
 * @param {{width: number, height: number}} screen
 * @returns {{left: number, top: number}}
 */
export function placeBeside(target, card, screen) {
  const within = (value, most) => Math.max(EDGE, Math.min(value, most - EDGE));
  const top = within(target.top, screen.height - card.height);
  const left = within(target.left, screen.width - card.width);
  const places = [
    { left: target.left + target.width + GAP, top },
    { left: target.left - GAP - card.width, top },
    { left, top: target.top + target.height + GAP },
    { left, top: target.top - GAP - card.height },
  ];
  const fits = (place) =>
    place.left >= EDGE &&
    place.top >= EDGE &&
    place.left + card.width <= screen.width - EDGE &&
    place.top + card.height <= screen.height - EDGE;
  return (
    places.find(fits) ?? {
      left: within(screen.width, screen.width - card.width),
      top: within(screen.height, screen.height - card.height),
    }
  );
}
