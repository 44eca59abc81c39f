/**
 * The sentence in large, which is the box one types in: behind the text lie its words, the arcs of the
 * opened head, and the next word in its place. A text that is long is a plain box.
 */

import { tokensOf } from '../trace/attention.js';
import { isMask } from '../trace/words.js';
import { percent } from '../words/numbers.js';
import { readDirection } from '../words/text.js';
import { element, partOf } from './dom.js';

/** @import { Spot } from '../rules/scene.js' @import { Side } from '../trace/attention.js' */

/** Characters up to which the text is set in each size. */
const SIZES = [
  [32, 'large'],
  [110, 'middle'],
  [240, 'small'],
];
const MOST_LINES = 3;
/** Weight from which an arc says its share. */
const SAID = 0.1;
const ABOVE = 8; // pixels from the middle of an arc to its label
const LABEL = 24; // pixels above an arc, which rises to three quarters of its height
const LABEL_WIDTH = 44; // pixels that two labels next to each other need
const MARGIN = 7; // pixels from the text to the way of an arc along it
const SVG = 'http://www.w3.org/2000/svg';

/** @typedef {{text: string, chance: string}} Slot the next word, and its probability */
/** @typedef {{x: number, y: number}} Point */
/** @typedef {{d: string, places: Point[], points?: Point[], isThin?: boolean}} Path `places` of its label, the best first; `points` on it that no label covers */

/** @param {string} text @returns {string} large, middle, small, or long: a plain box */
export function sizeOf(text) {
  const isTall = text.split('\n').length > MOST_LINES;
  const fits = SIZES.find(([most]) => text.length <= Number(most));
  return isTall || !fits ? 'long' : String(fits[1]);
}

/**
 * Split a text into pieces: those of tokens, and what is between them.
 * @param {Token[]} tokens offsets count code points
 * @param {string} text
 * @returns {{text: string, index: number, isInside: boolean}[]} `index` −1: of no token; `isInside`: it goes on with the word before
 */
export function piecesOf(tokens, text) {
  const characters = [...text];
  /** @type {{text: string, index: number, isInside: boolean}[]} */
  const pieces = [];
  let at = 0;
  tokens.forEach(({ start, end, word }, index) => {
    if (end <= Math.max(start, at)) return; // adds nothing to the text, or bytes of a character
    const first = Math.max(start, at);
    const spaces = characters.slice(at, end).findIndex((character) => character.trim() !== '');
    const begin = spaces < 0 ? first : Math.min(at + spaces, end);
    if (begin > at) pieces.push(gap(characters.slice(at, begin)));
    const isInside = word !== null && word === tokens[index - 1]?.word;
    if (end > begin) pieces.push({ text: characters.slice(begin, end).join(''), index, isInside });
    at = end;
  });
  if (at < characters.length) pieces.push(gap(characters.slice(at)));
  return pieces;
}

/** @param {string[]} characters */
const gap = (characters) => ({ text: characters.join(''), index: -1, isInside: false });

/** The sentence, with what lies behind it. */
export class Hero {
  /** @type {Trace|null} */
  #trace = null;
  /** @type {Arc[]} */
  #arcs = [];
  #key = '';
  /** The arcs on the page, as text, so that those that stay keep their elements. */
  #drawn = '';
  #isAwaited = false;
  #slot = element('span.slot', { 'aria-hidden': 'true' });
  #by;

  /**
   * @param {(id: string) => HTMLElement} byId
   * @param {{onChoose: (spot: Spot) => void, onPoint: (spot: Spot|null) => void}} by
   */
  constructor(byId, by) {
    this.#by = by;
    this.host = byId('hero');
    this.words = byId('hero-words');
    this.translated = byId('translated');
    this.box = partOf(this.host, '#text', HTMLTextAreaElement);
    this.svg = partOf(this.host, '#arcs', SVGSVGElement);
    for (const change of ['input', 'shown']) this.box.addEventListener(change, () => this.fit());
    this.host.addEventListener('pointermove', (event) => this.#by.onPoint(spotAt(event)));
    this.host.addEventListener('pointerleave', () => this.#by.onPoint(null));
    this.box.addEventListener('click', (event) => {
      const spot = spotAt(event);
      if (spot && this.box.selectionStart === this.box.selectionEnd) this.#by.onChoose(spot);
    });
    new ResizeObserver(() => this.#drawLater()).observe(this.host);
  }

  /** Fit the size of the type to the text, and lay its words behind it. */
  fit() {
    const { value, dataset } = this.box;
    const size = sizeOf(value);
    this.host.dataset.size = size;
    const { text, model, asked } = this.#trace ?? {};
    const { text_pair: pair } = asked ?? {};
    const isRead =
      text === (pair ? `${value}\n${pair}` : value) &&
      model === (dataset.model ?? model) &&
      size !== 'long';
    this.host.classList.toggle('is-typed', !isRead);
    const key = `${isRead ? this.#trace?.id : ''} ${value}`;
    if (key === this.#key) return;
    this.#key = key;
    this.words.dir = readDirection(value);
    const pieces =
      isRead && this.#trace ? piecesOf(this.#trace.tokens, this.#trace.text) : [gap([...value])];
    this.words.replaceChildren(...wordNodes(pieces, 'source'), '\u200b', this.#slot);
    for (const piece of this.words.children)
      piece.classList.toggle('is-second', this.#isSecond(piece));
  }

  /** Return true for a word of the second text, which no box shows. @param {Element} piece */
  #isSecond(piece) {
    const at = piece instanceof HTMLElement ? Number(piece.dataset.token) : NaN;
    return this.#trace?.tokens[at]?.role === 'second';
  }

  /** @param {Trace} trace */
  show(trace) {
    this.#trace = trace;
    this.#key = '';
    this.fit();
    if (trace.target)
      this.translated.replaceChildren(
        ...wordNodes(piecesOf(tokensOf(trace, 'target'), trace.target), 'target'),
      );
  }

  /** @param {Slot|null} slot @param {number} position that predicts */
  showNext(slot, position) {
    const token = this.#trace?.tokens[position];
    const mask = token && isMask(token) ? this.#spot('source', position) : null;
    const isMasked = mask !== null;
    const home = mask ?? this.words;
    this.#slot.classList.toggle('is-under', isMasked);
    this.#slot.hidden = !slot || this.host.dataset.size === 'long';
    if (this.#slot.parentElement !== home) home.append(this.#slot);
    if (!slot) return;
    const before = this.#slot.querySelector('.slot-word:not(.is-leaving)');
    const number = element('small', slot.chance);
    if (before?.textContent === slot.text) {
      this.#slot.querySelector('small')?.replaceWith(number);
      return;
    }
    const word = element('span.slot-word', slot.text);
    this.#slot.classList.toggle('is-joined', !/^\s/.test(slot.text) && !isMasked);
    for (const old of this.#slot.querySelectorAll('.is-leaving')) old.remove();
    if (!(before instanceof HTMLElement)) {
      this.#slot.replaceChildren(word, number);
      return;
    }
    before.classList.add('is-leaving');
    word.classList.add('is-coming');
    before.addEventListener('animationend', () => before.remove(), { once: true });
    this.#slot.querySelector('small')?.remove();
    this.#slot.append(word, number);
  }

  /** @param {Arc[]} arcs @param {boolean} isOff the head that they belong to is switched off */
  showArcs(arcs, isOff) {
    this.#arcs = arcs;
    this.host.classList.toggle('is-off', isOff);
    this.#drawLater();
  }

  /** Draw with the next frame, which lays the page out anyway. */
  #drawLater() {
    if (this.#isAwaited) return;
    this.#isAwaited = true;
    requestAnimationFrame(() => {
      this.#isAwaited = false;
      this.#drawArcs();
    });
  }

  /** @param {Side} side @param {number} index @returns {HTMLElement|null} */
  #spot(side, index) {
    const host = side === 'target' ? this.translated : this.words;
    const tokens = this.#trace ? tokensOf(this.#trace, side) : [];
    let at = index; // bytes of one character stand where its first ones do
    while (tokens[at]?.part && tokens[at].start === tokens[at - 1]?.start) at -= 1;
    return host.querySelector(`[data-token="${at}"]`);
  }

  /** Return the pieces of the word of a token. @param {Spot} spot */
  #piecesOf({ side, index }) {
    const tokens = this.#trace ? tokensOf(this.#trace, side) : [];
    const { word = null } = tokens[index] ?? {};
    return tokens.flatMap((token, at) => {
      const isPiece = at === index || (word !== null && token.word === word);
      const node = isPiece ? this.#spot(side, at) : null;
      return node ? [node] : [];
    });
  }

  #drawArcs() {
    const { host, svg } = this;
    for (const node of document.querySelectorAll('#hero-words .is-read, #translated .is-read'))
      node.classList.remove('is-read');
    const frame = host.getBoundingClientRect();
    const zoom = frame.width / host.offsetWidth || 1; // while it is presented
    const room = parseFloat(getComputedStyle(host).paddingBlockStart);
    const drawn = this.#arcs.flatMap(({ from, to, share, isPast = false }) => {
      const next = this.#slot.hidden ? null : this.#slot; // an arc may begin at the word to come
      const [start, end] = [
        this.#spot(from.side, from.index) ?? next,
        this.#spot(to.side, to.index),
      ];
      if (!start || !end || start === end) return [];
      for (const piece of this.#piecesOf(to)) {
        piece.style.setProperty('--share', String(share));
        piece.classList.add('is-read');
      }
      const isBelow = from.side !== to.side; // of a translation, up to the sentence
      return [{ path: pathOf(start, end, { frame, zoom, room, isBelow }), share, isPast }];
    });
    /** @type {Point[]} */
    const said = [];
    const points = drawn.flatMap(({ path }) => path.points ?? []);
    const placed = drawn.map(({ path, share, isPast }) => {
      const place = share >= SAID && path.places.find((each) => isFree(each, points, said));
      if (place) said.push(place);
      return { path, share, isPast, place };
    });
    const now = JSON.stringify(placed);
    if (now === this.#drawn) return;
    this.#drawn = now;
    svg.replaceChildren(...placed.flatMap(({ path, share, ...of }) => arcNodes(path, share, of)));
  }
}

/** @param {ReturnType<typeof piecesOf>} pieces @param {Side} side */
function wordNodes(pieces, side) {
  return pieces.map(({ text, index, isInside }) =>
    index < 0
      ? text
      : element(
          'span',
          { class: isInside ? 'piece is-inside' : 'piece', 'data-token': index, 'data-side': side },
          text,
        ),
  );
}

/** @param {{clientX: number, clientY: number}} event @returns {Spot|null} */
function spotAt({ clientX, clientY }) {
  const node = document
    .elementsFromPoint(clientX, clientY)
    .find((each) => each instanceof HTMLElement && each.dataset.token !== undefined);
  if (!(node instanceof HTMLElement)) return null;
  const side = node.dataset.side === 'target' ? 'target' : 'source';
  return { side, index: Number(node.dataset.token) };
}

/**
 * @param {HTMLElement} start
 * @param {HTMLElement} end
 * @param {{frame: DOMRect, zoom: number, room: number, isBelow: boolean}} within `zoom` of the page: the boxes are measured in it, the arcs are not; `room` above the first line; `isBelow`: the arc goes up to another text
 * @returns {Path}
 */
function pathOf(start, end, { frame, zoom, room, isBelow }) {
  const [a, b] = [start, end].map((node) => node.getBoundingClientRect());
  const [x1, x2] = [a, b].map((box) => (box.left + box.width / 2 - frame.left) / zoom);
  const [y1, y2] = [a.top, isBelow ? b.bottom : b.top].map((y) => (y - frame.top) / zoom);
  if (isBelow) {
    const middle = (y1 + y2) / 2;
    const d = `M${x1} ${y1} C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}`;
    const isRoomy = y1 - y2 > LABEL; // else the label would lie on a word
    return { d, places: isRoomy ? [{ x: Math.min(x1, x2) - LABEL_WIDTH / 2, y: middle + 5 }] : [] };
  }
  const isFirst = (/** @type {number} */ y) => y < room + a.height / zoom / 2;
  if (!isFirst(y1) || !isFirst(y2)) {
    const bottoms = [a.bottom, b.bottom].map((y) => (y - frame.top) / zoom);
    const d = betweenLines([x1, x2], { tops: [y1, y2], bottoms, width: frame.width / zoom });
    const x = Math.min(x2, (frame.width - LABEL_WIDTH / 2) / zoom); // its label keeps within the text
    return { d, places: isFirst(y2) ? [{ x, y: y2 - MARGIN }] : [], isThin: true };
  }
  const height = Math.min((room - LABEL) / 0.75, 26 + Math.abs(x1 - x2) / 7);
  const top = Math.min(y1, y2) - height;
  const at = (/** @type {number} */ t) => ({
    x: x1 + (x2 - x1) * t * t * (3 - 2 * t),
    y: y1 * (1 - t) ** 3 + 3 * top * t * (1 - t) + y2 * t ** 3,
  });
  const beside = (Math.sign(x2 - x1) * LABEL_WIDTH) / 2; // the arc, where it falls to the word
  return {
    d: `M${x1} ${y1} C${x1} ${top} ${x2} ${top} ${x2} ${y2}`,
    points: Array.from({ length: 25 }, (_, nth) => at(nth / 24)),
    places: [0.5, 0.6, 0.7, 0.8, 0.88].map((t) => {
      const { x, y } = at(t);
      return { x: x + beside * Math.min(1, 3 * (t - 0.5)), y: y - ABOVE };
    }),
  };
}

/**
 * Return true if a label covers no arc and no other label.
 * @param {Point} place
 * @param {Point[]} points of all arcs
 * @param {Point[]} said the places of other labels
 */
function isFree({ x, y }, points, said) {
  return (
    said.every((other) => Math.abs(x - other.x) > LABEL_WIDTH || Math.abs(y - other.y) > 16) &&
    points.every((point) => Math.abs(x - point.x) > 18 || point.y > y + 2 || point.y < y - 14)
  );
}

/**
 * Return the way between words of which one is below the first line. It runs between the lines, over no
 * word: from the top of the lower word to the bottom of the upper one, past other lines along the margin.
 * @param {number[]} xs
 * @param {{tops: number[], bottoms: number[], width: number}} of the words; `width` of the text
 */
function betweenLines([x1, x2], { tops: [y1, y2], bottoms: [b1, b2], width }) {
  const line = b1 - y1;
  const isSame = Math.abs(y1 - y2) < line / 2;
  const isDown = !isSame && y2 > y1;
  const [from, to] = [isDown ? b1 : y1, isSame || isDown ? y2 : b2];
  const bend = isSame ? y1 - 2 * MARGIN : (from + to) / 2;
  if (Math.abs(from - to) < line) return `M${x1} ${from} C${x1} ${bend} ${x2} ${bend} ${x2} ${to}`;
  const [margin, inward] = x1 < width / 2 ? [-MARGIN, MARGIN] : [width + MARGIN, -MARGIN];
  const by = isDown ? MARGIN : -MARGIN;
  const [first, last] = [from + by, to - by]; // the gaps between lines, with a round bend into each
  return `M${x1} ${from} Q${x1} ${first} ${x1 - inward} ${first} H${margin + inward} Q${margin} ${first} ${margin} ${first + by} V${last - by} Q${margin} ${last} ${margin + inward} ${last} H${x2 - inward} Q${x2} ${last} ${x2} ${to}`;
}

/** @param {Path} path @param {number} share @param {{isPast: boolean, place: Point|undefined|false}} of `place` of its label */
function arcNodes({ d, isThin = false }, share, { isPast, place }) {
  const arc = document.createElementNS(SVG, 'path');
  arc.setAttribute('d', d);
  arc.setAttribute('pathLength', '1');
  arc.classList.toggle('is-past', isPast);
  arc.setAttribute('stroke-width', String(1 + (isThin ? 1.5 : 6) * share));
  if (!place) return [arc];
  const label = document.createElementNS(SVG, 'text');
  label.setAttribute('x', String(place.x));
  label.setAttribute('y', String(place.y));
  label.setAttribute('text-anchor', 'middle');
  label.textContent = percent(share, 0);
  return [arc, label];
}
