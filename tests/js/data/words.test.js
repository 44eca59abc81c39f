import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alone, merged, spread, unitOf, wordsOf } from '../../../static/js/data/words.js';

const token = (text, start, word, more = {}) => ({
  id: 1,
  text,
  start,
  end: start + [...text].length,
  word,
  is_special: word === null,
  ...more,
});
const TEXT = 'un tired hen';
const TOKENS = [
  { id: 0, text: '<s>', start: 0, end: 0, word: null, is_special: true },
  token('un', 0, 0),
  token(' tir', 2, 1),
  token('ed', 6, 1),
  token(' h', 8, 2),
  token('e', 10, 2),
  token('n', 11, 2),
];

test('pieces of one word are read as that word, and a special token stays alone', () => {
  const words = wordsOf(TOKENS, TEXT);
  assert.deepEqual(
    words.map(({ text, first, last }) => [text, first, last]),
    [
      ['<s>', 0, 0],
      ['un', 1, 1],
      [' tired', 2, 3],
      [' hen', 4, 6],
    ],
  );
  assert.deepEqual(
    words.map((word) => word.is_special),
    [true, false, false, false],
  );
});

test('two special tokens side by side are two', () => {
  const mask = { id: 2, text: '[MASK]', start: 0, end: 6, word: null, is_special: true };
  assert.equal(wordsOf([mask, { ...mask, start: 7, end: 13 }], '[MASK] [MASK]').length, 2);
});

test('the bytes of a letter are the letter, wherever its characters lie in the text', () => {
  const bytes = [
    token('\\xf0\\x9f', 2, 0, { start: 2, end: 3, part: { whole: '🐭' } }),
    token('\\x90\\xad', 2, 0, { start: 2, end: 3, part: { whole: '🐭' } }),
  ];
  const [word] = wordsOf(bytes, '🐱 🐭');
  assert.deepEqual([word.text, word.part, word.first, word.last], ['🐭', null, 0, 1]);
});

test('columns are summed and rows averaged', () => {
  const matrix = {
    rows: 3,
    columns: 3,
    data: Float64Array.of(1, 0, 0, 0.4, 0.6, 0, 0.2, 0.3, 0.5),
  };
  const words = [
    { first: 0, last: 0 },
    { first: 1, last: 2 },
  ];
  const { rows, columns, data } = merged(matrix, words, words);
  assert.deepEqual([rows, columns], [2, 2]);
  assert.deepEqual(
    [...data].map((value) => Number(value.toFixed(12))),
    [1, 0, 0.3, 0.7],
  );
});

test('what no piece may see stays hidden, and what one piece may see is seen', () => {
  const matrix = {
    rows: 3,
    columns: 3,
    data: Float64Array.of(1, NaN, NaN, 0.4, 0.6, NaN, 0.2, 0.3, 0.5),
  };
  const words = [
    { first: 0, last: 0 },
    { first: 1, last: 2 },
  ];
  assert.deepEqual(
    [...merged(matrix, words, words).data].map((value) => Number(value.toFixed(12))),
    [1, NaN, 0.3, 0.7],
  );
});

test('rows still sum to 1 after merging, however the pieces fall', () => {
  let seed = 7;
  const random = () => {
    seed = (seed * 16807) % 2147483647;
    return seed / 2147483647;
  };
  for (let trial = 0; trial < 200; trial += 1) {
    const count = 1 + Math.floor(random() * 12);
    const isCausal = random() < 0.5;
    let word = 0;
    const tokens = Array.from({ length: count }, (_, index) => {
      if (random() < 0.5) word += 1;
      return token('x', index, random() < 0.2 ? null : word);
    });
    const data = new Float64Array(count * count).fill(NaN);
    for (let row = 0; row < count; row += 1) {
      const seen = isCausal ? row + 1 : count;
      const raw = Array.from({ length: seen }, random);
      const sum = raw.reduce((a, b) => a + b);
      raw.forEach((value, column) => {
        data[row * count + column] = value / sum;
      });
    }
    const words = wordsOf(tokens, 'x'.repeat(count));
    const found = merged({ rows: count, columns: count, data }, words, words);
    for (let row = 0; row < words.length; row += 1) {
      const cells = [...found.data.slice(row * words.length, (row + 1) * words.length)].filter(
        (value) => !Number.isNaN(value),
      );
      assert.ok(Math.abs(cells.reduce((a, b) => a + b) - 1) < 1e-12, `trial ${trial}, row ${row}`);
    }
  }
});

test('a token is found in its word, and one that is hidden is not', () => {
  const words = wordsOf(TOKENS, TEXT);
  assert.deepEqual(
    [0, 1, 2, 3, 4, 5, 6].map((index) => unitOf(words, index)),
    [0, 1, 2, 2, 3, 3, 3],
  );
  assert.equal(unitOf(words.slice(1), 0), -1);
});

test('a word’s value is that of each of its pieces', () => {
  const words = wordsOf(TOKENS, TEXT).slice(1);
  assert.deepEqual([...spread(words, [1, 2, 3], TOKENS.length)], [NaN, 1, 2, 2, 3, 3, 3]);
  assert.deepEqual(
    alone(TOKENS)
      .map(({ first, last }) => [first, last])
      .slice(0, 2),
    [
      [0, 0],
      [1, 1],
    ],
  );
});
