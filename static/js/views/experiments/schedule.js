/** Learning rate schedules, and four optimizers on one loss surface. */

import { numbersIn } from '../../rules/experiment.js';
import { counted } from '../../words/lists.js';
import { amount, decimal } from '../../words/numbers.js';
import { chart } from '../../plot/chart.js';
import { warm } from '../../plot/curves.js';
import { line } from '../../plot/marks/line.js';
import { dot } from '../../plot/marks/decorations.js';
import { raster } from '../../plot/marks/raster.js';
import { linear, log } from '../../plot/scales.js';

/**
 * @import { Arrays, ExperimentView, Picture, Result } from '../../rules/experiment.js'
 * @import { Size } from '../../plot/map.js'
 * @import { DrawnFigure, Palette } from '../../plot/figure.js'
 */

/** @type {Record<string, string>} */
const NAMES = {
  constant: 'constant',
  warmup_stable_decay: 'stable–decay',
  cosine: 'cosine',
  noam: 'Noam',
  sgd: 'SGD',
  momentum: 'momentum',
  adam: 'Adam',
  adamw: 'AdamW',
};

/** @type {ExperimentView} */
export const experiment = {
  id: 'schedule',
  main: ['surface', 'schedule', 'sgd_rate', 'adam_rate', 'curvature', 'x', 'y'],
  finding,
  pictures,
};

/** @param {Result} result */
function finding({ arrays, values }) {
  if (!arrays.loss)
    return `Four schedules of ${counted(arrays.train_step.data.length, 'step')}; the optimizers are on their way.`;
  const { optimizer, loss, optimizer_step: step } = arrays;
  const ends = optimizer.data.map((/** @type {string} */ name, /** @type {number} */ at) => {
    const end = loss.data[at].at(-1) ?? NaN;
    return `${NAMES[name]} ${Number.isFinite(end) ? decimal(end, 3) : 'diverged'}`;
  });
  return `The loss after ${counted(step.data.length - 1, 'step')} in the ${values.surface}: ${ends.join(', ')}.`;
}

/**
 * @param {string} name
 * @param {Palette} palette
 * @returns {{stroke: string, dash?: 'dot', width?: number}}
 */
function lookOf(name, palette) {
  return (
    {
      sgd: { stroke: palette.ink },
      momentum: { stroke: palette.key },
      adam: { stroke: palette.query },
      adamw: { stroke: warm(palette), width: 3 },
      constant: { stroke: palette.muted, dash: /** @type {const} */ ('dot') },
      warmup_stable_decay: { stroke: warm(palette), width: 3 },
      cosine: { stroke: palette.query },
      noam: { stroke: palette.key },
    }[name] ?? { stroke: palette.ink }
  );
}

/** @param {Result} result @returns {Picture[]} */
function pictures({ arrays, values }) {
  return [
    ...(arrays.path
      ? [
          {
            id: 'surface',
            draw: (/** @type {Size} */ size) => surfaceFigure(arrays, values.surface, size),
          },
          { id: 'loss', draw: (/** @type {Size} */ size) => lossChart(arrays, size) },
        ]
      : []),
    { id: 'factor', isWide: true, draw: (size) => factorChart(arrays, size) },
  ];
}

/** More steps than this are drawn a few apart. */
const MOST_POINTS = 500;

/** @param {Arrays} arrays @param {Size} size */
function factorChart({ schedule, factor, train_step: step }, size) {
  const apart = Math.ceil(step.data.length / MOST_POINTS);
  /** @param {any[]} list */
  const thin = (list) => list.filter((_, at) => at % apart === 0);
  return {
    title: 'Learning rate schedules',
    summary: 'The factor on the peak learning rate by training step, for four schedules.',
    help: `The factor on the peak learning rate over a training run${apart > 1 ? `, one step in ${apart}` : ''}. Noam rises and falls as the inverse square root; the cosine needs its end fixed in advance; stable–decay falls whenever one decides to stop.`,
    ...chart(
      {
        x: linear('step of the run'),
        y: linear('factor', { domain: [0, 1.03], ticks: [0, 0.25, 0.5, 0.75, 1] }),
        marks: [
          line(linesOf(schedule, factor, size, thin), {
            x: numbersIn(thin(step.data)),
            format: (value) => amount(value),
            name: ({ line: { name }, x }) => `${name}, step ${amount(x, 6)}`,
          }),
        ],
        table: { quantity: 'factor on the peak learning rate' },
      },
      size,
    ),
  };
}

/**
 * @param {Arrays[string]} names
 * @param {Arrays[string]} numbers
 * @param {Size} size
 * @param {(list: any[]) => any[]} [thin]
 */
function linesOf(names, numbers, { palette }, thin = (list) => list) {
  return names.data.map((/** @type {string} */ name, /** @type {number} */ at) => ({
    name: NAMES[name] ?? name,
    values: numbersIn(thin(numbers.data[at])),
    ...lookOf(name, palette),
  }));
}

/** @param {Arrays} arrays @param {Size} size */
function lossChart({ optimizer, loss, optimizer_step: step }, size) {
  const all = loss.data
    .flat()
    .filter((/** @type {number|null} */ value) => value !== null && value > 0);
  const start = Math.max(...loss.data.map((/** @type {number[]} */ of) => of[0]));
  return {
    title: 'The loss on the way',
    summary: 'The loss at each step, for four optimizers.',
    help: 'The same start and surface for all. A curve that leaves the picture upwards has diverged.',
    ...chart(
      {
        x: linear('step'),
        y: log('loss', { domain: [Math.max(1e-12, Math.min(...all)) / 2, start * 8 || 1] }),
        marks: [
          line(linesOf(optimizer, loss, size), {
            x: numbersIn(step.data),
            name: ({ line: { name }, x }) => `${name}, step ${amount(x, 6)}`,
          }),
        ],
        ...(size.width > 380 && { size: { height: SIDE - 30 } }),
        table: { quantity: 'loss' },
      },
      size,
    ),
  };
}

const SIDE = 420;

/**
 * @param {Arrays} arrays
 * @param {string} name of the surface
 * @param {Size} size
 * @returns {DrawnFigure}
 */
function surfaceFigure({ surface, x, y, path, optimizer, loss }, name, size) {
  const { palette } = size;
  const least = Math.min(...surface.data.flat());
  const heights = surface.data.map((/** @type {number[]} */ row) =>
    row.map((value) => Math.log10(value - Math.min(0, least) + 0.01)),
  );
  const paths = /** @type {(number|null)[][][]} */ (path.data).map((of) => of.map(numbersIn));
  /** @type {[number, number]} */
  const domain = [x.data[0], x.data.at(-1)];
  const lines = optimizer.data.map((/** @type {string} */ each, /** @type {number} */ at) => ({
    name: NAMES[each] ?? each,
    x: paths[at].map(([a]) => a),
    values: paths[at].map(([, b]) => b),
    ...lookOf(each, palette),
    width: 2,
    dots: 4,
    halo: 4.5,
  }));
  const names = lines.map((/** @type {{name: string}} */ each) => each.name);
  return {
    title: 'Four optimizers on one surface',
    summary: `The paths of ${names.join(', ')} on the ${name}, from one start.`,
    help: 'Coloured towards the minimum; a dot for every step. The ring is the start.',
    ...chart(
      {
        x: linear('x', { domain }),
        y: linear('y', { domain }),
        marks: [
          raster(heights, { x: x.data, y: y.data, contours: 14 }),
          line(lines, {
            names: 'above',
            value: ({ row, column }) => loss.data[row][column] ?? NaN,
            name: ({ line: { name, values }, x, column }) =>
              `${name}, step ${column}, at (${decimal(x, 2)}, ${decimal(values[column], 2)})`,
          }),
          dot([paths[0][0]], { x: ([a]) => a, y: ([, b]) => b, size: 11, isRing: true }),
        ],
        size: { square: SIDE },
        table: {
          quantity: 'loss',
          rows: { title: 'optimizer' },
          columns: { title: 'step', labels: paths[0].map((_, step) => String(step)) },
        },
        cursor: { kind: 'contour plot' },
      },
      size,
    ),
  };
}
