import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bytesInWords, partsOf, placeOf, shortPlaceOf } from '../../../static/js/data/pieces.js';

const token = (text, start, end) => ({ text, start, end, is_special: false });
const START = { text: '<s>', start: 0, end: 0, is_special: true };

test('the bytes of a character know the character and their place in it', () => {
  const tokens = [
    START,
    token(' ', 0, 1),
    token('\\xe7', 1, 2),
    token('\\x8c', 1, 2),
    token('\\xab', 1, 2),
    token(' a', 2, 4),
  ];
  const parts = partsOf(tokens, ' 猫 a');
  assert.deepEqual(
    parts.map((part) => part && placeOf(part)),
    [null, null, 'byte 1 of 3', 'byte 2 of 3', 'byte 3 of 3', null],
  );
  assert.ok(parts.slice(2, 5).every(({ whole }) => whole === '猫'));
});

test('the same character twice is two characters', () => {
  const tokens = [
    token('\\xc3', 0, 1),
    token('\\xa9', 0, 1),
    token('\\xc3', 1, 2),
    token('\\xa9', 1, 2),
  ];
  assert.deepEqual(partsOf(tokens, 'éé').map(shortPlaceOf), ['1/2', '2/2', '1/2', '2/2']);
});

test('a piece may hold several bytes, and the space before the character', () => {
  const tokens = [token(' \\xf0\\x9f', 0, 2), token('\\x98\\x80', 1, 2)];
  const parts = partsOf(tokens, ' 😀');
  assert.deepEqual(parts.map(placeOf), ['bytes 1–2 of 4', 'bytes 3–4 of 4']);
  assert.deepEqual(
    parts.map(({ whole }) => whole),
    ['😀', '😀'],
  );
});

test('offsets count characters, not the halves of a surrogate pair', () => {
  const tokens = [token('\\xd9', 3, 4), token('\\x85', 3, 4)];
  assert.deepEqual(
    partsOf(tokens, '👩a م').map(({ whole }) => whole),
    ['م', 'م'],
  );
});

test('somebody who types a byte’s name gets no character of bytes', () => {
  assert.deepEqual(partsOf([token('\\xd9', 0, 4)], '\\xd9'), [null]);
  assert.deepEqual(partsOf([token('xd9', 0, 3)], 'xd9'), [null]);
});

test('bytes of a character that nobody knows yet are called bytes', () => {
  assert.equal(bytesInWords('\\xe7'), 'byte e7');
  assert.equal(bytesInWords(' \\xf0\\x9f'), 'bytes f0 9f');
  for (const text of ['a', 'x\\xe7', '', ' ']) assert.equal(bytesInWords(text), null);
});
