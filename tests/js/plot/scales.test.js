/** Scales: their labels, ticks and turns. */

import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import {
  buildAxis,
  band,
  labelRoom,
  leanOf,
  turnOf,
  roundTicks,
  ticksFor,
} from '../../../static/js/plot/scales.js';
import { PALETTE } from '../sample.js';

const LABELS = Array.from({ length: 8 }, (_, at) => `a longer label ${at}`);
const axis = (options, isDown = false) =>
  buildAxis(band(LABELS, options), {
    values: [],
    pixels: 200,
    width: 800,
    isDown,
    palette: PALETTE,
  }).axis;

test('labels lie level, lean or stand upright; on a narrow page those that lean stand, too', () => {
  const turns = (width) =>
    [{}, { isSlanted: true }, { isUpright: true }].map((look) => turnOf(band(LABELS, look), width));
  deepEqual(turns(800), [0, -45, -90]);
  deepEqual(turns(358), [0, -90, -90]);
  equal(axis({ isUpright: true }).tickangle, -90);
  equal(axis({ isUpright: true }, true).tickangle, 0, 'never down the page');
});

test('upright labels need their height along the axis and their length across it', () => {
  ok(axis({}).tickvals.length < axis({ isUpright: true }).tickvals.length);
  const [level, leaning, upright] = [{ side: 'top' }, { isSlanted: true }, { isUpright: true }].map(
    (look) => band(LABELS, { side: 'top', ...look }),
  );
  ok(labelRoom(leaning, 800) < labelRoom(upright, 800));
  deepEqual([leanOf(level, 800), leanOf(upright, 800)], [0, 0]);
  ok(leanOf(leaning, 800) > 0);
});

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
