import { deepEqual } from 'node:assert/strict';
import { test } from 'node:test';
import { chart } from '../../../../static/js/plot/chart.js';
import { line } from '../../../../static/js/plot/marks/line.js';
import { band, linear } from '../../../../static/js/plot/scales.js';
import { PALETTE } from '../../sample.js';

test('a stepped line is level up to the next place', () => {
  const lines = [true, false].map((isStepped) => ({
    name: 'sum',
    values: [1, 2],
    stroke: '#000',
    isStepped,
  }));
  const { data } = chart(
    { x: band(['a', 'b']), y: linear('sum'), marks: [line(lines, {})], table: { quantity: 'sum' } },
    { width: 400, palette: PALETTE },
  );
  deepEqual(
    data.map((trace) => trace.line.shape ?? 'linear'),
    ['hv', 'linear'],
  );
});
