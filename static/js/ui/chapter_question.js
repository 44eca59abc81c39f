/** The question of a step: predict by choosing, then see what is right. */

import { asProblem } from '../api/calls.js';
import { choicesOf, revealed, verdictOn } from '../data/chapter.js';
import { asSentence } from '../data/format.js';
import { button, element, segment } from './dom.js';

/**
 * @import { Outcome, Question, Step, Verdict } from '../data/chapter.js'
 */

/**
 * @param {Step} step which has a question
 * @param {() => Promise<Outcome>} compute
 * @param {{onAnswer: (verdict: Verdict) => void, onShown: () => void}} handlers
 */
export function createQuestion(step, compute, { onAnswer, onShown }) {
  const question = /** @type {Question} */ (step.question);
  const said = element('p', { class: 'chapter-said', role: 'status' });
  const because = element('p', { class: 'chapter-because', hidden: true }, question.because);
  const answers = element('div', { class: 'chapter-answers' });
  const form = element(
    'form',
    { class: 'chapter-question', onsubmit: submit },
    element('fieldset', {}, element('legend', {}, question.asks), answers),
    said,
    because,
  );
  /** @type {Outcome|null} */
  let outcome = null;
  /** @type {() => any} undefined: nothing is chosen yet */
  let given = () => undefined;
  load();

  async function load() {
    said.textContent = 'Computing the answer…';
    try {
      outcome = await compute();
    } catch (error) {
      if (error instanceof Error && error.name === 'AbortError') return;
      const { message, detail } = asProblem(error);
      said.textContent = `This question has no answer now. ${asSentence(detail || message)}`;
      answers.replaceChildren(button('Try again', load));
      return;
    }
    said.textContent = '';
    const [controls, read] = controlsOf(outcome, question);
    given = read;
    answers.replaceChildren(
      ...controls,
      element(
        'div',
        { class: 'chapter-acts' },
        element('button', { type: 'submit', class: 'button is-primary' }, 'Answer'),
        button('Show the answer', reveal),
      ),
    );
  }

  /** @param {Event} event */
  function submit(event) {
    event.preventDefault();
    if (!outcome) return;
    const chosen = given();
    if (chosen === undefined) {
      said.textContent = 'Choose an answer first.';
      return;
    }
    const verdict = verdictOn(outcome, question, chosen);
    tell(verdict.sentence, verdict.isRight ? 'right' : 'wrong');
    onAnswer(verdict);
  }

  function reveal() {
    if (outcome) tell(revealed(outcome, question), 'shown');
  }

  /** @param {string} sentence @param {string} result */
  function tell(sentence, result) {
    said.textContent = sentence;
    form.dataset.result = result;
    because.hidden = question.because === '';
    onShown();
  }

  return form;
}

/**
 * @param {Outcome} outcome
 * @param {Question} question
 * @returns {[Node[], () => any]} what to choose with, and what is chosen
 */
function controlsOf(outcome, question) {
  if (outcome.kind === 'number') {
    const input = element('input', {
      type: 'number',
      step: 'any',
      inputmode: 'decimal',
      'aria-label': 'Your number',
    });
    return [[input], () => (input.value.trim() === '' ? undefined : Number(input.value))];
  }
  if (outcome.kind === 'cell') return cellControls(outcome);
  const name = 'chapter-answer';
  const rows = choicesOf(outcome, question).map(({ value, label }) =>
    segment(name, value, label, { class: 'chapter-choice' }),
  );
  const checked = () => rows.map((row) => row.querySelector('input')).find((each) => each?.checked);
  return [rows, () => checked()?.value];
}

/**
 * Two lists, which take the cell that is chosen in the drawing.
 * @param {Outcome} outcome
 * @returns {[Node[], () => any]}
 */
function cellControls({ rows, columns }) {
  const row = listOf('Row', rows);
  const column = listOf('Column', columns);
  const take = button('Take the cell chosen in the drawing', () => {
    const written = new URLSearchParams(location.hash.replace(/^#/, ''));
    row.value = written.get('query') ?? '';
    column.value = written.get('key') ?? '';
  });
  const isChosen = () => row.value !== '' && column.value !== '';
  return [
    [row, column, take],
    () => (isChosen() ? [Number(row.value), Number(column.value)] : undefined),
  ];
}

/** @param {string} label @param {string[]} tokens */
function listOf(label, tokens) {
  return element(
    'select',
    { 'aria-label': label },
    element('option', { value: '' }, `${label}…`),
    ...tokens.map((token, index) =>
      element('option', { value: index }, `${index} ${token.trim()}`),
    ),
  );
}
