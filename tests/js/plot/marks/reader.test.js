import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';
import { chart } from '../../../../static/js/plot/chart.js';
import { reader } from '../../../../static/js/plot/marks/mark.js';
import { pixels } from '../../../../static/js/plot/scales.js';
import { PALETTE } from '../../sample.js';

/** A large box for the last of two columns, with a small one in it for the first. */
const box = ({ row, column }) => {
  const half = column === 0 ? 0.1 : 0.4;
  return { x0: row + 0.5 - half, x1: row + 0.5 + half, y0: 0.5 - half, y1: 0.5 + half };
};
const { grid } = chart(
  {
    x: pixels([0, 2]),
    y: pixels([0, 1]),
    marks: [reader(2, 2, { box, value: ({ row, column }) => row + column })],
    table: {
      quantity: 'sum',
      rows: { title: 'row', labels: ['0', '1'] },
      columns: { title: 'column', labels: ['0', '1'] },
    },
  },
  { width: 400, palette: PALETTE },
);

test('the smallest box around a point is meant, and none outside of all', () => {
  const { at } = grid.geometry;
  deepEqual(at(0.55, 0.45), { row: 0, column: 0 });
  deepEqual(at(1.75, 0.5), { row: 1, column: 1 });
  equal(at(1, 0.5), null);
  equal(at(0.5, 1), null);
});

test('the box of a row, or of a column, is around all of its numbers', () => {
  const of = grid.geometry.box;
  deepEqual(of(1, 0), box({ row: 1, column: 0 }));
  deepEqual(of(1), box({ row: 1, column: 1 }));
  const [first, last] = [0, 1].map((row) => box({ row, column: 0 }));
  deepEqual(of(undefined, 0), { ...first, x1: last.x1 });
  equal(of(2, 0), null);
});
