/** Learning rate schedules, and four optimizers on one loss surface. */

import { numbersIn } from '../../rules/experiment.js';
import { counted } from '../../words/lists.js';
import { amount, decimal } from '../../words/numbers.js';
import { chart } from '../../plot/chart.js';
import { curvesPicture, rowCurves } from '../../plot/curves.js';
import { line } from '../../plot/marks/line.js';
import { dot } from '../../plot/marks/decorations.js';
import { raster } from '../../plot/marks/raster.js';
import { linear } from '../../plot/scales.js';

/**
 * @import { Picture } from '../../rules/experiment.js'
 * @import { Size } from '../../plot/map.js'
 * @import { Look } from '../../plot/curves.js'
 */

/** @type {Record<string, Look>} */
const LOOKS = {
  sgd: { name: 'SGD', colour: 'ink' },
  momentum: { name: 'momentum', colour: 'key' },
  adam: { name: 'Adam', colour: 'query' },
  adamw: { name: 'AdamW', colour: 'warm', width: 3 },
  constant: { name: 'constant', colour: 'muted', dash: 'dot' },
  warmup_stable_decay: { name: 'stable–decay', colour: 'warm', width: 3 },
  cosine: { name: 'cosine', colour: 'query' },
  noam: { name: 'Noam', colour: 'key' },
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
    return `${LOOKS[name].name} ${Number.isFinite(end) ? decimal(end, 3) : 'diverged'}`;
  });
  return `The loss after ${counted(step.data.length - 1, 'step')} in the ${values.surface}: ${ends.join(', ')}.`;
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
          lossChart(arrays),
        ]
      : []),
    factorChart(arrays),
  ];
}

/** More steps than this are drawn a few apart. */
const MOST_POINTS = 500;

/** @param {Arrays} arrays */
function factorChart({ schedule, factor, train_step: step }) {
  const apart = Math.ceil(step.data.length / MOST_POINTS);
  /** @param {any[]} list */
  const thin = (list) => list.filter((_, at) => at % apart === 0);
  return curvesPicture({
    id: 'factor',
    isWide: true,
    title: 'Learning rate schedules',
    summary: 'The factor on the peak learning rate by training step, for four schedules.',
    help: `The factor on the peak learning rate over a training run${apart > 1 ? `, one step in ${apart}` : ''}. Noam rises and falls as the inverse square root; the cosine needs its end fixed in advance; stable–decay falls whenever one decides to stop.`,
    x: numbersIn(thin(step.data)),
    across: { title: 'step of the run' },
    up: { title: 'factor', range: [0, 1.03], ticks: [0, 0.25, 0.5, 0.75, 1] },
    quantity: 'factor on the peak learning rate',
    unit: 'step',
    format: (value) => amount(value),
    curves: (size) => rowCurves(schedule, { data: factor.data.map(thin) }, LOOKS, size),
  });
}

/** @param {Arrays} arrays */
function lossChart({ optimizer, loss, optimizer_step: step }) {
  const all = loss.data
    .flat()
    .filter((/** @type {number|null} */ value) => value !== null && value > 0);
  const start = Math.max(...loss.data.map((/** @type {number[]} */ of) => of[0]));
  return curvesPicture({
    id: 'loss',
    title: 'The loss on the way',
    summary: 'The loss at each step, for four optimizers.',
    help: 'The same start and surface for all. A curve that leaves the picture upwards has diverged.',
    x: numbersIn(step.data),
    across: { title: 'step' },
    up: {
      title: 'loss',
      isLog: true,
      range: [Math.max(1e-12, Math.min(...all)) / 2, start * 8 || 1],
    },
    quantity: 'loss',
    height: SIDE,
    curves: (size) => rowCurves(optimizer, loss, LOOKS, size),
  });
}

const SIDE = 420;

/**
 * @param {Arrays} arrays
 * @param {string} name of the surface
 * @param {Size} size
 * @returns {DrawnFigure}
 */
function surfaceFigure({ surface, x, y, path, optimizer, loss }, name, size) {
  const least = Math.min(...surface.data.flat());
  const heights = surface.data.map((/** @type {number[]} */ row) =>
    row.map((value) => Math.log10(value - Math.min(0, least) + 0.01)),
  );
  const paths = /** @type {(number|null)[][][]} */ (path.data).map((of) => of.map(numbersIn));
  /** @type {[number, number]} */
  const domain = [x.data[0], x.data.at(-1)];
  const lines = rowCurves(optimizer, loss, LOOKS, size).map(({ colour, ...look }, at) => ({
    ...look,
    stroke: colour,
    x: paths[at].map(([a]) => a),
    values: paths[at].map(([, b]) => b),
    width: 2,
    dots: 4,
    halo: 4.5,
  }));
  const names = lines.map(({ name: each }) => each);
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
