/**
 * The circuit that is looked for: of this sentence against a second one, or of a task; its size, the
 * edges that are cut, and what is asked of the server about them.
 */

import { nameOfGuess } from '../../words/tokens.js';
import { percent } from '../../words/numbers.js';
import { rowOf, matrixAt } from '../../trace/trace.js';
import { control, choice } from '../../ui/controls.js';

/** @import { CircuitAnswer, PairRequest } from '../../api/schemas' */

/** @typedef {Omit<CircuitAnswer, 'pairs'> & {pairs?: PairRequest[]}} Circuit the answer of the server */

export const STANDARD_EDGES = 30;
const N_PAIRS = 32;

const MAPS = [
  { id: 'parts', title: 'Parts', help: 'The parts of the model, all tokens together' },
  { id: 'tokens', title: 'By token', help: 'The parts at each token: where an edge works' },
];

const TASKS = [
  {
    id: 'sentence',
    title: 'this sentence',
    help: 'A circuit of this sentence, against a second one',
  },
  { id: 'agreement', title: 'agreement', help: 'Verb and subject across a noun of other number' },
  { id: 'repetition', title: 'repetition', help: 'Words that begin again' },
  { id: 'names', title: 'names', help: 'Two names, one of them heard twice' },
  { id: 'indirect_objects', title: 'indirect objects', help: 'The same in another sentence' },
  { id: 'greater_than', title: 'greater than', help: 'A year after that in which it began' },
  { id: 'last_digit', title: 'last digit', help: 'The last digit of a sum' },
  { id: 'carrying', title: 'carrying', help: 'The hundreds of a sum, with and without a carry' },
];

/** @param {ViewState} state @returns {string} empty: of this sentence */
export function taskOf({ circuit_task: task }) {
  return task === 'sentence' ? '' : (task ?? '');
}

/** Return the names of the edges that are cut. @param {ViewState} state @returns {string[]} */
export function cutsIn({ circuit_cut: cut }) {
  return (cut ?? '').split(' ').filter(Boolean);
}

/** Return the state in which an edge is cut, or is not any more. @param {ViewState} state @param {string} name */
export function cutting(state, name) {
  const cuts = cutsIn(state);
  const others = cuts.filter((each) => each !== name);
  return { circuit_cut: (others.length < cuts.length ? others : [...cuts, name]).join(' ') };
}

/** Return true if an edge is cut, by itself or at every position. @param {Set<string>} cuts @param {string} name */
export function isCut(cuts, name) {
  return cuts.has(name) || cuts.has(name.split('@')[0]);
}

/**
 * Return the tasks to choose from: those that the model can do, and the one that is chosen.
 * @param {ViewState} state
 */
function tasksOf(state) {
  /** @type {{name: string, lacks: string|null}[]} */
  const listed = /** @type {any} */ (state.answers?.tasks?.trace)?.tasks ?? [];
  const lacking = new Set(listed.filter(({ lacks }) => lacks !== null).map(({ name }) => name));
  return TASKS.filter(({ id }) => !lacking.has(id) || id === taskOf(state));
}

/** @param {{text: string}} trace @param {ViewState} state */
export function isLacking({ text }, state) {
  const other = (state.circuit_text ?? '').trim();
  return taskOf(state) === '' && ['', text.trim()].includes(other);
}

/** @param {Trace} trace @param {ViewState} state @returns {Record<string, Ask>} */
export function asks(trace, state) {
  const tasks = { tasks: true };
  if (isLacking(trace, state)) return { tasks };
  const circuit = circuitAsk(trace, state);
  const cuts = cutsIn(state);
  const isOfTask = taskOf(state) !== '';
  const text = isOfTask ? null : (state.circuit_text ?? '').trim();
  return {
    tasks,
    ...(text !== null && { other: { text, capture: [], analyses: ['next_token'] } }),
    ...(circuit && { circuit }),
    ...(text !== null && cuts.length > 0 && { cut: cutAsk(cuts, text) }),
    ...(isOfTask && cuts.length > 0 && { rest: runAsk(state, cuts), whole: runAsk(state, []) }),
  };
}

/** @param {string[]} edges @param {string} text @returns {Ask} */
export function cutAsk(edges, text) {
  return { capture: [], analyses: ['next_token'], edits: [{ kind: 'cut', edges, text }] };
}

/**
 * Return the request for the circuit; null until the second sentence has been read.
 * @param {Trace} trace
 * @param {ViewState} state
 * @returns {Ask|null}
 */
export function circuitAsk(trace, state) {
  const size = {
    n_edges: state.circuit_edges ?? STANDARD_EDGES,
    rule: 'top',
    ...(state.circuit_map === 'tokens' && { by_position: true }),
  };
  const task = taskOf(state);
  if (task !== '') return { circuit: { task, n_pairs: N_PAIRS, ...size } };
  const words = chooseWords(trace, state);
  if (!words) return null;
  const pair = { clean: trace.text, corrupted: (state.circuit_text ?? '').trim(), ...words };
  return { circuit: { pairs: [pair], holds_out: false, ...size } };
}

/** Return the request for the run of the circuit on all pairs, without the edges that are cut. @param {ViewState} state @param {string[]} cuts @returns {Ask} */
function runAsk(state, cuts) {
  const gone = new Set(cuts);
  const edges = (circuitIn(state)?.edges ?? []).map(({ name }) => name);
  const kept = edges.filter((name) => !isCut(gone, name));
  const places = state.circuit_map === 'tokens' && { by_position: true };
  return { circuit: { task: taskOf(state), n_pairs: N_PAIRS, edges: kept, ...places } };
}

/**
 * Return the word that is most likelier here than after the second sentence, and the one that is
 * there.
 * @param {Trace} trace
 * @param {ViewState} state
 * @returns {{right: string, wrong: string}|null} null: the second sentence has not been read, or nothing differs
 */
export function chooseWords(trace, state) {
  const here = guessesOf(trace);
  const there = guessesOf(state.answers?.other?.trace);
  if (here.length < 2 || there.length === 0) return null;
  const right = written(state.circuit_right) ?? risen(here, there);
  const wrong = written(state.circuit_wrong) ?? risen(there, here);
  return right === wrong ? null : { right, wrong };
}

/**
 * Return a typed word as a token: one that begins with a letter gets a space before it, and so does
 * anything after the sign for a space, `·`.
 * @param {string|undefined} typed
 * @returns {string|null} null: none was typed
 */
function written(typed) {
  const word = (typed ?? '').trim();
  if (word === '') return null;
  return word.startsWith('·') ? ` ${word.slice(1)}` : /^\p{L}/u.test(word) ? ` ${word}` : word;
}

/**
 * Return the word whose probability is most above that after another text.
 * @param {{text: string, probability: number}[]} guesses
 * @param {{text: string, probability: number}[]} others
 */
function risen(guesses, others) {
  const before = new Map(others.map(({ text, probability }) => [text, probability]));
  const rises = guesses.map(({ text, probability }) => probability - (before.get(text) ?? 0));
  return guesses[rises.indexOf(Math.max(...rises))].text;
}

/**
 * Return the likeliest next tokens after a text.
 * @param {Trace|undefined} trace
 * @returns {{text: string, probability: number}[]}
 */
export function guessesOf(trace) {
  const prediction = trace?.analyses?.next_token;
  if (!prediction?.ids) return [];
  const last = prediction.texts.length - 1;
  const probabilities = rowOf(matrixAt(prediction.probabilities), last);
  return prediction.texts[last].map((/** @type {string} */ text, /** @type {number} */ rank) => ({
    text,
    probability: probabilities[rank],
  }));
}

/** Return the probability of a word among the likeliest, in words. @param {Trace|undefined} trace @param {string} word */
export function chanceOf(trace, word) {
  const guess = guessesOf(trace).find(({ text }) => text === word);
  return guess ? percent(guess.probability) : 'not among the likeliest';
}

/** @param {ViewState} state @returns {Circuit|null} */
export function circuitIn(state) {
  return /** @type {any} */ (state.answers?.circuit?.trace)?.circuit ?? null;
}

/** Return the figures to show: of pairs held out, if there are any. @param {Circuit} circuit */
export function figuresOf({ held_out: held, chosen }) {
  return held ?? chosen;
}

/** @param {Trace} trace @param {ViewState} state @returns {Control[]} */
export function controls(trace, state) {
  const circuit = circuitIn(state);
  const count = state.circuit_edges ?? STANDARD_EDGES;
  const figures = circuit && figuresOf(circuit);
  const faithful = figures ? `, faithfulness ${percent(figures.value)}` : '';
  const cuts = cutsIn(state);
  const isOfTask = taskOf(state) !== '';
  return [
    choice('circuit_task', 'Of', taskOf(state) || 'sentence', tasksOf(state)),
    ...(isOfTask ? [] : sentenceControls(trace, state)),
    control('number', 'circuit_edges', 'Edges', count, { step: 1, shown: `${count}${faithful}` }),
    choice('circuit_map', 'Map', state.circuit_map ?? 'parts', MAPS),
    ...(cuts.length > 0
      ? [{ kind: 'button', label: 'Join all cut edges', patch: { circuit_cut: '' } }]
      : []),
    ...(isOfTask && circuit?.pairs?.[0]
      ? [{ kind: 'button', label: 'Open a pair as sentences', patch: opening(circuit.pairs[0]) }]
      : []),
  ];
}

/** Return the second sentence, and the words that are told apart. @param {Trace} trace @param {ViewState} state @returns {Control[]} */
function sentenceControls(trace, state) {
  const words = chooseWords(trace, state);
  /** @param {string} name @param {string} label @param {string} placeholder @returns {Control} */
  const field = (name, label, placeholder) =>
    control('text', name, label, String(state[name] ?? ''), { placeholder });
  return [
    field('circuit_text', 'Second sentence', 'The same number of tokens as above'),
    ...(isLacking(trace, state)
      ? []
      : [
          field('circuit_right', 'Right word', words?.right.trim() ?? ''),
          field('circuit_wrong', 'Wrong word', words?.wrong.trim() ?? ''),
        ]),
  ];
}

/** Return the state that shows a pair of a task as two sentences. @param {NonNullable<Circuit['pairs']>[number]} pair */
function opening({ clean, corrupted, right, wrong }) {
  const first = (/** @type {string|string[]} */ of) => [of].flat()[0].trim();
  return {
    text: clean,
    circuit_task: 'sentence',
    circuit_text: corrupted,
    circuit_right: first(right),
    circuit_wrong: first(wrong),
    circuit_cut: '',
  };
}

/** Return a word as it is named on the page. @param {string} word */
export function named(word) {
  return `“${nameOfGuess(word)}”`;
}
