import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cellAt, walk } from '../../../static/js/plot/cell_cursor.js';

const GRID = { rows: 20, columns: 30 };
const from = (row, column) => ({ row, column });

test('arrow keys move one cell and stop at the edge', () => {
  assert.deepEqual(walk(from(3, 3), 'ArrowUp', GRID), from(2, 3));
  assert.deepEqual(walk(from(3, 3), 'ArrowRight', GRID), from(3, 4));
  assert.deepEqual(walk(from(0, 0), 'ArrowLeft', GRID), from(0, 0));
  assert.deepEqual(walk(from(19, 29), 'ArrowDown', GRID), from(19, 29));
});

test('Home and End reach the ends of a row, with Ctrl the corners', () => {
  assert.deepEqual(walk(from(3, 3), 'Home', GRID), from(3, 0));
  assert.deepEqual(walk(from(3, 3), 'End', GRID), from(3, 29));
  assert.deepEqual(walk(from(3, 3), 'Home', GRID, true), from(0, 0));
  assert.deepEqual(walk(from(3, 3), 'End', GRID, true), from(19, 29));
});

test('page keys stride, other keys do not walk', () => {
  assert.deepEqual(walk(from(3, 3), 'PageDown', GRID), from(11, 3));
  assert.deepEqual(walk(from(3, 3), 'PageUp', GRID), from(0, 3));
  assert.equal(walk(from(3, 3), 'a', GRID), null);
  assert.equal(walk(from(3, 3), 'Tab', GRID), null);
});

test('every cell of a grid is reached by walking', () => {
  const small = { rows: 4, columns: 3 };
  const seen = new Set();
  let cell = from(0, 0);
  for (let row = 0; row < small.rows; row += 1) {
    cell = walk(cell, 'Home', small);
    for (let column = 0; column < small.columns; column += 1) {
      seen.add(`${cell.row},${cell.column}`);
      cell = walk(cell, 'ArrowRight', small);
    }
    cell = walk(cell, 'ArrowDown', small);
  }
  assert.equal(seen.size, 12);
});

test('a point finds its cell, zoomed in or not, and none outside', () => {
  const whole = { columns: [0, 30], rows: [0, 20] };
  assert.deepEqual(cellAt(0, 0, whole, GRID), from(0, 0));
  assert.deepEqual(cellAt(0.999, 0.999, whole, GRID), from(19, 29));
  assert.deepEqual(cellAt(0.5, 0.25, { columns: [10, 20], rows: [4, 8] }, GRID), from(5, 15));
  assert.equal(cellAt(-0.01, 0.5, whole, GRID), null);
  assert.equal(cellAt(0.5, 1.2, whole, GRID), null);
});
