/** The alternatives of a generated token, with the sliders of sampling. */

import { percent } from '../../words/numbers.js';
import { guessInWords } from '../../words/tokens.js';
import { placeInWords } from '../../trace/word_names.js';
import { matrixAt, rowOf } from '../../trace/trace.js';
import { guessChart, guessesIn, wordsFor } from '../../plot/bars.js';
import { samplingOf, whyOver } from '../../ui/generation.js';
import { control } from '../../ui/controls.js';

/** @import { Guess } from '../../plot/bars.js' */

const SHOWN = 10;
const REQUEST = { capture: [], analyses: ['next_token'] };
const WAYS =
  'Step generates one token, Run continues until you stop it; afterwards you can see the alternatives.';

/** @param {Trace} trace @param {ViewState} state with `generation` @returns {Figure} */
export function startFigure(trace, state) {
  const prediction = trace.analyses.next_token;
  if (!prediction?.probabilities)
    return { title: 'Next token', notice: `Nothing is generated yet. ${WAYS}` };
  const last = trace.tokens.length - 1;
  const guesses = guessesIn(
    { ...prediction, texts: prediction.texts[last] },
    [last],
    () => ({ mark: '', markInWords: '' }),
    SHOWN,
  );
  const after = placeInWords(trace, 'source', last);
  const sampled = sampledGuesses(guesses, last, 'generate', state);
  return {
    title: `After ${after}`,
    help: `${sampled ? 'The probability of being sampled; the thin line is the model’s own.' : 'The model’s own probabilities.'} ${WAYS}`,
    summary: `The ${guesses.length} likeliest tokens after ${after}; nothing is generated yet.`,
    ...guessChart(
      sampled ?? guesses,
      {
        event: sampled ? 'being sampled' : wordsFor(trace).event,
        side: 'source',
        query: last,
        say: (row) => sentence((sampled ?? guesses)[row], after, row),
        table: { quantity: `probability of being token ${last + 1}`, request: REQUEST },
        sentence: { query: last, ceiling: 1 },
        ...beginning(trace, state, rowOf(matrixAt(prediction.ids), last)),
      },
      state,
    ),
  };
}

/** @param {Guess & {modelProbability?: number}} guess @param {string} after @param {number} row */
function sentence({ text, probability, modelProbability }, after, row) {
  const chance =
    modelProbability === undefined
      ? percent(probability)
      : chanceInWords(probability, modelProbability);
  return `After ${after}, “${guessInWords(text)}” has probability ${chance}, rank ${row + 1}`;
}

/** @param {number} probability of being sampled @param {number} modelProbability the model’s */
export function chanceInWords(probability, modelProbability) {
  return `${percent(probability)} of being sampled, the model’s own is ${percent(modelProbability)}`;
}

/**
 * A finished text has no next token to choose.
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {ArrayLike<number>} ids
 * @returns {{choose?: (row: number) => Patch, cursor?: Partial<CellCursor>}}
 */
function beginning(trace, { generation }, ids) {
  if (whyOver(trace, [], generation?.most ?? Infinity) !== '') return {};
  return {
    choose: (row) => ({ generate_path: [ids[row]], generate_step: null }),
    cursor: { chooseHint: 'Enter starts with this token', note: 'Choose a bar to start with it.' },
  };
}

/** @typedef {'generate'|'next_token'} Of the view to whose state the sliders belong */

export const TERMS = {
  temperature:
    'below 1 likely tokens become likelier, at 0 the likeliest is always taken, above 1 sampling becomes more random',
  'top-k': 'sample from the k likeliest tokens only',
  'top-p': 'sample from the fewest tokens whose probabilities sum to p',
};

/** @param {Of} view @param {ViewState} state @returns {Control[]} */
export function sliders(view, state) {
  /** @param {string} id @param {string} label @param {number} step @param {string} shown */
  const slider = (id, label, step, shown) =>
    control('number', id, label, state[id], { step, shown });
  const [temperature, topK, topP] = namesOf(view);
  const warmth = state[temperature];
  return [
    slider(temperature, 'Temperature', 0.1, warmth === 0 ? 'likeliest' : warmth.toFixed(1)),
    slider(topK, 'Top-k', 1, state[topK] === 0 ? 'all' : String(Math.floor(state[topK]))),
    slider(topP, 'Top-p', 0.05, state[topP] === 1 ? 'all' : state[topP].toFixed(2)),
  ];
}

/** @param {Of} view */
const namesOf = (view) => [`${view}_temperature`, `${view}_top_k`, `${view}_top_p`];

/**
 * Return the request for the probabilities of being sampled; none if they are the model’s own.
 * @param {Of} view
 * @param {ViewState} state
 * @returns {Record<string, Ask>}
 */
export function asksSampled(view, state) {
  if (isNaturalIn(view, state)) return {};
  const [temperature, topK, topP] = namesOf(view).map((name) => state[name]);
  return { sampled: { ...REQUEST, predictions: samplingOf(temperature, topK, topP) } };
}

/** @param {Of} view @param {ViewState} state */
export function isNaturalIn(view, state) {
  const [temperature, topK, topP] = namesOf(view).map((name) => state[name] ?? NaN);
  return !(temperature !== 1 || topK >= 1 || topP < 1);
}

/**
 * Return the guesses with their probability of being sampled, if it is known: until the next one
 * arrives, that of the last settings.
 * @param {Guess[]} guesses of one row, the likeliest first
 * @param {number} row
 * @param {Of} view
 * @param {ViewState} state
 * @returns {(Guess & {modelProbability: number})[]|null}
 */
export function sampledGuesses(guesses, row, view, state) {
  if (isNaturalIn(view, state)) return null;
  const answer = state.answers?.sampled;
  const probabilities = (answer?.trace ?? answer?.previous)?.analyses.next_token?.sampled;
  if (!probabilities) return null;
  const sampled = rowOf(matrixAt(probabilities), row);
  return guesses.map((guess, rank) => ({
    ...guess,
    modelProbability: guess.probability,
    probability: sampled[rank],
  }));
}
