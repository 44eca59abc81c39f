import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMemo } from '../../../static/js/state/memoize.js';

test('the last result is given again while its parts are the same', () => {
  const memo = createMemo();
  const trace = {};
  let made = 0;
  const make = () => ({ number: (made += 1) });
  const first = memo([trace, 'a'], make);
  assert.equal(memo([trace, 'a'], make), first);
  assert.equal(made, 1);
  assert.notEqual(memo([trace, 'b'], make), first);
  assert.notEqual(memo([{}, 'b'], make), memo([trace, 'b'], make));
  assert.equal(made, 4, 'only the last one is kept');
});

test('what failed is tried again', () => {
  const memo = createMemo();
  assert.throws(
    () =>
      memo([1], () => {
        throw new Error('no');
      }),
    /no/,
  );
  assert.equal(
    memo([1], () => 'yes'),
    'yes',
  );
});
