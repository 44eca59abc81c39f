/** A network learns a task: its loss, its accuracy, and its attention as it forms. */

import { numbersIn } from '../../data/experiment.js';
import { amount, counted, grouped, percent, share, escapeForPlotly } from '../../data/format.js';
import { curvesChart, warm } from '../../plot/curves.js';
import { mapChart, plainGrid } from '../../plot/map.js';
import { diverging, sequential } from '../../plot/colour.js';
import { baseLayout, heatmapTrace, shortBar, shortBarTitle } from '../../plot/figure.js';

/**
 * @import { Arrays, ExperimentView, Picture, Result } from '../../data/experiment.js'
 * @import { Size } from '../../plot/map.js'
 * @import { DrawnFigure } from '../../plot/figure.js'
 */

/** @type {ExperimentView} */
export const experiment = {
  id: 'learn_task',
  main: ['task', 'model', 'positional', 'is_causal', 'length', 'steps'],
  preview: { steps: 1 },
  besides: [
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
  const other =
    beside && beside.arrays.accuracy
      ? ` For comparison (${beside.name}): ${whole(beside.arrays.accuracy.data[beside.at])}.`
      : '';
  if (step === 0)
    return `${network} is not trained yet: it gets ${whole(arrays.accuracy.data[at])} of the positions of “${values.task}” right, by chance.${other}`;
  return (
    `${network} was trained for ${counted(step, 'step')} on “${values.task}”: it gets ${whole(arrays.accuracy.data[at])} of the positions ` +
    `right, and ${whole(arrays.sequence_accuracy.data[at])} of whole sequences.${other}`
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
    ...(arrays.loss && !isPreview
      ? [
          { id: 'accuracy', draw: (/** @type {Size} */ size) => accuracyChart(result, size) },
          { id: 'loss', draw: (/** @type {Size} */ size) => lossChart(result, size) },
        ]
      : []),
    { id: 'answers', isWide: true, draw: (size) => answersMap(result, size) },
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
  return values.model === 'transformer' ? `${values.positional}` : NETWORKS[values.model];
}

/** @param {Result} result @param {Size} size */
function accuracyChart(result, size) {
  const { arrays, beside, at, total } = result;
  const frames = numbersIn(arrays.frame.data);
  const other = beside?.arrays;
  const x = other && other.frame.data.length > frames.length ? numbersIn(other.frame.data) : frames;
  return {
    title: 'Accuracy',
    summary: 'The share of right answers by training step.',
    help: 'On sequences that it is not trained on. Dotted: sequences without any fault.',
    ...curvesChart(
      {
        x,
        across: { title: 'training step', range: [0, total] },
        up: {
          title: 'right answers',
          range: [0, 1.02],
          ticks: [0, 0.25, 0.5, 0.75, 1],
          write: (value) => percent(value, 0),
        },
        quantity: 'accuracy',
        format: (value) => percent(value),
        curves: [
          ...curveBeside(beside, other?.accuracy, size, 2),
          {
            name: 'whole sequences',
            values: numbersIn(arrays.sequence_accuracy.data),
            colour: warm(size.palette),
            dash: 'dot',
            width: 1.5,
            isQuiet: true,
          },
          {
            name: nameOf(result),
            values: numbersIn(arrays.accuracy.data),
            colour: warm(size.palette),
            width: 3,
          },
        ],
        marker: at,
        unit: 'step',
      },
      size,
    ),
  };
}

/**
 * The curve of the second network, if one is trained for comparison.
 * @param {Result['beside']} beside
 * @param {Result['arrays'][string]|undefined} array
 * @param {Size} size
 * @param {number} width
 */
function curveBeside(beside, array, { palette }, width) {
  if (!beside || !array) return [];
  return [{ name: beside.name, values: numbersIn(array.data), colour: palette.query, width }];
}

/** @param {Result} result @param {Size} size */
function lossChart(result, size) {
  const { arrays, beside, at, total } = result;
  const other = beside?.arrays.loss;
  const steps = numbersIn(arrays.step.data);
  const x =
    other && other.data.length > steps.length
      ? other.data.map((/** @type {number} */ _, /** @type {number} */ step) => step + 1)
      : steps;
  const marked = x.indexOf(arrays.frame.data[at]);
  return {
    title: 'Loss',
    summary: 'The training loss by step.',
    help: 'Cross-entropy of an answer in each step, before the step is made.',
    ...curvesChart(
      {
        x,
        across: { title: 'training step', range: [0, total] },
        up: { title: 'loss (bits)' },
        quantity: 'loss in bits',
        format: (value) => amount(value),
        curves: [
          ...curveBeside(beside, other, size, 1.5),
          {
            name: nameOf(result),
            values: numbersIn(arrays.loss.data),
            colour: warm(size.palette),
            width: 1.75,
          },
        ],
        ...(marked >= 0 && { marker: marked }),
        unit: 'step',
      },
      size,
    ),
  };
}

/** @param {Result} result @param {Size} size */
function answersMap(result, size) {
  const { arrays, beside, at } = result;
  const target = /** @type {string[]} */ (arrays.target.data);
  const runs = [
    { name: nameOf(result), arrays, at },
    ...(beside?.arrays.prediction ? [beside] : []),
  ];
  const answers = runs.map((run) => /** @type {string[]} */ (run.arrays.prediction.data[run.at]));
  const sure = runs.map((run) => numbersIn(run.arrays.probability.data[run.at]));
  const values = [target.map(() => NaN), ...sure];
  const read = arrays.token.data.slice(0, arrays.token.data.length - target.length).join(' ');
  const texts = [target, ...answers];
  return {
    title: 'One sequence it has never seen',
    summary:
      'The right answers of one sequence, and those of the network with their probabilities.',
    help: `It reads “${read}” and answers at ${counted(target.length, 'place')}. Warm: right; blue: wrong; the stronger the colour, the surer.`,
    ...mapChart(
      {
        values,
        shades: [
          target.map(() => NaN),
          ...answers.map((line, run) =>
            line.map((answer, place) => (answer === target[place] ? 1 : -1) * sure[run][place]),
          ),
        ],
        rows: ['right', ...runs.map(({ name }) => name)],
        columns: target.map((_, place) => String(place + 1)),
        titles: { rows: '', columns: 'place of the answer' },
        scale: { bottom: -1, top: 1, colours: diverging(size.palette.theme) },
        quantity: 'probability of the answer',
        write: (value) => amount(Math.abs(value)),
        format: (value) => share(value),
        say: (row, column) =>
          row === 0
            ? `right answer at place ${column + 1}: ${target[column]}`
            : `${runs[row - 1].name} at place ${column + 1}: ${texts[row][column]}`,
        text: (row, column) => texts[row][column],
        cell: 32,
      },
      size,
    ),
  };
}

const TITLE_ROOM = 20;
const MOST_CELL = 20;

/**
 * The attention of every head, a tile each, in one drawing.
 * @param {Arrays} arrays
 * @param {number} at
 * @param {string} name of the run, if there are two
 * @param {Size} size
 * @returns {DrawnFigure}
 */
function attentionTiles({ attention, token, frame, target }, at, name, { width, palette }) {
  const layers = /** @type {number[][][][]} */ (attention.data[at]);
  const [n, heads] = [token.data.length, layers[0].length];
  const tokens = /** @type {string[]} */ (token.data);
  const margin = { l: 26, r: 12, t: TITLE_ROOM + 4, b: 84 };
  const cell = Math.min(MOST_CELL, (width - margin.l - margin.r) / (heads * (n + 1) - 1));
  const gap = Math.ceil((TITLE_ROOM + (cell >= 9 ? 14 : 0)) / cell);
  const box = { rows: layers.length * (n + gap) - gap, columns: heads * (n + 1) - 1 };
  const z = Array.from({ length: box.rows }, (_, row) => {
    const [layer, query] = [Math.floor(row / (n + gap)), row % (n + gap)];
    return Array.from({ length: box.columns }, (__, column) => {
      const [head, key] = [Math.floor(column / (n + 1)), column % (n + 1)];
      return query < n && key < n ? layers[layer][head][query][key] : null;
    });
  });
  const [across, down] = [box.columns * cell, box.rows * cell];
  const rows = layers.flatMap((_, layer) =>
    tokens.map((text, place) => `layer ${layer + 1}: ${place + 1} ${text}`),
  );
  const columns = layers[0].flatMap((_, head) =>
    tokens.map((text, place) => `head ${head + 1}: ${place + 1} ${text}`),
  );
  const hasTokens = cell >= 9;
  /** @param {number} count @param {number} step */
  const tickOf = (count, step) =>
    Array.from({ length: count * n }, (_, at_) => Math.floor(at_ / n) * step + (at_ % n));
  const bare = {
    showgrid: false,
    zeroline: false,
    ticks: '',
    tickfont: { size: 10, color: palette.muted },
    tickangle: 0,
  };
  /** @param {number} count @param {number} step */
  const axis = (count, step) => ({
    ...bare,
    tickmode: 'array',
    tickvals: hasTokens ? tickOf(count, step) : [],
    ticktext: hasTokens
      ? tickOf(count, step).map((_, at_) => escapeForPlotly(tokens[at_ % n]))
      : [],
  });
  return {
    title: name ? `Attention: ${name}` : 'Attention as it forms',
    summary: `The attention weights of ${counted(layers.length, 'layer')} of ${counted(heads, 'head')} after ${frame.data[at]} steps.`,
    help: `One map for each head, after ${counted(frame.data[at], 'step')}. Rows attend to columns; the last ${target.data.length} rows are the places of the answers.`,
    data: [
      heatmapTrace(
        z,
        { colours: sequential(palette.theme) },
        { ...shortBar(palette), y: -34 / down, yref: 'paper' },
        cell >= 9 ? [1, 1] : [0, 0],
      ),
    ],
    layout: {
      ...baseLayout(palette, {
        width: across + margin.l + margin.r,
        height: down + margin.t + margin.b,
        margin,
      }),
      annotations: [
        { ...shortBarTitle('attention weight', palette), yshift: -38 },
        ...layers.flatMap((maps, layer) =>
          maps.map((_, head) => ({
            text:
              across / heads > 90
                ? `layer ${layer + 1} · head ${head + 1}`
                : `${layer + 1}·${head + 1}`,
            showarrow: false,
            x: head * (n + 1) - 0.5,
            y: layer * (n + gap) - 0.5,
            xanchor: 'left',
            yanchor: 'bottom',
            font: { size: 11, color: palette.muted },
          })),
        ),
      ],
      shapes: layers.flatMap((maps, layer) =>
        maps.map((_, head) => ({
          type: 'rect',
          x0: head * (n + 1) - 0.5,
          x1: head * (n + 1) + n - 0.5,
          y0: layer * (n + gap) - 0.5,
          y1: layer * (n + gap) + n - 0.5,
          line: { color: palette.line, width: 1 },
        })),
      ),
      xaxis: { ...axis(heads, n + 1), range: [-0.5, box.columns - 0.5] },
      yaxis: { ...axis(layers.length, n + gap), range: [box.rows - 0.5, -0.5] },
    },
    grid: {
      ...plainGrid({
        rows,
        columns,
        titles: { rows: 'query', columns: 'key' },
        quantity: `attention weights after ${frame.data[at]} steps`,
        value: (row, column) =>
          layers[Math.floor(row / n)][Math.floor(column / n)][row % n][column % n],
        format: (value) => share(value),
        say: (row, column) => `${rows[row]} attends to ${columns[column]}`,
      }),
      geometry: {
        box(row, column) {
          if (row === undefined || column === undefined) return null;
          const x = Math.floor(column / n) * (n + 1) + (column % n);
          const y = Math.floor(row / n) * (n + gap) + (row % n);
          return { x0: x - 0.5, x1: x + 0.5, y0: y - 0.5, y1: y + 0.5 };
        },
        at(x, y) {
          const [column, row] = [Math.round(x), Math.round(y)];
          if (column < 0 || row < 0 || column >= box.columns || row >= box.rows) return null;
          const [key, query] = [column % (n + 1), row % (n + gap)];
          if (key >= n || query >= n) return null;
          return {
            row: Math.floor(row / (n + gap)) * n + query,
            column: Math.floor(column / (n + 1)) * n + key,
          };
        },
      },
    },
  };
}
