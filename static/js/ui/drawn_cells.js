/**
 * The cells of the drawings on the page for a presentation and a chapter: they are covered, outlined,
 * chosen and brought into view. Loaded with these.
 */

import { answerAt } from '../rules/chapter.js';
import { button, element, heightCovered } from './dom.js';
import { CELLS } from './plot.js';

/** @import { Step } from '../api/schemas' @import { Cell } from '../plot/grid.js' */

/** Milliseconds between two looks at where a cell is: a drawing arrives, and is resized. */
const LOOK = 150;
/** Pixels that a press may stray and still be one. */
const SLOP = 8;
/** Pixels that stay free above what is brought into view. */
const LEAST_ABOVE = 8;
const DRAWN = ':is(.view:not([hidden]) .panels, .bench-stage) .plot';

/** @returns {Element[]} */
function plots() {
  return [...document.querySelectorAll(DRAWN)];
}

/**
 * Keep elements over cells; they are placed again as the drawings change.
 * @param {() => {plot: Element, box: Record<string, number>|null|undefined, onclick?: () => void}[]} wanted without a box: not there yet
 * @param {() => HTMLElement} make
 */
function createOverlay(wanted, make) {
  /** @type {HTMLElement[]} */
  const shown = [];
  const timer = setInterval(place, LOOK);

  function place() {
    const seen = wanted().filter(({ box }) => box);
    while (shown.length > seen.length) shown.pop()?.remove();
    seen.forEach(({ plot, box, onclick = null }, index) => {
      const node = (shown[index] ??= make());
      node.onclick = onclick;
      for (const [name, pixels] of Object.entries(box ?? {}))
        node.style.setProperty(name, `${pixels}px`);
      if (node.parentElement !== plot) plot.append(node);
    });
  }
  place();

  return {
    place,
    remove() {
      clearInterval(timer);
      for (const old of shown) old.remove();
    },
  };
}

/**
 * Cover cells of the drawings on the page.
 * @param {() => Cover[]} wanted
 * @param {(cover: Cover) => void} onPress
 * @param {() => void} [onLook] called at every look
 */
export function createCovers(wanted, onPress, onLook) {
  const { classList } = document.documentElement;
  const overlay = createOverlay(
    () => {
      onLook?.();
      const all = plots();
      const boxes = wanted().map((cover) => {
        const plot = all[cover.panel];
        return { plot, box: plot && CELLS.get(plot)?.box(cover), onclick: () => onPress(cover) };
      });
      classList.toggle('is-covered', boxes.length > 0);
      classList.toggle(
        'is-covering',
        boxes.some(({ box }) => !box),
      );
      return boxes;
    },
    () => button('?', () => {}, { class: 'cover', 'aria-label': 'Covered: press to reveal' }),
  );

  return {
    place: overlay.place,
    /** @param {Cover} cover */
    describe: (cover) => CELLS.get(plots()[cover.panel])?.describe(cover) ?? '',
    remove() {
      overlay.remove();
      classList.remove('is-covered', 'is-covering');
    },
  };
}

/**
 * Outline the cells, rows and columns that a step marks, until the signal.
 * @param {Step['highlights']} highlights
 * @param {AbortSignal} signal
 */
export function light(highlights, signal) {
  if (highlights.length === 0) return;
  const overlay = createOverlay(
    () => {
      const [plot] = plots();
      return highlights.map((wanted) => ({
        plot,
        box: plot && CELLS.get(plot)?.boxOfTokens(wanted),
      }));
    },
    () => element('div.plot-light', { 'aria-hidden': 'true' }),
  );
  signal.addEventListener('abort', overlay.remove);
}

/** Milliseconds for which a picture is kept in view, while those above it grow. */
const SETTLING = 20000;

/** The screens on which a chapter is a sheet over the page. */
const SHEET = '(max-width: 60rem)';

/**
 * Bring a picture of an experiment into view once it is there, until the reader scrolls; above the
 * sheet of a phone the drawing of any step.
 * @param {string} picture its id; empty: none
 * @param {AbortSignal} signal
 */
export function bringIntoView(picture, signal) {
  if (picture === '' && !matchMedia(SHEET).matches) return;
  const ended = new AbortController();
  const end = () => ended.abort();
  const options = { signal: ended.signal, passive: true };
  signal.addEventListener('abort', end, { signal: ended.signal });
  for (const name of ['wheel', 'touchstart', 'keydown', 'pointerdown'])
    window.addEventListener(name, end, options);
  let top = NaN;
  const timer = setInterval(look, LOOK);
  const patience = setTimeout(end, SETTLING);
  ended.signal.addEventListener('abort', () => {
    clearInterval(timer);
    clearTimeout(patience);
  });

  function look() {
    const panel =
      picture === ''
        ? document.querySelector(`${DRAWN}:has(.main-svg)`)
        : document.querySelector(`.view:not([hidden]) [data-picture="${CSS.escape(picture)}"]`);
    if (!panel || !(panel.matches('.plot') || panel.querySelector('.plot'))) return;
    const at = panel.getBoundingClientRect();
    if (Math.abs(at.top - top) < 2) return;
    const sheet = document.querySelector('.chapter')?.getBoundingClientRect().top ?? 0;
    const floor = sheet > 0 ? sheet : window.innerHeight;
    const cover = heightCovered();
    window.scrollBy(0, at.top - Math.max(cover + LEAST_ABOVE, (floor + cover - at.height) / 2));
    ({ top } = panel.getBoundingClientRect());
  }
}

/**
 * Take the cells that are pressed or entered, until the signal.
 * @template T
 * @param {(cell: Cell, plot: Element) => T|undefined} meaning undefined: the cell means nothing here
 * @param {(meant: T) => void} onCell
 * @param {{signal: AbortSignal, isAlone: boolean}} options `isAlone`: the drawing itself does not take them
 */
function takeCells(meaning, onCell, { signal, isAlone }) {
  /** @type {{x: number, y: number, meant: T}|null} */
  let pressed = null;
  /** @param {Element|null} plot @param {Cell|null|undefined} cell */
  const meantBy = (plot, cell) => (plot && cell ? meaning(cell, plot) : undefined);
  /** @param {Event} event */
  const keepFrom = (event) => {
    if (!isAlone) return;
    event.preventDefault();
    event.stopPropagation();
  };
  const options = { signal, capture: true };
  window.addEventListener(
    'pointerdown',
    (event) => {
      const plot = plotAt(event.target);
      const meant = meantBy(plot, plot && CELLS.get(plot)?.at(event));
      const isOne = event.isPrimary && meant !== undefined;
      pressed = isOne ? { x: event.clientX, y: event.clientY, meant } : null;
      if (isOne) keepFrom(event);
    },
    options,
  );
  window.addEventListener(
    'pointerup',
    (event) => {
      const from = pressed;
      pressed = null;
      // The drawing lays a cover over itself while it is pressed, so the target says nothing.
      if (from && Math.hypot(event.clientX - from.x, event.clientY - from.y) < SLOP)
        onCell(from.meant);
    },
    options,
  );
  window.addEventListener(
    'keydown',
    (event) => {
      if (event.key !== 'Enter' && event.key !== ' ') return;
      const plot = plotAt(event.target);
      const meant = meantBy(plot, plot && CELLS.get(plot)?.current());
      if (meant === undefined) return;
      keepFrom(event);
      onCell(meant);
    },
    options,
  );
}

/** @param {EventTarget|null} target */
function plotAt(target) {
  const isCover = target instanceof Element && target.closest('.cover');
  return target instanceof Element && !isCover ? target.closest('.plot') : null;
}

/**
 * Take the cells to cover, until the signal.
 * @param {(cover: Cover) => void} onCover
 * @param {AbortSignal} signal
 */
export function takeCovers(onCover, signal) {
  takeCells(
    ({ row, column }, plot) => {
      const panel = plots().indexOf(plot);
      return panel >= 0 ? { panel, row, column } : undefined;
    },
    onCover,
    { signal, isAlone: true },
  );
}

/**
 * Take an answer from a cell or bar, until the signal. A press that answers with a bar does not add
 * its token to the text.
 * @param {Question} question
 * @param {Outcome} outcome
 * @param {(answer: any) => void} onAnswer
 * @param {AbortSignal} signal
 */
export function takeAnswers(question, outcome, onAnswer, signal) {
  takeCells(
    (cell, plot) => {
      const meant = CELLS.get(plot)?.meaning(cell);
      return meant ? answerAt(outcome, question, meant) : undefined;
    },
    onAnswer,
    { signal, isAlone: question.answer.of === 'next_token' },
  );
}
