/** How the two models were made: the curves of their training runs, and the calibration of a reward. */

import { modelName } from '../../api/calls.js';
import { amount, grouped, share } from '../../data/format.js';
import { curvesChart, warm } from '../../plot/curves.js';

/**
 * @import { Card, RunPicture } from '../../data/trace.js'
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
          ? { title: 'probability', range: [0, 1], write: (value) => share(value) }
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
