import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';

import { commonPairs, withReplaced } from '../../../../static/js/views/compare/match.js';

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

test('what was replaced has a counterpart', () => {
  const pairs = (a, b) => withReplaced(commonPairs([...a], [...b]), a.length, b.length);
  const told = (a, b) => pairs(a, b).map(([i, j]) => a[i] + b[j]);
  deepEqual(told('abcd', 'abXd'), ['aa', 'bb', 'cX', 'dd'], 'by position');
  deepEqual(told('abcd', 'bcda'), ['ab', 'bc', 'cd', 'da'], 'texts of one length always so');
  deepEqual(told('abcd', 'aXcdYZ'), ['aa', 'bX', 'cc', 'dd'], 'what is added is left out');
  deepEqual(told('abcde', 'aXYde'), ['aa', 'bX', 'cY', 'dd', 'ee']);
  deepEqual(told('abcd', 'aXYcd'), ['aa', 'cc', 'dd'], 'one for two has none');
});
