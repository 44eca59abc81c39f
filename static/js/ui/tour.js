/**
 * The tour: a card next to one part of the page after another. The page stays usable;
 * Escape, the card's own button and the button in the masthead end it.
 */

import { button, element, partOf, placeBeside } from './dom.js';

/** Covers the top of the page once it is scrolled. */
const COVER = '#sentence';

/**
 * @param {HTMLElement} starter the button in the masthead that leads to it
 * @param {Stop[]} stops
 * @param {{onView: (id: string) => Promise<void>}} handlers opens a view
 */
export function createTour(starter, stops, { onView }) {
  const title = element('h2', { id: 'tour-title', tabindex: -1 });
  const text = element('p', { id: 'tour-text' });
  const progress = element('span.tour-progress');
  const back = button('Back', () => walk(-1));
  const next = button('', () => walk(1), { class: 'button is-next' });
  const leaving = button('Leave', leave, { class: 'tour-leave' });
  const card = element(
    'section.tour',
    { role: 'dialog', 'aria-labelledby': title.id, 'aria-describedby': text.id, hidden: true },
    title,
    text,
    element('div.tour-foot', progress, leaving, back, next),
  );
  const ring = element('div.tour-ring', { 'aria-hidden': 'true', hidden: true });
  const watcher = new ResizeObserver(place);
  let at = -1;
  /** @type {Element|null} */
  let target = null;
  document.body.append(ring, card);

  /**
   * Walk to the next stop whose target is visible; past the last one the tour ends.
   * @param {number} direction
   */
  async function walk(direction, from = at) {
    const began = at;
    for (let index = from + direction; index >= 0 && index < stops.length; index += direction) {
      const { view } = stops[index];
      if (view) await onView(view);
      if (at !== began) return; // it was left meanwhile
      const node = document.querySelector(stops[index].target);
      if (node && isVisible(node)) {
        stopAt(index, node);
        return;
      }
    }
    if (direction > 0) leave();
  }

  /** @param {number} index @param {Element} node */
  function stopAt(index, node) {
    at = index;
    watcher.disconnect();
    target = node;
    title.textContent = stops[at].title;
    text.textContent = stops[at].text;
    progress.textContent = `${at + 1} of ${stops.length}`;
    back.hidden = at === 0;
    next.textContent = at === stops.length - 1 ? 'Done' : 'Next';
    card.hidden = ring.hidden = false;
    reveal(node);
    watcher.observe(node);
    place();
    title.focus({ preventScroll: true });
  }

  function place() {
    if (at < 0 || !target) return;
    const box = target.getBoundingClientRect();
    const { beside } = stops[at];
    const free = (beside && document.querySelector(beside)) || target;
    const size = { width: card.offsetWidth, height: card.offsetHeight };
    const { left, top } = placeBeside(free.getBoundingClientRect(), size, {
      width: document.documentElement.clientWidth,
      height: window.innerHeight,
    });
    card.style.transform = `translate(${left}px, ${top}px)`;
    ring.style.transform = `translate(${box.left - 6}px, ${box.top - 6}px)`;
    ring.style.width = `${box.width + 12}px`;
    ring.style.height = `${box.height + 12}px`;
  }

  function leave() {
    if (at < 0) return;
    at = -1;
    watcher.disconnect();
    card.hidden = ring.hidden = true;
    starter.focus({ preventScroll: true });
  }

  card.addEventListener('keydown', ({ key }) => {
    if (key === 'ArrowRight') walk(1);
    if (key === 'ArrowLeft') walk(-1);
  });
  document.addEventListener('keydown', ({ key }) => {
    if (key === 'Escape') leave();
  });
  window.addEventListener('scroll', place, { passive: true });
  window.addEventListener('resize', place);

  return {
    /** Start the tour, or end it. */
    open() {
      if (at >= 0) leave();
      else walk(1, -1);
    },
  };
}

/** @param {Element} node */
function isVisible(node) {
  return node.getClientRects().length > 0;
}

/**
 * Scroll a part into the middle of the screen; a higher part begins below the sentence.
 * @param {Element} target
 */
function reveal(target) {
  const { top, height } = target.getBoundingClientRect();
  const sentence = partOf(document, COVER, HTMLElement);
  const cover =
    target.matches(COVER) ||
    target.compareDocumentPosition(sentence) & Node.DOCUMENT_POSITION_FOLLOWING
      ? 0
      : sentence.offsetHeight;
  const room = window.innerHeight - cover;
  const margin = Math.max(24, (room - height) / 2);
  window.scrollBy(0, top - cover - margin);
}

/**
 * @typedef {Object} Stop
 * @property {string} id
 * @property {string} [view] that is opened for it
 * @property {string} target a selector of the part that is pointed at
 * @property {string} [beside] a selector of the part that the card does not cover, if it is another
 * @property {string} title
 * @property {string} text
 */

/** @type {Stop[]} */
const STOPS = [
  {
    id: 'sentence',
    target: '.composer-line',
    beside: '.composer-foot',
    title: 'Type a sentence',
    text: 'A small transformer reads it as you type. Each example below the box shows something that one part of a model has learnt.',
  },
  {
    id: 'next',
    target: '#next',
    beside: '#causes',
    title: 'What comes next, and why',
    text: 'The likeliest next words with their probabilities. Choose one, and the line below names what speaks most for it; “why?” shows every part of the model.',
  },
  {
    id: 'tokens',
    target: '#sentence',
    title: 'The sentence as tokens',
    text: 'A model reads tokens: words or pieces of words. Choose one, and the views below are about it; the colours show how much it attends to the others.',
  },
  {
    id: 'model',
    target: '#map',
    title: 'The model as a map',
    text: 'It leads from the text to the prediction. Each small box is an attention head; its colour is what it adds to the chosen next word. Press one to see what it reads, and what comes next without it; press it again to put it back.',
  },
  {
    id: 'heads',
    view: 'attention',
    target: '#view-attention .heads',
    title: 'Every head at a glance',
    text: 'Each small map is one head: which tokens attend to which. The long diagonal is attention to the token itself, the line beside it attention to its neighbour, a vertical line attention to one token. Choose a map to enlarge it.',
  },
  {
    id: 'map',
    view: 'attention',
    target: '#view-attention .panel',
    title: 'One head, enlarged',
    text: 'A row is a query, a column a key; each row sums to 1. Point at a cell, or move there with the arrow keys: the line below the sentence describes it.',
  },
  {
    id: 'why',
    view: 'why',
    target: '#view-why .panel',
    title: 'Why a weight has its value',
    text: 'The arithmetic of one weight, with the numbers of this pass: the dot product of query and key, scaled, then the softmax over the keys that the query sees.',
  },
  {
    id: 'experts',
    view: 'experts',
    target: '#view-experts .panel',
    title: 'Which experts were chosen',
    text: 'In a mixture of experts a router sends each token to a few experts. A model without experts is dense, and nothing is drawn.',
  },
  {
    id: 'prediction',
    view: 'next_token',
    target: '#view-next_token .panel',
    title: 'The prediction',
    text: 'After the chosen token, the model gives each token of its vocabulary a probability of coming next. Press one to continue the sentence with it.',
  },
  {
    id: 'take',
    target: '.view:not([hidden]) .panel-head',
    title: 'Export',
    text: 'Each drawing exports as an image, a table, a page that opens offline, and code that requests the same numbers. The address holds the whole view: a link restores it.',
  },
];

/**
 * @param {string[]} views ids of those the page has
 * @returns {Stop[]}
 */
export function stopsFor(views) {
  return STOPS.filter(({ view }) => !view || views.includes(view));
}
