/** A text whose weights are too many for one answer is read layer by layer. */

import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';
import { holdsLayer, heldWeightsAt, labelledHeads } from '../../../static/js/trace/attention.js';
import { isHeld, joined, layerFirst, withAllLayers } from '../../../static/js/trace/layered.js';

const CARD = { kind: 'decoder', n_layers: 4, n_heads: 2 };
const PLACE = { id: 'decoder', stack: 'decoder', ending: 'self_attention' };
const site = (layer) => `decoder.layers.${layer}.self_attention.weights`;
const weights = (length) => ({
  axes: ['head', 'query', 'key'],
  shape: [2, 2, 2],
  data: new Float32Array(length).fill(0.5),
  scale: 1,
});
const WHOLE = {
  capture: ['*.self_attention.weights', 'x'],
  analyses: ['head_labels', 'next_token'],
};

test('the chosen layer, or one in the middle, comes first, without what reads all layers', () => {
  deepEqual(layerFirst(WHOLE, CARD, 3), { capture: [site(3), 'x'], analyses: ['next_token'] });
  equal(layerFirst(WHOLE, CARD, null).capture[0], site(2));
  equal(layerFirst(WHOLE, CARD, 99).capture[0], site(3));
  equal(layerFirst(WHOLE, { ...CARD, kind: 'encoder-decoder' }, 0), null);
});

test('layers without numbers have their heads, but are not held until they join', () => {
  const first = withAllLayers({ tensors: { [site(2)]: weights(8) }, analyses: {} }, CARD);
  equal(labelledHeads(first, PLACE).length, 4);
  deepEqual(
    heldWeightsAt(PLACE, first).map(({ layer }) => layer),
    [2],
  );
  equal(holdsLayer(first, PLACE, 1), false);
  const both = joined(first, { tensors: { [site(1)]: weights(8) } });
  equal(holdsLayer(both, PLACE, 1), true);
  equal(holdsLayer(first, PLACE, 1), false);
});

test('the layers that came first are dropped if all are too many', () => {
  let trace = withAllLayers({ tensors: { [site(0)]: weights(12e6) }, analyses: {} }, CARD);
  for (const layer of [1, 2]) trace = joined(trace, { tensors: { [site(layer)]: weights(12e6) } });
  deepEqual(
    [0, 1, 2, 3].map((layer) => isHeld(trace.tensors[site(layer)])),
    [false, true, true, false],
  );
});
