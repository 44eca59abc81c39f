import assert from 'node:assert/strict';
import { test } from 'node:test';
import { combined } from '../../../static/js/data/combine.js';

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
