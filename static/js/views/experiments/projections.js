/** Why three projections: shared against separate matrices, by hand and on a task that needs both. */

import { numbersIn } from '../../rules/experiment.js';
import { decimal, share } from '../../words/numbers.js';
import { mapPicture, numbered, weightsIn } from '../../plot/map.js';
import { curvesPicture, plainCurve, strongCurve } from '../../plot/curves.js';
import { diverging } from '../../plot/colour.js';

/** @import { Picture, Table } from '../../rules/experiment.js' */

const NAMES = ['shared W', 'separate W_Q, W_K, W_V'];
const IDS = ['shared', 'separate'];

/** @type {ExperimentView} */
export const experiment = {
  id: 'projections',
  main: ['example', 'is_scaled', 'steps'],
  hidden: [
    'tokens',
    'inputs',
    'shared_weights',
    'query_weights',
    'key_weights',
    'value_weights',
    'seed',
  ],
  pickable: ({ token }) => [token.shape[0], token.shape[0]],
  titles: {
    example: {
      animal: 'it: whom does it mean?',
      library: 'A library: spine and contents',
      database: 'A database: experience and name',
      kitchen: 'The chef and the pasta',
    },
  },
  finding,
  pictures,
  tables,
};

/** The token that each example is about. @type {Record<string, number>} */
const ASKED = { animal: 4, kitchen: 1 };

/** @param {Arrays} arrays @param {string} name @returns {number[][]} */
function rowsOf(arrays, name) {
  return arrays[name].data.map(numbersIn);
}

/** @param {Result} result @returns {number} the token whose row was chosen, or that the example is about */
function askedIn({ arrays, values, picked }) {
  const count = arrays.token.data.length;
  return Math.min(picked?.row ?? ASKED[values.example] ?? 0, count - 1);
}

/** @param {number} value */
function bits(value) {
  return value < 0.005 ? 'nearly 0' : decimal(value, 2);
}

/** @param {number[]} list */
function largest(list) {
  return list.indexOf(Math.max(...list));
}

/** @param {Result} result */
function finding(result) {
  const { arrays } = result;
  const at = askedIn(result);
  const tokens = /** @type {string[]} */ (arrays.token.data);
  const rows = arrays.weights.data.map((/** @type {number[][]} */ of) => numbersIn(of[at]));
  const [shared, separate] = rows.map((/** @type {number[]} */ row) => {
    const key = largest(row);
    const name = key === at ? 'itself' : `“${tokens[key]}”`;
    return `${name} (${share(row[key], 2)})`;
  });
  const [most, second] = tokens
    .map((name, key) => ({ name, weight: rows[1][key] }))
    .sort((a, b) => b.weight - a.weight)
    .map(({ name, weight }) => `“${name}” (${share(weight, 2)})`);
  const losses = arrays.loss.data.map((/** @type {number[]} */ of) => of.at(-1));
  const there = largest(rows[1]);
  const scores = arrays.scores.data[1];
  const both =
    there === at
      ? ''
      : `, which it scores ${decimal(scores[at][there], 2)}, and ${decimal(scores[there][at], 2)} the other way round`;
  return (
    `With one shared projection “${tokens[at]}” looks most at ${shared}; with three, at ${separate}${both}. ` +
    `What comes back mixes the values of ${most}, ${second} and the others. ` +
    `After ${arrays.step.data.length} steps the task costs the shared projection ${bits(losses[0])} bits, ` +
    `the separate ones ${bits(losses[1])}; guessing costs ${bits(Math.log2(6))}.`
  );
}

/** @param {Result} result @returns {Picture[]} */
function pictures(result) {
  return [
    weightsMap(result, 0),
    weightsMap(result, 1),
    scoresMap(result, 0),
    scoresMap(result, 1),
    rolesMap(result),
    lossChart(result.arrays),
    taskMap(result.arrays, 0),
    taskMap(result.arrays, 1),
  ];
}

/** Return the axes of a map of all pairs of tokens. @param {string[]} tokens */
function pairsOf(tokens) {
  const titles = { rows: 'query', columns: 'key' };
  return { rows: tokens, columns: tokens, titles, isSlanted: true, cell: 30 };
}

/** @param {Result} result @param {number} variant */
function weightsMap(result, variant) {
  const { arrays } = result;
  const tokens = /** @type {string[]} */ (arrays.token.data);
  const values = arrays.weights.data[variant].map(numbersIn);
  const scores = arrays.scores.data[variant].map(numbersIn);
  return mapPicture({
    id: IDS[variant],
    title: variant === 0 ? 'One projection: X·W asks and is found' : 'Three projections',
    summary: `The attention weights of every token with ${NAMES[variant]}.`,
    help:
      variant === 0
        ? 'Each row shares out its scores, which are below. Choose a row to follow its token.'
        : 'Rows ask by X·W_Q, columns are found by X·W_K. Choose a row to follow its token.',
    ...weightsIn(values, 3),
    ...pairsOf(tokens),
    say: (row, column) =>
      `“${tokens[row]}” attends to “${tokens[column]}”, score ${decimal(scores[row][column], 2)}`,
    cursor: {
      picked: { row: askedIn(result), column: largest(values[askedIn(result)]) },
      chooseHint: 'Enter follows the token of the row.',
      choose: (row, column) => ({ picked: `${row}.${column}` }),
    },
  });
}

/** @param {Result} result @param {number} variant */
function scoresMap({ arrays }, variant) {
  const tokens = /** @type {string[]} */ (arrays.token.data);
  const values = arrays.scores.data[variant].map(numbersIn);
  const most = Math.max(1e-9, ...arrays.scores.data.flat(2).map(Math.abs));
  return mapPicture({
    id: `scores-${IDS[variant]}`,
    title:
      variant === 0 ? 'Its scores are their own mirror image' : 'These scores have a direction',
    summary: `The scores of every pair of tokens with ${NAMES[variant]}, before the softmax.`,
    help:
      variant === 0
        ? 'Before the softmax, which makes each row sum to 1. The score of a pair is the same both ways.'
        : 'Before the softmax. What one token finds in another, the other need not find in it.',
    values,
    ...pairsOf(tokens),
    range: [-most, most],
    colours: diverging,
    quantity: 'score',
    format: (value) => decimal(value, 3),
    text: (row, column) => decimal(values[row][column], 2),
  });
}

/** @param {Result} result */
function rolesMap(result) {
  const { arrays } = result;
  const at = askedIn(result);
  const roles = [
    { name: 'shared', values: numbersIn(arrays.shared.data[at]) },
    { name: 'query', values: numbersIn(arrays.queries.data[at]) },
    { name: 'key', values: numbersIn(arrays.keys.data[at]) },
    { name: 'value', values: numbersIn(arrays.values.data[at]) },
  ];
  const width = Math.max(...roles.map(({ values }) => values.length));
  const values = roles.map((role) =>
    Array.from({ length: width }, (_, column) => role.values[column] ?? NaN),
  );
  const most = Math.max(1e-9, ...values.flat().filter(Number.isFinite).map(Math.abs));
  return mapPicture({
    id: 'roles',
    title: `What “${arrays.token.data[at]}” asks, offers and hands over`,
    summary: `The projections of “${arrays.token.data[at]}”: one for all roles, and one for each.`,
    help: 'One vector in three roles, or three vectors. Choose a row of a map above for another token.',
    values,
    rows: roles.map(({ name }) => name),
    titles: { rows: '', columns: 'dimension' },
    range: [-most, most],
    colours: diverging,
    quantity: 'projection',
    format: (value) => decimal(value, 3),
    text: (row, column) =>
      Number.isNaN(values[row][column]) ? '' : decimal(values[row][column], 2),
    cell: 34,
  });
}

/** @param {Arrays} arrays */
function lossChart(arrays) {
  const steps = numbersIn(arrays.step.data);
  const least = arrays.least_loss.data;
  return curvesPicture({
    id: 'loss',
    title: 'A task that a shared projection cannot learn',
    summary: 'The loss of the task by step, with a shared and with separate projections.',
    help: 'Each of six tokens has to find the next one in a circle. Dotted: the least that any shared projection can reach.',
    x: steps,
    across: { title: 'training step' },
    up: { title: 'loss (bits)' },
    quantity: 'loss in bits',
    unit: 'step',
    curves: (size) => [
      { name: 'bound', values: steps.map(() => least), colour: size.palette.muted, dash: 'dot' },
      plainCurve('shared', arrays.loss.data[0], size),
      strongCurve('separate', arrays.loss.data[1], size),
    ],
  });
}

/** @param {Arrays} arrays @param {number} variant */
function taskMap({ task_weights: weights, step }, variant) {
  return mapPicture({
    id: `task-${IDS[variant]}`,
    title: `After ${step.data.length} steps: ${variant === 0 ? 'shared' : 'separate'}`,
    summary: `The weights of the task after training with ${NAMES[variant]}.`,
    help:
      variant === 0
        ? 'No better is possible: each token finds itself, and both neighbours alike.'
        : 'Each token finds the next one; the last finds the first.',
    ...weightsIn(weights.data[variant].map(numbersIn), 3),
    titles: { rows: 'token', columns: 'finds' },
    cell: 30,
  });
}

/** @param {Result} result @returns {Table[]} the numbers of the example, which can be typed over */
function tables({ arrays, values }) {
  const tokens = /** @type {string[]} */ (arrays.token.data);
  /** @param {string} name @param {string} title @param {string} note @param {string[]} rows @param {string} letter @param {boolean} [isGiven] */
  const table = (name, title, note, rows, letter, isGiven = true) => ({
    name,
    step: isGiven ? 'Given' : 'What comes back',
    title,
    note,
    rows,
    columns: numbered(arrays[name].data[0], letter),
    values: rowsOf(arrays, name),
    isGiven,
    isEdited: Boolean(values[name]),
  });
  const dims = numbered(arrays.inputs.data[0], 'x');
  return [
    table('inputs', 'X, the tokens', 'a vector for each', tokens, 'x'),
    table('shared_weights', 'W', 'for all roles', dims, 'w'),
    table('query_weights', 'W_Q', 'what is asked', dims, 'q'),
    table('key_weights', 'W_K', 'what is offered', dims, 'k'),
    table('value_weights', 'W_V', 'what is handed over', dims, 'v'),
    table('shared_context', 'Context, shared', 'weights · X·W', tokens, 'w', false),
    table('context', 'Context, separate', 'weights · X·W_V', tokens, 'v', false),
  ];
}
