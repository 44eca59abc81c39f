/** How strong the parts of a layer are on the map of the model. */

import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';
import { buildAnatomy, readParts } from '../../../../static/js/ui/model_map/parts.js';
import { sampleTrace, tensor } from '../../sample.js';

const CARD = {
  kind: 'decoder',
  n_layers: 2,
  n_heads: 2,
  positional: 'none',
  moe: { n_experts: 4, top_k: 2, layers: [1] },
};
const [{ embedding, layers }] = buildAnatomy(CARD).stacks;
const levels = (parts, trace) => parts.map((part) => readParts(CARD, trace)(part).level);

test('the experts of a layer are one part, as strong as what they write of it', () => {
  const trace = { ...sampleTrace(), card: CARD };
  deepEqual(levels([layers[1].network], trace), [null]);
  trace.analyses.residual_stream = {
    'decoder.written_norm.self_attention': tensor(['layer', 'query'], [2, 5], 1),
    'decoder.written_norm.feed_forward': tensor(['layer', 'query'], [2, 5], 3),
  };
  deepEqual(levels([layers[1].network], trace), [0.75]);
  deepEqual([layers[0].network.kind, layers[1].network.kind], ['network', 'expert']);
});

test('the head that writes most has the full colour of its layer', () => {
  const trace = { ...sampleTrace(), card: CARD };
  trace.analyses.head_norms = {
    'decoder.layers.0.self_attention': tensor(['head', 'query'], [2, 5], (at) => (at < 5 ? 1 : 4)),
  };
  deepEqual(levels(layers[0].heads, trace), [0.25, 1]);
});

test('a model without positions has an embedding without them', () => {
  const read = readParts(CARD, sampleTrace());
  equal(read(embedding).words, 'embedding');
});
