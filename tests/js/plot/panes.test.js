import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { chart } from '../../../static/js/plot/chart.js';
import { panes } from '../../../static/js/plot/panes.js';
import { bar } from '../../../static/js/plot/marks/bar.js';
import { cell } from '../../../static/js/plot/marks/mark.js';
import { ruleAt } from '../../../static/js/plot/marks/decorations.js';
import { band, linear } from '../../../static/js/plot/scales.js';
import { near, PALETTE } from '../sample.js';

const MATRIX = { rows: 2, columns: 3, data: Float64Array.from([0, 1, 2, 3, 4, 5]) };
const RAMP = { title: 'weight', domain: [0, 5] };
const right = { x: linear('load'), marks: [bar([1, 2], { length: Number, fill: '#000' })] };
const below = {
  y: linear('entropy'),
  marks: [bar([1, 2, 3], { isUpright: true, length: Number, fill: '#000' })],
};

function drawn(list, { width = 600, ...spec } = {}) {
  return chart(
    {
      x: band(['a', 'b', 'c'], { side: 'top' }),
      y: band(['d', 'e']),
      marks: [cell(MATRIX, { ramp: RAMP })],
      panes: panes(list),
      table: { quantity: 'weight' },
      ...spec,
    },
    { width, palette: PALETTE },
  );
}

/** Pixels of an axis, from the left or from the top of the plot and its panes. */
function span({ width, height, margin, ...layout }, name) {
  const [from, to] = layout[name].domain ?? [0, 1];
  const [across, down] = [width - margin.l - margin.r, height - margin.t - margin.b];
  return name[0] === 'x' ? [from * across, to * across] : [(1 - to) * down, (1 - from) * down];
}

test('panes have their pixels, next to the plot and after their gap', () => {
  const { layout } = drawn([
    { ...right, pixels: 90, gap: 20 },
    { ...below, pixels: 40, gap: 12 },
    { ...below, pixels: 30, gap: 5 },
  ]);
  const [, across] = span(layout, 'xaxis');
  const [top, down] = span(layout, 'yaxis');
  near(top, 0);
  span(layout, 'xaxis2').forEach((at, end) => near(at, across + [20, 110][end]));
  span(layout, 'yaxis3').forEach((at, end) => near(at, down + [12, 52][end]));
  span(layout, 'yaxis4').forEach((at, end) => near(at, down + [57, 87][end]));
  equal(layout.width, 600);
});

test('a mark in a pane is drawn on the axis that the pane has and on the one that it shares', () => {
  const { data, layout } = drawn([
    { ...right, marks: [...right.marks, ruleAt(1)], pixels: 90 },
    { ...below, pixels: 40 },
  ]);
  const axes = data.filter(({ type }) => type === 'bar').map(({ xaxis, yaxis }) => [xaxis, yaxis]);
  deepEqual(axes, [
    ['x2', 'y'],
    ['x', 'y3'],
  ]);
  const [{ xref, yref }] = layout.shapes;
  deepEqual([xref, yref], ['x2', 'y domain']);
});

test('swapped, a pane changes its side with the scale that it shares', () => {
  const { data, layout, grid } = drawn(
    [
      { ...right, pixels: 40, isAbove: true },
      { ...below, pixels: 50 },
    ],
    { isSwapped: true, y: band(['d', 'e'], { side: 'top' }) },
  );
  const [top] = span(layout, 'yaxis');
  span(layout, 'yaxis2').forEach((at, end) => near(at, top - [48, 8][end]));
  equal(layout.xaxis.anchor, 'y2', 'labels are above the pane');
  ok(span(layout, 'xaxis3')[0] > span(layout, 'xaxis')[1]);
  const orientations = data.flatMap(({ orientation }) => orientation ?? []);
  deepEqual(orientations, ['v', 'h']);
  deepEqual([grid.rows, grid.columns], [3, 2]);
});

test('titles are next to their panes, upright where a pane is narrow', () => {
  const titled = (pane) => {
    const { layout } = drawn([{ ...pane, title: ['a <b>'] }]);
    return layout.annotations.find(({ text }) => text.startsWith('a '));
  };
  ok(!titled({ ...right, pixels: 90 }).text.includes('<b>'));
  equal(titled({ ...right, pixels: 90 }).textangle, undefined);
  equal(titled({ ...right, pixels: 20 }).textangle, -90);
  const upright = { ...right, pixels: 20, title: ['a title of many letters'] };
  ok(drawn([upright]).layout.margin.t >= 120, 'with room above');
  const { layout } = drawn([{ ...below, pixels: 40, title: ['a long title'], titleAt: 'before' }]);
  ok(layout.margin.l >= 80, 'with room to the left');
});

test('a square map keeps the room of its panes free', () => {
  const height = 500;
  const at = (list) =>
    chart(
      {
        x: band(['a', 'b', 'c']),
        y: band(['d', 'e']),
        marks: [cell(MATRIX, { ramp: RAMP })],
        panes: panes(list),
        size: { isSquare: true },
        table: { quantity: 'weight' },
      },
      { width: 700, palette: PALETTE, height },
    ).layout;
  const layout = at([{ ...right, pixels: 60, gap: 30 }]);
  const [, across] = span(layout, 'xaxis');
  span(layout, 'xaxis2').forEach((place, end) => near(place, across + [30, 90][end]));
  ok(layout.width <= 700 && layout.width > at([]).width - 1);
});
