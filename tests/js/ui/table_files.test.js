/** The numbers of a drawing as a table, and as JSON. */

import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';
import '../browser.js';
import { csvOf, numbersOf } from '../../../static/js/ui/exports.js';
import { sampleTrace } from '../sample.js';

const GRID = {
  rows: 2,
  columns: 3,
  rowTitle: 'query',
  columnTitle: 'key',
  rowLabels: ['a', 'b'],
  columnLabels: ['x', 'y', 'z'],
  quantity: 'weight',
  value: (row, column) => (column > row + 1 ? NaN : (row + 1) / 2 ** column),
};
const lines = (grid) =>
  csvOf(grid)
    .split('\r\n')
    .map((line) => line.split(','));

test('a table has a line for each row, with its name and values', () => {
  deepEqual(lines(GRID), [
    ['query \\ key', 'x', 'y', 'z'],
    ['a', '1', '0.5', ''],
    ['b', '2', '1', '0.5'],
    [''],
  ]);
  equal(lines({ ...GRID, columnTitle: '' })[0][0], 'query');
});

test('what is known of a row as a whole is at its end, empty where it is not', () => {
  const ofRows = [{ label: 'entropy', value: (row) => (row === 0 ? 0.25 : NaN) }];
  const [header, a, b] = lines({ ...GRID, ofRows });
  deepEqual([header.at(-1), a.at(-1), b.at(-1)], ['entropy', '0.25', '']);
  deepEqual([header.length, a.length, b.length], [5, 5, 5]);
});

test('the weights of chosen cells follow in rows of their own', () => {
  const ofRows = [{ label: 'entropy', value: () => 3 }];
  const chosenWeight = (row, column) => (row === column ? 0.75 : undefined);
  const table = lines({ ...GRID, ofRows, chosenWeight });
  equal(table.length, 6);
  deepEqual(table[1], ['a', '1', '0.5', '', '3']);
  deepEqual(table[3].slice(1), ['0.75', '', '']);
  deepEqual(table[4].slice(1), ['', '0.75', '']);
  equal(table[3][0].startsWith('a') && table[3][0] !== 'a', true);
});

test('as JSON a value that is missing is null, and nothing is there that the drawing has not', () => {
  const trace = { ...sampleTrace(), asked: { model: 'tiny', text: 'it' } };
  const grid = { ...GRID, request: {} };
  const plain = numbersOf(trace, grid, []);
  deepEqual(plain.values, [
    [1, 0.5, null],
    [2, 1, 0.5],
  ]);
  deepEqual(
    [plain.axes, plain.rows, plain.columns],
    [
      ['query', 'key'],
      ['a', 'b'],
      ['x', 'y', 'z'],
    ],
  );
  equal('of_rows' in plain || 'weights_where_chosen' in plain, false);
  const full = numbersOf(
    trace,
    {
      ...grid,
      ofRows: [{ label: 'entropy', value: (row) => (row === 0 ? 0.25 : NaN) }],
      chosenWeight: (row, column) => (row === column ? 0.75 : undefined),
    },
    [],
  );
  deepEqual(full.of_rows, { entropy: [0.25, null] });
  deepEqual(full.weights_where_chosen, [
    [0.75, null, null],
    [null, 0.75, null],
  ]);
});
