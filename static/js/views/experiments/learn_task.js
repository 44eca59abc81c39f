/** A network learns a task: its loss, its accuracy, and its attention as it forms. */

import { numbersIn } from '../../rules/experiment.js';
import { counted } from '../../words/lists.js';
import { amount, grouped, percent, share } from '../../words/numbers.js';
import { range } from '../../trace/trace.js';
import { chart } from '../../plot/chart.js';
import { ACCURACY, curvesPicture, strongCurve, warm } from '../../plot/curves.js';
import { mapPicture } from '../../plot/map.js';
import { diverging } from '../../plot/colour.js';
import { cell } from '../../plot/marks/mark.js';
import { rect, text } from '../../plot/marks/decorations.js';
import { band } from '../../plot/scales.js';

/**
 * @import { Picture } from '../../rules/experiment.js'
 * @import { Size } from '../../plot/map.js'
 */

const COLD = 'no warm-up';

/** @type {ExperimentView} */
export const experiment = {
  id: 'learn_task',
  main: ['task', 'model', 'positional', 'is_causal', 'length', 'steps'],
  preview: { steps: 1 },
  besides: [
    { id: 'cold', title: COLD, values: { warmup: 0 } },
    { id: 'rnn', title: 'tanh RNN', values: { model: 'rnn' } },
    { id: 'lstm', title: 'LSTM', values: { model: 'lstm' } },
    { id: 'none', title: 'no positions', values: { model: 'transformer', positional: 'none' } },
    {
      id: 'learned',
      title: 'learned positions',
      values: { model: 'transformer', positional: 'learned' },
    },
    {
      id: 'sinusoidal',
      title: 'sinusoidal positions',
      values: { model: 'transformer', positional: 'sinusoidal' },
    },
    {
      id: 'rotary',
      title: 'rotary positions',
      values: { model: 'transformer', positional: 'rotary' },
    },
  ],
  steps: (arrays) => numbersIn(arrays.frame?.data ?? []),
  finding,
  pictures,
};

/** @type {Record<string, string>} */
const NETWORKS = { transformer: 'transformer', rnn: 'tanh RNN', lstm: 'LSTM' };

/** @param {Result} result */
function finding({ arrays, values, at, beside }) {
  const step = arrays.frame.data[at];
  const shown = `${grouped(arrays.n_parameters.data)} parameters`;
  const network = `The ${NETWORKS[values.model] ?? values.model} of ${shown}`;
  const comparison =
    beside && beside.arrays.accuracy
      ? ` For comparison (${beside.name}): ${whole(beside.arrays.accuracy.data[beside.at])}.`
      : '';
  if (step === 0)
    return `${network} is not trained yet: it gets ${whole(arrays.accuracy.data[at])} of the positions of “${values.task}” right, by chance.${comparison}`;
  return (
    `${network} was trained for ${counted(step, 'step')} on “${values.task}”: it gets ${whole(arrays.accuracy.data[at])} of the positions ` +
    `right, and ${whole(arrays.sequence_accuracy.data[at])} of whole sequences.${comparison}`
  );
}

/** @param {Result} result @returns {Picture[]} */
function pictures(result) {
  const { arrays, beside, isPreview } = result;
  const attentions = [
    { id: 'attention', of: result, name: '' },
    ...(beside ? [{ id: 'attention-beside', of: beside, name: beside.name }] : []),
  ].filter(({ of }) => of.arrays.attention);
  return [
    ...(arrays.loss && !isPreview ? [accuracyChart(result), lossChart(result)] : []),
    answersMap(result),
    ...attentions.map(({ id, of, name }) => ({
      id,
      isWide: true,
      draw: (/** @type {Size} */ size) => attentionTiles(of.arrays, of.at, name, size),
    })),
  ];
}

/** @param {number} value @returns {string} `54.0 %`, `100 %` */
function whole(value) {
  return percent(value, value === 1 || value === 0 ? 0 : 1);
}

/** @param {Result} result @returns {string} name of the network's curve */
function nameOf({ values, beside }) {
  if (!beside) return NETWORKS[values.model] ?? values.model;
  if (beside.name === COLD) return `warm-up of ${values.warmup}`;
  return values.model === 'transformer' ? `${values.positional}` : NETWORKS[values.model];
}

/** @param {Result} result */
function accuracyChart(result) {
  const { arrays, beside, at, total } = result;
  const frames = numbersIn(arrays.frame.data);
  const second = beside?.arrays;
  const x =
    second && second.frame.data.length > frames.length ? numbersIn(second.frame.data) : frames;
  return curvesPicture({
    id: 'accuracy',
    title: 'Accuracy',
    summary: 'The share of right answers by training step.',
    help: 'On sequences that it is not trained on. Dotted: sequences without any fault.',
    x,
    across: { title: 'training step', range: [0, total] },
    up: ACCURACY,
    quantity: 'accuracy',
    format: (value) => percent(value),
    marker: at,
    unit: 'step',
    curves: (size) => [
      ...curveBeside(beside, second?.accuracy, size, 2),
      {
        name: 'whole sequences',
        values: numbersIn(arrays.sequence_accuracy.data),
        colour: warm(size.palette),
        dash: 'dot',
        width: 1.5,
        isQuiet: true,
      },
      strongCurve(nameOf(result), arrays.accuracy.data, size),
    ],
  });
}

/**
 * Return the curve of the second network, if one is trained for comparison.
 * @param {Result['beside']} beside
 * @param {Result['arrays'][string]|undefined} array
 * @param {Size} size
 * @param {number} width
 */
function curveBeside(beside, array, { palette }, width) {
  if (!beside || !array) return [];
  return [{ name: beside.name, values: numbersIn(array.data), colour: palette.query, width }];
}

/** @param {Result} result */
function lossChart(result) {
  const { arrays, beside, at, total } = result;
  const second = beside?.arrays.loss;
  const steps = numbersIn(arrays.step.data);
  const x =
    second && second.data.length > steps.length
      ? second.data.map((/** @type {number} */ _, /** @type {number} */ step) => step + 1)
      : steps;
  const marked = x.indexOf(arrays.frame.data[at]);
  return curvesPicture({
    id: 'loss',
    title: 'Loss',
    summary: 'The training loss by step.',
    help: 'Cross-entropy of an answer in each step, before the step is made.',
    x,
    across: { title: 'training step', range: [0, total] },
    up: { title: 'loss (bits)' },
    quantity: 'loss in bits',
    format: (value) => amount(value),
    ...(marked >= 0 && { marker: marked }),
    unit: 'step',
    curves: (size) => [
      ...curveBeside(beside, second, size, 1.5),
      {
        name: nameOf(result),
        values: numbersIn(arrays.loss.data),
        colour: warm(size.palette),
        width: 1.75,
      },
    ],
  });
}

/** @param {Result} result */
function answersMap(result) {
  const { arrays, beside, at } = result;
  const target = /** @type {string[]} */ (arrays.target.data);
  const runs = [
    { name: nameOf(result), arrays, at },
    ...(beside?.arrays.prediction ? [beside] : []),
  ];
  const answers = runs.map((run) => /** @type {string[]} */ (run.arrays.prediction.data[run.at]));
  const sure = runs.map((run) => numbersIn(run.arrays.probability.data[run.at]));
  const values = [target.map(() => NaN), ...sure];
  const input = arrays.token.data.slice(0, arrays.token.data.length - target.length).join(' ');
  const texts = [target, ...answers];
  return mapPicture({
    id: 'answers',
    isWide: true,
    title: 'One sequence it has never seen',
    summary:
      'The right answers of one sequence, and those of the network with their probabilities.',
    help: `It reads “${input}” and answers at ${counted(target.length, 'place')}. Warm: right; blue: wrong; the stronger the colour, the surer.`,
    values,
    shades: [
      target.map(() => NaN),
      ...answers.map((line, run) =>
        line.map((answer, place) => (answer === target[place] ? 1 : -1) * sure[run][place]),
      ),
    ],
    rows: ['right', ...runs.map(({ name }) => name)],
    titles: { rows: '', columns: 'place of the answer' },
    range: [-1, 1],
    colours: diverging,
    quantity: 'probability of the answer',
    write: (value) => amount(Math.abs(value)),
    format: (value) => share(value),
    say: (row, column) =>
      row === 0
        ? `right answer at place ${column + 1}: ${target[column]}`
        : `${runs[row - 1].name} at place ${column + 1}: ${texts[row][column]}`,
    text: (row, column) => texts[row][column],
    cell: 32,
  });
}

const TITLE_ROOM = 20;
const MOST_CELL = 20;
/** Pixels from which a cell has room for its token. */
const ROOM_FOR_TOKEN = 14;
const EDGES = 38;

/**
 * Return the attention of every head, a tile each, in one drawing.
 * @param {Arrays} arrays
 * @param {number} at
 * @param {string} name of the run, if there are two
 * @param {Size} size
 * @returns {DrawnFigure}
 */
function attentionTiles({ attention, token, frame, target }, at, name, size) {
  const layers = /** @type {number[][][][]} */ (attention.data[at]);
  const tokens = /** @type {string[]} */ (token.data);
  const [n, heads] = [tokens.length, layers[0].length];
  const [across, down] = [heads * (n + 1) - 1, layers.length];
  const cellSize = Math.min(MOST_CELL, (size.width - EDGES) / across);
  const hasTokens = cellSize >= ROOM_FOR_TOKEN;
  const gap = Math.ceil((TITLE_ROOM + (hasTokens ? 16 : 0)) / cellSize);
  /** @param {number} count @param {number} step @param {number} before */
  const labels = (count, step, before) =>
    Array.from({ length: before + count * step }, (_, index) => {
      const place = (index - before) % step;
      return hasTokens && index >= before && place < n ? tokens[place] : '';
    });
  const tiles = layers.flatMap((maps, layer) =>
    maps.map((_, head) => ({ layer, head, x: head * (n + 1), y: gap + layer * (n + gap) })),
  );
  const isWide = (across * cellSize) / heads > 90;
  const data = Float64Array.from(
    layers.flatMap((maps) => range(n).flatMap((query) => maps.flatMap((map) => map[query]))),
  );
  /** @param {string} what @param {number} count */
  const names = (what, count) =>
    range(count).flatMap((part) =>
      tokens.map((text, place) => `${what} ${part + 1}: ${place + 1} ${text}`),
    );
  const [rows, columns] = [names('layer', down), names('head', heads)];
  return {
    title: name ? `Attention: ${name}` : 'Attention as it forms',
    summary: `The attention weights of ${counted(layers.length, 'layer')} of ${counted(heads, 'head')} after ${frame.data[at]} steps.`,
    help: `One map for each head, after ${counted(frame.data[at], 'step')}. Rows attend to columns; the last ${target.data.length} rows are the places of the answers.`,
    ...chart(
      {
        x: band(labels(heads, n + 1, 0).slice(0, across), { space: 1 }),
        y: band(labels(down, n + gap, gap).slice(0, down * (n + gap)), { space: 1 }),
        marks: [
          cell(
            { rows: down * n, columns: heads * n, data },
            {
              ramp: { title: 'attention weight', domain: [0, 1] },
              place: (row, column) => ({
                x: Math.floor(column / n) * (n + 1) + (column % n),
                y: gap + Math.floor(row / n) * (n + gap) + (row % n),
              }),
              gap: hasTokens ? [1, 1] : [0, 0],
              format: (value) => share(value),
              name: ({ row, column }) => `${rows[row]} attends to ${columns[column]}`,
            },
          ),
          rect(tiles, {
            from: ({ x, y }) => ({ x: x - 0.5, y: y - 0.5 }),
            to: ({ x, y }) => ({ x: x + n - 0.5, y: y + n - 0.5 }),
            stroke: size.palette.line,
          }),
          text(tiles, {
            x: ({ x }) => x - 0.5,
            y: ({ y }) => y - 0.5,
            text: ({ layer, head }) =>
              isWide ? `layer ${layer}, head ${head}` : `${layer}.${head}`,
            ink: size.palette.muted,
            at: 'top right',
          }),
        ],
        size: { cell: cellSize, row: cellSize },
        table: {
          rows: { title: 'query', labels: rows },
          columns: { title: 'key', labels: columns },
          quantity: `attention weights after ${frame.data[at]} steps`,
        },
      },
      size,
    ),
  };
}
