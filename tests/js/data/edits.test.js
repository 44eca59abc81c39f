import assert from 'node:assert/strict';
import { test } from 'node:test';
import { editInWords, editsOf } from '../../../static/js/data/edits.js';

const WISH = {
  kind: 'heads',
  heads: [0, 3],
  experts: [2],
  temperature: 1.5,
  layer: null,
  where: 'all',
};

test('an edit is asked for as the API takes it', () => {
  assert.deepEqual(editsOf(WISH), [{ kind: 'heads_off', heads: [0, 3] }]);
  assert.deepEqual(editsOf({ ...WISH, layer: 0, where: 'cross' }), [
    { kind: 'heads_off', heads: [0, 3], layer: 0, where: 'cross' },
  ]);
  assert.deepEqual(editsOf({ ...WISH, kind: 'experts', layer: 1 }), [
    { kind: 'experts_off', experts: [2], layer: 1 },
  ]);
  assert.deepEqual(editsOf({ ...WISH, kind: 'no_scaling' }), [{ kind: 'no_scaling' }]);
  assert.deepEqual(editsOf({ ...WISH, kind: 'temperature', where: 'encoder' }), [
    { kind: 'temperature', value: 1.5, where: 'encoder' },
  ]);
});

test('an edit has words', () => {
  assert.equal(editInWords(WISH), 'heads 0, 3 off in all layers');
  assert.equal(
    editInWords({ ...WISH, heads: [4], layer: 2, where: 'cross' }),
    'head 4 off in layer 2 of cross-attention',
  );
  assert.equal(editInWords({ ...WISH, heads: [0, 1, 2, 3, 4] }), '5 heads off in all layers');
  assert.equal(editInWords({ ...WISH, kind: 'experts' }), 'expert 2 off in all layers');
  assert.equal(
    editInWords({ ...WISH, kind: 'no_scaling' }),
    'no division by √d_head in all layers',
  );
  assert.equal(
    editInWords({ ...WISH, kind: 'temperature' }),
    'softmax temperature 1.5 in all layers',
  );
});
