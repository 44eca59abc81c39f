import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { roundTicks, ticksFor } from '../../../static/js/plot/scales.js';

test('all labels where there is room for all', () => {
  deepEqual(ticksFor(0, 4, 100, 15), [0, 1, 2, 3, 4]);
});

test('labels thin out evenly, and no two are nearer than they need', () => {
  const ticks = ticksFor(0, 255, 600, 15);
  const steps = new Set(ticks.slice(1).map((tick, index) => tick - ticks[index]));
  equal(steps.size, 1);
  ok([...steps][0] * (600 / 256) >= 15);
});

test('a zoomed axis labels what it shows, at the same multiples', () => {
  deepEqual(ticksFor(7, 20, 100, 15), [8, 12, 16, 20]);
});

test('an axis of amounts has round ticks, few of them, and none past its end', () => {
  deepEqual(roundTicks(1, 4), [0, 0.25, 0.5, 0.75, 1]);
  deepEqual(roundTicks(0.026, 4), [0, 0.01, 0.02]);
  for (let end = 0.02; end < 1; end *= 1.07) {
    const ticks = roundTicks(end, 4);
    ok(ticks.length >= 2 && ticks.length <= 5 && ticks.at(-1) <= end + 1e-9, `${end}: ${ticks}`);
  }
});

test('the label of a chosen row is kept, and displaces those too near', () => {
  deepEqual(ticksFor(0, 9, 60, 12, [3]), [0, 3, 6, 8]);
  deepEqual(ticksFor(0, 9, 60, 12, [4, 99]), [0, 2, 4, 6, 8]);
  deepEqual(ticksFor(0, 4, 100, 15, [3]), [0, 1, 2, 3, 4]);
});
