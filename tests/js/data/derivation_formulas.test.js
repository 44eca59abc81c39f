import assert from 'node:assert/strict';
import { test } from 'node:test';
import { derive, lengthOf, shareOf } from '../../../static/js/data/derivation.js';
import {
  outputFormula,
  productFormula,
  scoreFormula,
  softmaxFormula,
  turnFormula,
  valueFormula,
} from '../../../static/js/data/derivation_formulas.js';
import { spoken } from '../../../static/js/data/formula.js';
import { headTrace } from '../views/why/sample.js';

const PATH = 'decoder.layers.1.self_attention';

const said = (lines) => lines.map(spoken);

/** One query, two keys, in four dimensions, by hand: q·k is 8 and 2. */
function byHand({ bias, ...softmax } = {}, query = 1, key = 0) {
  const vectors = (axis, data) => ({
    axes: ['head', axis, 'd_head'],
    shape: [1, 2, 4],
    scale: 1,
    data,
  });
  const tensors = {
    [`${PATH}.queries`]: vectors('query', [0, 0, 0, 0, 1, 2, 3, 0]),
    [`${PATH}.keys`]: vectors('key', [1, 2, 1, 9, 0, 1, 0, 9]),
    [`${PATH}.values`]: vectors('key', [3, 4, 0, 0, 0, 0, 0, 0]),
    ...(bias && {
      [`${PATH}.bias`]: {
        axes: ['head', 'query', 'key'],
        shape: [1, 2, 2],
        scale: 1,
        data: [0, 0, bias, 0],
      },
    }),
  };
  return derive({ tensors }, PATH, { query, key }, softmax);
}

test('the product names its first terms and its sum', () => {
  assert.deepEqual(said(productFormula(byHand())), [
    'q times k equals the sum of over i q i k i',
    'equals 1.000 plus 4.000 plus … equals 8.000',
  ]);
});

test('the score is the product over √d, and whatever else is done to it', () => {
  const last = (derivation) => said(scoreFormula(derivation)).at(-1);
  assert.deepEqual(said(scoreFormula(byHand())), [
    's equals q times k over the square root of d',
    'equals 8.000 over the square root of 4 equals 4.000',
  ]);
  assert.equal(last(byHand({ isScaled: false })), 'equals 8.000 equals 8.000');
  assert.equal(
    last(byHand({ temperature: 2 })),
    'equals 8.000 over 2 times the square root of 4 equals 2.000',
  );
  assert.equal(
    last(byHand({ isScaled: false, temperature: 0.5 })),
    'equals 8.000 over 0.5 equals 16.000',
  );
  assert.equal(
    last(byHand({ bias: -0.5 })),
    'equals 8.000 over the square root of 4 minus 0.500 equals 3.500',
  );
  assert.equal(
    last(byHand({ bias: -0.5, temperature: 2 })),
    'equals 1 over 2 8.000 over the square root of 4 minus 0.500 equals 1.750',
  );
});

test('what is hidden has the score −∞ and the weight 0', () => {
  const hidden = byHand({}, 0, 1);
  assert.equal(said(scoreFormula(hidden)).at(-1), 's equals minus infinity hidden: comes later');
  assert.match(
    said(softmaxFormula(hidden)).at(-1),
    /^equals e to the power of minus infinity over 1\.000 equals 0 over 1\.000 equals 0$/,
  );
});

test('the softmax shows its power, its sum and their quotient', () => {
  const far = said(softmaxFormula(byHand({}, 1, 1))).at(-1);
  assert.equal(
    far,
    'equals e to the power of 1.000 minus 4.000 over 1.050 equals 0.0498 over 1.050 equals 0.0474',
  );
});

test('the value is as long as it is, times the weight', () => {
  assert.equal(
    said(valueFormula(byHand(), lengthOf)).at(-1),
    'a v equals 0.9526 times 5.000 equals 4.763',
  );
});

test('a turn names both positions', () => {
  const [query, key] = said(turnFormula(byHand()));
  assert.match(query, /^q turned equals R θ q , θ i equals 1 over 10000 to the power of 2 i \/ d$/);
  assert.match(key, /^k turned .* equals 0 over/);
});

test('the output is shared among heads', () => {
  const trace = headTrace(PATH, { queries: 3, keys: 3 });
  assert.match(said(outputFormula(shareOf(trace, PATH, 1), 1, lengthOf))[1], /equals 0\.250$/);
});
