import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { nextChange } from '../../../../static/js/views/compare/next_token.js';

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

const near = (found, wanted) => ok(Math.abs(found - wanted) < 1e-9, `${found} is not ${wanted}`);

test('tokens of either list have both probabilities, those too that one list leaves out', () => {
  const { tokens, moved } = nextChange(seen([0.6, 0.3, 0.1, 0]), seen([0.1, 0.2, 0.3, 0.4]), 9);
  deepEqual(
    tokens.map(({ name }) => name),
    ['a', '↵', '·b', '·c'],
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
