import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';

import { alignTokens, pairWords } from '../../../../static/js/views/compare/match.js';

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
    'Il/Il ne/a chante/fait pas/chanter bien/bien',
  );
});

/** A side whose tokens are pieces, `_` for a space. */
function side(...pieces) {
  const texts = pieces.map((piece) => piece.replace('_', ' '));
  const text = texts.join('');
  const tokens = texts.map((piece, at) => {
    const start = texts.slice(0, at).join('').length;
    return { text: piece, start, end: start + piece.length, id: at, is_special: false, word: at };
  });
  return { trace: { model: 'm', text, tokens } };
}

test('a word is compared whole with one of more pieces', () => {
  const { a, b, pairs, nReplaced } = alignTokens(
    side('The', '_king', '_s', 'aw', '_it'),
    side('The', '_king', '’', 's', '_g', 'ot', '_it', '_too'),
    'source',
  );
  const names = pairs.map(([i, j]) => [a[i].text, b[j].text].map((name) => name.trim()).join('/'));
  deepEqual(names, ['The/The', 'king/king’s', 's/g', 'aw/ot', 'it/it']);
  equal(nReplaced, 3);
});
