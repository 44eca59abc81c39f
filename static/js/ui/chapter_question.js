/** The question of a step: predict by choosing, then see what is right. */

import { asProblem } from '../api/calls.js';
import { canBeDrawn, choicesOf, numberIn, revealed, verdictOn } from '../rules/chapter.js';
import { asSentence } from '../words/lists.js';
import { button, element, segment } from './dom.js';
import { takeAnswers } from './drawn_cells.js';

/**
 * @import { Step } from '../api/schemas'
 * @import { Verdict } from '../rules/chapter.js'
 */

const IN_DRAWING = 'Choose it in the drawing, or here.';

/**
 * @param {Step} step which has a question
 * @param {() => Promise<Outcome>} compute
 * @param {{onAnswer: (verdict: Verdict) => void, onShown: () => void, onThen: (link: string) => void}} handlers `onThen`: open what follows from the answer
 * @param {AbortSignal} signal ends the question
 */
export function createQuestion(step, compute, { onAnswer, onShown, onThen }, signal) {
  const question = /** @type {Question} */ (step.question);
  const said = element('p.chapter-said', { role: 'status' });
  const because = element('p.chapter-because', { hidden: true }, question.because);
  const { then_link: next } = step;
  const then = next ? button('Show it', () => onThen(next), { hidden: true }) : null;
  const answers = element('div.chapter-answers');
  const form = element(
    'form.chapter-question',
    { onsubmit: submit },
    element('fieldset', element('legend', question.asks), answers),
    said,
    because,
    then,
  );
  const settled = new AbortController(); // a right answer, or the one that was asked for
  signal.addEventListener('abort', () => settled.abort());
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
    const [controls, read, set] = controlsOf(outcome, question);
    given = read;
    takeAnswers(
      question,
      outcome,
      (answer) => {
        set(answer);
        judge(answer);
      },
      settled.signal,
    );
    answers.replaceChildren(
      ...(canBeDrawn(question) ? [element('p.chapter-hint', IN_DRAWING)] : []),
      ...controls,
      element(
        'div.chapter-acts',
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
      said.textContent =
        outcome.kind === 'number'
          ? 'Write a number, such as 0.5 or 50 %.'
          : 'Choose an answer first.';
      return;
    }
    judge(chosen);
  }

  /** @param {any} chosen */
  function judge(chosen) {
    if (!outcome) return;
    const verdict = verdictOn(outcome, question, chosen);
    if (verdict.isRight) settled.abort();
    tell(verdict.sentence, verdict.isRight ? 'right' : 'wrong');
    onAnswer(verdict);
  }

  function reveal() {
    if (!outcome) return;
    settled.abort();
    tell(revealed(outcome, question), 'shown');
  }

  /** @param {string} sentence @param {string} result */
  function tell(sentence, result) {
    said.textContent = sentence;
    form.dataset.result = result;
    because.hidden = question.because === '';
    if (then) then.hidden = false;
    onShown();
  }

  return form;
}

/**
 * @param {Outcome} outcome
 * @param {Question} question
 * @returns {[Node[], () => any, (answer: any) => void]} what to choose with, what is chosen, and how to choose
 */
function controlsOf(outcome, question) {
  if (outcome.kind === 'number') {
    const input = element('input', {
      type: 'text',
      inputmode: 'decimal',
      autocomplete: 'off',
      'aria-label': 'Your number',
    });
    return [[input], () => numberIn(input.value), (number) => (input.value = String(number))];
  }
  if (outcome.kind === 'cell') return cellControls(outcome);
  const name = 'chapter-answer';
  const rows = choicesOf(outcome, question).map(({ value, label }) =>
    segment(name, value, label, { class: 'chapter-choice' }),
  );
  const checked = () => rows.map((row) => row.querySelector('input')).find((each) => each?.checked);
  /** @param {any} answer */
  const check = (answer) => {
    for (const row of rows) {
      const input = row.querySelector('input');
      if (input) input.checked = input.value === String(answer);
    }
  };
  return [rows, () => checked()?.value, check];
}

/**
 * Two lists; a cell that is chosen in the drawing is shown in them.
 * @param {Outcome} outcome
 * @returns {[Node[], () => any, (answer: any) => void]}
 */
function cellControls({ rows, columns }) {
  const row = listOf('Row', rows);
  const column = listOf('Column', columns);
  const isChosen = () => row.value !== '' && column.value !== '';
  return [
    [row, column],
    () => (isChosen() ? [Number(row.value), Number(column.value)] : undefined),
    ([query, key]) => {
      row.value = String(query);
      column.value = String(key);
    },
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
