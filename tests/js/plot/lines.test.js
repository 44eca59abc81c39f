import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';

import { binned, chooseLines, nearestLine } from '../../../static/js/plot/lines.js';

const MATRIX = { rows: 2, columns: 3, data: Float64Array.of(0.7, 0.3, 0, NaN, 0.05, 0.95) };
const spanOf = ({ row, column }) => ({
  from: { x: 0, y: row * 20 },
  to: { x: 100, y: column * 20 },
});

test('a line is drawn for each pair that reaches the threshold, the strongest last', () => {
  const { lines, left } = chooseLines(MATRIX, { threshold: 0.3 });
  deepEqual(
    lines.map(({ row, column, weight }) => [row, column, weight]),
    [
      [0, 1, 0.3],
      [0, 0, 0.7],
      [1, 2, 0.95],
    ],
  );
  equal(left, 0);
});

test('of too many lines the strongest are drawn, and the others are counted', () => {
  const { lines, left } = chooseLines(MATRIX, { most: 2 });
  deepEqual([lines.map(({ weight }) => weight), left], [[0.7, 0.95], 2]);
});

test('steps of strength share the lines out, and the greatest weight is in the last', () => {
  const bins = binned(chooseLines(MATRIX).lines, 0.95, 4);
  deepEqual(
    bins.map((bin) => bin.map(({ weight }) => weight)),
    [[0.05], [0.3], [0.7], [0.95]],
  );
});

test('the line under a point is found, the stronger of two that cross there', () => {
  const lines = [
    { row: 0, column: 1, weight: 0.9 },
    { row: 1, column: 0, weight: 0.1 },
  ];
  equal(nearestLine({ x: 50, y: 10 }, lines, spanOf, 6, 1), lines[0]);
  equal(nearestLine({ x: 90, y: 2 }, lines, spanOf, 6, 1), lines[1]);
  equal(nearestLine({ x: 50, y: 60 }, lines, spanOf, 6, 1), null);
});
