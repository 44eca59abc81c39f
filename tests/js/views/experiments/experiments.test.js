import { deepEqual, equal, ok } from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { FRAME, PALETTE } from '../../sample.js';
import { ARRAYS, resultOf } from './results.js';

const FOLDER = new URL('../../../../static/js/views/experiments/', import.meta.url);
const VIEWS = Object.fromEntries(
  await Promise.all(
    readdirSync(FOLDER).map(async (file) => {
      const { experiment } = await import(new URL(file, FOLDER));
      return [experiment.id, experiment];
    }),
  ),
);
const size = (width) => ({ width, height: FRAME.height, palette: PALETTE });
const drawn = (id, result = resultOf(id), width = 600) =>
  Object.fromEntries(
    VIEWS[id].pictures(result).map((picture) => [picture.id, picture.draw(size(width))]),
  );

test('there is a result for every experiment', () => {
  deepEqual(Object.keys(ARRAYS).sort(), Object.keys(VIEWS).sort());
});

for (const id of Object.keys(VIEWS)) {
  test(`${id}: every picture has a title, a summary and a grid that agrees with it`, () => {
    for (const width of [300, 900]) {
      for (const figure of Object.values(drawn(id, resultOf(id), width))) {
        ok(figure.title && figure.summary && figure.help);
        ok(figure.layout.width <= width + 1, `${figure.title} is ${figure.layout.width} wide`);
        const { grid } = figure;
        equal(grid.rowLabels.length, grid.rows);
        equal(grid.columnLabels.length, grid.columns);
        for (let row = 0; row < grid.rows; row += 1)
          for (let column = 0; column < grid.columns; column += 1)
            ok(!grid.describe(row, column).includes('undefined'), grid.describe(row, column));
      }
    }
  });

  test(`${id}: whatever a text holds is text in a drawing`, () => {
    for (const { data, layout } of Object.values(drawn(id)))
      ok(!/<[bi]>/.test(JSON.stringify([data, layout])));
  });

  test(`${id}: the finding is a sentence of its numbers`, () => {
    const finding = VIEWS[id].finding(resultOf(id));
    ok(/\d/.test(finding) && finding.endsWith('.'), finding);
    ok(!/undefined|NaN|null/.test(finding), finding);
  });

  test(`${id}: a cell is where the cursor finds it`, () => {
    for (const { grid } of Object.values(drawn(id))) {
      if (!grid.geometry) continue;
      const box = grid.geometry.box(0, 0);
      if (!box) continue;
      deepEqual(
        grid.geometry.at((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2)?.column,
        0,
        'of several curves through a point, any',
      );
    }
  });
}

test('scaling: the finding compares both gradients', () => {
  ok(VIEWS.scaling.finding(resultOf('scaling')).includes('4 times'));
});

test('learn_task: the frame that is shown decides what is drawn', () => {
  const at = (frame) => drawn('learn_task', resultOf('learn_task', { at: frame }));
  equal(at(1).attention.grid.value(0, 1), 33 / 96);
  equal(at(2).attention.grid.value(0, 1), 65 / 96);
  const [, colours] = at(2).answers.data[0].z;
  deepEqual(colours, [0.75, 0.75], 'both are right: b, a');
  ok(at(0).answers.data[0].z[1][0] < 0, 'wrong');
});

test('learn_task: a second run is drawn beside the first', () => {
  const arrays = { ...ARRAYS.learn_task };
  delete arrays.attention;
  const result = resultOf('learn_task', { beside: { name: 'tanh RNN', arrays, at: 0 } });
  const figures = drawn('learn_task', result);
  ok(figures.accuracy.grid.rowLabels.includes('tanh RNN'));
  equal(figures.answers.grid.rows, 3);
  ok(!('attention-beside' in figures));
  ok(VIEWS.learn_task.finding(result).includes('10.0 %'));
});

test('what has not been trained yet has no curves', () => {
  for (const id of ['balance', 'learn_task']) {
    const figures = drawn(id, resultOf(id, { at: 0, isPreview: true }));
    ok(Object.keys(figures).length > 0 && !('loss' in figures));
  }
});

test('schedule: a path that leaves the surface is not drawn outside of it', () => {
  const { data, grid } = drawn('schedule').surface;
  const xs = data.filter(({ type }) => type === 'scatter').flatMap(({ x }) => x);
  ok(xs.every((x) => x === null || Math.abs(x) <= 3));
  equal(grid.geometry.box(0, 2), null);
});

test('by_hand: printed numbers stand beside those of the formula', () => {
  const tables = VIEWS.by_hand.tables(resultOf('by_hand'));
  const weights = tables.find(({ name }) => name === 'weights');
  deepEqual(weights.values, [[1, 0]]);
  deepEqual(weights.other, { words: 'printed', values: [[0.35, 0]] });
  const context = tables.find(({ name }) => name === 'context');
  ok([weights, context].every(({ isGiven, isOverride }) => isGiven && isOverride));
});

test('by_hand: a chosen cell that a mask hides says so', () => {
  const hidden = resultOf('by_hand', { picked: { row: 0, column: 1 } });
  ok(VIEWS.by_hand.finding({ ...hidden }).includes('mask'));
});

test('by_hand: a score or a weight that was typed is said to be', () => {
  const finding = (values) => VIEWS.by_hand.finding({ ...resultOf('by_hand'), values });
  ok(finding({ scores: [[1]] }).includes('as you typed it. Softmax: e^{'));
  ok(finding({ weights: [[1]] }).includes('as you typed it; the weights of'));
});

test('the first frame of a run is shown before the rest arrives', () => {
  const without = (id, ...names) => {
    const result = resultOf(id);
    return {
      ...result,
      arrays: Object.fromEntries(
        Object.entries(result.arrays).filter(([name]) => !names.includes(name)),
      ),
    };
  };
  const shown = without('schedule', 'path', 'loss');
  ok(VIEWS.schedule.finding(shown).includes('on their way'));
  deepEqual(Object.keys(drawn('schedule', shown)), ['factor']);
});
