/**
 * The drawings of one generated token: its alternatives with the sliders of sampling, the attention
 * row that led to it, its experts.
 */

import { percent, share, shortShare } from '../../words/numbers.js';
import { guessInWords } from '../../words/tokens.js';
import { placeInWords } from '../../trace/word_names.js';
import { matrixAt, matrixFrom, rowOf } from '../../trace/trace.js';
import { guessChart, guessesIn, wordsFor } from '../../plot/bars.js';
import { chart } from '../../plot/chart.js';
import { isNarrow, band } from '../../plot/scales.js';
import { cell } from '../../plot/marks/mark.js';
import { rect } from '../../plot/marks/decorations.js';
import { samplingOf, whyOver } from '../../ui/generation.js';
import { routeInWords, routeNumber } from '../experts/routing.js';
import { control } from '../../ui/controls.js';

/**
 * @import { Step } from '../../api/generation.js'
 * @import { Call } from '../../api/request_code.js'
 * @import { Ask, Trace } from '../../trace/trace.js'
 * @import { Figure, Frame, ViewState } from '../../plot/figure.js'
 * @import { CellCursor } from '../../plot/grid.js'
 * @import { Guess } from '../../plot/bars.js'
 * @import { Patch } from '../../state/state.js'
 * @import { Control } from '../../ui/controls.js'
 */

const EXPERT = { height: 30, least: 20, most: 56, around: 72 };

/**
 * Draw the router's probability of every expert, layer by layer; chosen experts carry their weights.
 * @param {Frame} state
 * @param {{reader: string, step: Step, routed: NonNullable<Step['experts']>, call: Call}} of `reader`: the token that is routed
 */
export function routeChart(state, { reader, step, routed, call }) {
  const experts = routed[0].probabilities.map((_, expert) => String(expert));
  /** @param {{row: number, column: number}} at */
  const weightOf = ({ row, column }) => routed[row].weights[routed[row].experts.indexOf(column)];
  const choices = routed.flatMap((layer, row) => layer.experts.map((expert) => ({ row, expert })));
  return chart(
    {
      x: band(experts, { title: 'expert', side: 'top' }),
      y: band(
        routed.map(({ layer }) => String(layer)),
        { title: 'layer' },
      ),
      marks: [
        cell(matrixFrom(routed.map(({ probabilities }) => [...probabilities])), {
          ramp: {
            title: `router probability; marked: chosen${isNarrow(state.width) ? '' : ', with its weight'}`,
            domain: [0, 1],
          },
          text: (at) => (weightOf(at) === undefined ? '' : shortShare(weightOf(at))),
          spot: (at) => weightOf(at) !== undefined,
          format: (probability) => share(probability, 4),
          name: ({ row, column }) => `layer ${routed[row].layer}, expert ${column}`,
          number: (at) => routeNumber(at.value, weightOf(at)),
          say: (at) =>
            `In layer ${routed[at.row].layer} ${routeInWords(reader, at.column, at.value, weightOf(at))}`,
          tokens: () => ({ query: step.position - 1 }),
          weight: weightOf,
        }),
        rect(choices, {
          from: ({ row, expert }) => ({ x: expert - 0.46, y: row - 0.44 }),
          to: ({ row, expert }) => ({ x: expert + 0.46, y: row + 0.44 }),
          width: 1.5,
        }),
      ],
      size: {
        row: EXPERT.height,
        cell: Math.max(
          EXPERT.least,
          Math.min(EXPERT.most, (state.width - EXPERT.around) / experts.length),
        ),
      },
      table: { quantity: `router probability at token ${step.position - 1}`, call },
      cursor: { start: { row: 0, column: routed[0].experts[0] } },
    },
    state,
  );
}

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
