import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRecall } from '../../static/js/core/recall.js';

test('the last result is given again while its parts are the same', () => {
  const recall = createRecall();
  const trace = {};
  let made = 0;
  const make = () => ({ number: (made += 1) });
  const first = recall([trace, 'a'], make);
  assert.equal(recall([trace, 'a'], make), first);
  assert.equal(made, 1);
  assert.notEqual(recall([trace, 'b'], make), first);
  assert.notEqual(recall([{}, 'b'], make), recall([trace, 'b'], make));
  assert.equal(made, 4, 'only the last one is kept');
});

test('what failed is tried again', () => {
  const recall = createRecall();
  assert.throws(
    () =>
      recall([1], () => {
        throw new Error('no');
      }),
    /no/,
  );
  assert.equal(
    recall([1], () => 'yes'),
    'yes',
  );
});
