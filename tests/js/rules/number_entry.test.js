/** Numbers that are typed or slid. */

import { equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { parametersOf, readTyped, slideOf } from '../../../static/js/rules/experiment.js';

/** A parameter, by its schema. */
const parameterOf = (schema, name = 'p') =>
  parametersOf({ parameters: { properties: { [name]: { default: 1, ...schema } } } })[0];
const number = (minimum, maximum) => parameterOf({ type: 'number', minimum, maximum });
const integer = (minimum, maximum, more = {}) =>
  parameterOf({ type: 'integer', minimum, maximum, ...more });

test('what is no number is refused, and the limits are named if there are two', () => {
  const bounded = number(-2, 3);
  for (const typed of ['', '  ', 'x', '1,5', '−'])
    match(readTyped(bounded, typed).problem, /−2.*3/, typed);
  const open = parameterOf({ type: 'number', minimum: 7 });
  const { problem } = readTyped(open, 'x');
  ok(problem !== '' && !problem.includes('7'));
  match(readTyped(integer(0, 9), 'x').problem, /0.*9/);
  const list = parameterOf({ type: 'array', items: { type: 'number', minimum: 0, maximum: 5 } });
  for (const typed of ['1 x', 'x 1']) match(readTyped(list, typed).problem, /0.*5/, typed);
});

test('a number at a limit is taken, with a minus sign of either kind', () => {
  for (const [typed, value] of [
    ['−2', -2],
    ['-2', -2],
    [' 3 ', 3],
    ['1e-1', 0.1],
  ]) {
    const typedIn = readTyped(number(-2, 3), typed);
    equal(typedIn.value, value);
    equal(typedIn.problem, '', typed);
  }
  const even = integer(2, 8, { multipleOf: 2 });
  equal(readTyped(even, '4').problem, '');
  match(readTyped(even, '5').problem, /2/);
  ok(readTyped(even, '4.5').problem !== readTyped(even, '5').problem);
});

test('a slider moves in round steps, about a hundred from end to end', () => {
  for (const [least, most, step] of [
    [0, 1, 0.01],
    [0.1, 3, 0.05],
    [-5, 5, 0.1],
    [1, 13, 0.2],
    [0, 60, 1],
    [0, 900, 10],
  ]) {
    const slide = slideOf(number(least, most));
    equal(slide.step, step, `${least} to ${most}`);
    ok((most - least) / slide.step <= 100.001);
    equal(slide.least, least);
    equal(slide.most, most);
  }
  equal(slideOf(integer(0, 900)).step, 1);
  equal(slideOf(integer(8, 48, { multipleOf: 8 })).step, 8);
});

test('limits far apart are slid over by factors, and no step leaves them', () => {
  const slide = slideOf(number(0.001, 1));
  ok(Math.abs(slide.value(50) - 0.0316) < 0.001, 'the middle is the mean of the logarithms');
  for (let at = 0; at <= 100; at += 1) {
    const value = slide.value(at);
    ok(value >= 0.001 && value <= 1);
    equal(
      String(value)
        .replace(/^[0.]+/, '')
        .replace(/0+$/, '').length <= 2,
      true,
      `${value}`,
    );
  }
  ok(Number.isInteger(slideOf(integer(1, 2048)).value(37)));
  equal(slideOf(parameterOf({ type: 'number', minimum: 0 })), null);
  equal(slideOf(parameterOf({ type: 'integer', minimum: 0, maximum: 9 }, 'seed')), null);
});
