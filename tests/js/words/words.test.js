import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { asSentence } from '../../../static/js/words/lists.js';
import {
  countColumns,
  escapeForPlotly,
  shortened,
  visible,
} from '../../../static/js/words/text.js';
import {
  bytesInWords,
  guessInWords,
  withDigits,
  writeByteRange,
  tokenName,
  splitCharacters,
  quoted,
} from '../../../static/js/words/tokens.js';
import { slugOf } from '../../../static/js/ui/exports.js';

test('invisible characters are shown by a symbol, a name or their code point', () => {
  equal(visible(' it'), '·it');
  equal(visible(' it is  so '), '·it is··so·');
  equal(visible('a\n\t'), 'a↵⇥');
  equal(visible('a\u00a0'), 'a⍽');
  equal(visible('a\u2009'), 'a‹U+2009›');
  for (const code of ['0000', '0005', '000D', '001F', '007F', '009F'])
    equal(visible(String.fromCodePoint(parseInt(code, 16))), `‹U+${code}›`);
  equal(visible('\u0085'), '‹U+0085›');
  equal(visible('\u202eabc'), '‹RLO›abc');
  equal(visible('\u200b'), '‹ZWSP›');
});

test('joiners do their work inside a token and are named when alone', () => {
  equal(visible('👩\u200d🚀'), '👩\u200d🚀');
  equal(visible('\u200d'), '‹ZWJ›');
  equal(visible('\ufe0f'), '‹VS16›');
});

test('a file is named by the first words of its text', () => {
  equal(slugOf('Doctor Mouse sat down, by the river.'), 'doctor-mouse-sat-down-by-the');
  equal(slugOf('../Le garçon n’a “pas” 3 €'), 'le-garçon-n-a-pas-3');
  equal(slugOf('… ?'), '');
  ok(slugOf('a'.repeat(500)).length <= 60);
});

test('a name is the token without its space, unless space is all there is', () => {
  equal(tokenName({ text: ' it' }), 'it');
  equal(tokenName({ text: ' ' }), '‹space›');
  equal(tokenName({ text: '  ' }), '‹2 spaces›');
  equal(tokenName({ text: '\n' }), '‹line break›');
  equal(tokenName({ text: '\n\n \t' }), '‹2 line breaks›‹space›‹tab›');
  equal(tokenName({ text: '\u00a0' }), '‹no-break space›');
  equal(tokenName({ text: '\u3000' }), '‹wide space›');
  equal(tokenName({ text: '\u2003' }), '‹U+2003›');
  equal(tokenName({ text: '\r\n' }), '‹U+000D›‹line break›');
  equal(guessInWords(' '), '‹space›');
  equal(quoted({ text: ' it' }), '“\u2068it\u2069”');
});

test('a clause becomes a sentence; a name from code keeps its case', () => {
  equal(asSentence('send a shorter text'), 'Send a shorter text.');
  equal(asSentence('Ask for less.'), 'Ask for less.');
  equal(asSentence('n_tokens: must be at least 1'), 'n_tokens: must be at least 1.');
  equal(asSentence('text: is empty'), 'text: is empty.');
  equal(asSentence(''), '');
});

test('a token never becomes markup in a plot', () => {
  equal(escapeForPlotly('<a href="x">&amp;</a>'), '&lt;a href="x"&gt;&amp;amp;&lt;/a&gt;');
  equal(escapeForPlotly('<s>'), '&lt;s&gt;');
});

test('labels are cut by the room they take, never inside a character', () => {
  equal(shortened('incomprehensible', 6), 'incom…');
  equal(shortened('short', 6), 'short');
  equal(shortened('中文中文', 6), '中文…');
  equal(shortened('👩👩👩👩', 5), '👩👩…');
  equal(countColumns('a中👩'), 5);
  equal(countColumns('e\u0301'), 1);
});

test('a piece of a character is called by the character, and says which piece it is', () => {
  const piece = { text: '\\x8c', part: { whole: '猫', from: 2, to: 2, of: 3 } };
  equal(tokenName(piece), '猫 2/3');
  equal(quoted(piece), '“\u2068猫\u2069” (byte 2 of 3)');
  equal(
    tokenName({ text: '\\x80', part: { whole: '\u200b', from: 2, to: 3, of: 3 } }),
    '‹ZWSP› 2–3/3',
  );
  equal(
    tokenName({ text: '\\xd9', part: { whole: 'م', from: 1, to: 1, of: 2 } }),
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
  const parts = splitCharacters(tokens, ' 猫 a');
  deepEqual(
    parts.map((part) => part && writeByteRange(part)),
    [null, null, 'byte 1 of 3', 'byte 2 of 3', 'byte 3 of 3', null],
  );
  ok(parts.slice(2, 5).every(({ whole }) => whole === '猫'));
});

test('offsets count characters, not the halves of a surrogate pair', () => {
  const tokens = [token('\\xd9', 3, 4), token('\\x85', 3, 4)];
  deepEqual(
    splitCharacters(tokens, '👩a م').map(({ whole }) => whole),
    ['م', 'م'],
  );
});

test('a token of a letter and a byte has both in its name', () => {
  const [first, second] = [token(' の\\xe9', 0, 3), token('\\x94\\x8d', 2, 3)];
  const [part, rest] = splitCharacters([first, second], ' の鍍');
  deepEqual([part.whole, rest.whole, writeByteRange(rest)], ['鍍', '鍍', 'bytes 2–3 of 3']);
  equal(tokenName({ ...first, part }), 'の鍍 1/3');
  equal(bytesInWords(' の\\xe9'), 'の + byte e9');
  equal(withDigits(' の\\xe9'), ' の+e9');
  equal(withDigits(' \\xf0\\x9f'), ' f09f');
  equal(bytesInWords(' \\xf0\\x9f'), 'bytes f0 9f');
});

test('what only looks like a byte is text', () => {
  const typed = token('\\x5cxe7', 0, 4);
  deepEqual(splitCharacters([typed], '\\xe7'), [null]);
  equal(bytesInWords(typed.text), null);
  equal(tokenName(typed), '\\xe7');
});
