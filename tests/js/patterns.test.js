import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fit, strongestHeads, tellingHead } from '../../static/js/core/patterns.js';
import { placeOf } from '../../static/js/core/places.js';
import { fillTrace, pairTrace, sampleTrace } from './sample.js';

test('the mean weight on the token before is found, with its head', () => {
  const found = strongestHeads(sampleTrace()).find(({ id }) => id === 'previous');
  assert.deepEqual([found.layer, found.head], [0, 0]);
  assert.ok(Math.abs(found.score - 0.8) < 1e-4);
});

test('a pattern is measured where the sentence gives it a chance', () => {
  const trace = sampleTrace();
  const weights = trace.tensors['decoder.layers.0.self_attention.weights'];
  const [, rows, columns] = weights.shape;
  weights.data[(1 * rows + 4) * columns + 2] = 0.6 * 65535;
  const induction = strongestHeads(trace).find(({ id }) => id === 'induction');
  assert.deepEqual([induction.layer, induction.head], [0, 1]);
  assert.ok(Math.abs(induction.score - 0.6) < 1e-4, 'the second “it” on “saw”');
  const plain = sampleTrace();
  plain.tokens = plain.tokens.map((token, id) => ({ ...token, id }));
  assert.ok(!strongestHeads(plain).some(({ id }) => id === 'induction' || id === 'duplicate'));
});

test('a pattern that no head follows is not worth a look', () => {
  const ids = strongestHeads(sampleTrace()).map(({ id }) => id);
  assert.deepEqual(ids, ['previous', 'first']);
});

test('where a simpler pattern expects the same key, nothing is counted', () => {
  const trace = sampleTrace();
  const id = trace.tokens[3].id;
  trace.tokens = trace.tokens.map((token, index) => ({ ...token, id: index === 5 ? id : 100 + index }));
  trace.tokens[3].id = id;
  const weights = trace.tensors['decoder.layers.0.self_attention.weights'];
  const [, rows, columns] = weights.shape;
  weights.data[(1 * rows + 5) * columns + 4] = 65535;
  assert.ok(!strongestHeads(trace).some((pattern) => pattern.id === 'induction'), 'what came next is also the token before');
  trace.tokens = trace.tokens.slice(0, 2);
  assert.deepEqual(strongestHeads(trace), [], 'of two tokens the one before is also the first');
});

test('queries of which nothing is expected do not count', () => {
  const weights = { rows: 2, columns: 2, data: Float64Array.of(1, 0, 0.3, 0.7) };
  assert.equal(fit(weights, [[], [0]]), 0.3);
  assert.equal(fit(weights, [[0], [0]]), 0.65);
  assert.equal(fit(weights, [[], []]), 0);
});

test('an encoder may look at what comes after, and a translator goes along with the source', () => {
  const trace = pairTrace();
  const of = (where) => strongestHeads(trace, placeOf({ where }, trace)).map(({ id }) => id);
  assert.ok(of('encoder').includes('next'));
  assert.deepEqual(of('decoder'), ['first']);
  assert.ok(of('cross').includes('diagonal'));
  const { layer, score } = strongestHeads(trace, placeOf({ where: 'cross' }, trace))[0];
  assert.deepEqual([layer, Number(score.toFixed(3))], [1, 0.84], 'two, three and two keys are expected of the rows: the strongest with 0.76, others with 0.06');
  assert.ok(!strongestHeads(fillTrace()).some(({ id }) => id === 'induction'));
});

test('a telling head is opened in each place', () => {
  const trace = pairTrace();
  assert.equal(tellingHead(trace, placeOf({ where: 'cross' }, trace)).layer, 1, 'the layer that goes along with the source');
  assert.deepEqual(tellingHead({ ...trace, tensors: {} }, null), { layer: 0, head: 0 });
});
