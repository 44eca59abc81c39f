/**
 * The circuits of one head, from its weights alone: the tokens that it writes if it attends to a
 * token (OV), and the tokens that a token looks for (QK).
 */

import { noticeOf } from '../../api/request_cache.js';
import { highestIn, matrixAt, rowOf } from '../../data/trace.js';
import { tokensOf, weightsAt } from '../../data/attention.js';
import { decimal, signed } from '../../data/format.js';
import { named } from '../../data/text.js';
import { nameOfGuess, signedBars, withSign } from '../../plot/bars.js';
import { queryOf } from '../../state/state.js';

/**
 * @import { Place } from '../../data/attention.js'
 * @import { Ask, Card, NamedArray, Trace } from '../../data/trace.js'
 * @import { Figure, ViewState } from '../../plot/figure.js'
 * @import { Grid } from '../../plot/grid.js'
 */

const ANALYSIS = 'head_circuits';

/** @typedef {'writes'|'seeks'} Circuit */
/** @typedef {{name: string, value: number}} Ranked a token of the vocabulary */

/** @type {Record<Circuit, {title: string, arrays: [string, string], unit: string, say: (token: string) => string}>} */
const CIRCUITS = {
  writes: {
    title: 'What it writes',
    arrays: ['written_ids', 'written_logits'],
    unit: 'logits',
    say: (token) => `If it attends to ${token}, the head raises the logits of these tokens most.`,
  },
  seeks: {
    title: 'What it looks for',
    arrays: ['sought_ids', 'sought_scores'],
    unit: 'score',
    say: (token) =>
      `At ${token}, these tokens would get the highest scores, if only their embeddings counted.`,
  },
};

/**
 * The request for the circuits of a head, if the model has them.
 * @param {Trace} trace
 * @param {{head: number}} state
 * @returns {Record<string, Ask>}
 */
export function asksForCircuits({ card }, { head }) {
  return card?.analyses.includes(ANALYSIS) ? { circuits: requestOf(head) } : {};
}

/** @param {number} head */
function requestOf(head) {
  return { capture: [], analyses: [ANALYSIS], heads: [head] };
}

/** The reason for which a model has no circuits. @param {Card|undefined} card */
function refusalOf(card) {
  if (!card || card.analyses.includes(ANALYSIS)) return '';
  if (card.norm_place !== 'pre')
    return 'This model normalises what its parts write, so no head writes to the logits directly.';
  return card.architecture && card.architecture !== 'headlight'
    ? 'The circuits need the weights of the norms, which this model does not offer.'
    : 'This model normalises token and position together, so a token has no embedding of its own.';
}

/**
 * The source token: the chosen one, or the one that the chosen row attends to most.
 * @param {Trace} trace
 * @param {Place} place
 * @param {ViewState} state
 */
export function sourceIn(trace, place, state) {
  const columns = tokensOf(trace, place.columns);
  if (state.key !== null && state.key < columns.length) return state.key;
  const site = weightsAt(place, trace).find(({ layer }) => layer === state.layer)?.site;
  if (!site) return 0;
  const weights = matrixAt(trace.tensors[site], state.head);
  return highestIn(rowOf(weights, queryOf(state, trace, place.rows)));
}

/**
 * @param {Circuit} which
 * @param {Trace} trace
 * @param {Place} place
 * @param {ViewState} state
 * @returns {Figure}
 */
export function circuitFigure(which, trace, place, state) {
  const { title, arrays, unit, say } = CIRCUITS[which];
  const answer = state.answers?.circuits;
  const found = answer?.trace?.analyses[ANALYSIS];
  const notice = refusalOf(trace.card) || (found ? '' : noticeOf(answer));
  if (notice) return { title, notice, isWaiting: !found && !refusalOf(trace.card) };
  const path = `${place.stack}.layers.${state.layer}.${place.ending}`;
  const [ids, values] = arrays.map((name) => found[`${path}.${name}`]);
  if (!ids) return { title, notice: `This head has none: ${found.omitted[`${path}.written`]}.` };
  const isWriting = which === 'writes';
  const token = isWriting ? sourceIn(trace, place, state) : queryOf(state, trace, place.rows);
  const tokens = tokensOf(trace, isWriting ? place.columns : place.rows);
  const ranked = rankedAt(ids, values, token, found.token_texts);
  const name = named(tokens, token);
  const bars = ranked.map((one) => ({ label: one.name, name: one.name, value: one.value }));
  return {
    title,
    help: say(name),
    summary: `${title} for ${name}: ${ranked.length} tokens of the vocabulary, in ${unit === 'score' ? 'scores before the softmax' : unit}.`,
    ...(isWriting && { facts: [copyingOf(found[`${path}.copying`])] }),
    ...signedBars(
      bars,
      { title: isWriting ? 'logits' : 'score before the softmax', ends: ['', ''] },
      state,
    ),
    grid: gridOf({ ranked, token, isWriting, name, unit, place, head: state.head }),
  };
}

/**
 * @param {NamedArray} ids (head, token, rank)
 * @param {NamedArray} values
 * @param {number} token
 * @param {Record<string, string>} texts
 * @returns {Ranked[]}
 */
function rankedAt({ shape, data }, values, token, texts) {
  const [, , count] = shape;
  return Array.from({ length: count }, (_, rank) => ({
    name: nameOfGuess(texts[data[token * count + rank]]),
    value: values.data[token * count + rank],
  }));
}

/** @param {NamedArray} copying @returns {string[]} */
function copyingOf({ data }) {
  const score = data[0];
  return ['Copying', `${score < 0 ? '−' : ''}${decimal(Math.abs(score), 2)} of 1`];
}

/**
 * @param {{ranked: Ranked[], token: number, isWriting: boolean, name: string, unit: string, place: Place, head: number}} of
 * @returns {Grid}
 */
function gridOf({ ranked, token, isWriting, name, unit, place, head }) {
  const side = isWriting ? place.columns : place.rows;
  /** @param {number} row */
  const say = (row) => {
    const { name: other, value } = ranked[row];
    return isWriting
      ? `Attending to ${name}, the head adds ${withSign(value)} to the logit of “${other}”.`
      : `At ${name}, “${other}” would get a score of ${signed(value, 2)}.`;
  };
  return {
    rows: ranked.length,
    columns: 1,
    kind: 'bar chart',
    sides: { rows: side, columns: side },
    rowTitle: 'token',
    columnTitle: '',
    rowLabels: ranked.map(({ name: other }) => other),
    columnLabels: [unit],
    quantity: isWriting
      ? `what the head adds to the logits if it attends to ${name}`
      : `score before the softmax that a token would get from ${name}`,
    request: requestOf(head),
    value: (row) => ranked[row].value,
    format: (value) => withSign(value),
    describe: say,
    tip: (row) => [ranked[row].name, withSign(ranked[row].value)],
    tokens: () => (isWriting ? { key: token } : { query: token }),
    query: null,
    rowOf: () => -1,
    start: { row: 0, column: 0 },
    rest: { readout: say(0) },
  };
}
