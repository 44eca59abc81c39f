/** Learning rate schedules, and four optimizers on one loss surface. */

import { numbersIn } from '../../data/experiment.js';
import { amount, counted, decimal } from '../../data/format.js';
import { curvesChart, powerOfTen, warm } from '../../plot/curves.js';
import { plainGrid } from '../../plot/map.js';
import { plotlyScale, sequential } from '../../plot/colour.js';
import { baseLayout, labelWidth, paperText } from '../../plot/figure.js';

/**
 * @import { Arrays, ExperimentView, Picture, Result } from '../../data/experiment.js'
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
 * @returns {{colour: string, dash?: 'dot', width?: number}}
 */
function lookOf(name, palette) {
  return (
    {
      sgd: { colour: palette.ink },
      momentum: { colour: palette.key },
      adam: { colour: palette.query },
      adamw: { colour: warm(palette), width: 3 },
      constant: { colour: palette.muted, dash: /** @type {const} */ ('dot') },
      warmup_stable_decay: { colour: warm(palette), width: 3 },
      cosine: { colour: palette.query },
      noam: { colour: palette.key },
    }[name] ?? { colour: palette.ink }
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
    ...curvesChart(
      {
        x: numbersIn(thin(step.data)),
        across: { title: 'step of the run' },
        up: { title: 'factor', range: [0, 1.03], ticks: [0, 0.25, 0.5, 0.75, 1] },
        quantity: 'factor on the peak learning rate',
        format: (value) => amount(value),
        curves: schedule.data.map((/** @type {string} */ name, /** @type {number} */ at) => ({
          name: NAMES[name] ?? name,
          values: numbersIn(thin(factor.data[at])),
          ...lookOf(name, size.palette),
        })),
        unit: 'step',
      },
      size,
    ),
  };
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
    ...curvesChart(
      {
        x: numbersIn(step.data),
        across: { title: 'step' },
        up: {
          title: 'loss',
          isLog: true,
          range: [Math.max(1e-12, Math.min(...all)) / 2, start * 8 || 1],
          write: powerOfTen,
        },
        quantity: 'loss',
        curves: optimizer.data.map((/** @type {string} */ name, /** @type {number} */ at) => ({
          name: NAMES[name] ?? name,
          values: numbersIn(loss.data[at]),
          ...lookOf(name, size.palette),
        })),
        unit: 'step',
        ...(size.width > 380 && {
          height: Math.min(size.width - MARGIN.l - MARGIN.r, SIDE) + MARGIN.t + MARGIN.b,
        }),
      },
      size,
    ),
  };
}

const SIDE = 420;
const BANDS = 14;
const MARGIN = { l: 34, r: 12, t: 26, b: 44 };

/**
 * @param {Arrays} arrays
 * @param {string} name of the surface
 * @param {Size} size
 * @returns {DrawnFigure}
 */
function surfaceFigure({ surface, x, y, path, optimizer, loss }, name, { width, palette }) {
  const least = Math.min(...surface.data.flat());
  const heights = surface.data.map((/** @type {number[]} */ row) =>
    row.map((value) => Math.log10(value - Math.min(0, least) + 0.01)),
  );
  const [low, high] = [Math.min(...heights.flat()), Math.max(...heights.flat())];
  const side = Math.min(width - MARGIN.l - MARGIN.r, SIDE);
  const names = optimizer.data.map((/** @type {string} */ each) => NAMES[each] ?? each);
  const paths = /** @type {(number|null)[][][]} */ (path.data).map((of) => of.map(numbersIn));
  const [first, last] = [x.data[0], x.data.at(-1)];
  const bare = {
    range: [first, last],
    zeroline: false,
    showgrid: false,
    ticks: '',
    tickfont: { size: 11, color: palette.muted },
  };
  const reach = (last - first) / 60;
  /** @type {number[]} */
  const lefts = [];
  for (let at = 0; at < names.length; at += 1)
    lefts.push(
      (lefts.at(-1) ?? -24) + (lefts.length === 0 ? 0 : labelWidth([names[lefts.length - 1]]) + 30),
    );

  /** @param {number} value */
  const inside = (value) => (value >= first && value <= last ? value : null);
  const places = paths.map((of) =>
    of.map(([a, b]) => (inside(a) === null || inside(b) === null ? [null, null] : [a, b])),
  );
  return {
    title: 'Four optimizers on one surface',
    summary: `The paths of ${names.join(', ')} on the ${name}, from one start.`,
    help: 'Coloured towards the minimum; a dot for every step. The ring is the start.',
    data: [
      {
        type: 'contour',
        z: heights,
        x: x.data,
        y: y.data,
        colorscale: plotlyScale(softened(sequential(palette.theme))),
        reversescale: true,
        showscale: false,
        autocontour: false,
        contours: { coloring: 'fill', start: low, end: high, size: (high - low) / BANDS || 1 },
        line: { width: 0.5, color: palette.line, smoothing: 0.8 },
        hoverinfo: 'none',
      },
      ...paths.flatMap((_, at) => {
        const look = lookOf(optimizer.data[at], palette);
        const [across, up] = [0, 1].map((axis) => places[at].map((place) => place[axis]));
        return [
          {
            type: 'scatter',
            mode: 'lines',
            x: across,
            y: up,
            line: { color: palette.surface, width: 4.5 },
            hoverinfo: 'none',
          },
          {
            type: 'scatter',
            mode: 'lines+markers',
            x: across,
            y: up,
            line: { color: look.colour, width: 2 },
            marker: { color: look.colour, size: 4 },
            hoverinfo: 'none',
          },
        ];
      }),
      {
        type: 'scatter',
        mode: 'markers',
        x: [paths[0][0][0]],
        y: [paths[0][0][1]],
        marker: { size: 11, color: palette.surface, line: { color: palette.ink, width: 2 } },
        hoverinfo: 'none',
      },
    ],
    layout: {
      ...baseLayout(palette, {
        width: side + MARGIN.l + MARGIN.r,
        height: side + MARGIN.t + MARGIN.b,
        margin: MARGIN,
      }),
      xaxis: {
        ...bare,
        title: { text: 'x', font: { size: 12, color: palette.muted }, standoff: 8 },
      },
      yaxis: {
        ...bare,
        title: { text: 'y', font: { size: 12, color: palette.muted }, standoff: 4 },
      },
      annotations: optimizer.data.map((/** @type {string} */ each, /** @type {number} */ at) =>
        paperText(`— ${names[at]}`, lookOf(each, palette).colour, {
          x: 0,
          xanchor: 'left',
          xshift: lefts[at],
          y: 1,
          yanchor: 'bottom',
          yshift: 6,
        }),
      ),
    },
    grid: {
      ...plainGrid({
        rows: names,
        columns: paths[0].map((_, step) => String(step)),
        titles: { rows: 'optimizer', columns: 'step' },
        quantity: 'loss',
        value: (row, column) => loss.data[row][column] ?? NaN,
        say: (row, column) => {
          const [a, b] = paths[row][column];
          return `${names[row]}, step ${column}, at (${decimal(a, 2)}, ${decimal(b, 2)})`;
        },
      }),
      kind: 'contour plot',
      geometry: {
        box(row, column) {
          if (row === undefined || column === undefined) return null;
          const [a, b] = places[row][column];
          if (a === null || b === null) return null;
          return { x0: a - reach, x1: a + reach, y0: b - reach, y1: b + reach };
        },
        at(a, b) {
          let best = null;
          let nearest = reach * 5;
          places.forEach((of, row) =>
            of.forEach(([px, py], column) => {
              if (px === null || py === null) return;
              const distance = Math.hypot(px - a, py - b);
              if (distance < nearest) {
                nearest = distance;
                best = { row, column };
              }
            }),
          );
          return best;
        },
      },
    },
  };
}

/** The paler two thirds of a scale, so that paths stand out. @param {Uint8Array} colours */
function softened(colours) {
  return Uint8Array.from(
    { length: colours.length },
    (_, at) => colours[Math.floor(at / 3 / 2.4) * 3 + (at % 3)],
  );
}
