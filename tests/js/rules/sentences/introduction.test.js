import { equal, match } from 'node:assert/strict';
import { test } from 'node:test';
import {
  introduce,
  isForSums,
  offerFor,
} from '../../../../static/js/rules/sentences/introduction.js';
import { traceOf } from '../made_trace.js';

const STORIES = { id: 'stories', title: 'Stories', learned: 'stories', examples: [] };
const SUMS = { id: 'sums', title: 'Sums', learned: 'sums', examples: [{ text: '47*23=47*20' }] };
const OWN = { id: 'own', title: '', architecture: 'Gpt', kind: 'decoder', examples: [] };
const of = (words, card = STORIES) => ({ ...traceOf(['<s>', ...words], []), card });

test('a text of which more than a third is in pieces is told with what the model learned', () => {
  equal(introduce(of(['The', ' ca', 'ts', ' sat', ' down'])), '');
  equal(
    introduce(of(['The', ' Gar', 'ten', ' und', ' Blu', 'men'])),
    '“Stories” learned stories; it reads 2 of these 4 words in pieces.',
  );
  match(introduce(of(['H', 'i'])), /nearly letter by letter\.$/);
  match(introduce(of(['Gar', 'ten'])), /reads this word in pieces\.$/);
  match(introduce(of(['Gar', 'ten'], OWN)), /^“own” reads this word/);
});

test('the end of a contraction is no piece, and digits are whole to a model that multiplies', () => {
  equal(introduce(of([' don', "'t"])), '');
  equal(introduce(of(['4', '7', '*', '2', '3', '='], SUMS)), '');
});

test('letters of which tokens have bytes count as words', () => {
  const trace = of(['a', '\\xf0\\x9f', '\\x8d\\x95']);
  const parts = [null, null, { from: 1, to: 2, of: 4 }, { from: 3, to: 4, of: 4 }];
  const tokens = trace.tokens.map((token, at) => ({
    ...token,
    part: parts[at] && { whole: '🍕', ...parts[at] },
    ...(at > 1 && { start: 1, end: 2 }),
  }));
  match(introduce({ ...trace, text: 'a🍕', tokens }), /most of this byte by byte\.$/);
});

test('a product opens in a model that multiplies, any other text in one of the reader’s own', () => {
  const product = offerFor(of(['12', ' x', ' 34']), [STORIES, SUMS, OWN]);
  equal(product.patch.model, 'sums');
  equal(product.patch.text, '12*34=');
  equal(offerFor(of(['Der', ' Hund']), [STORIES, SUMS, OWN]).patch.model, 'own');
  equal(offerFor(of(['Der', ' Hund']), [STORIES, SUMS]), null);
});

test('another calculation is told what the model learned, and offers an example of one that multiplies', () => {
  for (const words of [
    ['2', '+', '2', '='],
    ['What', ' is', ' 12', ' /', ' 4', '?'],
  ]) {
    equal(introduce(of(words)), '“Stories” learned stories.');
    equal(offerFor(of(words), [STORIES, SUMS]).patch.text, '47*23=');
  }
  equal(introduce(of(['2', '+', '2'], OWN)), '');
  equal(isForSums(of(['2', '+', '2'], OWN)), true);
  equal(isForSums(of(['2', '+', '2'], SUMS)), false);
  for (const text of ['2026-11-28', '24/7', '1 2 3', 'C++', 'x² + y² = z²', 'a/b?c=d'])
    equal(introduce(of([text])), '');
});
