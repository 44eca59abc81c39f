import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  combined,
  cutTo,
  left,
  renormalised,
  sumOf,
} from '../../../../static/js/views/attention/subject.js';

const matrix = (...data) => ({ rows: 2, columns: 2, data: Float64Array.from(data) });
const HEADS = [matrix(1, NaN, 0.25, 0.75), matrix(1, NaN, 0.75, 0.25)];

test('the mean of heads is taken cell by cell, so that rows still sum to 1', () => {
  assert.deepEqual([...combined(HEADS, 'mean').data], [1, NaN, 0.5, 0.5]);
});

test('the largest of heads is taken cell by cell', () => {
  assert.deepEqual([...combined(HEADS, 'max').data], [1, NaN, 0.75, 0.75]);
  assert.deepEqual(
    [...combined([matrix(-3, NaN, -1, 2), matrix(-2, NaN, -4, 1)], 'max').data],
    [-2, NaN, -1, 2],
  );
});

test('one head alone is itself, and no head is changed', () => {
  const before = JSON.stringify(HEADS);
  assert.deepEqual([...combined(HEADS.slice(1), 'mean').data], [...HEADS[1].data]);
  combined(HEADS, 'max');
  assert.equal(JSON.stringify(HEADS), before);
});

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
