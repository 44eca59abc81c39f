/** Words of tokens, and the masks that take their places. */

import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';
import { filled, merged, spread, toggled, wordsAfter } from '../../../static/js/trace/words.js';
import { FILL_TEXT, fillTrace } from '../sample.js';

test('a word is hidden only if it is hidden from all pieces', () => {
  const matrix = {
    rows: 3,
    columns: 3,
    data: Float64Array.of(1, NaN, NaN, 0.4, 0.6, NaN, 0.2, 0.3, 0.5),
  };
  const words = [
    { first: 0, last: 0 },
    { first: 1, last: 2 },
  ];
  deepEqual(
    [...merged(matrix, words, words).data].map((value) => Number(value.toFixed(12))),
    [1, NaN, 0.3, 0.7],
  );
});

test('a word’s value is that of each of its pieces', () => {
  const words = [
    { first: 1, last: 1 },
    { first: 2, last: 3 },
  ];
  deepEqual([...spread(words, [1, 2], 4)], [NaN, 1, 2, 2]);
});

const tokenAt = (text, start, word) => ({
  id: 1,
  text,
  start,
  end: start + [...text].length,
  word,
  is_special: false,
});
const mask = (start, end) => ({ id: 2, text: '[MASK]', start, end, word: null, is_special: true });
const START = { id: 0, text: '<s>', start: 0, end: 0, word: null, is_special: true };

test('a word gives way to a mask, with the space before it kept', () => {
  const trace = {
    text: 'a man sings',
    tokens: [START, tokenAt('a', 0, 0), tokenAt(' man', 1, 1), tokenAt(' sings', 5, 2)],
  };
  deepEqual(toggled(trace, 2, ''), { text: 'a [MASK] sings', words: 'man', query: 2 });
  deepEqual(toggled(trace, 1, ''), { text: '[MASK] man sings', words: 'a', query: 1 });
});

test('a word of several pieces goes as a whole, whichever piece is pressed', () => {
  const trace = {
    text: '👩 guitars!',
    tokens: [
      START,
      tokenAt('👩', 0, 0),
      tokenAt(' guit', 1, 1),
      tokenAt('ars', 6, 1),
      tokenAt('!', 9, 2),
    ],
  };
  for (const piece of [2, 3])
    deepEqual(toggled(trace, piece, ''), { text: '👩 [MASK]!', words: 'guitars', query: 2 });
});

test('pressing a mask brings its own word back', () => {
  const text = '[MASK] man [MASK] songs';
  const tokens = [START, mask(0, 6), tokenAt(' man', 6, 0), mask(10, 17), tokenAt(' songs', 17, 1)];
  deepEqual(toggled({ text, tokens }, 3, 'The sings'), {
    text: '[MASK] man sings songs',
    words: 'The',
    query: 3,
  });
  deepEqual(toggled({ text, tokens }, 1, 'The sings'), {
    text: 'The man [MASK] songs',
    words: 'sings',
    query: 1,
  });
});

test('a guess takes the place of the mask, with or without a space', () => {
  const trace = fillTrace();
  deepEqual(filled(trace, 2, ' ran', ''), { text: 'it ran <b> it', words: '', query: 2 });
  equal(filled(trace, 2, 's', '').text, 'its <b> it');
});

test('after editing, masks that were left alone keep their words', () => {
  equal(wordsAfter(FILL_TEXT, `${FILL_TEXT} again`, 'saw'), 'saw');
  equal(wordsAfter(FILL_TEXT, `So ${FILL_TEXT}`, 'saw'), 'saw');
  equal(wordsAfter('a [MASK] b [MASK]', 'a [MASK]', 'x y'), 'x');
  equal(wordsAfter('a [MASK]', 'a [MASK] and [MASK]', 'x'), 'x');
  equal(wordsAfter('a [MASK]', 'quite different', 'x'), '');
  equal(wordsAfter('', 'a [MASK]', ''), '');
});

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
