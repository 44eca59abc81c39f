import { ok } from 'node:assert/strict';
import { test } from 'node:test';
import {
  difference,
  meanMoved,
  movedIn,
  weightsSeen,
} from '../../../../static/js/views/compare/heads.js';
import { sampleTrace } from '../../sample.js';

test('the attention moved in a head matches its matrix of changes', () => {
  const site = 'decoder.layers.1.self_attention.weights';
  const a = sampleTrace().tensors[site];
  const data = Float32Array.from({ length: 50 }, (_, at) => (at % 5 === 0 ? 1 : 0));
  const b = { ...a, scale: 1, data };
  const pairs = [0, 1, 3].map((row) => [row, Math.min(row, 2)]);
  for (const head of [0, 1]) {
    const [from, to] = [a, b].map((array) =>
      weightsSeen({ tensors: { [site]: array } }, site, head),
    );
    const moved = meanMoved(difference(from, to, pairs, pairs));
    ok(Math.abs(movedIn(a, b, head, pairs, pairs) - moved) < 1e-12);
  }
});
