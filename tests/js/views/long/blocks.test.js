import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import {
  blockFor,
  memoryOf,
  orderOf,
  outputOf,
  computeSteps,
} from '../../../../static/js/views/long/blocks.js';
import { long } from '../../../../static/js/views/long/long.js';
import { FRAME, sampleTrace } from '../../sample.js';
import { WIDTHS } from '../view_contract.js';

const SCORES = [0.5, -2, 3, 1, 7, -Infinity, 2, 6.5];
const VALUES = Float64Array.from({ length: 16 }, (_, at) => Math.sin(at));

test('the running maximum and sum end at those of the whole row, whatever the blocks', () => {
  const whole = SCORES.reduce((sum, score) => sum + Math.exp(score - 7), 0);
  for (const size of [1, 2, 3, 8]) {
    const last = computeSteps(SCORES, size).at(-1);
    equal(last.maximum, 7);
    ok(Math.abs(last.sum - whole) < 1e-12);
  }
  deepEqual(
    computeSteps(SCORES, 2).map(({ maximum, factor }) => [maximum, factor]),
    [
      [0.5, 0],
      [3, Math.exp(0.5 - 3)],
      [7, Math.exp(3 - 7)],
      [7, 1],
    ],
  );
});

test('the output of the blocks is the weighted mean of the values', () => {
  const weights = SCORES.map((score) => Math.exp(score));
  const sum = weights.reduce((all, weight) => all + weight, 0);
  const output = outputOf(SCORES, computeSteps(SCORES, 3), VALUES, 2);
  for (const at of [0, 1]) {
    const mean = weights.reduce((all, weight, key) => all + weight * VALUES[2 * key + at], 0) / sum;
    ok(Math.abs(output[at] - mean) < 1e-12);
  }
});

test('blocks without a visible key are skipped', () => {
  const hidden = Array.from({ length: 4 }, () => -Infinity);
  deepEqual(
    computeSteps([...hidden, 1, 2], 2).map(({ first }) => first),
    [4],
  );
  deepEqual(orderOf(2, 2, true), [
    [1, null],
    [2, 3],
  ]);
});

test('memory grows with the square of the text, or of the block', () => {
  const { whole, blocks } = memoryOf({ queries: 1000, keys: 1000 }, 12, 64, 32);
  equal(whole, 48e6);
  equal(blocks, 4 * 64 * 98);
  equal(blockFor({ rows: { length: 5946 }, columns: { length: 5946 } }), 512);
});

test('the row of the chosen token is drawn block by block, and equals the pass', () => {
  const trace = { ...sampleTrace(), resolution: 256, tiles: [] };
  const count = trace.tokens.length;
  const site = 'decoder.layers.1.self_attention';
  const query = count - 1;
  const scores = Array.from({ length: count }, (_, key) => Math.cos(3 * key));
  const lse = Math.log(scores.reduce((sum, score) => sum + Math.exp(score), 0));
  const values = Float64Array.from({ length: 2 * count }, (_, at) => Math.sin(at));
  const context = new Float64Array(2 * count);
  scores.forEach((score, key) => {
    for (const at of [0, 1])
      context[2 * query + at] += Math.exp(score - lse) * values[2 * key + at];
  });
  const named = (shape, data) => ({ axes: [], shape, data, scale: 1 });
  const tensors = {
    [`${site}.rows`]: named(
      [1, 1, count],
      scores.map((score) => Math.exp(score - lse)),
    ),
    [`${site}.logsumexp`]: named([1, count], new Float64Array(count).fill(lse)),
    [`${site}.values`]: named([1, count, 2], values),
    [`${site}.context`]: named([1, count, 2], context),
  };
  const state = {
    ...FRAME,
    long_region: [],
    long_show: 'blocks',
    long_block: 2,
    answers: { blocks: { trace: { tensors } } },
  };
  deepEqual(long.asks(trace, state).blocks.queries, [query]);
  for (const width of WIDTHS) {
    const figure = long.figure(trace, { ...state, width });
    const facts = Object.fromEntries(figure.facts);
    match(facts['m + ln ℓ'], /apart (0(?!\.)|[\d.]+·10⁻¹[⁰¹²³⁴⁵⁶⁷⁸⁹])/);
    match(facts['o / ℓ'], /at most (0(?!\.)|[\d.]+·10⁻¹[⁰¹²³⁴⁵⁶⁷⁸⁹])/);
    equal(figure.grid.rows, Math.ceil(count / 2));
  }
  const wrong = {
    ...tensors,
    [`${site}.context`]: named(
      [1, count, 2],
      context.map((x) => x + 0.5),
    ),
  };
  const off = long.figure(trace, { ...state, answers: { blocks: { trace: { tensors: wrong } } } });
  match(Object.fromEntries(off.facts)['o / ℓ'], /0\.5|5\.0·10⁻¹/);
});
