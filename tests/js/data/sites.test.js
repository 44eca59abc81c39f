import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isCausal, layersWith, matches, request } from '../../../static/js/data/sites.js';
import { VIEWS } from '../../../static/js/views/registry.js';

const site = (name) => ({ name });

test('a star stands for anything, a dot for a dot', () => {
  assert.ok(matches('*.self_attention.weights', 'decoder.layers.0.self_attention.weights'));
  assert.ok(
    matches('decoder.layers.*.experts.router_probs', 'decoder.layers.10.experts.router_probs'),
  );
  assert.ok(!matches('*.weights', 'decoder.layers.0.expert_weights'));
  assert.ok(!matches('logits', 'logitsx'));
});

test('a request asks for what the views need and the model has', () => {
  const dense = {
    sites: [
      'decoder.embedding.positional',
      'decoder.layers.0.self_attention.weights',
      'logits',
    ].map(site),
  };
  assert.deepEqual(request(VIEWS, dense), {
    capture: ['*.self_attention.weights', '*.embedding.positional'],
    analyses: ['head_labels', 'next_token'],
  });
  const routed = { sites: [...dense.sites, site('decoder.layers.0.experts.router_probs')] };
  assert.ok(request(VIEWS, routed).capture.includes('*.experts.router_probs'));
  const rotary = {
    positional: 'rotary',
    sites: ['queries', 'rotated_queries'].map((name) =>
      site(`decoder.layers.0.self_attention.${name}`),
    ),
  };
  assert.deepEqual(request(VIEWS, rotary).capture, [
    '*.layers.0.self_attention.rotated_queries',
    '*.layers.0.self_attention.queries',
  ]);
});

test('layers come in the order of their numbers', () => {
  const tensors = {
    'decoder.layers.10.self_attention.weights': 1,
    'decoder.layers.2.self_attention.weights': 1,
    logits: 1,
  };
  assert.deepEqual(
    layersWith(tensors, 'self_attention.weights').map(({ layer }) => layer),
    [2, 10],
  );
  assert.deepEqual(layersWith(tensors, 'self_attention.weights', 'encoder'), []);
});

test('only a decoder’s self-attention hides the future', () => {
  assert.ok(isCausal('decoder.layers.0.self_attention.weights'));
  assert.ok(!isCausal('encoder.layers.0.self_attention.weights'));
  assert.ok(!isCausal('decoder.layers.0.cross_attention.weights'));
});
