/** The model's card in one line, and the characters that its tokenizer replaces. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { claimInWords, corpusOf, readInText } from '../../../static/js/ui/composer.js';
import { readInWords } from '../../../static/js/ui/page.js';

const CORPUS = {
  by: 'passage',
  before: { documents: 15543, bytes: 30.3e6, words: 5_760_000 },
  dropped: { near_duplicate: 7, low_quality: 12345 },
  topics: { 'boy girl school': 0.1, 'ship sea captain': 0.25, 'king queen castle': 0.05 },
};

test('the training text is told by its size, its duplicates and its largest topics', () => {
  assert.equal(
    corpusOf(CORPUS),
    '15,543 passages, 30.3 MB, 5.8 million words; among them 7 near-duplicates, ' +
      '12 thousand of low quality; largest topics: ship, sea, captain (25.0 %); ' +
      'boy, girl, school (10.0 %); king, queen, castle (5.0 %)',
  );
});

const NORMALIZATION = {
  replacements: [
    { characters: '‘’', text: "'" },
    { characters: '“”', text: '"' },
    { characters: '\u00a0', text: ' ' },
  ],
  lowers_capitals: true,
};

test('the characters of a text that are read as others are named, and no more of them', () => {
  const read = (/** @type {string} */ text) => readInText({ text }, NORMALIZATION);
  assert.equal(read("I don't."), '');
  assert.equal(read('“I don’t,” she said.'), `reads ’ as ', “ ” as "`);
  assert.equal(read('a\u00a0b'), '');
  assert.equal(read('I’M HERE'), "reads ’ as ', capitals as small letters");
  assert.equal(read('I'), '');
  assert.equal(read('12:30 日本'), '');
  assert.equal(readInText({ text: '“HERE”' }), '');
  const tokens = [...'a我喜歡吃'].map((whole) => ({ part: whole === 'a' ? null : { whole } }));
  const spelled = (count) => readInText({ text: '', tokens: tokens.slice(0, count) });
  assert.equal(spelled(1), '');
  assert.equal(spelled(2), 'reads 我 as bytes');
  assert.equal(spelled(5), 'reads 我 喜 歡 … as bytes');
});

test('the status says how much could be read, unless there is no end', () => {
  const read = { tokens: ['a', 'b'], timings: { pass: 3 }, card: { max_tokens: 64 } };
  assert.equal(readInWords(read), '2 of 64 tokens, 3 ms');
  assert.equal(readInWords({ ...read, target_tokens: ['c'] }), '2 + 1 of 64 tokens each, 3 ms');
  const endless = { ...read, card: { max_tokens: 1_000_000, is_endless: true } };
  assert.equal(readInWords(endless), '2 tokens, 3 ms');
  assert.equal(readInWords({ ...endless, target_tokens: ['c'] }), '2 + 1 tokens, 3 ms');
});

test('a claim is told with its score, its control and how many it is a mean over', () => {
  const claim = {
    claim: 'previous',
    measure: 'mean weight on the token before',
    score: 0.9845,
    against: 'uniform attention',
    control: 0.1325,
    sentences: 1045,
  };
  assert.equal(
    claimInWords(claim),
    'Measured over 1,045 samples: mean weight on the token before, 0.98 (uniform attention: 0.13).',
  );
  assert.equal(claimInWords(null), '');
});
