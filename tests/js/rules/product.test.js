import { equal } from 'node:assert/strict';
import { test } from 'node:test';
import { asQuestion, isLearnedQuestion, multiplies } from '../../../static/js/rules/product.js';

test('a product is read however it is written', () => {
  for (const text of ['47 x 23', '47×23=', '47 * 23 =', '47·23', ' 47X23', '47*23='])
    equal(asQuestion(text), '47*23=');
  equal(asQuestion('47 × 23 = 47*20 + 47*3'), '47*23=47*20+47*3');
});

test('what is still being typed, or no product, stays', () => {
  equal(asQuestion('47*2'), '47*2');
  equal(asQuestion('4 x 23'), '4*23');
  equal(asQuestion('47*123='), '47*123=');
  for (const text of ['', 'hello', '47 + 23', '47*23 and more']) equal(asQuestion(text), text);
});

test('only two digits times two were learned', () => {
  for (const text of ['47*23=', '47*23', '10*99=10*90+10*9']) equal(isLearnedQuestion(text), true);
  for (const text of ['4*23=', '47*123=', '07*23=', '47+23=', 'hello', '47*23x'])
    equal(isLearnedQuestion(text), false);
});

test('a model multiplies if all its examples do', () => {
  const card = (...texts) => ({ examples: texts.map((text) => ({ text })) });
  equal(multiplies(card('47*23=', '12*34=408')), true);
  equal(multiplies(card('47*23=', 'The cat')), false);
  equal(multiplies(card()), false);
  equal(multiplies(null), false);
});
