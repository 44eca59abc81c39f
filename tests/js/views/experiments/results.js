/**
 * A small result of every experiment, in the shapes that the API has: written here, or in results/ by
 * tests/model/experiments/test_experiment_registry.py.
 */

import { readdirSync, readFileSync } from 'node:fs';

const size = (shape) => shape.reduce((product, each) => product * each, 1);

/** Nested lists of a shape, each element by its place. */
function nested(shape, value, offset = 0) {
  if (shape.length === 0) return value(offset);
  const [count, ...rest] = shape;
  return Array.from({ length: count }, (_, at) => nested(rest, value, offset + at * size(rest)));
}

/** An array; `value` is every element, by its place, or a list. */
export function array(axes, shape, value) {
  const of = typeof value === 'function' ? value : () => value;
  return {
    axes: axes.split(' ').filter(Boolean),
    shape,
    dtype: 'float64',
    data: Array.isArray(value) ? value : nested(shape, of),
  };
}
const index = (at) => at;
const falling = (at) => 1 / (at + 1);

const FOLDER = new URL('results/', import.meta.url);
/** @type {{experiment: string, parameters: object, arrays: object}[]} */
const RUNS = readdirSync(FOLDER).map((file) => JSON.parse(readFileSync(new URL(file, FOLDER))));

export const ARRAYS = {
  ...Object.fromEntries(RUNS.map((run) => [run.experiment, run.arrays])),
  scaling: {
    width: array('width', [3], [1, 2, 4]),
    variance: array('scaled width', [2, 3], (at) => (at < 3 ? 2 ** at : 1)),
    expected_variance: array('scaled width', [2, 3], 1),
    greatest_weight: array('scaled width', [2, 3], (at) => [0.3, 0.6, 0.9, 0.3, 0.3, 0.31][at]),
    gradient: array('scaled width', [2, 3], (at) => [0.4, 0.2, 0.1, 0.4, 0.4, 0.4][at]),
    example: array('scaled key width', [2, 2, 3], 0.5),
    divisor: array('divisor', [2], [1, 5]),
    scores: array('score', [2], [10, 5]),
    weights: array('divisor score', [2, 2], 0.5),
    weights_gradient: array('divisor', [2], 0.1),
  },
  recurrence: {
    cell: array('cell', [5], ['linear', 'tanh', 'lstm', 'gru', 'attention']),
    distance: array('distance', [3], index),
    gradient: array('cell distance', [5, 3], (at) => [1, 0.1, 1e-9][at % 3]),
    length: array('length', [3], [1, 2, 3]),
    waiting_steps: array('cell length', [5, 3], (at) => (at < 12 ? (at % 3) + 1 : 1)),
    multiplications: array('cell length', [5, 3], (at) => 10 * (at + 1)),
  },
  depth: {
    variant: array('variant', [5], ['plain', 'norm', 'residual', 'post', 'pre']),
    layer: array('layer', [3], index),
    stream_gradient: array('variant layer', [5, 3], (at) => 10 ** (at % 3)),
    weight_gradient: array('variant layer', [5, 3], falling),
    stream_size: array('variant layer', [5, 3], (at) => (at === 0 ? null : falling(at))),
  },
  learn_task: {
    token: array('key', [4], ['a', 'b', '_', '<b>']),
    target: array('answer', [2], ['b', 'a']),
    n_parameters: array('', [], 1234),
    step: array('step', [2], [1, 2]),
    loss: array('step', [2], [2, 1]),
    frame: array('frame', [3], [0, 1, 2]),
    accuracy: array('frame', [3], [0.1, 0.5, 1]),
    sequence_accuracy: array('frame', [3], [0, 0.25, 1]),
    prediction: array('frame answer', [3, 2], (at) => (at === 4 ? 'b' : 'a')),
    probability: array('frame answer', [3, 2], 0.75),
    attention: array('frame layer head query key', [3, 1, 2, 4, 4], (at) => at / 96),
  },
  balance: {
    step: array('step', [2], [1, 2]),
    loss: array('run step', [2, 2], falling),
    frame: array('frame', [3], [0, 1, 2]),
    load: array('run frame expert', [2, 3, 2], 0.5),
    effective_experts: array('run frame', [2, 3], (at) => (at < 3 ? 1.5 : 2)),
    cluster_load: array('run frame cluster expert', [2, 3, 2, 2], 0.5),
  },
  minhash: {
    shingle: array('shingle', [3], ['<b>x', 'ab', 'b ']),
    is_in: array('text shingle', [2, 3], (at) => [true, true, false, false, true, true][at]),
    hash: array('hash', [2], index),
    minimum: array('text hash', [2, 2], 1),
    is_equal: array('hash', [2], [true, false]),
    jaccard: array('', [], 1 / 3),
    estimate: array('', [], 0.5),
    running_estimate: array('hash', [2], [1, 0.5]),
    standard_error: array('hash', [2], [0.47, 0.33]),
  },
  schedule: {
    schedule: array('schedule', [2], ['constant', 'cosine']),
    train_step: array('train_step', [4], index),
    factor: array('schedule train_step', [2, 4], falling),
    x: array('x', [3], [-3, 0, 3]),
    y: array('y', [3], [-3, 0, 3]),
    surface: array('y x', [3, 3], index),
    optimizer: array('optimizer', [2], ['sgd', 'adamw']),
    optimizer_step: array('optimizer_step', [3], index),
    path: array('optimizer optimizer_step coordinate', [2, 3, 2], (at) =>
      at === 4 ? 9 : at === 5 ? null : at / 8,
    ),
    loss: array('optimizer optimizer_step', [2, 3], (at) => (at === 2 ? null : falling(at))),
  },
  by_hand: {
    key: array('key', [2], ['animal', '<i>']),
    query: array('query', [1], ['it']),
    queries: array('query d_k', [1, 2], () => 0.5),
    keys: array('key d_k', [2, 2], (at) => [1, -1, 0, 1][at]),
    values: array('key d_v', [2, 1], index),
    products: array('query key', [1, 2], () => 0.25),
    divisor: array('', [], 1),
    scores: array('query key', [1, 2], (at) => [0.25, null][at]),
    weights: array('query key', [1, 2], (at) => [1, 0][at]),
    context: array('query d_v', [1, 1], () => 0),
    printed_weights: array('query key', [1, 2], (at) => [0.35, 0][at]),
  },
};

/** The parameters that go with them. */
export const VALUES = {
  ...Object.fromEntries(RUNS.map((run) => [run.experiment, run.parameters])),
  recurrence: { spectral_radius: 0.9, width: 4 },
  learn_task: { task: 'reverse', model: 'transformer', positional: 'rotary', steps: 2 },
  balance: { top_k: 2, steps: 2 },
  schedule: { surface: 'ravine' },
};

/** A result as the page gives it to a view. */
export function resultOf(id, more = {}) {
  const values = VALUES[id] ?? {};
  const at = (ARRAYS[id].frame?.shape[0] ?? 1) - 1;
  return {
    arrays: ARRAYS[id],
    values,
    at,
    total: values.steps ?? 0,
    beside: null,
    picked: null,
    isPreview: false,
    ...more,
  };
}
