import { equal } from 'node:assert/strict';
import { test } from 'node:test';

import { pairWords } from '../../../../static/js/views/compare/match.js';

const told = (a, b) => {
  const [ours, theirs] = [a.split(' '), b.split(' ')];
  return pairWords(ours, theirs)
    .map(([i, j]) => `${ours[i]}/${theirs[j]}`)
    .join(' ');
};

test('what was replaced stands against what replaced it', () => {
  equal(told('a b c d', 'b c d a'), 'a/b b/c c/d d/a', 'texts of one length by position');
  equal(told('a b c d', 'a X c d Y Z'), 'a/a b/X c/c d/d', 'what is added is left out');
  equal(
    told('the old king came', 'the very old king’s son came'),
    'the/the old/old king/king’s came/came',
  );
  equal(
    told('Il ne chante pas bien', 'Il a fait chanter bien cela'),
    'Il/Il ne/a chante/chanter bien/bien',
  );
});
