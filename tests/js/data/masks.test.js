import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filled, toggled, wordBehind, wordsAfter } from '../../../static/js/data/masks.js';
import { FILL_TEXT, fillTrace } from '../sample.js';

const token = (text, start, word) => ({
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
    tokens: [START, token('a', 0, 0), token(' man', 1, 1), token(' sings', 5, 2)],
  };
  assert.deepEqual(toggled(trace, 2, ''), { text: 'a [MASK] sings', words: 'man', query: 2 });
  assert.deepEqual(toggled(trace, 1, ''), { text: '[MASK] man sings', words: 'a', query: 1 });
});

test('a word of several pieces goes as a whole, whichever piece is pressed', () => {
  const trace = {
    text: '👩 guitars!',
    tokens: [START, token('👩', 0, 0), token(' guit', 1, 1), token('ars', 6, 1), token('!', 9, 2)],
  };
  for (const piece of [2, 3])
    assert.deepEqual(toggled(trace, piece, ''), { text: '👩 [MASK]!', words: 'guitars', query: 2 });
});

test('special tokens and blanks are no words', () => {
  const trace = { text: 'a\n', tokens: [START, token('a', 0, 0), token('\n', 1, 1)] };
  assert.deepEqual([toggled(trace, 0, ''), toggled(trace, 2, '')], [null, null]);
});

test('pressing a mask brings its own word back', () => {
  const text = '[MASK] man [MASK] songs';
  const tokens = [START, mask(0, 6), token(' man', 6, 0), mask(10, 17), token(' songs', 17, 1)];
  assert.deepEqual(toggled({ text, tokens }, 3, 'The sings'), {
    text: '[MASK] man sings songs',
    words: 'The',
    query: 3,
  });
  assert.deepEqual(toggled({ text, tokens }, 1, 'The sings'), {
    text: 'The man [MASK] songs',
    words: 'sings',
    query: 1,
  });
});

test('a mask that somebody typed has no word to bring back', () => {
  assert.equal(toggled(fillTrace(), 2, ''), null);
  assert.equal(wordBehind(fillTrace().tokens, 2, ''), '');
});

test('masking beside a typed mask keeps the words in order', () => {
  const trace = fillTrace();
  const after = toggled(trace, 4, '');
  assert.deepEqual(after, { text: 'it [MASK] <b> [MASK]', words: ' it', query: 4 });
  assert.equal(toggled(trace, 1, 'saw').words, 'it saw');
});

test('a guess takes the place of the mask, with or without a space', () => {
  const trace = fillTrace();
  assert.deepEqual(filled(trace, 2, ' ran', ''), { text: 'it ran <b> it', words: '', query: 2 });
  assert.equal(filled(trace, 2, 's', '').text, 'its <b> it');
});

test('after editing, masks that were left alone keep their words', () => {
  assert.equal(wordsAfter(FILL_TEXT, `${FILL_TEXT} again`, 'saw'), 'saw');
  assert.equal(wordsAfter(FILL_TEXT, `So ${FILL_TEXT}`, 'saw'), 'saw');
  assert.equal(wordsAfter('a [MASK] b [MASK]', 'a [MASK]', 'x y'), 'x');
  assert.equal(wordsAfter('a [MASK]', 'a [MASK] and [MASK]', 'x'), 'x');
  assert.equal(wordsAfter('a [MASK]', 'quite different', 'x'), '');
  assert.equal(wordsAfter('', 'a [MASK]', ''), '');
});
