import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { placeOf } from '../../../static/js/data/attention.js';
import { rankedByPair } from '../../../static/js/data/head_pairs.js';
import { sampleTrace } from '../sample.js';

test('heads are ranked by their weight from one token to another', () => {
  const trace = sampleTrace();
  const ranked = rankedByPair(trace, placeOf({}, trace), 3, 1);
  equal(ranked.length, 4);
  for (const { layer, head, weight } of ranked) {
    const { data, shape, scale } = trace.tensors[`decoder.layers.${layer}.self_attention.weights`];
    equal(weight, data[(head * shape[1] + 3) * shape[2] + 1] * scale);
  }
  ok(ranked.every(({ weight }, at) => at === 0 || weight <= ranked[at - 1].weight));
});

test('no head looks ahead in a decoder', () => {
  const trace = sampleTrace();
  deepEqual(rankedByPair(trace, placeOf({}, trace), 1, 3), []);
});
