/**
 * A chapter on the page: its place in the address, whether an answer is right and how far a wrong
 * one is off, and the file that a presentation is written to. Without the DOM.
 */

/**
 * @import { Choice, Outcome as Answered } from '../api/schemas'
 * @import { Slide } from './presentation.js'
 */

/** @typedef {Omit<Answered, 'right'> & {right: any}} Outcome what is right, computed by the server when the step opens */
/** @typedef {{isRight: boolean, sentence: string}} Verdict */

/** A chapter's own parts of an address, on the page and on that of experiments. */
export const CHAPTER_FIELDS = ['chapter', 'chapter_step'];

/** The id of a chapter that was dropped on the page. */
export const DROPPED = 'dropped';

/** Bytes of the largest file of a chapter. */
export const MOST_BYTES = 200_000;

/** A number is right within a tenth, unless its question says otherwise. */
const WITHIN = 0.1;

/**
 * @param {string} hash
 * @returns {{id: string, step: number|null}|null} null: it names no chapter
 */
export function placeIn(hash) {
  const written = new URLSearchParams(hash.replace(/^#/, ''));
  const id = written.get('chapter');
  if (!id) return null;
  const step = written.get('chapter_step') ?? '';
  return { id, step: /^\d{1,3}$/.test(step) ? Number(step) : null };
}

/** @param {string} hash does it name a chapter and nothing that is open? */
export function isBare(hash) {
  const names = [...new URLSearchParams(hash.replace(/^#/, '')).keys()];
  return names.every((name) => CHAPTER_FIELDS.includes(name) || name === 'view');
}

/**
 * @param {string} link of a step, from the root of the server
 * @param {string} id
 * @param {number} step from 0
 * @returns {string} the link with the chapter's place
 */
export function withPlace(link, id, step) {
  const [path, hash = ''] = link.split('#');
  const written = new URLSearchParams(hash);
  written.set('chapter', id);
  written.set('chapter_step', String(step));
  return `${path}#${written}`;
}

/**
 * @param {URLSearchParams} from an address
 * @param {URLSearchParams} to what is written into the address next: it keeps the chapter's place
 */
export function keepPlace(from, to) {
  for (const name of CHAPTER_FIELDS) {
    const value = from.get(name);
    if (value !== null) to.set(name, value);
  }
}

/** @param {string} text of a file: does it look like a chapter? */
export function isChapter(text) {
  const [front, ...rest] = text.split(/^---\s*$/m).slice(1);
  return /^---\s*$/m.test(text.slice(0, 5)) && /^title:/m.test(front ?? '') && rest.length > 0;
}

/**
 * @param {Outcome} outcome
 * @param {Question} question
 * @returns {Choice[]} in the question's words
 */
export function choicesOf({ choices }, question) {
  return choices.map((choice) => ({
    ...choice,
    label: question.choices[String(choice.value)] ?? choice.label,
  }));
}

/**
 * Judge an answer.
 * @param {Outcome} outcome
 * @param {Question} question
 * @param {any} given a choice's value, a number, or a row and a column
 * @returns {Verdict}
 */
export function verdictOn(outcome, question, given) {
  if (outcome.kind === 'number') return ofNumber(outcome, question, Number(given));
  if (outcome.kind === 'cell') return ofCell(outcome, given);
  const choices = choicesOf(outcome, question);
  const chosen = choices.find(({ value }) => String(value) === String(given));
  const isRight = String(given) === String(outcome.right);
  const right = named(choices, outcome);
  if (isRight) return { isRight, sentence: `Right: ${right}.` };
  const number = chosen?.number;
  const off = number === null || number === undefined ? '' : `, ${digits(number)}`;
  const yours = chosen ? quoted(chosen.label) : 'nothing';
  return { isRight, sentence: `You chose ${yours}${off}; it is ${right}.` };
}

/** The rules whose choices are rows or columns of a drawing. */
const DRAWN = ['next_token', 'experiment', 'strongest_expert'];

/**
 * Return the answer that a cell or a bar of the drawing gives.
 * @param {Outcome} outcome
 * @param {Question} question
 * @param {{query?: number|number[], key?: number|number[], labels: string[]}} of the cell: its tokens, and the labels of its row and column
 * @returns {any} a choice's value, or a row and a column; undefined: none
 */
export function answerAt(outcome, question, { query, key, labels }) {
  const [row] = [query ?? []].flat();
  const [column] = [key ?? []].flat();
  if (outcome.kind === 'cell')
    return row === undefined || column === undefined ? undefined : [row, column];
  if (question.answer.of === 'strongest_key')
    return outcome.choices.find(({ value }) => value === column)?.value;
  if (!DRAWN.includes(question.answer.of)) return undefined;
  const said = labels.map(bare);
  return outcome.choices.find(
    ({ value, label }) => said.includes(bare(String(value))) || said.includes(bare(label)),
  )?.value;
}

/** Can it be answered in the drawing? @param {Question} question */
export function canBeDrawn({ by, answer, covered }) {
  if (covered) return false;
  return by === 'cell' || by === 'bar' || (by === 'token' && answer.of === 'strongest_key');
}

/** A label without quotes and without a mark for its space. @param {string} label */
function bare(label) {
  return label.replace(/^[“·␣\s]+|[”·␣\s]+$/g, '');
}

/**
 * Say what is right, to somebody who asks for it without an answer.
 * @param {Outcome} outcome
 * @param {Question} question
 */
export function revealed(outcome, question) {
  if (outcome.kind === 'choice')
    return `The answer is ${named(choicesOf(outcome, question), outcome)}.`;
  const number = outcome.kind === 'cell' && outcome.number !== null ? outcome.number : null;
  return `It is ${outcome.label}${number === null ? '' : `, ${digits(number)}`}.`;
}

/** @param {Choice[]} choices @param {Outcome} outcome */
function named(choices, { right, number, label }) {
  const name = quoted(choices.find(({ value }) => String(value) === String(right))?.label ?? label);
  if (number !== null && number !== undefined) return `${name}, ${digits(number)}`;
  const [, from, to] = label.match(/: from (.*) to (.*)$/) ?? [];
  if (from === undefined) return name;
  return from === to ? `${name}, ${from} both times` : `${name}, from ${from} to ${to}`;
}

/** @param {string} label of a choice, which a token’s has its quotes in */
function quoted(label) {
  return label.startsWith('“') ? label : `“${label}”`;
}

/**
 * Read a number as people write it: `0.6`, `0,6`, `60 %`, `−2`.
 * @param {string} text
 * @returns {number|undefined} undefined: it is none
 */
export function numberIn(text) {
  const [, sign, digitsOf, percent] =
    text.replace(/\s/g, '').match(/^([-+−]?)((?:\d+[.,]?\d*|[.,]\d+)(?:e[-+]?\d+)?)(%?)$/i) ?? [];
  if (digitsOf === undefined) return undefined;
  const number = Number(digitsOf.replace(',', '.')) / (percent ? 100 : 1);
  return sign === '-' || sign === '−' ? -number : number;
}

/** @param {Outcome} outcome @param {Question} question @param {number} given @returns {Verdict} */
function ofNumber({ right, label }, { within }, given) {
  if (!Number.isFinite(given)) return { isRight: false, sentence: `It is ${label}.` };
  const off = given - right;
  const isRight = Math.abs(off) <= (within ?? WITHIN * Math.abs(right));
  if (isRight) return { isRight, sentence: `Right: it is ${label}.` };
  const side = off > 0 ? 'too high' : 'too low';
  return {
    isRight,
    sentence: `You said ${digits(given)}; it is ${label}: ${digits(Math.abs(off))} ${side}.`,
  };
}

/** @param {Outcome} outcome @param {number[]|null} given @returns {Verdict} */
function ofCell({ right, label, number, rows, columns, cells }, given) {
  const [row, column] = given ?? [];
  const its = digits(number ?? 0);
  if (row === right[0] && column === right[1])
    return { isRight: true, sentence: `Right: ${label}, ${its}.` };
  const value = cells[row]?.[column];
  const yours =
    value === undefined
      ? 'That is no cell of this map'
      : `You chose “${rows[row].trim()}” and “${columns[column].trim()}”, ${digits(value)}`;
  return { isRight: false, sentence: `${yours}; it is ${label}, ${its}.` };
}

/** @param {number} value */
function digits(value) {
  return String(Number(value.toPrecision(3)));
}

/** @typedef {{step: number, right: number[], wrong: number[]}} Progress kept in the browser only */

/**
 * @param {string|null|undefined} kept JSON of every chapter's progress
 * @param {string} id
 * @returns {Progress}
 */
export function progressIn(kept, id) {
  const none = { step: 0, right: [], wrong: [] };
  try {
    const progress = JSON.parse(kept ?? '{}')[id];
    const isOne = Number.isInteger(progress?.step) && Array.isArray(progress.right);
    return isOne ? { ...none, ...progress } : none;
  } catch {
    return none;
  }
}

/**
 * @param {string|null|undefined} kept
 * @param {string} id
 * @param {Progress} progress
 * @returns {string} JSON
 */
export function withProgress(kept, id, progress) {
  let all = {};
  try {
    all = JSON.parse(kept ?? '{}') ?? {};
  } catch {
    // Damaged progress is replaced.
  }
  return JSON.stringify({ ...all, [id]: progress });
}

/**
 * @param {Progress} progress
 * @param {number} step
 * @param {boolean} isRight
 * @returns {Progress} a step that was right once stays right
 */
export function answered(progress, step, isRight) {
  const right = isRight ? [...new Set([...progress.right, step])] : progress.right;
  const wrong = isRight ? progress.wrong : [...new Set([...progress.wrong, step])];
  return { ...progress, right, wrong: wrong.filter((each) => !right.includes(each)) };
}

/** The rule that a question of a presentation asks by, and what it asks. */
export const QUESTIONS = Object.freeze({
  strongest_key: { asks: 'Which token does this row read most?', by: 'token' },
  next_token: { asks: 'Which token is the likeliest to come next?', by: 'bar' },
  weight: { asks: 'What is the weight of the chosen cell?', by: 'number' },
});

/**
 * Write a presentation as a chapter.
 * @param {string} title
 * @param {(Slide & {text?: string, question?: string})[]} slides
 * @returns {string} Markdown with front matter
 */
export function asChapter(title, slides) {
  const steps = slides.map(({ name, link, text = '', question = '' }) => {
    const known = QUESTIONS[/** @type {keyof typeof QUESTIONS} */ (question)];
    const asked = known
      ? `question:\n  asks: ${JSON.stringify(known.asks)}\n  by: ${known.by}\n  answer: {of: ${question}}\n`
      : '';
    const heading = name.replace(/\s+/g, ' ').trim();
    const block = `\`\`\`step\nopens: ${JSON.stringify(link)}\n${asked}\`\`\``;
    return `## ${heading}\n\n${block}\n\n${text.trim()}\n`;
  });
  return `---\ntitle: ${JSON.stringify(title)}\nsources: []\n---\n\n${steps.join('\n')}`;
}
