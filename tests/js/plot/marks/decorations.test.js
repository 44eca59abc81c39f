import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';
import { chart } from '../../../../static/js/plot/chart.js';
import { cell } from '../../../../static/js/plot/marks/mark.js';
import {
  path,
  profile,
  rect,
  rule,
  ruleAt,
  text,
} from '../../../../static/js/plot/marks/decorations.js';
import { band, linear, log, pixels } from '../../../../static/js/plot/scales.js';
import { PALETTE } from '../../sample.js';

const MATRIX = { rows: 2, columns: 3, data: Float64Array.from([0, 1, 2, 3, 4, 5]) };
const CELLS = cell(MATRIX, { ramp: { title: 'weight', domain: [0, 5] } });

function drawn(marks, { width = 600, ...spec } = {}) {
  return chart(
    {
      x: band(['a', 'b', 'c']),
      y: band(['d', 'e']),
      marks,
      table: { quantity: 'weight' },
      ...spec,
    },
    { width, palette: PALETTE },
  );
}

test('a rule crosses the drawing at a value of either scale, swapped or not', () => {
  const of = (channels, isSwapped) => {
    const [{ x0, x1, y0, y1, xref, yref }] = drawn([CELLS, ruleAt(0.5, channels)], { isSwapped })
      .layout.shapes;
    return [x0, x1, y0, y1, xref, yref];
  };
  const upright = [0.5, 0.5, 0, 1, undefined, 'paper'];
  const level = [0, 1, 0.5, 0.5, 'paper', undefined];
  deepEqual(of({}, false), upright);
  deepEqual(of({}, true), level);
  deepEqual(of({ of: 'y' }, false), level);
  deepEqual(of({ of: 'y' }, true), upright);
});

test('an outline has its two corners, swapped with the chart, and is left out of small cells', () => {
  const outline = (least) =>
    rect([1], { from: (at) => ({ x: at, y: 0 }), to: (at) => ({ x: at + 1, y: 0.5 }), least });
  const corners = (options, least = 0) =>
    drawn([CELLS, outline(least)], options).layout.shapes.map(({ x0, x1, y0, y1 }) => [
      x0,
      x1,
      y0,
      y1,
    ]);
  deepEqual(corners(), [[1, 2, 0, 0.5]]);
  deepEqual(corners({ isSwapped: true }), [[0, 0.5, 1, 2]]);
  deepEqual(corners({}, 23), []);
});

test('texts that have to fit are left out together', () => {
  const words = (width) =>
    drawn(
      [
        CELLS,
        text(['a', 'a longer word'], { x: (_, at) => at, y: () => 0, text: String, isFit: true }),
      ],
      { width },
    ).data.slice(1);
  equal(words(600)[0].text.length, 2);
  deepEqual(words(200), []);
});

test('a profile reaches from edge to edge and has gaps where there is no number', () => {
  const of = (isSwapped) =>
    drawn([profile([1, NaN], { stroke: 'rgb(1, 2, 3)' })], { x: linear('sum'), isSwapped }).data[0];
  deepEqual(
    [of(false).x, of(false).y],
    [
      [1, 1, null, null],
      [-0.5, 0, 1, 1.5],
    ],
  );
  deepEqual(of(true).y, of(false).x);
  deepEqual([of(false).fill, of(true).fill], ['tozerox', 'tozeroy']);
});

test('chosen cells have a dot where the texts have no room', () => {
  const of = (width) =>
    drawn(
      [
        cell(MATRIX, {
          ramp: { title: 'weight', domain: [0, 5] },
          text: ({ value }) => (value > 3 ? `weight ${value}` : ''),
          spot: ({ value }) => value > 3,
        }),
      ],
      { width },
    ).data[1];
  deepEqual([of(600).mode, of(600).text], ['text', ['weight 4', 'weight 5']]);
  deepEqual([of(150).mode, of(150).x, of(150).y], ['markers', [1, 2], [1, 1]]);
});

const traced = (mark, more = {}) =>
  chart(
    {
      x: pixels([0, 4]),
      y: log('', { domain: [1, 100] }),
      marks: [mark],
      table: { quantity: '' },
      ...more,
    },
    { width: 400, palette: PALETTE },
  ).data[0];

test('paths go through their points, on the scales, with a gap after each', () => {
  const paths = [
    [
      { x: 0, y: 1 },
      { x: 1, y: 10 },
      { x: 2, y: 100 },
    ],
    [{ x: 3, y: 10 }],
  ];
  const { x, y } = traced(path(paths, { points: (points) => points }));
  deepEqual(x, [0, 1, 2, null, 3, null]);
  deepEqual(y, [0, 1, 2, null, 1, null]);
});

test('a rule is a path from one point to another, turned with its chart', () => {
  const mark = rule([1], { from: (x) => ({ x, y: 1 }), to: (x) => ({ x: x + 1, y: 10 }) });
  deepEqual(traced(mark).x, [1, 2, null]);
  deepEqual(traced(mark, { isSwapped: true }).y, [1, 2, null]);
});

/** Words in rows of so many pixels. */
function wordsIn(row, channels) {
  const mark = text(['a', '<b>'], {
    x: () => 0,
    y: (_, at) => at,
    text: (word) => word,
    ...channels,
  });
  const spec = { x: band(['x']), y: band(['0', '1']), marks: [mark], size: { row } };
  return chart({ ...spec, table: { quantity: 'q' } }, { width: 600, palette: PALETTE }).data;
}

test('each word has its own side of its point', () => {
  const at = (word) => (word === 'a' ? 'top left' : 'top right');
  deepEqual(wordsIn(20, { at })[0].textposition, ['top left', 'top right']);
  equal(wordsIn(20, { at: 'middle right' })[0].textposition, 'middle right');
});

test('texts of rows are left out where rows are lower than they', () => {
  equal(wordsIn(12, { least: 12 }).length, 1);
  equal(wordsIn(11, { least: 12 }).length, 0);
});
