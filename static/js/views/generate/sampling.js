/**
 * The sliders of sampling, and the probability that each likely token has of being sampled.
 */

import { matrixAt, rowOf } from '../../data/trace.js';
import { entryOf } from '../registry.js';

/**
 * @import { Ask } from '../../data/trace.js'
 * @import { ViewState } from '../../plot/figure.js'
 * @import { Guess } from '../../plot/guess_bars.js'
 * @import { Control } from '../../ui/controls.js'
 */

/** @typedef {'generate'|'next_token'} Of the view to whose state the sliders belong */

export const TERMS = [
  [
    'temperature',
    'below 1 likely tokens become likelier, at 0 the likeliest is always taken, above 1 sampling becomes more random',
  ],
  ['top-k', 'sample from the k likeliest tokens only'],
  ['top-p', 'sample from the fewest tokens whose probabilities sum to p'],
];

/**
 * @param {Of} view
 * @param {ViewState} state
 * @returns {Control[]}
 */
export function sliders(view, state) {
  const { fields } = entryOf(view);
  /** @param {string} id @param {string} label @param {number} step @param {string} shown */
  const slider = (id, label, step, shown) => ({
    kind: 'number',
    name: id,
    label,
    value: state[id],
    least: fields[id].least,
    most: fields[id].most,
    step,
    shown,
  });
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
 * The request for the probabilities of being sampled; none if they are the model’s own.
 * @param {Of} view
 * @param {ViewState} state
 * @returns {Record<string, Ask>}
 */
export function asksSampled(view, state) {
  if (isNaturalIn(view, state)) return {};
  const [temperature, topK, topP] = namesOf(view).map((name) => state[name]);
  const predictions = {
    temperature,
    ...(topK > 0 && { top_k: Math.floor(topK) }),
    ...(topP < 1 && { top_p: topP }),
  };
  return { sampled: { capture: [], analyses: ['next_token'], predictions } };
}

/**
 * @param {Of} view
 * @param {ViewState} state
 */
export function isNaturalIn(view, state) {
  const [temperature, topK, topP] = namesOf(view).map((name) => state[name] ?? NaN);
  return !(temperature !== 1 || topK >= 1 || topP < 1);
}

/**
 * The guesses with their probability of being sampled, if it is known: until the next one arrives,
 * that of the last settings.
 * @param {Guess[]} guesses of one row, the likeliest first
 * @param {number} row
 * @param {Of} view
 * @param {ViewState} state
 * @returns {(Guess & {own: number})[]|null}
 */
export function sampledGuesses(guesses, row, view, state) {
  if (isNaturalIn(view, state)) return null;
  const answer = state.answers?.sampled;
  const found = (answer?.trace ?? answer?.previous)?.analyses.next_token?.sampled;
  if (!found) return null;
  const sampled = rowOf(matrixAt(found), row);
  return guesses.map((guess, rank) => ({
    ...guess,
    own: guess.probability,
    probability: sampled[rank],
  }));
}
