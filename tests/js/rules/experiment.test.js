/** Parameters of experiments: typed, slid, and in links. */

import { deepEqual, equal, ok, match } from 'node:assert/strict';
import { test } from 'node:test';
import {
  changed,
  parametersOf,
  problemsInLink,
  readTyped,
  slideOf,
  valuesInLink,
  writeInLink,
} from '../../../static/js/rules/experiment.js';
import { joined } from '../../../static/js/rules/experiment_run.js';

const PARAMETERS = parametersOf({
  parameters: {
    properties: {
      seed: { type: 'integer', default: 0, minimum: 0, exclusiveMaximum: 2 ** 31 },
      width: { type: 'integer', default: 1024, minimum: 1, maximum: 2048 },
      d_model: { type: 'integer', default: 32, minimum: 8, maximum: 48, multipleOf: 8 },
      deviation: { type: 'number', default: 1, minimum: 0.1, maximum: 3 },
      scores: {
        type: 'array',
        items: { type: 'number', minimum: -5, maximum: 5 },
        minItems: 2,
        maxItems: 3,
        default: [1, 2],
      },
      task: { type: 'string', enum: ['copy', 'sort'], default: 'copy' },
      is_causal: { type: 'boolean', default: false },
      is_scaled: { anyOf: [{ type: 'boolean' }, { type: 'null' }], default: null },
      first: { type: 'string', maxLength: 5, default: 'a' },
      inputs: {
        anyOf: [
          { type: 'array', items: { type: 'array', items: { type: 'number' } } },
          { type: 'null' },
        ],
        default: null,
      },
    },
  },
});
const named = (name) => PARAMETERS.find((each) => each.name === name);

test('every kind of parameter is told apart', () => {
  deepEqual(
    PARAMETERS.map(({ kind }) => kind),
    ['integer', 'integer', 'integer', 'number', 'list', 'choice', 'flag', 'flag', 'text', 'rows'],
  );
  ok(named('is_scaled').isOptional && !named('is_causal').isOptional);
});

test('a typed number that breaks a limit says the limit', () => {
  const problem = (name, typed) => readTyped(named(name), typed).problem;
  equal(problem('width', '2048'), '');
  ok(problem('width', '2049').includes('2048'));
  ok(problem('deviation', '0.01').includes('0.1'));
  ok(problem('width', '1.5') && problem('width', '') && problem('d_model', '9'));
  ok(problem('scores', '1') && problem('scores', '1, 9') && !problem('scores', '1; −2 3'));
  ok(problem('first', '123456'));
  ok(problem('seed', String(2 ** 31)));
});

test('a slider gives back the value it is set to, and both limits', () => {
  for (const name of ['width', 'd_model', 'deviation']) {
    const { least, most } = named(name);
    const slide = slideOf(named(name));
    for (const end of [least, most]) equal(slide.value(slide.at(end)), end);
  }
  const wide = slideOf(named('width'));
  equal(wide.value(wide.at(1024)), 1024);
  equal(slideOf(named('seed')), null);
});

test('a link restores what was set, and names nothing else', () => {
  const set = {
    width: 64,
    deviation: 0.5,
    scores: [3, -1],
    task: 'sort',
    is_causal: true,
    is_scaled: false,
    first: 'é&=#',
    inputs: [[1, -0.5]],
  };
  const link = new URLSearchParams();
  writeInLink(link, PARAMETERS, { ...set, seed: 0, d_model: 32 });
  deepEqual([...link.keys()].sort(), Object.keys(set).sort());
  deepEqual(valuesInLink(new URLSearchParams(link.toString()), PARAMETERS), set);
});

test('a wrong value in a link is told, with its limit', () => {
  const told = (text, view = {}) => [
    ...problemsInLink(new URLSearchParams(text), PARAMETERS, view),
  ];
  deepEqual(told('experiment=x&run=1&width=64'), []);
  deepEqual(told('width=64&other=2'), [
    ['other', '“other” in the link is ignored: no such parameter'],
  ]);
  const all = { steps: () => [], besides: [{ id: 'rnn' }], pickable: () => [3, 3] };
  deepEqual(told('frame=3&beside=rnn&picked=1.2', all), []);
  for (const text of ['frame=3', 'beside=rnn', 'picked=1.2']) equal(told(text).length, 1);
  for (const text of ['frame=-1', 'frame=x', 'beside=gru', 'picked=1', 'picked=a.b'])
    equal(told(text, all).length, 1);
  deepEqual(told('width=9999'), [['width', '“9999” in the link is ignored: at most 2048']]);
  deepEqual(told('is_causal=maybe'), [['is_causal', '“maybe” in the link is ignored: 0 or 1']]);
  deepEqual(
    told('task=x&inputs=[1')
      .map(([name]) => name)
      .sort(),
    ['inputs', 'task'],
  );
});

test('only values that differ from the standard ones are sent', () => {
  deepEqual(changed(PARAMETERS, { width: 1024, scores: [1, 2], is_scaled: null, task: 'sort' }), {
    task: 'sort',
  });
});

test('frames are joined along the growing axis, wherever it stands', () => {
  const array = (axes, shape, data) => ({ axes, shape, dtype: 'float64', data });
  const first = {
    loss: array(['run', 'step'], [2, 1], [[1], [2]]),
    name: array(['run'], [2], ['a', 'b']),
  };
  const second = {
    loss: array(
      ['run', 'step'],
      [2, 2],
      [
        [3, 4],
        [5, 6],
      ],
    ),
    name: array(['run'], [2], ['c', 'd']),
  };
  const both = joined(joined({}, first, ['step']), second, ['step']);
  deepEqual(both.loss.data, [
    [1, 3, 4],
    [2, 5, 6],
  ]);
  deepEqual(both.loss.shape, [2, 3]);
  deepEqual(both.name.data, ['c', 'd']);
  deepEqual(first.loss.data, [[1], [2]]);
});

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
