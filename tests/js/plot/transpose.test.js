import assert from 'node:assert/strict';
import { test } from 'node:test';
import { transposedGrid } from '../../../static/js/plot/transpose.js';

const GRID = {
  rows: 2,
  columns: 3,
  rowTitle: 'expert',
  columnTitle: 'token',
  rowLabels: ['0', '1'],
  columnLabels: ['a', 'b', 'c'],
  quantity: 'x',
  value: (row, column) => 10 * row + column,
  describe: (row, column) => `${row} ${column}`,
  tip: (row, column) => [`${row}`, `${column}`],
  tokens: (_, column) => ({ query: column }),
  choose: (_, column) => ({ query: column }),
  chosenWeight: (row) => (row === 1 ? 0.5 : undefined),
  chosen: { column: 2 },
  start: { row: 0, column: 2 },
};

test('a transposedGrid grid says of every cell what it said before', () => {
  const grid = transposedGrid(GRID);
  assert.deepEqual(
    [grid.rows, grid.columns, grid.rowTitle, grid.columnLabels],
    [3, 2, 'token', ['0', '1']],
  );
  for (const name of ['value', 'describe', 'tip', 'tokens', 'choose', 'chosenWeight'])
    assert.deepEqual(grid[name](2, 1), GRID[name](1, 2), name);
  assert.deepEqual(grid.chosen, { row: 2, column: undefined });
  assert.deepEqual(grid.start, { row: 2, column: 0 });
});

test('transposedGrid twice it is as it was, and what it lacks it goes on lacking', () => {
  const { choose, chosenWeight, ...plain } = GRID;
  const grid = transposedGrid(plain);
  assert.equal(grid.choose, undefined);
  assert.equal(grid.chosenWeight, undefined);
  assert.equal(transposedGrid(transposedGrid(GRID)).value(1, 2), 12);
});
