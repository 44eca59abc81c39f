import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cutTo, left, renormalised, sumOf } from '../../../static/js/data/hide.js';

const UNITS = [
  { is_special: true },
  { is_special: false },
  { is_special: false },
  { is_special: true },
];

test('nothing, the first, or every special one is left out', () => {
  assert.deepEqual(left(UNITS, 'nothing'), [0, 1, 2, 3]);
  assert.deepEqual(left(UNITS, 'first'), [1, 2, 3]);
  assert.deepEqual(left(UNITS, 'special'), [1, 2]);
});

test('a map is cut to what stays', () => {
  const matrix = { rows: 2, columns: 3, data: Float64Array.of(1, 2, 3, 4, 5, 6) };
  assert.deepEqual(cutTo(matrix, [1], [0, 2]), {
    rows: 1,
    columns: 2,
    data: Float64Array.of(4, 6),
  });
});

test('renormalised rows sum to 1 again, and what is hidden stays hidden', () => {
  const { data } = renormalised({
    rows: 2,
    columns: 3,
    data: Float64Array.of(0.1, NaN, NaN, 0.2, 0.2, 0.4),
  });
  assert.deepEqual([...data], [1, NaN, NaN, 0.25, 0.25, 0.5]);
});

test('a row with nothing left is not divided by nothing', () => {
  assert.deepEqual(
    [...renormalised({ rows: 1, columns: 2, data: Float64Array.of(0, NaN) }).data],
    [0, NaN],
  );
  assert.equal(sumOf([0.5, NaN, 0.25]), 0.75);
});
