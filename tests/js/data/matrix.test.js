import assert from 'node:assert/strict';
import { test } from 'node:test';
import { extent, highestIn, largestIn, transposed } from '../../../static/js/data/matrix.js';

const matrix = (columns, ...numbers) => ({
  rows: numbers.length / columns,
  columns,
  data: Float64Array.from(numbers),
});

test('rows become columns, and twice is once too often', () => {
  const one = matrix(3, 1, 2, 3, 4, 5, 6);
  assert.deepEqual(transposed(one), matrix(2, 1, 4, 2, 5, 3, 6));
  assert.deepEqual(transposed(transposed(one)), one);
});

test('the extent of a matrix is its largest absolute value, and nothing counts for nothing', () => {
  assert.equal(extent(matrix(2, -3, NaN, 1, 2)), 3);
  assert.equal(extent(matrix(2, NaN, NaN, NaN, NaN)), 0);
});

test('the highest is found behind what is hidden, and of equals it is the first', () => {
  assert.equal(highestIn([NaN, 0.2, 0.7, 0.7]), 2);
  assert.equal(highestIn([0.7, NaN, 0.2]), 0);
  assert.equal(highestIn([NaN, NaN]), 0);
});

test('the largest change is found on either side of zero', () => {
  assert.deepEqual(largestIn(matrix(2, NaN, 0.1, 0.2, -0.4)), { row: 1, column: 1 });
});
