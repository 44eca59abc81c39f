/** A chapter on paper: its texts and questions, and the answers on a page of their own at the end. */

import { fetchOutcome } from '../api/chapters.js';
import { atRoot } from '../api/root.js';
import { choicesOf, revealed } from '../rules/chapter.js';
import { element, printAlone } from './dom.js';

/**
 * @import { Chapter, Step } from '../api/schemas'
 * @import { Outcome } from '../rules/chapter.js'
 */

/**
 * Compute every answer, and open the browser's print dialog.
 * @param {Chapter} chapter
 * @param {(html: string) => HTMLElement} textOf
 * @throws {Error} where an answer cannot be computed: no sheet lacks one
 */
export async function printWorksheet(chapter, textOf) {
  /** @type {(Outcome|null)[]} */
  const outcomes = [];
  for (const step of chapter.steps) outcomes.push(step.question ? await fetchOutcome(step) : null);
  printAlone(worksheetOf(chapter, outcomes, textOf));
}

/**
 * @param {Chapter} chapter
 * @param {(Outcome|null)[]} outcomes
 * @param {(html: string) => HTMLElement} textOf
 */
function worksheetOf({ title, steps, sources }, outcomes, textOf) {
  return element(
    'section',
    { class: 'worksheet' },
    element('h1', {}, title),
    element('p', { class: 'worksheet-name' }, 'Name:'),
    ...steps.map((step, at) => stepOf(step, outcomes[at], at, textOf)),
    ...(sources.length > 0
      ? [
          element(
            'p',
            { class: 'worksheet-read' },
            `Sources: ${sources.map(({ title: of, url }) => `${of}, ${url}`).join('; ')}.`,
          ),
        ]
      : []),
    element(
      'section',
      { class: 'worksheet-answers' },
      element('h2', {}, `Answers: ${title}`),
      element('dl', {}, ...steps.flatMap((step, at) => answerOf(step, outcomes[at], at))),
    ),
  );
}

/**
 * @param {Step} step
 * @param {Outcome|null} outcome
 * @param {number} at
 * @param {(html: string) => HTMLElement} textOf
 */
function stepOf({ title, html, question, opens, marks, link }, outcome, at, textOf) {
  const parts = [element('h2', {}, `${at + 1}. ${title}`), textOf(html)];
  const place = placeOf(opens);
  const look = [place, marks].filter(Boolean).join(' · ');
  if (look) parts.push(element('p', { class: 'worksheet-look' }, look));
  if (place)
    parts.push(
      element('p', { class: 'worksheet-read' }, new URL(atRoot(link), location.href).href),
    );
  if (question && outcome) {
    parts.push(element('p', { class: 'worksheet-asks' }, question.asks));
    const choices = choicesOf(outcome, question);
    if (choices.length > 0)
      parts.push(element('ul', {}, ...choices.map(({ label }) => element('li', {}, `☐ ${label}`))));
    else parts.push(element('p', { class: 'worksheet-line' }, 'Answer:'));
  }
  return element('section', { class: 'worksheet-step' }, ...parts);
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

/** @param {Step} step @param {Outcome|null} outcome @param {number} at */
function answerOf({ question }, outcome, at) {
  if (!question || !outcome) return [];
  return [
    element('dt', {}, `${at + 1}. ${question.asks}`),
    element('dd', {}, `${revealed(outcome, question)} ${question.because}`),
  ];
}
