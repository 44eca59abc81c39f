import { deepEqual, equal, match } from 'node:assert/strict';
import { test } from 'node:test';
import { findPlaces } from '../../../../static/js/trace/attention.js';
import { entropy, measureSpread } from '../../../../static/js/views/entropy/entropy.js';
import { FRAME, near, plain, sampleTrace, tensor } from '../../sample.js';

/** Four tokens: the first head takes the token itself, the second all keys so far evenly. */
function evenTrace() {
  const trace = sampleTrace({ isDense: true });
  const weights = tensor(['head', 'query', 'key'], [2, 5, 5], (at) => {
    const [head, query, key] = [Math.floor(at / 25), Math.floor(at / 5) % 5, at % 5];
    if (head === 0) return key === query ? 1 : 0;
    return key <= query ? 1 / (query + 1) : 0;
  });
  return { ...trace, tensors: { 'decoder.layers.0.self_attention.weights': weights } };
}

test('the entropy is that of the rows, averaged over heads and over layers', () => {
  const trace = evenTrace();
  const [place] = findPlaces(trace);
  const { bits, means, layers } = measureSpread(trace, place);
  deepEqual(layers, [0]);
  for (const query of [0, 1, 2, 3, 4]) {
    near(bits.data[query], Math.log2(query + 1) / 2);
    near(means[query], bits.data[query]);
  }
});

test('the map has the means above it, says its bits, and opens the attention of a layer', () => {
  const trace = evenTrace();
  const { data, grid, facts } = entropy.figure(trace, { ...FRAME, layer: 0 });
  const bars = data.find(({ type }) => type === 'bar');
  deepEqual(
    bars.y.map((value) => value.toFixed(3)),
    [0, 0.5, Math.log2(3) / 2, 1, Math.log2(5) / 2].map((value) => value.toFixed(3)),
  );
  match(plain(grid.describe(0, 3)), /1\.00 bits/);
  equal(grid.value(0, 3), 1);
  deepEqual(grid.choose(0, 3), { query: 3, view: 'attention', layer: 0 });
  equal(facts[1][1], `${Math.log2(5).toFixed(2)} bits`);
  match(entropy.figure({ ...trace, tensors: {} }, FRAME).notice, /no attention/);
});
