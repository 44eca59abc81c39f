import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';
import {
  KINDS,
  layerOf,
  partsOf,
  searchQuery,
  tagInWords,
} from '../../../static/js/trace/atlas.js';

const asked = (from, to, isSame = false) => {
  const { n_sentences: count, ...query } = searchQuery({ from, to, isSame });
  equal(count, 15);
  return query;
};

test('a part of speech is searched as one, and anything else as a word', () => {
  deepEqual(asked('Pronoun', ' king '), { from_tag: 'pronoun', to_word: 'king' });
  deepEqual(asked('', ''), {});
  deepEqual(asked('', '', true), { same_word: true });
});

test('quotes make a word of the name of a part of speech', () => {
  deepEqual(asked('"verb"', '“noun”'), { from_word: 'verb', to_word: 'noun' });
  deepEqual(asked('"', '""'), { from_word: '"', to_word: '""' });
});

test('every kind has its word', () => {
  deepEqual(['PRON', 'NOUN', 'PROPN', 'PUNCT'].map(tagInWords), [
    'pronoun',
    'noun',
    'name',
    'punctuation',
  ]);
  equal(tagInWords('NEW'), 'new');
  equal(new Set(KINDS).size, KINDS.length);
});

test('a sentence is cut around its pair, in order', () => {
  const parts = partsOf('The king saw him.', [
    { span: [13, 16], role: 'query' },
    { span: [4, 8], role: 'key' },
  ]);
  deepEqual(parts, [
    { text: 'The ' },
    { text: 'king', role: 'key' },
    { text: ' saw ' },
    { text: 'him', role: 'query' },
    { text: '.' },
  ]);
});

test('characters are code points, and places that overlap are cut once', () => {
  deepEqual(partsOf('𝔸 b', [{ span: [2, 3], role: 'key' }]), [
    { text: '𝔸 ' },
    { text: 'b', role: 'key' },
  ]);
  const overlapping = [
    { span: [0, 2], role: 'key' },
    { span: [1, 3], role: 'query' },
  ];
  deepEqual(
    partsOf('abc', overlapping).map(({ text }) => text),
    ['ab', 'c'],
  );
  deepEqual(partsOf('', []), []);
});

test('the layer of a path is its number', () => {
  equal(layerOf('decoder.layers.12.self_attention'), 12);
});
