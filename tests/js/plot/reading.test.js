import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';

import { chart } from '../../../static/js/plot/chart.js';
import { cell } from '../../../static/js/plot/marks/mark.js';
import { band } from '../../../static/js/plot/scales.js';
import { PALETTE } from '../sample.js';

/** A row of two numbers, and no number in between. */
function drawn(channels, y = band(['a'], { title: 'row' })) {
  const mark = cell(
    { rows: 1, columns: 3, data: Float64Array.of(0.99999, NaN, -2) },
    { ramp: { title: 'share', domain: [-2, 2] }, ...channels },
  );
  const spec = { x: band(['x', 'y', 'z'], { title: 'column' }), y, marks: [mark] };
  return chart({ ...spec, table: { quantity: 'share' } }, { width: 600, palette: PALETTE });
}

test('numbers without a format are decimals, in the tip as in the table', () => {
  const { grid } = drawn({});
  deepEqual(grid.tip(0, 0), ['row a, column x', '1.000']);
  equal(grid.format(grid.value(0, 2)), '−2.000');
  equal(grid.describe(0, 1), 'row a, column y: nothing');
});

test('a format may depend on the datum', () => {
  const { grid } = drawn({ format: (value, { column }) => `${value} at ${column}` });
  equal(grid.tip(0, 2)[1], '-2 at 2');
});

test('a band without words takes no room beside the plot', () => {
  equal(drawn({}, band([''])).layout.margin.l, 8);
});
