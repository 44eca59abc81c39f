import { deepEqual } from 'node:assert/strict';
import { test } from 'node:test';
import { chart } from '../../../../static/js/plot/chart.js';
import { line } from '../../../../static/js/plot/marks/line.js';
import { linear, log } from '../../../../static/js/plot/scales.js';
import { PALETTE } from '../../sample.js';

test('the places of each line are in sight, on an axis that nobody gave a domain', () => {
  const lines = [
    { name: 'near', x: [20, 60, 60], values: [1, 2, NaN], stroke: '#000' },
    { name: 'far', x: [30, 90, 300], values: [1, 2, 3], stroke: '#000' },
  ];
  for (const x of [log('tokens'), linear('tokens')]) {
    const { data, layout } = chart(
      { x, y: linear('sum'), marks: [line(lines, {})], table: { quantity: 'sum' } },
      { width: 400, palette: PALETTE },
    );
    const drawn = data.filter(({ mode }) => mode?.includes('lines'));
    deepEqual(
      drawn.map((trace) => trace.x.filter((at) => at === null).length),
      [0, 0],
    );
    const [least, most] = layout.xaxis.range;
    deepEqual(
      drawn.every((trace) => trace.x.every((at) => at >= least && at <= most)),
      true,
    );
  }
});
