/** The marks of the sentence at rest, for a cell, and for a token that is pointed at. */

import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';
import { findHighlight } from '../../../static/js/plot/grid.js';
import { attention } from '../../../static/js/views/attention/attention.js';
import { FRAME, pairTrace } from '../sample.js';

const tintOf = (index) => Float64Array.of(index);
const GRID = {
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
  deepEqual(pointed(GRID, 'target', 2), {
    marks: { target: { query: 2 } },
    tints: { source: tintOf(2) },
    readout: 'row 2',
    ceiling: 0.5,
    isSigned: true,
  });
  const column = pointed(GRID, 'source', 3);
  deepEqual([column.marks, column.tints], [{ source: { key: 3 } }, { target: tintOf(3) }]);
  equal(column.readout, 'column 3');
});

test('a token that is a piece of a row or column is marked with the other pieces', () => {
  const grid = {
    ...GRID,
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
  const grid = { ...GRID, rest, rowOf: () => -1, columnOf: () => -1 };
  for (const side of ['target', 'source']) {
    const shown = pointed(grid, side, 0);
    deepEqual([shown.marks, shown.tints, shown.readout], [{}, { source: tintOf(9) }, 'at rest']);
  }
  equal(pointed({ ...GRID, rest, ofColumn: undefined }, 'source', 1).readout, 'at rest');
  equal(findHighlight(null, { side: 'source', index: 1 }).readout, '');
});

test('a token that the drawing tells by itself needs no row', () => {
  const grid = {
    ...GRID,
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
