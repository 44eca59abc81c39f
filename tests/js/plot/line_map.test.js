import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';

import { linesChart } from '../../../static/js/plot/line_map.js';
import { PALETTE } from '../sample.js';

const WEIGHTS = { rows: 2, columns: 3, data: Float64Array.of(0.7, 0.3, 0, 0.02, 0.03, 0.95) };
const WANTED = {
  rows: ['le', '<b>'],
  columns: ['the', 'cat', '<i>'],
  weights: WEIGHTS,
  titles: { rows: 'query', columns: 'key' },
  quantity: 'attention weight',
  palette: PALETTE,
  width: 600,
  height: 500,
};
function linesFigure({ rows, columns, palette, width, height, ...spec }) {
  const labelled = {
    rows: { title: 'query', labels: rows },
    columns: { title: 'key', labels: columns },
  };
  const meaning = { value: ({ row, column }) => spec.weights.data[row * columns.length + column] };
  const { drawing, ...count } = linesChart(
    { ...spec, meaning, table: { quantity: spec.quantity, ...labelled } },
    { palette, width, height },
  );
  return { ...drawing, ...count, geometry: drawing.grid.geometry };
}
/** The lines, without the backgrounds of numbers. */
const strokes = ({ data }) =>
  data.filter(({ mode, line }) => mode === 'lines' && line.width !== 14);

test('a line goes from each word to each that it attends to, thicker and later where the weight is greater', () => {
  const figure = linesFigure(WANTED);
  const drawn = strokes(figure).flatMap(({ x, line }) =>
    Array.from({ length: x.length / 3 }, () => line.width),
  );
  equal(drawn.length, 5);
  deepEqual(
    drawn,
    [...drawn].sort((a, b) => a - b),
  );
  ok(drawn.at(-1) > drawn[0]);
});

test('a word that is pointed at brings out all of its lines with their numbers', () => {
  const { geometry } = linesFigure({ ...WANTED, threshold: 0.5 });
  const { lines, numbers } = geometry.highlight({ row: 0, column: 0, of: 'row' });
  deepEqual([lines.length, numbers.map(({ text }) => text)], [2, ['0.30', '0.70']]);
  const column = geometry.highlight({ row: 1, column: 2, of: 'column' });
  deepEqual(
    column.numbers.map(({ text }) => text),
    ['0.95'],
  );
});

test('two columns of 128 words give a bounded number of lines, and count the rest', () => {
  const count = 128;
  const data = Float64Array.from({ length: count * count }, (_, at) => ((at * 7919) % 1000) / 1000);
  const names = Array.from({ length: count }, (_, at) => `${at} word`);
  const wanted = {
    ...WANTED,
    rows: names,
    columns: names,
    weights: { rows: count, columns: count, data },
  };
  const { data: traces, drawn, left, layout } = linesFigure(wanted);
  ok(traces.length <= 40, `${traces.length} traces`);
  ok(drawn.length <= 1200 && left > 10000);
  ok(layout.width <= WANTED.width);
});

const middle = ({ x0, x1, y0, y1 }) => [(x0 + x1) / 2, (y0 + y1) / 2];

test('each title is on the side of its words, and so are the words', () => {
  for (const left of ['rows', 'columns']) {
    const { data, layout } = linesFigure({ ...WANTED, left });
    const texts = data.filter(({ mode }) => mode === 'text');
    const [query, key] = ['query', 'key'].map((name) => texts.find(({ text }) => text[0] === name));
    const [first, second] = left === 'rows' ? [query, key] : [key, query];
    ok(first.x[0] < second.x[0], left);
    deepEqual([first.textposition, second.textposition], ['middle left', 'middle right']);
    const middleOfAll = layout.xaxis.range[1] / 2;
    ok(first.x[0] < middleOfAll && second.x[0] > middleOfAll);
    for (const [word, title] of [
      ['le', query],
      ['the', key],
    ]) {
      const words = texts.find(({ text }) => text[0] === word);
      ok(words.x.every((x) => x === title.x[0]));
      equal(words.textposition, title.textposition);
    }
    ok(layout.annotations.every(({ showarrow }) => !showarrow));
  }
});

const TALL = { rows: 3, columns: 2, data: Float64Array.of(0.6, 0.4, 0.9, 0.1, 0.05, 0.95) };
const WIDE = { rows: 2, columns: 3, data: Float64Array.of(0.6, 0.1, 0.3, 0.2, 0.3, 0.5) };
const figureOf = (weights, more = {}) =>
  linesFigure({
    ...WANTED,
    rows: ['a', 'b', 'c'].slice(0, weights.rows),
    columns: ['x', 'y', 'z'].slice(0, weights.columns),
    weights,
    ...more,
  });
const numbersOf = ({ data }) =>
  data.filter(({ mode }) => mode === 'text').flatMap(({ text }) => text);

test('a word brings out a line to every word of the other side, however many each has', () => {
  for (const [name, weights] of Object.entries({ TALL, WIDE })) {
    const { geometry } = figureOf(weights);
    for (let row = 0; row < weights.rows; row += 1)
      equal(geometry.highlight({ row, column: 0, of: 'row' }).lines.length, weights.columns, name);
    for (let column = 0; column < weights.columns; column += 1)
      equal(geometry.highlight({ row: 0, column, of: 'column' }).lines.length, weights.rows, name);
    equal(geometry.highlight({ row: 1, column: 1 }).lines.length, weights.columns, name);
  }
});

test('a line is found at its middle, and a title is no word', () => {
  const { geometry } = linesFigure(WANTED);
  for (const [row, column] of [
    [0, 0],
    [0, 1],
    [1, 2],
  ])
    deepEqual(geometry.at(...middle(geometry.box(row, column))), { row, column });
  equal(geometry.at(middle(geometry.box(1, undefined))[0], 2), null);
});

test('each word is at its place, also where one side has more words', () => {
  for (const weights of [TALL, WIDE])
    for (const left of ['rows', 'columns']) {
      const { geometry } = figureOf(weights, { left });
      for (let row = 0; row < weights.rows; row += 1) {
        const word = geometry.at(...middle(geometry.box(row, undefined)));
        deepEqual([word.row, word.of], [row, 'row']);
      }
      for (let column = 0; column < weights.columns; column += 1) {
        const word = geometry.at(...middle(geometry.box(undefined, column)));
        deepEqual([word.column, word.of], [column, 'column']);
      }
      equal(geometry.box(undefined, undefined), null);
    }
});

test('a line is drawn from the word that reads to the word that is read', () => {
  for (const weights of [TALL, WIDE]) {
    const { data, drawn, geometry } = figureOf(weights);
    const height = ({ y0, y1 }) => (y0 + y1) / 2;
    const wanted = drawn.map(({ row, column }) =>
      [height(geometry.box(row, undefined)), height(geometry.box(undefined, column))].join(),
    );
    const ends = strokes({ data }).flatMap(({ x, y }) =>
      Array.from({ length: y.length / 3 }, (_, at) => {
        equal(x[3 * at] < x[3 * at + 1], true);
        deepEqual([x[3 * at + 2], y[3 * at + 2]], [null, null], 'no line leads on to the next');
        return `${y[3 * at]},${y[3 * at + 1]}`;
      }),
    );
    deepEqual(ends.sort(), wanted.sort());
    equal(ends.length, 6);
  }
});

test('a line of a tenth has its number, a weaker one only when it is pointed at', () => {
  const figure = figureOf(TALL);
  const isThere = (text) => numbersOf(figure).includes(text);
  ok(isThere('0.10') && isThere('0.95') && !isThere('0.05'));
  const written = (cell) => figure.geometry.highlight(cell).numbers.map(({ text }) => text);
  deepEqual(written({ row: 1, column: 0 }), ['0.10', '0.90']);
  deepEqual(written({ row: 2, column: 1 }), ['0.95']);
  deepEqual(written({ row: 2, column: 0 }), ['0.05', '0.95']);
});
