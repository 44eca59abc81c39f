import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { chart } from '../../../../static/js/plot/chart.js';
import { bar } from '../../../../static/js/plot/marks/bar.js';
import { band, linear } from '../../../../static/js/plot/scales.js';
import { PALETTE } from '../../sample.js';

const VALUES = [1, 2];

function drawn(channels, spec) {
  return chart(
    {
      x: linear('sum'),
      y: band(['d', 'e']),
      marks: [bar(VALUES, { length: Number, fill: '#111', ...channels })],
      table: { quantity: 'sum' },
      ...spec,
    },
    { width: 400, palette: PALETTE },
  );
}

test('bars turn with their chart, upright ones too', () => {
  const upright = { x: band(['d', 'e']), y: linear('sum') };
  const directions = [
    drawn({}),
    drawn({}, { isSwapped: true }),
    drawn({ isUpright: true }, upright),
    drawn({ isUpright: true }, { ...upright, isSwapped: true }),
  ].map(({ data: [{ orientation, x, y }] }) => [orientation, orientation === 'h' ? x : y]);
  deepEqual(
    directions,
    ['h', 'v', 'v', 'h'].map((direction) => [direction, VALUES]),
  );
});

test('a text that may go past the end of the scale has room to the right of it', () => {
  const past = (isPast) => drawn({ text: () => 'many letters', isPast }).layout.margin.r;
  ok(past(true) > past(false) + 60);
  equal(past(false), drawn({}).layout.margin.r);
});
