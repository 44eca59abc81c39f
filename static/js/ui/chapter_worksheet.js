/** A chapter on paper: texts, drawings and questions, and the answers on a page of their own at the end. */

import { fetchOutcome } from '../api/chapters.js';
import { createLink, fetchQrCode, isLoopback } from '../api/links.js';
import { choicesOf, revealed } from '../rules/chapter.js';
import { element, printAlone } from './dom.js';
import { ONLY_HERE } from './share.js';

/**
 * @import { Chapter, Step } from '../api/schemas'
 * @import { Outcome } from '../rules/chapter.js'
 */

/** Milliseconds that a sheet waits for its steps: networks that train longer are on the next one. */
const PATIENCE = 2500;
/** More cells than these are no grid to fill in. */
const MOST_CELLS = 16;
/** The empty cells of a bar. */
const BAR_CELLS = 10;

/** @typedef {{picture: HTMLElement, rows: string[], columns: string[]}} OnPaper */
/** @typedef {{step: Step, at: number, outcome: Outcome|null, drawing: OnPaper|null}} Printed */

/** The answers and drawings that were asked for; what comes too late for a sheet is on the next. @type {WeakMap<Chapter, ReturnType<typeof begin>>} */
const begun = new WeakMap();

/**
 * Compute the answers and drawings, and open the browser's print dialog with what is there in time.
 * @param {Chapter} chapter
 * @param {(html: string) => HTMLElement} textOf
 * @param {(share: string) => void} tell how many of the steps are there
 * @param {() => Promise<(step: Step) => Promise<OnPaper>>} loadDrawings
 * @throws {Error} where an answer cannot be computed
 */
export async function printWorksheet(chapter, textOf, tell, loadDrawings) {
  const late = new Promise((resolve) => {
    setTimeout(resolve, PATIENCE, null);
  });
  const link = linkPart(late);
  const parts = begun.get(chapter) ?? begin(chapter, loadDrawings);
  begun.set(chapter, parts);
  let done = 0;
  try {
    const steps = parts.map(async (part, at) => {
      const [outcome, drawing] = await Promise.all(part.map((each) => Promise.race([each, late])));
      tell(`${(done += 1)} of ${parts.length}`);
      return /** @type {Printed} */ ({ step: chapter.steps[at], at, outcome, drawing });
    });
    printAlone(worksheetOf(chapter, await Promise.all(steps), textOf, await link));
  } catch (error) {
    begun.delete(chapter);
    throw error;
  }
}

/** @param {Chapter} chapter @param {Parameters<typeof printWorksheet>[3]} loadDrawings @returns {[Promise<Outcome|null>, Promise<OnPaper|null>][]} of each step */
function begin({ steps }, loadDrawings) {
  const drawings = loadDrawings();
  return steps.map((step) => [
    step.question ? fetchOutcome(step) : Promise.resolve(null),
    drawings.then((draw) => draw(step)).catch(() => null), // a view may draw nothing here
  ]);
}

/** Return the short link of the chapter with its code; where the server has none in time, the address. @param {Promise<any>} late */
async function linkPart(late) {
  const warning = isLoopback(location.hostname) ? ` ${ONLY_HERE}` : '';
  const plain = element('p.worksheet-link', location.href, warning);
  return (await Promise.race([codeOfLink(warning), late])) ?? plain;
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
    ...(read ? [element('p.worksheet-read', `Sources: ${read}.`)] : []),
    element(
      'section.worksheet-answers',
      element('h2', `Answers: ${title}`),
      element('dl', ...steps.flatMap(answerOf)),
    ),
  );
}

/** @param {Printed} printed @param {(html: string) => HTMLElement} textOf */
function stepOf({ step, at, outcome, drawing }, textOf) {
  const { title, html, question, opens, marks } = step;
  const look = [placeOf(opens), marks].filter(Boolean).join(' · ');
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
    ...(look ? [element('p.worksheet-look', look)] : []),
    ...(shown ? [shown] : []),
    ...(question ? [element('p.worksheet-asks', question.asks)] : []),
    ...(question && !isAnswered ? [line] : []),
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
    ...(isMap ? [line('', 'th')] : []),
    ...down.map((each) => line(each, 'td')),
  );
}

/** Return what a step opens, in words for paper. @param {Step['opens']} opens */
function placeOf({ text, model, view, layer, head, experiment, knobs = {} }) {
  if (experiment) {
    const set = Object.entries(knobs).map(([name, value]) => `${name} = ${value}`);
    return [`Experiment ${experiment}`, ...set].join(', ');
  }
  if (!text) return '';
  const where = [
    ...(layer === null || layer === undefined ? [] : [`layer ${layer}`]),
    ...(head === null || head === undefined ? [] : [`head ${head}`]),
  ];
  return [`“${text}”`, model ?? '', view.replaceAll('_', ' '), where.join(', ')]
    .filter(Boolean)
    .join(' · ');
}

/** @param {Printed} printed */
function answerOf({ step: { question }, at, outcome, drawing }) {
  if (!question) return [];
  const told = outcome
    ? `${revealed(outcome, question)} ${question.because}`
    : `It was not computed when this sheet was printed; the page tells it, and a second sheet does. ${question.because}`;
  const key = question.covered && drawing ? [drawing.picture] : [];
  return [element('dt', `${at + 1}. ${question.asks}`), element('dd', told, ...key)];
}
