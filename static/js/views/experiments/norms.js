/** Layer norm, batch norm and RMS norm of one batch of numbers. */

import { numbersIn } from '../../rules/experiment.js';
import { decimal } from '../../words/numbers.js';
import { mapPicture, numbered } from '../../plot/map.js';
import { diverging } from '../../plot/colour.js';

/** @import { Picture, Table } from '../../rules/experiment.js' */

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
  return NORMS.map(({ id, title, help }, at) => {
    const values = arrays.normalised.data[at].map(numbersIn);
    const most = Math.max(1e-9, ...values.flat().map(Math.abs));
    return mapPicture({
      id,
      title,
      help,
      summary: `The numbers of the batch after ${title.toLowerCase()}.`,
      values,
      titles: { rows: 'token', columns: 'feature' },
      range: [-most, most],
      colours: diverging,
      quantity: 'normalised number',
      format: (value) => decimal(value, 3),
      text: (row, column) => decimal(values[row][column], 2),
      cell: 34,
    });
  });
}

/** @param {Result} result @returns {Table[]} */
function tables({ arrays, values }) {
  const rows = arrays.inputs.data.map(numbersIn);
  const shape = { rows: numbered(rows), columns: numbered(rows[0], 'x') };
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
    },
    {
      name: 'feature',
      step: 'Measured',
      title: 'Of each column',
      note: 'for the batch norm',
      ...shape,
      rows: ['mean', 'deviation'],
      values: featureWise,
    },
  ];
}
