/** A chapter on paper: its texts and questions, and the answers on a page of their own at the end. */

import { fetchOutcome } from '../api/chapters.js';
import { createLink, fetchQrCode, isLoopback } from '../api/links.js';
import { choicesOf, revealed } from '../rules/chapter.js';
import { element, printAlone } from './dom.js';
import { ONLY_HERE } from './share.js';

/**
 * @import { Chapter, Step } from '../api/schemas'
 * @import { Outcome } from '../rules/chapter.js'
 */

/**
 * Compute every answer, and open the browser's print dialog.
 * @param {Chapter} chapter
 * @param {(html: string) => HTMLElement} textOf
 * @param {(share: string) => void} tell how many of the answers are there
 * @throws {Error} where an answer cannot be computed: no sheet lacks one
 */
export async function printWorksheet(chapter, textOf, tell) {
  const asked = chapter.steps.filter(({ question }) => question).length;
  let arrived = 0;
  /** @param {Step} step */
  const outcomeOf = async (step) => {
    if (!step.question) return null;
    const outcome = await fetchOutcome(step);
    tell(`${(arrived += 1)} of ${asked}`);
    return outcome;
  };
  const [link, ...outcomes] = await Promise.all([linkPart(), ...chapter.steps.map(outcomeOf)]);
  printAlone(worksheetOf(chapter, outcomes, textOf, link));
}

/** Return the short link of the chapter with its code; where the server keeps none, the address. */
async function linkPart() {
  const warning = isLoopback(location.hostname) ? ` ${ONLY_HERE}` : '';
  try {
    const { id, address } = await createLink(location.hash.slice(1));
    const code = element('img', { src: URL.createObjectURL(await fetchQrCode(id)), alt: '' });
    await code.decode();
    return element('p.worksheet-link', code, address, warning);
  } catch {
    return element('p.worksheet-link', location.href, warning);
  }
}

/**
 * @param {Chapter} chapter
 * @param {(Outcome|null)[]} outcomes
 * @param {(html: string) => HTMLElement} textOf
 * @param {HTMLElement} link
 */
function worksheetOf({ title, steps, sources }, outcomes, textOf, link) {
  return element(
    'section',
    { class: 'worksheet' },
    link,
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
function stepOf({ title, html, question, opens, marks }, outcome, at, textOf) {
  const parts = [element('h2', {}, `${at + 1}. ${title}`), textOf(html)];
  const look = [placeOf(opens), marks].filter(Boolean).join(' · ');
  if (look) parts.push(element('p', { class: 'worksheet-look' }, look));
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
