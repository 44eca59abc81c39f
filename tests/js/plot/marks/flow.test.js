import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { chart } from '../../../../static/js/plot/chart.js';
import { flow, placed, drawRibbons } from '../../../../static/js/plot/marks/flow.js';
import { pixels } from '../../../../static/js/plot/scales.js';
import { near, PALETTE } from '../../sample.js';

const BOX = { across: 600, down: 300, thickness: 20, pad: 10 };
const NODES = [
  { column: 0, value: 1, row: null },
  { column: 0, value: 3, row: null },
  { column: 1, value: 1.5, row: 0 },
  { column: 1, value: 2.5, row: 2 },
  { column: 2, value: 3, row: 0 },
  { column: 2, value: 1, row: 1 },
];
const LINKS = [
  { source: 0, target: 3, value: 1 },
  { source: 1, target: 3, value: 1.5 },
  { source: 1, target: 2, value: 1.5 },
  { source: 2, target: 4, value: 1.5 },
  { source: 3, target: 4, value: 1.5 },
  { source: 3, target: 5, value: 1 },
];
const NETWORK = { nodes: NODES, links: LINKS };

test('the height of nodes is their value; they do not overlap and fill the height', () => {
  const boxes = placed(NODES, BOX);
  const unit = (boxes[0].y1 - boxes[0].y0) / NODES[0].value;
  boxes.forEach(({ y0, y1 }, index) => near(y1 - y0, NODES[index].value * unit));
  for (const column of [1, 2]) {
    const stack = boxes.filter((_, index) => NODES[index].column === column);
    near(stack[0].y0, 0);
    near(stack.at(-1).y1, BOX.down);
    stack.slice(1).forEach(({ y0 }, index) => ok(y0 - stack[index].y1 >= BOX.pad - 1e-9));
  }
  deepEqual([boxes[0].x0, boxes.at(-1).x1], [0, 600]);
});

test('ribbons are as high as their links, fill their nodes, and leave in the order of their targets', () => {
  const boxes = placed(NODES, BOX);
  const unit = (boxes[0].y1 - boxes[0].y0) / NODES[0].value;
  const ends = drawRibbons(NETWORK, boxes).map((path) => {
    const numbers = path.match(/-?[\d.]+(e-?\d+)?/g).map(Number);
    const [x0, from, , , , , x1, to, , end] = numbers;
    return { x0, from, x1, to, end };
  });
  ends.forEach(({ x0, x1, to, end }, at) => {
    near(x0, boxes[LINKS[at].source].x1);
    near(x1, boxes[LINKS[at].target].x0);
    near(end - to, LINKS[at].value * unit);
  });
  NODES.forEach(({ column }, index) => {
    const out = ends.filter((_, at) => LINKS[at].source === index);
    const into = ends.filter((_, at) => LINKS[at].target === index);
    if (column < 2) near(Math.min(...out.map(({ from }) => from)), boxes[index].y0);
    if (column > 0) near(Math.max(...into.map(({ end }) => end)), boxes[index].y1);
  });
  const [, crossing, straight] = ends;
  ok(straight.from < crossing.from, 'to the upper node first');
});

test('the cursor knows the nodes that are rows, and names have room to the left', () => {
  const mark = flow(NETWORK, {
    table: { rows: 3, columns: ['layer <b>', 'layer 1'] },
    row: ({ row }) => row,
    fill: () => '#111',
    ribbon: () => '#222',
    entry: () => ({ text: 'a long name', ink: '#333' }),
    text: ({ row }) => String(row),
    ink: '#444',
    value: ({ row }) => row,
  });
  const { layout, data, grid } = chart(
    {
      x: pixels([0, 1]),
      y: pixels([0, 1]),
      marks: [mark],
      size: { height: 200 },
      table: { quantity: 'weight' },
    },
    { width: 500, palette: PALETTE },
  );
  const { x0, x1, y0, y1 } = grid.geometry.box(2, 0);
  deepEqual(grid.geometry.at((x0 + x1) / 2, (y0 + y1) / 2), { row: 2, column: 0 });
  equal(grid.geometry.box(1, 0), null);
  equal(grid.geometry.at(0, 0), null, 'where the flow begins');
  ok(layout.margin.l >= 70);
  deepEqual(data[0].text, ['0', '2', '0', '1']);
  ok(layout.annotations.every(({ text }) => !text.includes('<b>')));
  equal(grid.kind, 'flow diagram');
});

test('names of columns do not overlap, and the ribbons of a colour from one node are one shape', () => {
  const columns = Array.from({ length: 12 }, (_, at) => `layer ${at}`);
  const nodes = columns.flatMap((_, column) => [
    { column, value: 1 },
    { column, value: 1 },
  ]);
  nodes.push({ column: 12, value: 2 });
  const links = nodes.slice(0, -1).flatMap((_, source) => {
    const first = 2 * Math.floor(source / 2) + 2;
    const targets = first === 24 ? [24] : [first, first + 1];
    return targets.map((target) => ({ source, target, value: 1 / targets.length }));
  });
  const mark = flow(
    { nodes, links },
    {
      table: { rows: 2, columns },
      row: () => null,
      fill: () => '#111',
      ribbon: ({ target }) => (target % 2 ? '#222' : '#333'),
      rim: ({ target }) => target % 2,
      entry: () => ({ text: 'a', ink: '#333' }),
      text: () => '',
      ink: '#444',
    },
  );
  const at = (width) =>
    chart(
      {
        x: pixels([0, 1]),
        y: pixels([0, 1]),
        marks: [mark],
        size: { height: 200 },
        table: { quantity: 'weight' },
      },
      { width, palette: PALETTE },
    ).layout;
  const named = (width) => at(width).annotations.filter(({ text }) => text.startsWith('layer'));
  equal(named(1200).length, 12);
  const { width, margin } = at(358);
  ok(named(358).length * 60 < width - margin.l - margin.r);
  const paths = at(1200).shapes.filter(({ type }) => type === 'path');
  equal(paths.length, 2 * 22 + 2);
  ok(paths.every(({ fillcolor, line }) => line.width === (fillcolor === '#222' ? 1 : 0)));
});
