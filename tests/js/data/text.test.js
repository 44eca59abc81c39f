import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  byteRangeOf,
  bytesInWords,
  columnsOf,
  directionOf,
  escapeForPlotly,
  nameOf,
  partsOf,
  quoted,
  shortened,
  visible,
} from '../../../static/js/data/text.js';

test('what cannot be seen is shown', () => {
  assert.equal(visible(' it'), '·it');
  assert.equal(visible('a\n\t'), 'a↵⇥');
  assert.equal(visible('\u00a0'), '⍽');
  assert.equal(visible('\u0000'), '␀');
  assert.equal(visible('\u0085'), '‹U+0085›');
  assert.equal(visible('\u202eabc'), '‹RLO›abc');
  assert.equal(visible('\u200b'), '‹ZWSP›');
});

test('joiners do their work inside a token and are named when alone', () => {
  assert.equal(visible('👩\u200d🚀'), '👩\u200d🚀');
  assert.equal(visible('\u200d'), '‹ZWJ›');
  assert.equal(visible('\ufe0f'), '‹VS16›');
});

test('a name is the token without its space, unless space is all there is', () => {
  assert.equal(nameOf({ text: ' it' }), 'it');
  assert.equal(nameOf({ text: '  ' }), '··');
  assert.equal(nameOf({ text: '\n' }), '↵');
  assert.equal(quoted({ text: ' it' }), '“\u2068it\u2069”');
});

test('a token never becomes markup in a plot', () => {
  assert.equal(escapeForPlotly('<a href="x">&amp;</a>'), '&lt;a href="x"&gt;&amp;amp;&lt;/a&gt;');
  assert.equal(escapeForPlotly('<s>'), '&lt;s&gt;');
});

test('labels are cut by the room they take, never inside a character', () => {
  assert.equal(shortened('incomprehensible', 6), 'incom…');
  assert.equal(shortened('short', 6), 'short');
  assert.equal(shortened('中文中文', 6), '中文…');
  assert.equal(shortened('👩👩👩👩', 5), '👩👩…');
  assert.equal(columnsOf('a中👩'), 5);
  assert.equal(columnsOf('e\u0301'), 1);
});

test('a text reads as its first letter does', () => {
  assert.equal(directionOf('… “مرحبا” world'), 'rtl');
  assert.equal(directionOf('שלום'), 'rtl');
  assert.equal(directionOf('2024 hello مرحبا'), 'ltr');
  assert.equal(directionOf('!!!'), 'ltr');
});

test('a piece of a character is called by the character, and says which piece it is', () => {
  const piece = { text: '\\x8c', part: { whole: '猫', from: 2, to: 2, of: 3 } };
  assert.equal(nameOf(piece), '猫 2/3');
  assert.equal(quoted(piece), '“\u2068猫\u2069” (byte 2 of 3)');
  assert.equal(
    nameOf({ text: '\\x80', part: { whole: '\u200b', from: 2, to: 3, of: 3 } }),
    '‹ZWSP› 2–3/3',
  );
  assert.equal(
    nameOf({ text: '\\xd9', part: { whole: 'م', from: 1, to: 1, of: 2 } }),
    '\u2068م\u2069 1/2',
    'the numbers stay where they belong',
  );
});

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
    parts.map((part) => part && byteRangeOf(part)),
    [null, null, 'byte 1 of 3', 'byte 2 of 3', 'byte 3 of 3', null],
  );
  assert.ok(parts.slice(2, 5).every(({ whole }) => whole === '猫'));
});

test('a piece may hold several bytes, and the space before the character', () => {
  const tokens = [token(' \\xf0\\x9f', 0, 2), token('\\x98\\x80', 1, 2)];
  const parts = partsOf(tokens, ' 😀');
  assert.deepEqual(parts.map(byteRangeOf), ['bytes 1–2 of 4', 'bytes 3–4 of 4']);
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
