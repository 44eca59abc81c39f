import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';

import { linesFigure } from '../../../static/js/plot/line_map.js';
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
const strokes = ({ data }) =>
  data.filter(({ mode, line }) => mode === 'lines' && line.color !== PALETTE.surface);
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

test('every cell is found at the position of its box', () => {
  const { geometry } = linesFigure(WANTED);
  for (const [row, column] of [
    [0, 0],
    [0, 1],
    [1, 2],
  ]) {
    const { x, y } = middle(geometry.box(row, column));
    deepEqual(geometry.at(x, y), { row, column });
  }
  const word = middle(geometry.box(1, undefined));
  deepEqual(geometry.at(word.x, word.y), { row: 1, column: 2, of: 'row' });
  equal(geometry.at(word.x, 2), null, 'the titles are no words');
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

function middle({ x0, x1, y0, y1 }) {
  return { x: (x0 + x1) / 2, y: (y0 + y1) / 2 };
}

test('each title is on the side of its words, and so are the words', () => {
  for (const left of ['rows', 'columns']) {
    const { data, layout } = linesFigure({ ...WANTED, left });
    const [query, key] = ['query', 'key'].map((name) =>
      layout.annotations.find(({ text }) => text === name),
    );
    const [first, second] = left === 'rows' ? [query, key] : [key, query];
    ok(first.x < second.x, left);
    deepEqual([first.xanchor, second.xanchor], ['right', 'left']);
    const middleOfAll = layout.xaxis.range[1] / 2;
    ok(first.x < middleOfAll && second.x > middleOfAll);
    const words = data.filter(({ mode, text }) => mode === 'text' && text.length > 0).slice(-2);
    for (const [at, title] of [query, key].entries()) {
      ok(words[at].x.every((x) => x === title.x));
      equal(words[at].textposition, `middle ${title.xanchor === 'right' ? 'left' : 'right'}`);
    }
    ok(layout.annotations.every(({ showarrow }) => !showarrow));
  }
});
