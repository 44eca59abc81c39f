/** Attention by hand: every given number can be changed, every other is computed from it. */

import { numbersIn } from '../../rules/experiment.js';
import { enumerated } from '../../words/lists.js';
import { decimal, share } from '../../words/numbers.js';
import { mapChart, mapPicture, numbered, weightsIn } from '../../plot/map.js';
import { sequential } from '../../plot/colour.js';

/**
 * @import { Picture, Table } from '../../rules/experiment.js'
 * @import { Size } from '../../plot/map.js'
 */

const GIVEN = [
  'tokens',
  'inputs',
  'query_weights',
  'key_weights',
  'value_weights',
  'queries',
  'keys',
  'values',
  'scores',
  'weights',
  'context',
  'output_weights',
];

/** Tables that are computed again, although they were typed over, if one before them changes. */
const FOLLOWING = {
  inputs: ['queries', 'keys', 'values', 'scores', 'weights', 'context'],
  query_weights: ['queries', 'scores', 'weights', 'context'],
  key_weights: ['keys', 'scores', 'weights', 'context'],
  value_weights: ['values', 'context'],
  queries: ['scores', 'weights', 'context'],
  keys: ['scores', 'weights', 'context'],
  values: ['context'],
  scores: ['weights', 'context'],
  weights: ['context'],
};

/** @type {ExperimentView} */
export const experiment = {
  id: 'by_hand',
  main: ['example', 'is_scaled', 'is_causal', 'n_heads', 'head'],
  hidden: [...GIVEN, 'seed'],
  pickable: ({ weights }) => weights.shape,
  following: FOLLOWING,
  titles: {
    example: {
      life: 'Life is short, eat dessert first',
      fox: 'the quick brown fox: no matrices',
      fox_projected: 'the quick brown fox: drawn matrices',
      fox_linear: 'the quick brown fox: linear layers',
      animal: 'it: the animal or the street?',
      animal_embedded: 'it: from embeddings',
      divided: 'Scores divided by 25',
      cat: 'The cat chased the mouse',
    },
  },
  finding,
  pictures,
  tables,
};

/** The step of the computation that a table belongs to; the others are the result. @type {Record<string, number>} */
const STEP = {
  inputs: 0,
  query_weights: 0,
  key_weights: 0,
  value_weights: 0,
  queries: 1,
  keys: 1,
  values: 1,
  joined: 3,
  output_weights: 3,
  output: 3,
};

/** @param {Arrays} arrays @param {string} name @returns {number[][]} */
function rowsOf(arrays, name) {
  return arrays[name].data.map(numbersIn);
}

/** Return the chosen cell, or the largest weight of the last query. @param {Result} result */
function pickedIn({ arrays, picked }) {
  const weights = rowsOf(arrays, 'weights');
  const row = Math.min(picked?.row ?? weights.length - 1, weights.length - 1);
  const largest = weights[row].indexOf(Math.max(...weights[row].filter(Number.isFinite)));
  const column = picked && picked.column < weights[row].length ? picked.column : largest;
  return { row, column };
}

/** @param {Result} result */
function finding(result) {
  const { arrays, values } = result;
  const { row, column } = pickedIn(result);
  const [query, key] = [arrays.query.data[row], arrays.key.data[column]];
  const [q, k] = [partOf(result, 'queries')[row], partOf(result, 'keys')[column]];
  const score = rowsOf(arrays, 'scores')[row];
  const weight = rowsOf(arrays, 'weights')[row][column];
  if (!Number.isFinite(score[column]))
    return `The mask hides “${key}” from “${query}”, so its weight is 0.`;
  if (values.weights)
    return `“${query}” and “${key}”: the weight is ${number(weight)}, as you typed it; the weights of “${query}” sum to ${number(sum(rowsOf(arrays, 'weights')[row]))}.`;
  const product = rowsOf(arrays, 'products')[row][column];
  const terms = q.map((value, at) => `${factor(value)}·${factor(k[at])}`).join(' + ');
  const divisor = arrays.divisor.data;
  const divided = divisor === 1 ? '' : ` Divided by √${k.length}: ${number(score[column])}.`;
  const arithmetic = values.scores
    ? `the score is ${number(score[column])}, as you typed it.`
    : `${terms} = ${number(product)}.${divided}`;
  const total = sum(score.filter(Number.isFinite).map(Math.exp));
  return (
    `“${query}” and “${key}”: ${arithmetic} ` +
    `Softmax: e^{${number(score[column])}} / ${number(total)} = ${share(weight)}.${faults(arrays)}`
  );
}

/** Return the rows of the columns that the shown head takes. @param {Result} result @param {string} name */
function partOf({ arrays, values }, name) {
  const rows = rowsOf(arrays, name);
  const width = rows[0].length / (values.n_heads ?? 1);
  const from = (values.head ?? 0) * width;
  return rows.map((row) => row.slice(from, from + width));
}

/** Say which weights a text prints that its scores do not give. @param {Arrays} arrays */
function faults(arrays) {
  if (!arrays.printed_weights) return '';
  const keys = /** @type {string[]} */ (arrays.key.data);
  const computed = rowsOf(arrays, 'weights');
  const wrong = rowsOf(arrays, 'printed_weights').flatMap((row, at) =>
    row.flatMap((printed, key) => {
      const digits = (String(printed).split('.')[1] ?? '').length;
      const isWrong = Math.abs(printed - computed[at][key]) >= 0.5 * 10 ** -digits;
      return isWrong ? [`${printed} for “${keys[key]}” is ${share(computed[at][key])}`] : [];
    }),
  );
  return wrong.length === 0 ? '' : ` Wrong in the printed text: ${enumerated(wrong)}.`;
}

/** @param {number[]} list */
function sum(list) {
  return list.reduce((total, value) => total + value, 0);
}

/** @param {number} value @returns {string} negative ones in brackets */
function factor(value) {
  return value < 0 ? `(${number(value)})` : number(value);
}

/** @param {number} value */
function number(value) {
  return Number.isFinite(value) ? decimal(value, 3) : '−∞';
}

/** @param {Result} result @returns {Picture[]} */
function pictures(result) {
  const heads = result.arrays.head_weights?.data ?? [];
  return [
    { id: 'weights', isWide: true, draw: (size) => weightsMap(result, size) },
    ...heads.flatMap((/** @type {number[][]} */ weights, /** @type {number} */ head) =>
      head === result.values.head || heads.length === 1
        ? []
        : [headMap(result.arrays, weights, head)],
    ),
  ];
}

/** @param {Arrays} arrays @param {number[][]} weights @param {number} head */
function headMap({ key, query }, weights, head) {
  return mapPicture({
    id: `head-${head}`,
    title: `Head ${head}`,
    summary: `The attention weights of head ${head}.`,
    help: 'From its own columns of queries and keys.',
    ...weightsIn(weights.map(numbersIn), 4),
    rows: query.data,
    columns: key.data,
    titles: { rows: 'query', columns: 'key' },
    cell: 30,
  });
}

/** @param {Result} result @param {Size} size */
function weightsMap(result, size) {
  const { arrays } = result;
  const values = rowsOf(arrays, 'weights');
  const printed = arrays.printed_weights ? rowsOf(arrays, 'printed_weights') : null;
  const { row, column } = pickedIn(result);
  const keys = /** @type {string[]} */ (arrays.key.data);
  const queries = /** @type {string[]} */ (arrays.query.data);
  const least = Math.min(size.width, 90 + keys.length * 96);
  const drawn = mapChart(
    {
      values: values.map((line) => line.map((value) => (Number.isFinite(value) ? value : 0))),
      rows: queries,
      columns: keys,
      titles: { rows: 'query', columns: 'key' },
      scale: { bottom: 0, top: 1, colours: sequential(size.palette.theme) },
      quantity: 'attention weight',
      format: (value) => share(value, 4),
      text: (at, key) => share(values[at][key], 2),
      say: (at, key) =>
        `“${queries[at]}” attends to “${keys[key]}”${Number.isFinite(printed?.[at][key]) ? `, printed as ${printed?.[at][key]}` : ''}`,
      cell: 42,
      cursor: {
        picked: { row, column },
        chooseHint: 'Enter shows the cell’s arithmetic.',
        choose: (at, key) => ({ picked: `${at}.${key}` }),
      },
    },
    { ...size, width: least },
  );
  return {
    title: arrays.head_weights ? `The weights of head ${result.values.head ?? 0}` : 'The weights',
    summary: 'The attention weights of every query over the keys.',
    help: printed
      ? 'The softmax of each row of scores. The text of this example prints other weights: both stand in the table of weights above.'
      : 'The softmax of each row of scores. Choose a cell to follow its arithmetic above.',
    ...drawn,
  };
}

/**
 * Return what makes the tables of a result; of an array that it lacks there is none.
 * @param {Result} result
 */
function tableMakers({ arrays, values }) {
  /** @param {string} name @param {string} letter */
  const labelled = (name, letter) => numbered(arrays[name].data[0], letter);
  const has = (/** @type {string} */ name) => name in arrays;
  const steps = ['Given', has('inputs') ? 'Projected' : 'Given', 'Attended', 'Joined'];
  /**
   * @param {string} name
   * @param {string} title
   * @param {string} note
   * @param {string[]} rows
   * @param {string[]} columns
   * @param {Partial<Table>} [more]
   * @returns {Table[]}
   */
  const table = (name, title, note, rows, columns, more = {}) =>
    has(name)
      ? [
          {
            name,
            step: steps[STEP[name] ?? 2],
            title,
            note,
            rows,
            columns,
            values: rowsOf(arrays, name),
            isEdited: Boolean(values[name]),
            ...withOther(`printed_${name}`, 'printed'),
            ...withOther(`formula_${name}`, 'the formula gives'),
            ...more,
          },
        ]
      : [];
  /** @param {string} name @param {string} words */
  const withOther = (name, words) =>
    has(name) ? { other: { words, values: rowsOf(arrays, name) } } : {};
  /** @param {string} name @param {string} title @param {string[]} rows @param {string} matrix @param {string} symbol */
  const vectors = (name, title, rows, matrix, symbol) => {
    const isOverride = has('inputs') && has(matrix);
    const note = isOverride ? `X · ${symbol}` : 'as given';
    return table(name, title, note, rows, labelled(name, title[0].toLowerCase()), {
      isGiven: true,
      isOverride,
    });
  };
  return { labelled, has, table, vectors };
}

/**
 * Return every table of numbers, in the order of the computation.
 * @param {Result} result
 * @returns {Table[]}
 */
function tables(result) {
  const { arrays } = result;
  const { labelled, has, table, vectors } = tableMakers(result);
  const keys = /** @type {string[]} */ (arrays.key.data);
  const queries = /** @type {string[]} */ (arrays.query.data);
  const given = { isGiven: true };
  const override = { isGiven: true, isOverride: true };
  const dims = has('inputs') ? labelled('inputs', 'x') : [];
  /** @param {string} name @param {string} title @param {string} note @param {string} letter */
  const weights = (name, title, note, letter) =>
    table(name, title, note, dims, has(name) ? labelled(name, letter) : [], given);
  return [
    ...table('inputs', 'X, the inputs', 'a vector for each token', keys, dims, given),
    ...weights('query_weights', 'W_Q', 'makes queries', 'q'),
    ...weights('key_weights', 'W_K', 'makes keys', 'k'),
    ...weights('value_weights', 'W_V', 'makes values', 'v'),
    ...vectors('queries', 'Q, the queries', queries, 'query_weights', 'W_Q'),
    ...vectors('keys', 'K, the keys', keys, 'key_weights', 'W_K'),
    ...vectors('values', 'V, the values', keys, 'value_weights', 'W_V'),
    ...table(
      'scores',
      'Scores',
      arrays.divisor.data === 1 ? 'Q · Kᵀ' : `Q · Kᵀ / ${decimal(arrays.divisor.data, 3)}`,
      queries,
      keys,
      override,
    ),
    ...table('weights', 'Weights', 'softmax of each row', queries, keys, override),
    ...table(
      'context',
      'Context',
      'weights · V: the result',
      queries,
      labelled('context', 'v'),
      override,
    ),
    ...table(
      'joined',
      'Contexts of all heads',
      'side by side',
      queries,
      has('joined') ? labelled('joined', 'v') : [],
    ),
    ...table(
      'output_weights',
      'W_O',
      'mixes what the heads found',
      has('joined') ? labelled('joined', 'v') : [],
      has('joined') ? labelled('output_weights', 'o') : [],
      given,
    ),
    ...table(
      'output',
      'Output',
      'joined · W_O',
      queries,
      has('output') ? labelled('output', 'o') : [],
    ),
  ];
}
