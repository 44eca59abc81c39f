/** Tokens that cannot be masked. */

import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';
import { toggled } from '../../../static/js/trace/words.js';

const special = (text, start = 0, end = start) => ({
  id: 0,
  text,
  start,
  end,
  word: null,
  is_special: true,
});
const piece = (text, start, word) => ({
  id: 1,
  text,
  start,
  end: start + text.length,
  word,
  is_special: false,
});
const TRACE = {
  text: 'a  cat',
  tokens: [
    special('<s>'),
    piece('a', 0, 0),
    piece(' ', 1, 1),
    piece(' cat', 2, 2),
    special('</s>', 6),
  ],
};

test('the start, the end and a space are not hidden', () => {
  for (const index of [0, 2, 4]) equal(toggled(TRACE, index, ''), null, `token ${index}`);
  deepEqual(toggled(TRACE, 3, ''), { text: 'a  [MASK]', words: 'cat', query: 3 });
});

test('a mask whose word is not known stays', () => {
  const trace = { text: '[MASK] cat', tokens: [special('[MASK]', 0, 6), piece(' cat', 6, 0)] };
  equal(toggled(trace, 0, ''), null);
  equal(toggled(trace, 0, 'the').text, 'the cat');
});
