import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { chart } from '../../../../static/js/plot/chart.js';
import { lane } from '../../../../static/js/plot/marks/lane.js';
import { band } from '../../../../static/js/plot/scales.js';
import { near, PALETTE } from '../../sample.js';

const FRAME = { width: 600, palette: PALETTE };

/** A chart of lanes, and its traces by what they draw. */
function lanesOf(values, channels, more = {}) {
  const lanes = values.map((each) => ({ values: each, stroke: 'rgb(1, 2, 3)', ...more }));
  const drawn = chart(
    {
      x: band(values[0].map((_, at) => `c${at}`)),
      y: band(
        values.map((_, at) => `lane ${at}`),
        { title: 'lane' },
      ),
      marks: [lane(lanes, channels)],
      table: { quantity: 'height', columns: { title: 'column' } },
    },
    FRAME,
  );
  const fills = drawn.data.filter(({ fill }) => fill);
  const lines = drawn.data.filter(({ mode, fill }) => mode === 'lines' && !fill);
  return {
    ...drawn,
    fills,
    zeros: lines[0],
    lines: lines.slice(1),
    dots: drawn.data.find(({ mode }) => mode === 'markers'),
  };
}

test('each line keeps to its lane, which has the same domain as all others', () => {
  const { lines, zeros } = lanesOf(
    [
      [-1, 0, 1],
      [1, 9, -9],
    ],
    { domain: [-1, 1] },
  );
  const [first, second] = lines.map(({ y }) => y);
  near(first[0] + first[2], 0);
  ok(first[2] < first[1] && first[1] < first[0], 'more is higher up');
  near(second[0] - first[2], 1);
  near(second[1], second[0], 1e-9);
  near(second[2] - first[0], 1);
  deepEqual(
    [zeros.y[0], zeros.y[3]].map((y) => Number(y.toFixed(6))),
    [0, 1],
  );
  equal(zeros.y[2], null);
});

test('both ends of the domain are written to the right of the first lane, within the margin', () => {
  const { layout, lines } = lanesOf([[-2, 1234]], { domain: [-2, 1234] });
  const notes = layout.annotations;
  deepEqual(
    notes.map(({ text }) => text),
    ['−2', '1234'],
  );
  deepEqual(
    notes.map(({ y }) => y),
    lines[0].y,
  );
  ok(notes.every(({ text, xshift }) => xshift + 6 * text.length <= layout.margin.r));
});

test('a logarithm has equal steps for equal ratios, and ends at the least', () => {
  const { y } = lanesOf([[1, 0.1, 0.01, 0]], { domain: [0.01, 1], isLog: true }).lines[0];
  near(y[1] - y[0], y[2] - y[1]);
  equal(y[3], y[2]);
});

test('what is missing is a gap; the filled area goes back to 0 at both ends', () => {
  const { lines, fills, dots, grid } = lanesOf([[0.5, NaN, 0.25]], {
    domain: [0, 1],
    isFilled: true,
  });
  equal(lines[0].y[1], null);
  equal(dots.y[1], null);
  const [{ x, y }] = fills;
  deepEqual(x, [0, 0, 2, 2]);
  equal(y[0], y.at(-1));
  ok(y[0] > y[1]);
  deepEqual(grid.tip(0, 1), ['lane lane 0, column c1', 'nothing']);
  equal(grid.value(0, 2), 0.25);
});

test('many values have no dots, unless a curve tells them from its line', () => {
  const values = [Array.from({ length: 129 }, (_, at) => at / 129)];
  const domain = [0, 1];
  equal(lanesOf(values, { domain }).dots, undefined);
  equal(lanesOf([values[0].slice(0, 128)], { domain }).dots.x.length, 128);
  const { dots, lines } = lanesOf(
    values,
    { domain },
    {
      curve: [
        [0, 0],
        [0.5, 1],
      ],
    },
  );
  equal(dots.x.length, 129);
  deepEqual(lines[0].x, [0, 0.5]);
});
