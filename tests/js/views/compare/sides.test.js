import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';
import { commonPairs, editsOf } from '../../../../static/js/views/compare/sides.js';

const WISH = {
  kind: 'heads',
  heads: [0, 3],
  experts: [2],
  temperature: 1.5,
  layer: null,
  where: 'all',
};

test('an edit is sent as the API takes it', () => {
  deepEqual(editsOf(WISH), [{ kind: 'heads_off', heads: [0, 3] }]);
  deepEqual(editsOf({ ...WISH, layer: 0, where: 'cross' }), [
    { kind: 'heads_off', heads: [0, 3], layer: 0, where: 'cross' },
  ]);
  deepEqual(editsOf({ ...WISH, kind: 'experts', layer: 1 }), [
    { kind: 'experts_off', experts: [2], layer: 1 },
  ]);
  deepEqual(editsOf({ ...WISH, kind: 'no_scaling' }), [{ kind: 'no_scaling' }]);
  deepEqual(editsOf({ ...WISH, kind: 'temperature', where: 'encoder' }), [
    { kind: 'temperature', value: 1.5, where: 'encoder' },
  ]);
  const four = { ...WISH, kind: 'quantize', bits: 4, modules: null };
  deepEqual(editsOf(four), [{ kind: 'quantize', bits: 4 }]);
  const modules = ['*.embedding'];
  deepEqual(editsOf({ ...four, modules }), [{ kind: 'quantize', bits: 4, parts: modules }]);
});

const common = (a, b) =>
  commonPairs([...a], [...b])
    .map(([i]) => a[i])
    .join('');

test('the longest common subsequence is found in order', () => {
  equal(common('XMJYAUZ', 'MZJAWXU'), 'MJAU');
  deepEqual(commonPairs(['a', 'b', 'c'], ['a', 'x', 'c']), [
    [0, 0],
    [2, 2],
  ]);
});

/** All common subsequences, by brute force. */
function longest(a, b) {
  if (a === '' || b === '') return 0;
  if (a[0] === b[0]) return 1 + longest(a.slice(1), b.slice(1));
  return Math.max(longest(a.slice(1), b), longest(a, b.slice(1)));
}

test('the common subsequence has maximal length', () => {
  let seed = 7;
  const letter = () => {
    seed = (seed * 16807) % 2147483647;
    return 'abc'[seed % 3];
  };
  for (let trial = 0; trial < 60; trial += 1) {
    const [a, b] = [7, 8].map((length) => Array.from({ length }, letter).join(''));
    equal(commonPairs([...a], [...b]).length, longest(a, b), `${a} ${b}`);
  }
});
