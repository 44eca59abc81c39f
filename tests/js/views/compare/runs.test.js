import { deepEqual, equal, match } from 'node:assert/strict';
import { test } from 'node:test';
import { picturesOf, runFigure } from '../../../../static/js/views/compare/runs.js';
import { PALETTE } from '../../sample.js';

const CURVES = [
  {
    title: 'Right answers',
    unit: 'share',
    lines: [
      { name: 'sampled', steps: [2, 4], values: [0.25, 0.5] },
      { name: 'validation', steps: [4], values: [0.75] },
    ],
  },
];
const BINS = {
  '0.0-0.1': { predicted: 0.04, observed: 0, pairs: 9 },
  '0.9-1.0': { predicted: 0.98, observed: 1, pairs: 8 },
};
const state = {
  width: 600,
  height: 400,
  palette: PALETTE,
  answers: {
    ours: { trace: { card: { id: 'sums', title: 'Sums', curves: CURVES } } },
    theirs: { trace: { card: { id: 'r', title: 'Judge', metrics: { calibration: BINS } } } },
  },
};

test('both models have the pictures of their runs, and a reward model its calibration', () => {
  deepEqual(
    picturesOf(state).map(({ title }) => title),
    ['Right answers', 'Calibration'],
  );
  deepEqual(picturesOf({ answers: {} }), []);
});

test('a curve has its values at its own steps', () => {
  const { grid, title, summary } = runFigure('run-0', state);
  match(title, /right answers$/u);
  match(summary, /sampled from 0.25 to 0.5; validation from 0.75 to 0.75/u);
  deepEqual([grid.rows, grid.columns], [2, 2]);
  deepEqual([grid.value(0, 0), grid.value(0, 1), grid.value(1, 1)], [0.25, 0.5, 0.75]);
  equal(Number.isNaN(grid.value(1, 0)), true);
});

test('calibration stands beside the line of a calibrated model', () => {
  const { grid } = runFigure('run-1', state);
  deepEqual([grid.value(0, 0), grid.value(0, 1)], [0, 1]);
  deepEqual([grid.value(1, 0), grid.value(1, 1)], [0.04, 0.98]);
});
