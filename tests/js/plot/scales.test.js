import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';

import { buildAxis, band, labelRoom, leanOf, turnOf } from '../../../static/js/plot/scales.js';
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
