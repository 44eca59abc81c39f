import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';

import { nextChange } from '../../../../static/js/views/compare/next_token.js';
import { writeEdits, pathsOf } from '../../../../static/js/views/compare/edits.js';
import { near } from '../../sample.js';

const WISH = {
  kind: 'heads',
  heads: [0, 3],
  experts: [2],
  temperature: 1.5,
  layer: null,
  where: 'all',
};

test('an edit is sent as the API takes it', () => {
  deepEqual(writeEdits(WISH), [{ kind: 'heads_off', heads: [0, 3] }]);
  deepEqual(writeEdits({ ...WISH, layer: 0, where: 'cross' }), [
    { kind: 'heads_off', heads: [0, 3], layer: 0, where: 'cross' },
  ]);
  deepEqual(writeEdits({ ...WISH, kind: 'experts', layer: 1 }), [
    { kind: 'experts_off', experts: [2], layer: 1 },
  ]);
  deepEqual(writeEdits({ ...WISH, kind: 'no_scaling' }), [{ kind: 'no_scaling' }]);
  deepEqual(writeEdits({ ...WISH, kind: 'temperature', where: 'encoder' }), [
    { kind: 'temperature', value: 1.5, where: 'encoder' },
  ]);
  const four = { ...WISH, kind: 'quantize', bits: 4, modules: null };
  deepEqual(writeEdits(four), [{ kind: 'quantize', bits: 4 }]);
  const modules = ['*.embedding'];
  deepEqual(writeEdits({ ...four, modules }), [{ kind: 'quantize', bits: 4, parts: modules }]);
});

const TEXTS = ['a', ' b', ' c', '\n'];

/** The prediction of a pass over a vocabulary of four, at its one position. */
function seen(probabilities, { texts = TEXTS, most = 2 } = {}) {
  const ids = [0, 1, 2, 3]
    .sort((one, other) => probabilities[other] - probabilities[one])
    .slice(0, most);
  const row = (data) => ({ shape: [1, data.length], scale: 1, data });
  return {
    logits: row(probabilities.map(Math.log)),
    likeliest: {
      ids: row(ids),
      probabilities: row(ids.map((id) => probabilities[id])),
      texts: [ids.map((id) => texts[id])],
    },
    tokens: [],
    query: 0,
  };
}

test('tokens of either list have both probabilities, those too that one list leaves out', () => {
  const { tokens, moved } = nextChange(seen([0.6, 0.3, 0.1, 0]), seen([0.1, 0.2, 0.3, 0.4]), 9);
  deepEqual(
    tokens.map(({ name }) => name),
    ['a', '‹line break›', '·b', '·c'],
  );
  [
    [0.6, 0.1],
    [0, 0.4],
    [0.3, 0.2],
    [0.1, 0.3],
  ].forEach(([a, b], at) => {
    near(tokens[at].a, a);
    near(tokens[at].b, b);
  });
  near(moved, 0.6);
});

test('no more tokens than there is room for, the likeliest of either first', () => {
  deepEqual(
    nextChange(seen([0.6, 0.3, 0.1, 0]), seen([0.1, 0.2, 0.3, 0.4]), 2).tokens.map(
      ({ text }) => text,
    ),
    ['a', '\n'],
  );
});

test('tokens of two vocabularies are matched by text, without a distance', () => {
  const { tokens, moved } = nextChange(
    seen([0.6, 0.3, 0.1, 0]),
    seen([0.5, 0.4, 0.1, 0], { texts: [' b', 'x', ' c', '\n'] }),
    9,
  );
  equal(moved, null);
  const found = Object.fromEntries(tokens.map(({ text, a, b }) => [text, [a, b]]));
  deepEqual(found, { a: [0.6, NaN], ' b': [0.3, 0.5], x: [NaN, 0.4] });
});

test('heads and networks that are off write nothing, or a value of a corpus in each layer', () => {
  const card = { kind: 'decoder', n_layers: 2, moe: { layers: [1] } };
  const paths = pathsOf(card, null, 'all');
  deepEqual(paths.networks, ['decoder.layers.0.feed_forward', 'decoder.layers.1.experts']);
  const wish = { ...WISH, ...paths };
  deepEqual(writeEdits({ ...wish, to: 'mean' })[1], {
    kind: 'corpus_mean',
    site: 'decoder.layers.1.self_attention.context',
    heads: WISH.heads,
  });
  deepEqual(writeEdits({ ...wish, kind: 'network', to: 'zero' })[0], {
    kind: 'scale',
    site: 'decoder.layers.0.feed_forward.output',
    value: 0,
  });
  deepEqual(writeEdits({ ...wish, kind: 'network', to: 'resample' })[1], {
    kind: 'resample',
    site: 'decoder.layers.1.experts.output',
  });
  const both = pathsOf({ kind: 'encoder-decoder', n_layers: 1 }, 0, 'cross');
  deepEqual(both.attentions, ['decoder.layers.0.cross_attention']);
});
