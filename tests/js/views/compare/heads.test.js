import assert from 'node:assert/strict';
import { test } from 'node:test';
import { extent } from '../../../../static/js/data/number.js';
import {
  difference,
  meanMoved,
  movedIn,
  weightsSeen,
} from '../../../../static/js/views/compare/heads.js';
import { sampleTrace } from '../../sample.js';

const A = { rows: 2, columns: 2, data: Float64Array.of(1, NaN, 0.25, 0.75) };
const B = {
  rows: 3,
  columns: 3,
  data: Float64Array.of(1, NaN, NaN, 0.5, 0.5, NaN, 0.5, 0.25, 0.25),
};

test('the difference is B − A, cell by cell of what both read', () => {
  const pairs = [
    [0, 0],
    [1, 2],
  ];
  assert.deepEqual([...difference(A, B, pairs, pairs).data], [0, NaN, 0.25, -0.5]);
});

test('nothing differs from itself', () => {
  const pairs = [
    [0, 0],
    [1, 1],
  ];
  const none = difference(A, A, pairs, pairs);
  assert.deepEqual([meanMoved(none), extent(none)], [0, 0]);
});

test('what moved is half of all changes, and rows are averaged', () => {
  const changes = { rows: 2, columns: 2, data: Float64Array.of(0.2, -0.2, 0, NaN) };
  assert.ok(Math.abs(meanMoved(changes) - 0.1) < 1e-12);
});

test('a decoder’s future is nothing, not 0', () => {
  const { data, columns } = weightsSeen(
    sampleTrace(),
    'decoder.layers.1.self_attention.weights',
    0,
  );
  assert.ok(Number.isNaN(data[1]) && !Number.isNaN(data[columns]));
});

test('what moved in a head is what the matrix of its changes says', () => {
  const site = 'decoder.layers.1.self_attention.weights';
  const a = sampleTrace();
  const b = {
    tensors: {
      [site]: {
        ...a.tensors[site],
        scale: 1,
        data: Float32Array.from({ length: 50 }, (_, at) => (at % 5 === 0 ? 1 : 0)),
      },
    },
  };
  const pairs = [
    [0, 0],
    [1, 1],
    [3, 2],
    [4, 4],
  ];
  for (const head of [0, 1]) {
    const changes = difference(
      weightsSeen(a, site, head),
      weightsSeen(b, site, head),
      pairs,
      pairs,
    );
    assert.ok(
      Math.abs(movedIn(a.tensors[site], b.tensors[site], head, pairs, pairs) - meanMoved(changes)) <
        1e-12,
    );
  }
});
