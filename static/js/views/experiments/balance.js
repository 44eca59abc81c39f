/** Experts with and without a balance loss: loads that collapse or spread, step by step. */

import { numbersIn } from '../../rules/experiment.js';
import { counted } from '../../words/lists.js';
import { amount, percent, share } from '../../words/numbers.js';
import { curvesPicture, rowCurves } from '../../plot/curves.js';
import { mapPicture } from '../../plot/map.js';

/**
 * @import { Picture } from '../../rules/experiment.js'
 * @import { Size } from '../../plot/map.js'
 */

const NAMES = ['without', 'with'];

/** @type {ExperimentView} */
export const experiment = {
  id: 'balance',
  main: ['coefficient', 'n_experts', 'top_k', 'steps'],
  preview: { steps: 1 },
  steps: (arrays) => numbersIn(arrays.frame?.data ?? []),
  finding,
  pictures,
};

/** @param {Result} result */
function finding({ arrays, at }) {
  const { frame, effective_experts: effective, load, loss } = arrays;
  const step = frame.data[at];
  const n = load.shape.at(-1) ?? 0;
  const used = effective.data.map((/** @type {number[]} */ run) => amount(run[at], 2));
  const most = load.data.map((/** @type {number[][]} */ run) => percent(Math.max(...run[at]), 0));
  const losses =
    loss && step > 0
      ? loss.data.map((/** @type {number[]} */ run) => amount(run[step - 1], 2))
      : null;
  return (
    `After ${counted(step, 'step')} the choices spread over the equivalent of ${used[0]} of ${n} experts without the balance loss, ` +
    `and ${used[1]} with it; the busiest expert takes ${most[0]} and ${most[1]}.` +
    (losses ? ` The loss of the task is ${losses[0]} and ${losses[1]}.` : '')
  );
}

/** @param {Result} result @returns {Picture[]} */
function pictures(result) {
  const { arrays, isPreview } = result;
  const clusters = NAMES.map((_, run) => clusterMap(result, run));
  if (isPreview || !arrays.loss) return clusters;
  const loads = NAMES.map((_, run) => loadMap(result, run));
  return [...loads, effectiveChart(result), lossChart(result), ...clusters];
}

/** @param {Result} result */
function effectiveChart({ arrays, at, total }) {
  return curvesPicture({
    id: 'effective',
    title: 'How many experts are in use',
    summary: 'Effectively used experts by training step, with and without the balance loss.',
    help: 'As many equally loaded experts would have the same entropy.',
    x: numbersIn(arrays.frame.data),
    across: { title: 'training step', range: [0, total] },
    up: { title: 'experts', range: [0, (arrays.load.shape.at(-1) ?? 1) * 1.04] },
    quantity: 'effectively used experts',
    format: (value) => amount(value),
    marker: at,
    unit: 'step',
    curves: (size) => runCurves(arrays, 'effective_experts', size),
  });
}

/** @param {Arrays} arrays @param {string} name @param {Size} size @param {number} [width] */
function runCurves(arrays, name, size, width) {
  return rowCurves(
    { data: NAMES },
    arrays[name],
    {
      without: { name: 'without', colour: 'ink', width: width ?? 2 },
      with: { name: 'with', colour: 'warm', width: width ?? 3 },
    },
    size,
  );
}

/** @param {Result} result */
function lossChart({ arrays, total }) {
  return curvesPicture({
    id: 'loss',
    title: 'The loss of the task',
    summary: 'The loss of the task by training step, with and without the balance loss.',
    help: 'Mean squared error of each step. A large coefficient balances at the expense of the task.',
    x: numbersIn(arrays.step.data),
    across: { title: 'training step', range: [0, total] },
    up: { title: 'loss', isLog: true },
    quantity: 'loss of the task',
    format: (value) => amount(value),
    unit: 'step',
    curves: (size) => runCurves(arrays, 'loss', size, 1.5),
  });
}

/** @param {Result} result @param {number} run */
function loadMap({ arrays: { load }, at, total }, run) {
  const byFrame = /** @type {number[][]} */ (load.data[run]);
  const experts = byFrame[0].map((_, expert) => expert);
  // The steps of all frames that a run will have: the map keeps its width while it grows.
  const frames = Array.from({ length: N_FRAMES + 1 }, (_, part) =>
    Math.round((total * part) / N_FRAMES),
  );
  const steps = [...new Set(frames)];
  return mapPicture({
    id: `load-${NAMES[run]}`,
    title: run === 0 ? 'Without the balance loss' : 'With the balance loss',
    summary: `The share of the choices of each expert by training step, ${NAMES[run]} the balance loss.`,
    help: `Each row is an expert, each column a moment of the training. Equal shares would be ${percent(1 / experts.length)}.`,
    values: experts.map((expert) => steps.map((_, column) => byFrame[column]?.[expert] ?? NaN)),
    columns: steps.map(String),
    titles: { rows: 'expert', columns: 'training step' },
    range: [0, Math.max(...load.data.flat(2))], // both maps share one scale
    quantity: 'share of the choices',
    format: (value) => percent(value),
    write: (value) => percent(value, 0),
    marker: at,
  });
}

const N_FRAMES = 40;

/** @param {Result} result @param {number} run */
function clusterMap({ arrays: { cluster_load: load, frame }, values: { top_k: k }, at }, run) {
  const values = /** @type {number[][]} */ (load.data[run][at]);
  return mapPicture({
    id: `cluster-${NAMES[run]}`,
    title: `Who takes what, ${NAMES[run]} it`,
    summary: `The share of each kind of token that each expert takes, ${NAMES[run]} the balance loss.`,
    help: `Rows are kinds of tokens, columns experts, at step ${frame.data[at]}. At most ${percent(1 / k, 0)} for an expert, as each token goes to ${k}.`,
    values,
    titles: { rows: 'kind of token', columns: 'expert' },
    range: [0, 1 / k],
    quantity: 'share of its choices',
    format: (value) => share(value, 3),
    cell: Math.max(16, Math.min(26, 210 / values.length)),
  });
}
