/** A chapter in the drawing: it lights what a step marks, and takes an answer there. */

import { answerAt } from '../rules/chapter.js';
import { element } from './dom.js';
import { CELLS } from './plot.js';

/**
 * @import { Outcome, Question, Step } from '../rules/chapter.js'
 * @import { Cell } from '../plot/grid.js'
 */

/** Milliseconds between two looks at where a cell is: a drawing arrives, and is resized. */
const LOOK = 200;
/** Pixels that a press may stray and still be one. */
const SLOP = 8;
const DRAWN = ':is(.view:not([hidden]) .panels, .bench-stage) .plot';

/**
 * Outline the cells, rows and columns that a step marks, until the signal.
 * @param {Step['highlights']} highlights
 * @param {AbortSignal} signal
 */
export function light(highlights, signal) {
  if (highlights.length === 0) return;
  const shown = highlights.map(() =>
    element('div', { class: 'plot-light', 'aria-hidden': 'true' }),
  );
  const timer = setInterval(place, LOOK);
  signal.addEventListener('abort', () => {
    clearInterval(timer);
    for (const node of shown) node.remove();
  });

  function place() {
    const plot = document.querySelector(DRAWN);
    highlights.forEach((wanted, index) => {
      const node = shown[index];
      const box = plot && CELLS.get(plot)?.boxOfTokens(wanted);
      node.hidden = !box;
      if (!box) return;
      for (const [name, pixels] of Object.entries(box)) node.style.setProperty(name, `${pixels}px`);
      if (node.parentElement !== plot) plot.append(node);
    });
  }
  place();
}

/** Milliseconds for which a picture is kept in view, while those above it grow. */
const SETTLING = 20000;

/**
 * Bring a picture of an experiment into view once it is there, until the reader scrolls.
 * @param {string} picture its id; empty: none
 * @param {AbortSignal} signal
 */
export function bringIntoView(picture, signal) {
  if (picture === '') return;
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
    const panel = document.querySelector(
      `.view:not([hidden]) [data-picture="${CSS.escape(picture)}"]`,
    );
    const plot = panel?.querySelector('.plot');
    if (!panel || !plot) return;
    const at = panel.getBoundingClientRect().top;
    if (Math.abs(at - top) < 2) return;
    panel.scrollIntoView({ block: 'center' });
    top = panel.getBoundingClientRect().top;
  }
}

/**
 * Take an answer from a cell or bar that is pressed or entered, until the signal. A press that
 * answers with a bar does not add its token to the text.
 * @param {Question} question
 * @param {Outcome} outcome
 * @param {(answer: any) => void} onAnswer
 * @param {AbortSignal} signal
 */
export function takeAnswers(question, outcome, onAnswer, signal) {
  /** @type {{x: number, y: number, answer: any}|null} */
  let pressed = null;
  const options = { signal, capture: true };

  /** @param {Element|null} plot @param {Cell|null|undefined} cell */
  const meant = (plot, cell) => {
    const meaning = plot && cell && CELLS.get(plot)?.meaning(cell);
    return meaning ? answerAt(outcome, question, meaning) : undefined;
  };
  /** @param {Event} event */
  const keepFrom = (event) => {
    if (question.answer.of !== 'next_token') return;
    event.preventDefault();
    event.stopPropagation();
  };
  window.addEventListener(
    'pointerdown',
    (event) => {
      const plot = plotOf(event.target);
      const answer = meant(plot, plot && CELLS.get(plot)?.at(event));
      const isOne = event.isPrimary && answer !== undefined;
      pressed = isOne ? { x: event.clientX, y: event.clientY, answer } : null;
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
        onAnswer(from.answer);
    },
    options,
  );
  window.addEventListener(
    'keydown',
    (event) => {
      if (event.key !== 'Enter' && event.key !== ' ') return;
      const plot = plotOf(event.target);
      const answer = meant(plot, plot && CELLS.get(plot)?.current());
      if (answer === undefined) return;
      keepFrom(event);
      onAnswer(answer);
    },
    options,
  );
}

/** @param {EventTarget|null} target */
function plotOf(target) {
  return target instanceof Element ? target.closest('.plot') : null;
}
