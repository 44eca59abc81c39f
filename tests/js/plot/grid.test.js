import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';
import { boxOf, cellAt, openingBox } from '../../../static/js/plot/renderer.js';
import { transposedGrid } from '../../../static/js/plot/grid.js';
import { walk } from '../../../static/js/ui/plot.js';

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
  deepEqual(
    [grid.rows, grid.columns, grid.rowTitle, grid.columnLabels],
    [3, 2, 'token', ['0', '1']],
  );
  for (const name of ['value', 'describe', 'tip', 'tokens', 'choose', 'chosenWeight'])
    deepEqual(grid[name](2, 1), GRID[name](1, 2), name);
  deepEqual(grid.chosen, { row: 2, column: undefined });
  deepEqual(grid.start, { row: 2, column: 0 });
});

const LARGE = { rows: 20, columns: 30 };
const from = (row, column) => ({ row, column });

test('arrow keys move one cell and stop at the edge', () => {
  deepEqual(walk(from(3, 3), 'ArrowUp', LARGE), from(2, 3));
  deepEqual(walk(from(3, 3), 'ArrowRight', LARGE), from(3, 4));
  deepEqual(walk(from(0, 0), 'ArrowLeft', LARGE), from(0, 0));
  deepEqual(walk(from(19, 29), 'ArrowDown', LARGE), from(19, 29));
});

test('a point finds its cell, zoomed in or not, and none outside', () => {
  const whole = { columns: [0, 30], rows: [0, 20] };
  deepEqual(cellAt(0, 0, { window: whole }, LARGE), from(0, 0));
  deepEqual(cellAt(0.999, 0.999, { window: whole }, LARGE), from(19, 29));
  deepEqual(cellAt(0.5, 0.25, { window: { columns: [10, 20], rows: [4, 8] } }, LARGE), from(5, 15));
  equal(cellAt(-0.01, 0.5, { window: whole }, LARGE), null);
  equal(cellAt(0.5, 1.2, { window: whole }, LARGE), null);
});

test('a cell has its pixels, a bar the whole width, and what is out of sight none', () => {
  const area = {
    ...{ left: 10, top: 20, width: 300, height: 100 },
    window: { columns: [0, 30], rows: [0, 20] },
    axes: { x: [-0.5, 29.5], y: [-0.5, 19.5] },
  };
  deepEqual(boxOf(2, 3, area, LARGE), { left: 40, width: 10, top: 30, height: 5 });
  deepEqual(boxOf(undefined, 3, area, LARGE), { left: 40, width: 10, top: 20, height: 100 });
  equal(boxOf(2, 40, area, LARGE), null);
  const bars = { rows: 20, columns: 1 };
  deepEqual(boxOf(2, 0, area, bars), { left: 10, width: 300, top: 30, height: 5 });
  const geometry = {
    at: (x, y) => ({ row: y, column: x }),
    box: () => ({ x0: -0.5, x1: 4.5, y0: 4.5, y1: 9.5 }),
  };
  deepEqual(cellAt(0.5, 0.25, area, { geometry }), { row: 4.5, column: 14.5 });
  deepEqual(boxOf(0, 0, area, { geometry }), { left: 10, width: 50, top: 45, height: 25 });
});

test('a map of small cells opens around the greatest number of its row, others whole', () => {
  const size = { width: 400, height: 400 };
  const grid = {
    rows: 190,
    columns: 190,
    value: (row, column) => (row === 150 && column === 120 ? 1 : 0),
    query: 150,
    thinned: {},
  };
  deepEqual(openingBox(grid, size), { x0: 70, x1: 170, y0: 90, y1: 190 });
  deepEqual(openingBox(grid, { width: 760, height: 760 }), null);
  deepEqual(openingBox({ ...grid, thinned: undefined }, size), null);
  deepEqual(openingBox({ ...grid, isReadFromStart: true }, size), {
    x0: 0,
    x1: 100,
    y0: 90,
    y1: 190,
  });
});
