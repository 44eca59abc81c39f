import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { curvesChart } from '../../../static/js/plot/curves.js';
import { spread } from '../../../static/js/plot/chart.js';
import { mapChart } from '../../../static/js/plot/map.js';
import { PALETTE } from '../sample.js';

const SIZE = { width: 600, height: 500, palette: PALETTE };
const CURVES = {
  x: [0, 1, 2],
  across: { title: 'step' },
  up: { title: 'loss', isLog: true },
  quantity: 'loss',
  curves: [
    { name: '<b>', values: [1, 0.1, 0.01], colour: '#f00' },
    { name: 'flat', values: [1, NaN, 1], colour: '#00f' },
  ],
};

test('the cursor finds the nearest curve, in the coordinates of the axes', () => {
  const { grid } = curvesChart(CURVES, SIZE);
  deepEqual(grid.geometry.at(1.9, -1.8), { row: 0, column: 2 });
  deepEqual(grid.geometry.at(1.9, 0.2), { row: 1, column: 2 });
  deepEqual(grid.geometry.at(1.1, 5), { row: 0, column: 1 }, 'a missing value is not found');
  const box = grid.geometry.box(0, 2);
  ok(box.x0 < 2 && box.x1 > 2 && box.y0 < -2 && box.y1 > -2);
  equal(grid.geometry.box(1, 1), null);
});

test('ticks have the digits of their step', () => {
  const up = { title: 'length', range: [24.03, 24.27] };
  const { yaxis } = curvesChart({ ...CURVES, up }, SIZE).layout;
  equal(new Set(yaxis.ticktext).size, yaxis.tickvals.length);
  deepEqual(yaxis.ticktext.map(Number), yaxis.tickvals);
  const { xaxis } = curvesChart({ ...CURVES, across: { title: '', range: [0, 1] } }, SIZE).layout;
  ok(
    xaxis.ticktext.every((text) => text.length <= 3),
    xaxis.ticktext.join(),
  );
});

test('a curve is not drawn beyond a given range', () => {
  const { data } = curvesChart({ ...CURVES, up: { title: '', range: [0, 0.5] } }, SIZE);
  deepEqual(data[0].y, [null, 0.1, 0.01]);
});

test('a curve of nothing, or of one value, is drawn', () => {
  for (const values of [[], [3], [NaN], [0, 0]]) {
    const x = values.map((_, at) => at);
    for (const isLog of [true, false]) {
      const { layout } = curvesChart(
        { ...CURVES, x, up: { title: '', isLog }, curves: [{ name: 'a', values, colour: '#000' }] },
        SIZE,
      );
      ok([...layout.xaxis.range, ...layout.yaxis.range].every(Number.isFinite));
      ok(layout.yaxis.range[0] < layout.yaxis.range[1]);
    }
  }
});

test('names are moved apart within the plot', () => {
  deepEqual(spread([0, 1, 50], 10, 100), [0, 10, 50]);
  deepEqual(spread([98, 99, 100], 10, 100), [80, 90, 100]);
});

test('a map has a cell for each number, and none for what is missing', () => {
  const { data, grid } = mapChart(
    {
      values: [
        [0, 1],
        [NaN, 0.5],
      ],
      rows: ['a', 'b'],
      columns: ['x', '<i>'],
      titles: { rows: 'row', columns: 'column' },
      scale: { bottom: 0, top: 1, colours: new Uint8Array(768) },
      quantity: 'share',
      text: (row, column) => `<${row}${column}>`,
    },
    SIZE,
  );
  deepEqual(data[0].z, [
    [0, 1],
    [null, 0.5],
  ]);
  ok(data[1].text.every((text) => !text.includes('<')));
  ok(grid.describe(1, 0).includes('nothing') && grid.describe(0, 1).includes('1'));
});

test('without room for names next to the curves a legend shows the kind of each line', () => {
  const dashes = [undefined, 'solid', 'dot'];
  const curves = dashes.map((dash, at) => ({
    name: `<${at}`,
    values: [1, 2, 3],
    colour: '#000',
    dash,
  }));
  const { layout } = curvesChart({ ...CURVES, curves }, { ...SIZE, width: 300 });
  const signs = layout.annotations.map(({ text }) => text.split(' ')[0]);
  equal(signs[0], signs[1]);
  ok(signs[2] !== signs[0]);
  ok(layout.annotations.every(({ text, showarrow }) => !text.includes('<') && !showarrow));
});

test('a legend that is too wide for a row goes on in the next, clear of the curves', () => {
  const curves = Array.from({ length: 7 }, (_, at) => ({
    name: `a long name ${at}`,
    values: [1, 2, 3],
    colour: '#000',
  }));
  const of = (some) => curvesChart({ ...CURVES, curves: some }, { ...SIZE, width: 300 }).layout;
  const { annotations, margin } = of(curves);
  const rows = new Map();
  for (const { yshift, xshift } of annotations)
    rows.set(yshift, [...(rows.get(yshift) ?? []), xshift]);
  ok(rows.size > 1 && rows.size < curves.length);
  for (const lefts of rows.values())
    deepEqual(
      lefts,
      [...new Set(lefts)].sort((a, b) => a - b),
    );
  const heights = [...rows.keys()];
  deepEqual(
    heights,
    [...heights].sort((a, b) => b - a),
  );
  ok(heights.every((height) => height > 0 && height < margin.t));
  ok(margin.t > of(curves.slice(0, 1)).margin.t);
});

test('the name of a curve without a number in sight is within the plot, apart from the others', () => {
  const curves = [
    { name: 'none', values: [NaN, NaN, NaN], colour: '#000' },
    { name: 'beyond', values: [9, 9, 9], colour: '#000' },
    { name: 'seen', values: [0.1, 0.2, NaN], colour: '#000' },
  ];
  const up = { title: '', range: [0, 1] };
  const { annotations } = curvesChart({ ...CURVES, up, curves }, SIZE).layout;
  equal(annotations.length, 3);
  ok(annotations.every(({ x, y }) => Number.isFinite(x) && y >= 0 && y <= 1));
  equal(new Set(annotations.map(({ y, yshift }) => `${y} ${yshift}`)).size, 3);
});
