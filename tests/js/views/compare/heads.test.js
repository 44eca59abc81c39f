import { ok } from 'node:assert/strict';
import { test } from 'node:test';
import {
  difference,
  meanMoved,
  movedIn,
  weightsSeen,
} from '../../../../static/js/views/compare/heads.js';
import { sampleTrace } from '../../sample.js';

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
    ok(
      Math.abs(movedIn(a.tensors[site], b.tensors[site], head, pairs, pairs) - meanMoved(changes)) <
        1e-12,
    );
  }
});
