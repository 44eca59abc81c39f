/** Lines of words that are pointed at, and the numbers on lines. */

import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { linesFigure } from '../../../static/js/plot/line_map.js';
import { PALETTE } from '../sample.js';

const TALL = { rows: 3, columns: 2, data: Float64Array.of(0.6, 0.4, 0.9, 0.1, 0.05, 0.95) };
const WIDE = { rows: 2, columns: 3, data: Float64Array.of(0.6, 0.1, 0.3, 0.2, 0.3, 0.5) };
const figureOf = (weights, more = {}) =>
  linesFigure({
    rows: ['a', 'b', 'c'].slice(0, weights.rows),
    columns: ['x', 'y', 'z'].slice(0, weights.columns),
    weights,
    titles: { rows: 'query', columns: 'key' },
    quantity: 'weight',
    palette: PALETTE,
    width: 600,
    height: 500,
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

test('each word is at its place, also where one side has more words', () => {
  const middle = ({ x0, x1, y0, y1 }) => [(x0 + x1) / 2, (y0 + y1) / 2];
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
    const lines = data.filter(({ mode, line }) => mode === 'lines' && line.color !== '#fff');
    const strokes = lines.flatMap(({ x, y }) =>
      Array.from({ length: y.length / 3 }, (_, at) => {
        equal(x[3 * at] < x[3 * at + 1], true);
        deepEqual([x[3 * at + 2], y[3 * at + 2]], [null, null], 'no line leads on to the next');
        return `${y[3 * at]},${y[3 * at + 1]}`;
      }),
    );
    deepEqual(strokes.sort(), wanted.sort());
    equal(strokes.length, 6);
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
