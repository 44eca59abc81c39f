/** The grid of a drawing: its words, its cells, and the marks of the sentence. */

import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';
import { boxOf, cellAt, openingBox } from '../../../static/js/plot/renderer.js';
import { transposedGrid, findHighlight } from '../../../static/js/plot/grid.js';
import { walk } from '../../../static/js/ui/plot.js';
import { chart } from '../../../static/js/plot/chart.js';
import { cell } from '../../../static/js/plot/marks/mark.js';
import { band } from '../../../static/js/plot/scales.js';
import { PALETTE, FRAME, pairTrace } from '../sample.js';
import { attention } from '../../../static/js/views/attention/attention.js';

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

/** A row of two numbers, and no number in between. */
function drawn(channels, y = band(['a'], { title: 'row' })) {
  const mark = cell(
    { rows: 1, columns: 3, data: Float64Array.of(0.99999, NaN, -2) },
    { ramp: { title: 'share', domain: [-2, 2] }, ...channels },
  );
  const spec = { x: band(['x', 'y', 'z'], { title: 'column' }), y, marks: [mark] };
  return chart({ ...spec, table: { quantity: 'share' } }, { width: 600, palette: PALETTE });
}

test('numbers without a format are decimals, in the tip as in the table', () => {
  const { grid } = drawn({});
  deepEqual(grid.tip(0, 0), ['row a, column x', '1.000']);
  equal(grid.format(grid.value(0, 2)), '−2.000');
  equal(grid.describe(0, 1), 'row a, column y: nothing');
});

test('a format may depend on the datum', () => {
  const { grid } = drawn({ format: (value, { column }) => `${value} at ${column}` });
  equal(grid.tip(0, 2)[1], '-2 at 2');
});

test('a band without words takes no room beside the plot', () => {
  equal(drawn({}, band([''])).layout.margin.l, 8);
});

const tintOf = (index) => Float64Array.of(index);
const LINKED = {
  sides: { rows: 'target', columns: 'source' },
  ofRow: (row) => ({ tint: tintOf(row), readout: `row ${row}` }),
  ofColumn: (column) => ({ tint: tintOf(column), readout: `column ${column}` }),
  // A cell without a pair names no tokens.
  tokens: (row, column) => (row === column ? { query: row, key: column } : {}),
  ceiling: 0.5,
  isSigned: true,
};
const pointed = (grid, side, index) => findHighlight(grid, { side, index });

test('a token of the rows shows its row, one of the columns its column', () => {
  deepEqual(pointed(LINKED, 'target', 2), {
    marks: { target: { query: 2 } },
    tints: { source: tintOf(2) },
    readout: 'row 2',
    ceiling: 0.5,
    isSigned: true,
  });
  const column = pointed(LINKED, 'source', 3);
  deepEqual([column.marks, column.tints], [{ source: { key: 3 } }, { target: tintOf(3) }]);
  equal(column.readout, 'column 3');
});

test('a token that is a piece of a row or column is marked with the other pieces', () => {
  const grid = {
    ...LINKED,
    rowOf: (index) => Math.floor(index / 2),
    columnOf: (index) => Math.floor(index / 2),
    tokens: (row, column) => ({ query: [2 * row, 2 * row + 1], key: [2 * column, 2 * column + 1] }),
  };
  deepEqual(pointed(grid, 'target', 3).marks, { target: { query: [2, 3] } });
  equal(pointed(grid, 'target', 3).readout, 'row 1');
  deepEqual(pointed(grid, 'source', 4).marks, { source: { key: [4, 5] } });
  equal(pointed(grid, 'source', 4).readout, 'column 2');
});

test('a token without a row or a column leaves the sentence at rest', () => {
  const rest = { tint: tintOf(9), readout: 'at rest' };
  const grid = { ...LINKED, rest, rowOf: () => -1, columnOf: () => -1 };
  for (const side of ['target', 'source']) {
    const shown = pointed(grid, side, 0);
    deepEqual([shown.marks, shown.tints, shown.readout], [{}, { source: tintOf(9) }, 'at rest']);
  }
  equal(pointed({ ...LINKED, rest, ofColumn: undefined }, 'source', 1).readout, 'at rest');
  equal(findHighlight(null, { side: 'source', index: 1 }).readout, '');
});

test('a token that the drawing tells by itself needs no row', () => {
  const grid = {
    ...LINKED,
    ofToken: (index) => ({ tint: tintOf(index), readout: `token ${index}` }),
  };
  const shown = pointed(grid, 'target', 4);
  deepEqual([shown.marks, shown.readout], [{ target: { query: 4 } }, 'token 4']);
});

const gridOf = (trace, state) => attention.figure(trace, { ...FRAME, ...state }).grid;

test('at rest the sentence is tinted by the chosen token’s row', () => {
  const cross = findHighlight(gridOf(pairTrace(), { query: 1 }), null);
  deepEqual(cross.marks, {});
  equal(cross.tints.source.length, 5);
  equal(cross.tints.target, undefined);
  const own = findHighlight(gridOf(pairTrace(), { where: 'decoder', query: 1 }), null);
  deepEqual([own.tints.target.length, own.tints.source], [3, undefined]);
});

test('a cell marks its query in one sentence and its key in the other', () => {
  const grid = gridOf(pairTrace());
  const shown = findHighlight(grid, { cell: { row: 1, column: 4 }, grid });
  deepEqual(shown.marks, { target: { query: 2 }, source: { key: 4 } }, 'the token written from it');
  equal(shown.readout, grid.describe(1, 4));
  deepEqual([...shown.tints.source], [...grid.ofRow(1).tint]);
});
