/** Layer norm, batch norm and RMS norm of one batch of numbers. */

import { numbersIn } from '../../rules/experiment.js';
import { decimal } from '../../words/numbers.js';
import { mapChart } from '../../plot/map.js';
import { diverging } from '../../plot/colour.js';

/**
 * @import { Arrays, ExperimentView, Picture, Result, Table } from '../../rules/experiment.js'
 * @import { Size } from '../../plot/map.js'
 */

/** @type {ExperimentView} */
export const experiment = {
  id: 'norms',
  main: ['epsilon'],
  hidden: ['inputs', 'seed'],
  finding,
  pictures,
  tables,
};

/** Row of each norm in the result, and its name in the words of the page. */
const NORMS = [
  { id: 'layer', title: 'Layer norm', help: 'Along each row: mean 0, deviation 1.' },
  { id: 'batch', title: 'Batch norm', help: 'Down each column: mean 0, deviation 1.' },
  { id: 'rms', title: 'RMS norm', help: 'Each row divided by its root mean square.' },
];

/** @param {Result} result */
function finding({ arrays }) {
  const [mean, deviation] = [arrays.token_mean.data[0], arrays.token_deviation.data[0]];
  return (
    `The first token has mean ${decimal(mean, 2)} and deviation ${decimal(deviation, 2)}: the layer norm makes its first number ` +
    `${decimal(arrays.normalised.data[0][0][0], 2)}, the batch norm, from all tokens, ${decimal(arrays.normalised.data[1][0][0], 2)}. ` +
    'Of the layer norm no other token has a part.'
  );
}

/** @param {Result} result @returns {Picture[]} */
function pictures({ arrays }) {
  return NORMS.map(({ id, title, help }, at) => ({
    id,
    draw: (size) => normMap(arrays, at, { title, help }, size),
  }));
}

/** @param {Arrays} arrays @param {number} at @param {{title: string, help: string}} words @param {Size} size */
function normMap(arrays, at, { title, help }, size) {
  const values = arrays.normalised.data[at].map(numbersIn);
  const most = Math.max(1e-9, ...values.flat().map(Math.abs));
  return {
    title,
    help,
    summary: `The numbers of the batch after ${title.toLowerCase()}.`,
    ...mapChart(
      {
        values,
        rows: tokensOf(values),
        columns: values[0].map((/** @type {number} */ _, /** @type {number} */ column) =>
          String(column + 1),
        ),
        titles: { rows: 'token', columns: 'feature' },
        scale: { bottom: -most, top: most, colours: diverging(size.palette.theme) },
        quantity: 'normalised number',
        format: (value) => decimal(value, 3),
        text: (row, column) => decimal(values[row][column], 2),
        cell: 34,
      },
      size,
    ),
  };
}

/** @param {number[][]} rows */
function tokensOf(rows) {
  return rows.map((_, at) => String(at + 1));
}

/** @param {Result} result @returns {Table[]} */
function tables({ arrays, values }) {
  const rows = arrays.inputs.data.map(numbersIn);
  const columns = rows[0].map((/** @type {number} */ _, /** @type {number} */ at) => `x${at + 1}`);
  /** @type {{rows: string[], columns: string[], isOverride: boolean}} */
  const shape = { rows: tokensOf(rows), columns, isOverride: false };
  const tokenWise = [arrays.token_mean, arrays.token_deviation].map(({ data }) => numbersIn(data));
  const featureWise = [arrays.feature_mean, arrays.feature_deviation].map(({ data }) =>
    numbersIn(data),
  );
  return [
    {
      name: 'inputs',
      step: 'Given',
      title: 'A batch',
      note: 'a row for each token',
      values: rows,
      isGiven: true,
      isEdited: Boolean(values.inputs),
      ...shape,
    },
    {
      name: 'token',
      step: 'Measured',
      title: 'Of each row',
      note: 'for the layer norm',
      ...shape,
      columns: ['mean', 'deviation'],
      values: rows.map((/** @type {number[]} */ _, /** @type {number} */ at) =>
        tokenWise.map((of) => of[at]),
      ),
      isGiven: false,
      isEdited: false,
    },
    {
      name: 'feature',
      step: 'Measured',
      title: 'Of each column',
      note: 'for the batch norm',
      ...shape,
      rows: ['mean', 'deviation'],
      values: featureWise,
      isGiven: false,
      isEdited: false,
    },
  ];
}
