import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  columnsOf,
  directionOf,
  enumerated,
  escapeForPlotly,
  nameOf,
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

test('an accent without a letter gets a place to sit', () => {
  assert.equal(visible('\u0301'), '◌\u0301');
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

test('a list is read with “and” before its last', () => {
  assert.equal(enumerated(['scaled']), 'scaled');
  assert.equal(enumerated([0, 3]), '0 and 3');
  assert.equal(enumerated(['scaled', 'biased', 'masked']), 'scaled, biased and masked');
});
