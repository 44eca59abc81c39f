import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chosenOf, spaced, telling } from '../../../../static/js/views/positions/waves.js';

test('of many: 0, powers of two and the last', () => {
  assert.deepEqual(spaced(96), [0, 1, 2, 4, 8, 16, 32, 64, 95]);
  assert.deepEqual(spaced(64), [0, 1, 2, 4, 8, 16, 32, 63]);
});

test('of few: each once', () => {
  assert.deepEqual(spaced(1), [0]);
  assert.deepEqual(spaced(2), [0, 1]);
  assert.deepEqual(spaced(3), [0, 1, 2]);
  assert.deepEqual(telling(1, 6), [0]);
  assert.deepEqual(telling(2, 6), [0, 1]);
});

test('what tells most is 0 and the largest powers', () => {
  assert.deepEqual(telling(96, 4), [0, 16, 32, 64]);
});

test('what was chosen holds as far as it exists', () => {
  assert.deepEqual(chosenOf([7, 3, 3, 200], 96, 4), [3, 7]);
  assert.deepEqual(chosenOf([200], 96, 4), [0, 16, 32, 64]);
  assert.deepEqual(chosenOf([], 2, 4), [0, 1]);
});
