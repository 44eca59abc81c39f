import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  isFilling,
  placeOf,
  placesOf,
  predictingSide,
  sideOf,
  stackOf,
  weightsAt,
} from '../../../static/js/data/places.js';
import { fillTrace, pairTrace, sampleTrace } from '../sample.js';

test('a model has the places whose weights its trace holds', () => {
  const ids = (trace) => placesOf(trace).map(({ id }) => id);
  assert.deepEqual(
    [ids(sampleTrace()), ids(fillTrace()), ids(pairTrace())],
    [['decoder'], ['encoder'], ['encoder', 'decoder', 'cross']],
  );
  assert.equal(placeOf({ where: '' }, { ...sampleTrace(), tensors: {} }), null);
});

test('cross-attention is between two sentences, self-attention within one', () => {
  const between = Object.fromEntries(
    placesOf(pairTrace()).map(({ id, rows, columns }) => [id, [rows, columns]]),
  );
  assert.deepEqual(between, {
    encoder: ['source', 'source'],
    decoder: ['target', 'target'],
    cross: ['target', 'source'],
  });
  assert.deepEqual(
    [placesOf(sampleTrace())[0].rows, placesOf(fillTrace())[0].columns],
    ['source', 'source'],
  );
});

test('unless somebody chose, a translator shows its cross-attention', () => {
  assert.equal(placeOf({ where: '' }, pairTrace()).id, 'cross');
  assert.equal(placeOf({ where: 'encoder' }, pairTrace()).id, 'encoder');
  assert.equal(placeOf({ where: 'cross' }, sampleTrace()).id, 'decoder');
});

test('the weights of a place are those of its stack alone', () => {
  const trace = pairTrace();
  assert.deepEqual(
    weightsAt(placeOf({ where: 'decoder' }, trace), trace).map(({ site }) => site),
    [0, 1].map((layer) => `decoder.layers.${layer}.self_attention.weights`),
  );
  assert.deepEqual(weightsAt(null, trace), []);
});

test('each stack reads its side, and the last one predicts', () => {
  const pair = pairTrace();
  assert.deepEqual(
    [sideOf('encoder', pair), sideOf('decoder', pair), sideOf('decoder', sampleTrace())],
    ['source', 'target', 'source'],
  );
  assert.deepEqual([predictingSide(pair), predictingSide(fillTrace())], ['target', 'source']);
  assert.deepEqual(
    [stackOf({ where: '' }, fillTrace()), stackOf({ where: 'encoder' }, sampleTrace())],
    ['encoder', 'decoder'],
  );
  assert.deepEqual(
    [isFilling(fillTrace()), isFilling(pair), isFilling(sampleTrace())],
    [true, false, false],
  );
});
