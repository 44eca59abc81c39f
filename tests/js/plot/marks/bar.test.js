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

test('bars of two sides share a row, and each side is named above them in its colour', () => {
  const sides = [
    { swatch: 'A', fill: 'rgb(1,2,3)', offset: -0.2 },
    { swatch: '<b>', fill: 'rgb(4,5,6)', offset: 0.2 },
  ];
  const marks = sides.map(({ offset, ...look }) =>
    bar([0.1, NaN], { length: Number, at: (_, row) => row + offset, ...look }),
  );
  const { data, layout } = chart(
    { x: linear('share'), y: band(['x', 'y']), marks, table: { quantity: 'share' } },
    { width: 600, palette: PALETTE },
  );
  deepEqual(
    data.map(({ x, y }) => [x, y]),
    [
      [
        [0.1, 0],
        [-0.2, 0.8],
      ],
      [
        [0.1, 0],
        [0.2, 1.2],
      ],
    ],
  );
  equal(layout.barmode, 'overlay');
  const names = layout.annotations.filter(({ text }) => text.startsWith('■'));
  deepEqual(
    names.map(({ font }) => font.color),
    ['rgb(1,2,3)', 'rgb(4,5,6)'],
  );
  ok(!names[1].text.includes('<'));
  ok(names.every(({ y, yanchor }) => y === 1 && yanchor === 'bottom'));
});

test('an upright bar goes from its base, up or down', () => {
  const bases = { isUpright: true, base: () => 3, length: (value) => (value === 2 ? -1 : value) };
  const [{ base, y }] = drawn(bases, { x: band(['d', 'e']), y: linear('sum') }).data;
  deepEqual(
    [base, y],
    [
      [3, 3],
      [1, -1],
    ],
  );
});
