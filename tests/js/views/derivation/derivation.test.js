import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { spoken } from '../../../../static/js/ui/formula.js';
import {
  derive,
  differences,
  measureShare,
  listSites,
  termsOf,
} from '../../../../static/js/views/derivation/derivation.js';
import { scoreFormula, softmaxFormula } from '../../../../static/js/views/derivation/formulas.js';
import { array, near } from '../../sample.js';
import { headTrace } from './sample.js';

const SELF = 'decoder.layers.1.self_attention';
const CROSS = 'decoder.layers.1.cross_attention';

/** Two vectors of one head. */
const vectors = (axis, data) => array(['head', axis, 'd_head'], [1, 2, data.length / 2], data);

/** Two queries, two keys, two dimensions, by hand. */
function handMade(path) {
  return {
    tensors: {
      [`${path}.queries`]: vectors('query', [1, 0, 3, 4]),
      [`${path}.keys`]: vectors('key', [2, 0, 1, -1]),
      [`${path}.values`]: vectors('key', [10, 0, 0, 100]),
    },
  };
}

test('a cell by hand: products, scale, softmax, values', () => {
  const { products, row, weighted, context, divisor } = derive(handMade(CROSS), CROSS, {
    query: 1,
    key: 0,
  });
  deepEqual([...products], [6, 0]);
  deepEqual([...row.products], [6, -1]);
  near(divisor, Math.SQRT2);
  near(row.scores[0], 6 / Math.SQRT2);
  const weight = 1 / (1 + Math.exp(-7 / Math.SQRT2));
  near(row.weights[0], weight);
  near(weighted[0], 10 * weight);
  near(context[1], 100 * (1 - weight));
});

test('a causal query masks later keys: −∞, weight 0, and no value', () => {
  const { isHidden, row, weighted } = derive(handMade(SELF), SELF, { query: 0, key: 1 });
  ok(isHidden);
  deepEqual([...row.scores], [2 / Math.SQRT2, -Infinity]);
  deepEqual([...row.weights], [1, 0]);
  deepEqual([...weighted], [0, 0]);
});

for (const [positional, path] of [
  ['sinusoidal', SELF],
  ['rotary', SELF],
  ['alibi', SELF],
  ['rotary', CROSS],
]) {
  for (const change of [
    {},
    { isScaled: false },
    { temperature: 2.5 },
    { isScaled: false, temperature: 0.5 },
  ]) {
    test(`${positional}, ${path.split('.').at(-1)}, ${JSON.stringify(change)}: the derived values match the captured ones`, () => {
      const trace = headTrace(path, {
        queries: 5,
        keys: path === CROSS ? 3 : 5,
        positional,
        ...change,
      });
      for (const [query, key] of [
        [0, 0],
        [4, 1],
        [2, 2],
        [1, 2],
      ]) {
        const derivation = derive(trace, path, { query, key }, change);
        equal(derivation.isTurned, positional === 'rotary' && path === SELF);
        for (const [name, off] of Object.entries(differences(derivation, trace, path)))
          ok(off < 1e-5, `${name} of ${query}, ${key}: ${off}`);
        near(
          derivation.row.weights.reduce((sum, weight) => sum + weight, 0),
          1,
        );
      }
    });
  }
}

const TERMS = {
  path: SELF,
  is_causal: true,
  scale: null,
  softcap: null,
  window: null,
  chunk: null,
  has_bias: false,
  has_sink: false,
  sinks: null,
};

/** A foreign model's card and its trace of one head, the weights made by plain loops. */
function foreign(terms, { temperature = 1, hasMask = false } = {}) {
  const facts = { ...TERMS, ...terms };
  const positional = facts.has_bias ? 'alibi' : 'sinusoidal';
  const trace = headTrace(SELF, { queries: 6, keys: 6, positional });
  const part = (name) => trace.tensors[`${SELF}.${name}`]?.data;
  const scores = new Float64Array(36).fill(-Infinity);
  const weights = new Float64Array(36);
  for (let query = 0; query < 6; query += 1) {
    for (let key = 0; key < 6; key += 1) {
      let product = 0;
      for (let at = 0; at < 4; at += 1)
        product += part('queries')[query * 4 + at] * part('keys')[key * 4 + at];
      const { softcap, window, chunk } = facts;
      product *= facts.scale ?? 0.5;
      if (softcap) product = softcap * Math.tanh(product / softcap);
      const isSeen =
        key <= query &&
        (!window || query - key < window) &&
        (!chunk || Math.floor(query / chunk) === Math.floor(key / chunk)) &&
        !(hasMask && key === 0 && query > 0);
      if (isSeen)
        scores[query * 6 + key] = (product + (part('bias')?.[query * 6 + key] ?? 0)) / temperature;
    }
    const own = scores.subarray(query * 6, query * 6 + 6);
    const sink = facts.sinks ? Math.exp(facts.sinks[1]) : 0;
    const total = own.reduce((sum, score) => sum + Math.exp(score), sink);
    own.forEach((score, key) => {
      weights[query * 6 + key] = Math.exp(score) / total;
    });
  }
  trace.tensors[`${SELF}.scores`].data = scores;
  trace.tensors[`${SELF}.weights`].data = weights;
  const sites = Object.keys(trace.tensors).map((name) => ({ name }));
  return { trace, card: { architecture: 'Other', sites, attentions: [facts] } };
}

for (const [name, terms, options] of [
  ['a scale of its own', { scale: 0.0625 }],
  ['no scale', { scale: 1 }],
  ['a cap', { softcap: 0.7 }],
  ['a sink', { has_sink: true, sinks: [9, 0.45] }],
  ['a sink above all scores', { has_sink: true, sinks: [0, 800] }],
  ['a bias', { has_bias: true, scale: 1 }],
  ['a window', { window: 2 }],
  ['chunks', { chunk: 4 }],
  ['a mask of the pass', {}, { hasMask: true }],
  [
    'all of them at a temperature',
    { scale: 0.3, softcap: 0.7, has_bias: true, sinks: [9, 0.45], window: 3 },
    { temperature: 2 },
  ],
])
  test(`${name}: the terms on the card give the weights of the model`, () => {
    const { trace, card } = foreign(terms, options);
    const softmax = { terms: termsOf(card, SELF, 1), ...options };
    for (let query = 0; query < 6; query += 1) {
      for (let key = 0; key < 6; key += 1) {
        const found = derive(trace, SELF, { query, key }, softmax);
        const { score, weight } = differences(found, trace, SELF);
        ok(score < 1e-12 && weight < 1e-12, `${query}, ${key}: ${score}, ${weight}`);
        const whole = found.row.weights.reduce((sum, one) => sum + one, found.row.sinkWeight);
        near(whole, 1);
      }
    }
  });

test('the rotation of a foreign model is the one that was captured', () => {
  const { trace, card } = foreign({});
  const { queries, keys } = Object.fromEntries(
    ['queries', 'keys'].map((part) => [part, trace.tensors[`${SELF}.${part}`]]),
  );
  trace.tensors[`${SELF}.rotated_queries`] = queries;
  trace.tensors[`${SELF}.rotated_keys`] = keys;
  const terms = termsOf(card, SELF, 1);
  const found = derive(trace, SELF, { query: 5, key: 2 }, { terms });
  ok(found.isTurned);
  ok(differences(found, trace, SELF).weight < 1e-12);
});

test('only the sites that a foreign attention has are asked for', () => {
  const { card } = foreign({ has_bias: true });
  const optional = (of) => listSites(SELF, of).filter((site) => /bias|rotated/.test(site));
  deepEqual(optional(card), [`${SELF}.bias`]);
  deepEqual(optional(foreign({}).card), []);
});

test('a wrong number shows in the differences', () => {
  const trace = headTrace(SELF, { queries: 5, keys: 5 });
  trace.tensors[`${SELF}.scores`].data[4 * 5 + 1] += 0.5;
  trace.tensors[`${SELF}.weights`].data[4 * 5 + 1] += 0.25;
  trace.tensors[`${SELF}.context`].data[4 * 4 + 3] += 0.125;
  const off = (cell) => differences(derive(trace, SELF, cell), trace, SELF);
  const { score, weight, context } = off({ query: 4, key: 1 });
  near(score, 0.5, 1e-5);
  near(weight, 0.25, 1e-5);
  near(context, 0.125, 1e-5);
  equal(off({ query: 1, key: 2 }).score, 0, 'two hidden cells do not differ');
});

test('a head’s share of the output is its length along the output’s direction', () => {
  const trace = {
    tensors: { [`${SELF}.output`]: array(['query', 'd_model'], [1, 2], [3, 4]) },
    analyses: { head_outputs: { [SELF]: array(['head', 'query', 'd_model'], [1, 1, 2], [3, 0]) } },
  };
  const { share, cosine } = measureShare(trace, SELF, 0);
  near(share, 9 / 25);
  near(cosine, 3 / 5);
});

const said = (lines) => lines.map(spoken);

/** One query, two keys, in four dimensions, by hand: q·k is 8 and 2. */
function byHand({ bias, ...softmax } = {}, query = 1, key = 0) {
  const tensors = {
    [`${SELF}.queries`]: vectors('query', [0, 0, 0, 0, 1, 2, 3, 0]),
    [`${SELF}.keys`]: vectors('key', [1, 2, 1, 9, 0, 1, 0, 9]),
    [`${SELF}.values`]: vectors('key', [3, 4, 0, 0, 0, 0, 0, 0]),
    ...(bias && { [`${SELF}.bias`]: array(['head', 'query', 'key'], [1, 2, 2], [0, 0, bias, 0]) }),
  };
  return derive({ tensors }, SELF, { query, key }, softmax);
}

test('the score is the product over √d, with bias and temperature', () => {
  const last = (derivation) => said(scoreFormula(derivation)).at(-1);
  deepEqual(said(scoreFormula(byHand())), [
    's equals q times k over the square root of d',
    'equals 8.000 over the square root of 4 equals 4.000',
  ]);
  equal(last(byHand({ isScaled: false })), 'equals 8.000 equals 8.000');
  equal(
    last(byHand({ temperature: 2 })),
    'equals 8.000 over 2 times the square root of 4 equals 2.000',
  );
  equal(last(byHand({ isScaled: false, temperature: 0.5 })), 'equals 8.000 over 0.5 equals 16.000');
  equal(
    last(byHand({ bias: -0.5 })),
    'equals 8.000 over the square root of 4 minus 0.500 equals 3.500',
  );
  equal(
    last(byHand({ bias: -0.5, temperature: 2 })),
    'equals 1 over 2 8.000 over the square root of 4 minus 0.500 equals 1.750',
  );
});

test('a cap, a divisor and a sink stand in the formulas', () => {
  const terms = { ...termsOf(undefined, SELF, 0), scale: 1 / 16, softcap: 2, sink: 0.5, window: 1 };
  deepEqual(said(scoreFormula(byHand({ terms }, 1, 1))).slice(0, 2), [
    'x equals q times k over c',
    'equals 2.000 over 16.0000 equals 0.125',
  ]);
  match(said(scoreFormula(byHand({ terms }, 1, 1))).at(-1), /2.000 .*tanh .*0.125 over 2.000/);
  match(said(scoreFormula(byHand({ terms }, 1, 0))).at(-1), /outside the window of 1 token/);
  match(said(softmaxFormula(byHand({ terms }, 1, 1)))[0], /sink/);
});
