import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { commandsOf } from '../../../static/js/data/curl.js';
import { differenceMade, mapSteps } from '../../../static/js/data/steps.js';

const unit = (first, last = first) => ({ first, last });

function shownBy(steps, answers) {
  const input = [...answers, ...steps, 'import json; print(json.dumps(shown))'].join('\n');
  return JSON.parse(execFileSync('python3', ['-I', '-'], { encoding: 'utf8', input }));
}

test('columns of a word are summed, its rows averaged, and what is left of a row sums to 1 again', () => {
  const heads = '[[[1, None, None], [0.5, 0.5, None], [0.25, 0.25, 0.5]]]';
  const steps = mapSteps({
    heads,
    rows: [unit(1, 2)],
    columns: [unit(1, 2)],
    isMax: false,
    isRenormalised: false,
  });
  assert.deepEqual(shownBy(steps, []), [[0.625]]);
  const again = mapSteps({
    heads,
    rows: [unit(1), unit(2)],
    columns: [unit(1), unit(2)],
    isMax: false,
    isRenormalised: true,
  });
  assert.deepEqual(
    shownBy(again, []).map(([a, b]) => Math.round(3 * (a + b))),
    [3, 3],
  );
});

test('several heads are their mean, or cell by cell the largest', () => {
  const of = {
    heads: '[[[0.0, 1.0]], [[0.5, 0.5]]]',
    rows: [unit(0)],
    columns: [unit(0), unit(1)],
    isRenormalised: false,
  };
  assert.deepEqual(shownBy(mapSteps({ ...of, isMax: false }), []), [[0.25, 0.75]]);
  assert.deepEqual(shownBy(mapSteps({ ...of, isMax: true }), []), [[0.5, 1]]);
});

test('a difference is B less A, of the tokens that both have', () => {
  const side = (rows) => ({ site: 'w', rows, columns: [unit(0)] });
  const answers = [
    'before = {"tensors": {"w": {"data": [[[0.25], [9]]]}}}',
    'trace = {"tensors": {"w": {"data": [[[9], [1.0]]]}}}',
  ];
  assert.deepEqual(shownBy(differenceMade(side([unit(0)]), side([unit(1)])).steps, answers), [
    [0.75],
  ]);
});

test('each call is a command, and what is done with the answers a comment that harms no shell', () => {
  const { said } = differenceMade(
    { site: 'w', rows: [], columns: [] },
    { site: 'w', rows: [], columns: [] },
  );
  const lines = commandsOf(
    'http://a',
    [
      { path: '/b', body: null },
      { path: '/c', body: null },
    ],
    { said },
  ).split('\n');
  assert.deepEqual(
    lines.map((line) => line.split(' ')[0]),
    ['curl', 'curl', '#'],
  );
  assert.match(said, /^[A-Za-z0-9 ,:]+$/);
});
