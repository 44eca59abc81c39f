import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  divergence,
  entropyOf,
  softmax,
  softmaxSteps,
  totalVariation,
} from '../../../static/js/data/distribution.js';

const near = (found, wanted) =>
  assert.ok(Math.abs(found - wanted) < 1e-12, `${found} is not ${wanted}`);

test('softmax sums to 1 and overflows nowhere', () => {
  const found = softmax([1000, 1000 + Math.log(3)]);
  near(found[0], 0.25);
  near(found[1], 0.75);
});

test('a hidden score gets no weight, and the steps of a softmax are those of its formula', () => {
  const { weights, total, greatest } = softmaxSteps(Float64Array.of(2000, 2001, -Infinity));
  assert.equal(greatest, 2001);
  near(total, 1 + Math.exp(-1));
  near(weights[1], 1 / (1 + Math.exp(-1)));
  assert.equal(weights[2], 0);
});

test('entropy is 0 where one takes all and log n where all take the same, in nats or bits', () => {
  assert.equal(entropyOf([0, 1, 0]), 0);
  near(entropyOf([0.25, 0.25, 0.25, 0.25]), Math.log(4));
  near(entropyOf([0.5, 0.25, 0.25]), 1.5 * Math.LN2);
  near(entropyOf([0.25, 0.25, 0.25, 0.25], Math.log2), 2);
});

test('the distance is the probability that moved', () => {
  near(totalVariation([0.5, 0.5, 0], [0.2, 0.5, 0.3]), 0.3);
  assert.equal(totalVariation([0.5, 0.5], [0.5, 0.5]), 0);
  assert.equal(totalVariation([1, 0], [0, 1]), 1);
});

test('the divergence counts bits', () => {
  near(divergence([1, 0], [0.25, 0.75]), 2);
  assert.equal(divergence([0.5, 0.5], [0.5, 0.5]), 0);
  assert.equal(divergence([0.5, 0.5], [1, 0]), Infinity);
});
