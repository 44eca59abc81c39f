/**
 * The two models of a comparison: the curves of their training runs, the calibration of a reward, and
 * the reward of the text as a reward model rates it, with the share of each token.
 */

import { modelName } from '../../api/calls.js';
import { amount, decimal, grouped, signed, named } from '../../data/format.js';
import { isRating } from '../../data/attention.js';
import { alone, unitLabels } from '../../data/words.js';
import { diverging } from '../../plot/colour.js';
import { curvesChart, warm } from '../../plot/curves.js';
import { letteringFor } from '../../plot/figure.js';
import { squaresFigure } from '../../plot/map.js';

/**
 * @import { Card, RunPicture, Trace } from '../../data/trace.js'
 * @import { Figure, ViewState } from '../../plot/figure.js'
 */

/** @typedef {RunPicture & {model: string, isShare?: boolean}} Picture of one model */

const DASHES = /** @type {const} */ (['solid', 'dash', 'dot']);
const CALIBRATION =
  'Pairs of answers by the probability that the model gives to the first one, beside the share in which the first is preferred. A calibrated model has both equal.';
const OF_RUN =
  'Figures of the training run by step, as the run wrote them; a point is the mean since the point before.';

/**
 * The full cards of A and B, as far as they are here.
 * @param {ViewState} state
 * @returns {[Card|undefined, Card|undefined]}
 */
export function cardsOf({ answers: { ours, theirs } }) {
  return [ours?.trace?.card, theirs?.trace?.card];
}

/** @param {ViewState} state @returns {Picture[]} */
export function picturesOf(state) {
  return cardsOf(state)
    .filter((card) => card !== undefined)
    .flatMap((card) =>
      [...(card.curves ?? []), ...calibrationOf(card)].map((picture) => ({
        ...picture,
        model: modelName(card),
      })),
    );
}

/** @param {Card} card @returns {(RunPicture & {isShare: true})[]} */
function calibrationOf({ metrics }) {
  const bins = metrics?.calibration ?? metrics?.sample?.calibration;
  if (!bins) return [];
  /** @type {{predicted: number, observed: number}[]} */
  const found = Object.values(bins);
  const steps = found.map(({ predicted }) => predicted);
  return [
    {
      title: 'Calibration',
      unit: 'share preferred',
      isShare: true,
      lines: [
        { name: 'preferred', steps, values: found.map(({ observed }) => observed) },
        { name: 'if calibrated', steps, values: steps },
      ],
    },
  ];
}

/**
 * @param {string} part such as `run-0`, the number of the picture
 * @param {ViewState} state
 * @returns {Figure}
 */
export function runFigure(part, state) {
  const number = Number(part.slice('run-'.length));
  const { title, unit, lines, model, isShare } = picturesOf(state)[number];
  const { palette } = state;
  const x = [...new Set(lines.flatMap(({ steps }) => steps))].sort((a, b) => a - b);
  return {
    title: `${model}: ${title.toLowerCase()}`,
    help: isShare ? CALIBRATION : OF_RUN,
    summary: `${title} of ${model}, ${unit}: ${lines.map(({ name, values }) => `${name} from ${amount(values[0])} to ${amount(values[values.length - 1])}`).join('; ')}.`,
    ...curvesChart(
      {
        x,
        across: isShare
          ? { title: 'probability', range: [0, 1] }
          : { title: 'step', write: grouped },
        up: { title: unit },
        curves: lines.map(({ name, steps, values }, line) => ({
          name,
          values: x.map((step) => values[steps.indexOf(step)] ?? NaN),
          colour: line === 0 ? warm(palette) : palette.ink,
          dash: DASHES[line % DASHES.length],
          width: line === 0 ? 3 : 2,
          hasDots: (isShare && line === 0) || steps.length < x.length,
        })),
        quantity: unit,
        unit: isShare ? 'probability' : 'step',
        format: (value) => amount(value, 3),
      },
      state,
    ),
  };
}

/** @typedef {{layer: number, head: number, partner: {layer: number, head: number}, correlation: number}} Partners a head of A and its partner in B */

/**
 * The matching on the card of the student, seen from A.
 * @param {Card|undefined} ours
 * @param {Card|undefined} theirs
 * @returns {{student: string, pairs: Partners[]}|null}
 */
export function partnersOf(ours, theirs) {
  for (const [student, teacher] of [
    [ours, theirs],
    [theirs, ours],
  ]) {
    const listed = student?.metrics?.teacher;
    if (!student || !teacher || listed?.id !== teacher.id) continue;
    const pairs = Object.entries(listed.heads.pairs).map(([head, { partner, correlation }]) => {
      const [own, other] = [placed(head), placed(partner)];
      return student === ours
        ? { ...own, partner: other, correlation }
        : { ...other, partner: own, correlation };
    });
    return { student: student.id, pairs };
  }
  return null;
}

/** @param {string} name `layer 1, head 0` as a card writes it: `1.0` */
function placed(name) {
  const [layer, head] = name.split('.').map(Number);
  return { layer, head };
}

/**
 * The head of B that corresponds to one of A: the same head, if one model began with the weights of
 * the other, or its partner, if one is the teacher of the other.
 * @param {[Card|undefined, Card|undefined]} cards the full ones of A and B
 * @param {{layer: number, head: number}} of A
 * @returns {{layer: number, head: number, correlation?: number}|null} null: no head corresponds
 */
export function partnerOf([ours, theirs], { layer, head }) {
  if (!ours || !theirs) return null;
  if (ours.began_from === theirs.id || theirs.began_from === ours.id) return { layer, head };
  const pair = partnersOf(ours, theirs)?.pairs.find(
    (one) => one.layer === layer && one.head === head,
  );
  return pair ? { ...pair.partner, correlation: pair.correlation } : null;
}

const ROW = 60;
const AROUND = 120;

/**
 * The model that rates texts of the tokens of this one; undefined: there is none.
 * @param {Trace} trace
 * @param {Card[]} cards
 */
export function raterOf({ card }, cards) {
  return cards.find(
    (other) =>
      isRating({ card: other }) && card?.kind === 'decoder' && other.vocab_size === card.vocab_size,
  );
}

/**
 * @param {Trace} rated the text, read by the reward model
 * @param {ViewState} state
 * @returns {Partial<Figure>}
 */
export function rewardFigure(rated, state) {
  const { rewards, contributions } = rated.analyses.reward;
  const { tokens } = rated;
  const data = Float64Array.from(contributions.data);
  const reach = Math.max(...data.map(Math.abs)) || 1;
  const total = rewards.data[rewards.data.length - 1];
  const labels = unitLabels(alone(tokens));
  /** @param {number} _ @param {number} column */
  const describe = (_, column) =>
    `${named(tokens, column)} changes the reward by ${signed(data[column])}, to ${decimal(rewards.data[column])}`;
  return {
    help: 'The reward of the text up to each token; a token’s share is the change that it makes.',
    summary: `Reward of the text by token: ${tokens.length} tokens, ${decimal(total)} in all.`,
    facts: [
      ['Reward of the text', decimal(total)],
      ['Rated by', rated.model],
    ],
    ...squaresFigure(
      {
        matrix: { rows: 1, columns: data.length, data },
        rows: ['share'],
        columns: labels,
        titles: { rows: '', columns: 'token' },
        quantity: 'change of the reward',
        scale: { bottom: -reach, top: reach, colours: diverging(state.palette.theme) },
      },
      { ...state, height: Math.min(state.height, ROW + AROUND) },
    ),
    grid: {
      rows: 1,
      columns: data.length,
      rowTitle: '',
      columnTitle: 'token',
      rowLabels: ['share'],
      columnLabels: labels,
      thinned: { rows: letteringFor(state.width), columns: letteringFor(state.width) },
      quantity: `change of the reward (${rated.model}) when the token is read`,
      request: { model: rated.model, capture: [], analyses: ['reward'] },
      value: (_, column) => data[column],
      format: (change) => signed(change, 4),
      describe,
      tip: (_, column) => [named(tokens, column), signed(data[column], 4)],
      tokens: (_, column) => ({ key: column }),
      start: { row: 0, column: data.length - 1 },
    },
  };
}
