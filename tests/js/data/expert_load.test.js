/** How strong the parts of a layer are on the map of the model. */

import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';
import { anatomyOf, readingsOf } from '../../../static/js/data/model_parts.js';
import { sampleTrace, tensor } from '../sample.js';

const CARD = {
  kind: 'decoder',
  n_layers: 2,
  n_heads: 2,
  positional: 'none',
  moe: { n_experts: 4, top_k: 2, layers: [1] },
};
const [{ embedding, layers }] = anatomyOf(CARD).stacks;
const levels = (parts, trace) => parts.map((part) => readingsOf(CARD, trace)(part).level);

test('the busiest expert of a layer has the full colour, one without tokens none', () => {
  const trace = { ...sampleTrace(), card: CARD };
  const chosen = [0, 1, 0, 1, 0, 1, 0, 2, 0, 2];
  trace.tensors['decoder.layers.1.experts.expert_indices'] = tensor(
    ['query', 'top_k'],
    [5, 2],
    (at) => chosen[at],
    Int32Array,
  );
  deepEqual(
    levels(layers[1].experts, trace).map((level) => Number(level.toFixed(3))),
    [1, 0.6, 0.4, 0],
  );
  deepEqual(levels(layers[1].experts, { ...trace, tensors: {} }), [null, null, null, null]);
});

test('the head that writes most has the full colour of its layer', () => {
  const trace = { ...sampleTrace(), card: CARD };
  trace.analyses.head_norms = {
    'decoder.layers.0.self_attention': tensor(['head', 'query'], [2, 5], (at) => (at < 5 ? 1 : 4)),
  };
  deepEqual(levels(layers[0].heads, trace), [0.25, 1]);
});

test('a model without positions has an embedding without them', () => {
  const read = readingsOf(CARD, sampleTrace());
  equal(read(embedding).words, 'embedding');
});
