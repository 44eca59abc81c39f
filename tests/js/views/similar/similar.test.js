import { deepEqual, equal, match } from 'node:assert/strict';
import { test } from 'node:test';
import { similar } from '../../../../static/js/views/similar/similar.js';
import { FRAME, near, plain, sampleTrace, tensor } from '../../sample.js';

const PAIRS = [0.1, 0.2, -0.05, 0.05, 0.1, 0, 0.05, 0.05, 0.1, -0.1];

test('a similarity is drawn as the sum of its pairs, with the head that moves it most', () => {
  const trace = sampleTrace();
  const state = { ...FRAME, similar_text: 'a dog' };
  deepEqual(similar.asks(trace, { ...FRAME, similar_text: ' ' }), {});
  equal(similar.asks(trace, state).pairs.similarity.text, 'a dog');
  const similarity = {
    similarity: 0.5,
    other_tokens: ['a', 'dog'],
    pairs: tensor(['query', 'key'], [5, 2], (at) => PAIRS[at]),
    heads: tensor(['layer', 'head'], [2, 2], (at) => [0.5, 0.45, 0.7, 0.4][at]),
  };
  const answers = { pairs: { trace: { ...trace, analyses: { similarity } } } };
  const { title, help, grid } = similar.figure(trace, { ...state, answers });
  match(title, /0\.500/);
  match(help, /sum to 0\.500.*layer 1, head 0.* 0\.700/);
  near(grid.value(0, 1), 0.2);
  match(plain(grid.describe(2, 1)), /dog” give 0\.000|dog” give \+?0/);
});
