/** A chapter on paper: texts, drawings and questions, and the answers on a page of their own at the end. */

import { messageOf } from '../api/calls.js';
import { fetchOutcome } from '../api/chapters.js';
import { createLink, fetchQrCode, isLoopback } from '../api/links.js';
import { choicesOf, revealed } from '../rules/chapter.js';
import { button, element, partOf, printAlone } from './dom.js';
import { ONLY_HERE } from './share.js';

/** @import { Step } from '../api/schemas' */

/** More cells than these are no grid to fill in. */
const MOST_CELLS = 16;
/** The empty cells of a bar. */
const BAR_CELLS = 10;

/** @typedef {{picture: HTMLElement, rows: string[], columns: string[]}} OnPaper */
/** @typedef {{outcome: Outcome|null, drawing: OnPaper|null, problem?: string}} Computed */
/** @typedef {Computed & {step: Step, at: number, isComing: boolean}} Printed */

/** The answers and drawings that were asked for, which an opened sheet of the chapter has at once. @type {WeakMap<Chapter, Promise<Computed>[]>} */
const begun = new WeakMap();

/**
 * Show the sheet, which fills in by itself, and print it once when all of it is there; a second press
 * prints what is there.
 * @param {Chapter} chapter
 * @param {(html: string) => HTMLElement} textOf
 * @param {() => Promise<(step: Step) => Promise<OnPaper>>} loadDrawings
 */
export function openWorksheet(chapter, textOf, loadDrawings) {
  const parts = begun.get(chapter) ?? chapter.steps.map(computing(loadDrawings()));
  begun.set(chapter, parts);
  const none = { isComing: true, outcome: null, drawing: null };
  const steps = chapter.steps.map((step, at) => /** @type {Printed} */ ({ ...none, step, at }));
  const warning = isLoopback(location.hostname) ? ` ${ONLY_HERE}` : '';
  let link = element('p.worksheet-link', location.href, warning);
  let isReady = false;
  let isWanted = false;
  const status = element('p', { role: 'status' });
  const press = button('Print', onPress, { class: 'button is-primary' });
  const close = button('Close', () => dialog.close());
  const sheet = element('div');
  const dialog = element(
    'dialog.worksheet-dialog',
    { 'aria-label': 'Worksheet' },
    element('header.queue-actions', status, element('span.queue-gap'), press, close),
    sheet,
  );

  function draw() {
    if (!dialog.open) return; // what is on paper keeps its pictures
    const missing = steps.filter(({ isComing }) => isComing).length;
    status.textContent = `${steps.length - missing} of ${steps.length} steps are computed`;
    if (isWanted) press.textContent = `Print without ${missing} of them`;
    sheet.replaceChildren(worksheetOf(chapter, steps, textOf, link));
  }

  function onPress() {
    const isNow = isReady || isWanted;
    isWanted = true;
    draw();
    if (!isNow || !dialog.open) return;
    dialog.close();
    printAlone(partOf(sheet, '.worksheet', HTMLElement));
  }

  const coming = parts.map(async (part, at) => {
    Object.assign(steps[at], await part, { isComing: false });
    if (steps[at].problem) begun.delete(chapter); // another sheet asks again
    draw();
  });
  const coded = codeOfLink(warning).then((made) => {
    link = made ?? link;
    draw();
  });
  Promise.all([...coming, coded]).then(() => {
    isReady = true;
    if (isWanted) onPress();
  });
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  draw();
}

/** @param {Promise<(step: Step) => Promise<OnPaper>>} drawings @returns {(step: Step) => Promise<Computed>} */
function computing(drawings) {
  const compute = async (/** @type {Step} */ step) => {
    const drawn = drawings.then((draw) => draw(step)).catch(() => null); // a view may draw nothing here
    try {
      const outcome = step.question ? await fetchOutcome(step) : null;
      return { outcome, drawing: await drawn };
    } catch (error) {
      return { outcome: null, drawing: await drawn, problem: messageOf(error) };
    }
  };
  // Experiments, some of which train, come one after another and keep no text waiting.
  let turn = Promise.resolve(/** @type {any} */ (null));
  return (step) => {
    if (!step.opens.experiment) return compute(step);
    turn = turn.then(() => compute(step));
    return turn;
  };
}

/** Return a short link with its code, null if the server keeps none. @param {string} warning */
async function codeOfLink(warning) {
  try {
    const { id, address } = await createLink(location.hash.slice(1));
    const code = element('img', { src: URL.createObjectURL(await fetchQrCode(id)), alt: '' });
    await code.decode();
    return element('p.worksheet-link', code, address, warning);
  } catch {
    return null;
  }
}

/**
 * @param {Chapter} chapter
 * @param {Printed[]} steps
 * @param {(html: string) => HTMLElement} textOf
 * @param {HTMLElement} link
 */
function worksheetOf({ title, sources }, steps, textOf, link) {
  const read = sources.map(({ title: of, url }) => `${of}, ${url}`).join('; ');
  return element(
    'section.worksheet',
    link,
    element('h1', title),
    element('p.worksheet-name', 'Name:'),
    ...steps.map((each) => stepOf(each, textOf)),
    read && element('p.worksheet-read', `Sources: ${read}.`),
    element(
      'section.worksheet-answers',
      element('h2', `Answers: ${title}`),
      element('dl', ...steps.flatMap(answerOf)),
    ),
  );
}

/** @param {Printed} printed @param {(html: string) => HTMLElement} textOf */
function stepOf({ step, at, isComing, outcome, drawing }, textOf) {
  const { title, html, question, marks } = step;
  const choices = question && outcome ? choicesOf(outcome, question).map(({ label }) => label) : [];
  const boxes = choices.map((label) => `☐ ${label}`);
  const shown = question?.covered
    ? emptyGrid(drawing, question.by === 'bar' ? boxes : [])
    : drawing?.picture;
  const isAnswered = shown?.dataset.of === 'choices';
  const line =
    boxes.length > 0
      ? element('ul', ...boxes.map((each) => element('li', each)))
      : element('p.worksheet-line', 'Answer:');
  return element(
    'section.worksheet-step',
    element('h2', `${at + 1}. ${title}`),
    textOf(html),
    marks && element('p.worksheet-look', marks),
    isComing ? element('p.worksheet-look', 'Being computed…') : shown,
    question && element('p.worksheet-asks', question.asks),
    question && !isAnswered && line,
  );
}

/**
 * Return the cells of a drawing without its numbers, to be filled in: of a small map its own, else a
 * row for each answer that can be chosen.
 * @param {OnPaper|null} drawing
 * @param {string[]} choices
 */
function emptyGrid(drawing, choices) {
  const { rows = [], columns = [] } = drawing ?? {};
  const isMap = columns.length > 1 && Math.max(rows.length, columns.length) <= MOST_CELLS;
  const [down, across] = isMap ? [rows, columns] : [choices, Array(BAR_CELLS).fill('')];
  if (down.length === 0) return null;
  /** @param {string} label @param {'th'|'td'} tag */
  const line = (label, tag) =>
    element(
      'tr',
      element('th', label),
      ...across.map((each) => element(tag, tag === 'th' ? each : '')),
    );
  return element(
    'table.worksheet-grid',
    isMap && line('', 'th'),
    ...down.map((each) => line(each, 'td')),
  );
}

/** @param {Printed} printed */
function answerOf({ step: { question }, at, outcome, drawing, problem = '' }) {
  if (!question) return [];
  const told = outcome
    ? `${revealed(outcome, question)} ${question.because}`
    : ['It is not computed yet; the page tells it.', problem, question.because].join(' ');
  const key = question.covered && drawing ? [drawing.picture] : [];
  return [element('dt', `${at + 1}. ${question.asks}`), element('dd', told, ...key)];
}
