/** Curves over a shared axis, each with its name at its end. */

import { amount, decimal, percent } from '../words/numbers.js';
import { numbersIn } from '../rules/experiment.js';
import { chart } from './chart.js';
import { css, sequential } from './colour.js';
import { line } from './marks/line.js';
import { ribbon, ruleAt } from './marks/decorations.js';
import { pictureOf } from './map.js';
import { linear, log } from './scales.js';

/**
 * @typedef {Object} Curve
 * @property {string} name at its end, and of its row in the table
 * @property {number[]} values by place of the shared axis; NaN: none
 * @property {string} colour
 * @property {'solid'|'dot'|'dash'} [dash]
 * @property {number} [width]
 * @property {boolean} [isQuiet] it has no name at its end
 * @property {boolean} [hasDots] every value is marked
 */

/**
 * @typedef {Object} Axis
 * @property {string} title
 * @property {boolean} [isLog]
 * @property {[number, number]} [range] of values; what the curves reach unless given
 * @property {number[]} [ticks]
 * @property {(value: number) => string} [write] a tick
 */

/**
 * @typedef {Object} Plotted
 * @property {number[]} x the shared axis
 * @property {Axis} across
 * @property {Axis} up
 * @property {Curve[]} curves the last is drawn on top
 * @property {number} [marker] the place that a vertical line marks
 * @property {{name: string, low: number[], high: number[], colour: string}} [band] between two curves
 * @property {string} quantity of the table
 * @property {string} [unit] of a place, in words: `step 40`
 * @property {number} [height] of the whole drawing
 * @property {(value: number) => string} [format]
 */

/** The axis of a share of right answers. @type {Axis} */
export const ACCURACY = {
  title: 'right answers',
  range: [0, 1.02],
  ticks: [0, 0.25, 0.5, 0.75, 1],
  write: (value) => percent(value, 0),
};

/** Pixels that the axis below a plot takes, with the edge above it. */
const FOOT = 54;

/** @param {Palette} palette @returns {string} the warm colour of the line that matters */
export function warm(palette) {
  return css(sequential(palette.theme), 150);
}

/**
 * Return the picture of an experiment that is one plot of curves.
 * @param {{id: string, isWide?: boolean, title: string, summary: string, help: string} & Omit<Plotted, 'curves'> & {curves: Record<string, (number|null)[]>|((size: import('./map.js').Size) => Curve[])}} told `format` writes three digits unless it is given; of curves by name the last is the one that matters
 * @returns {import('../rules/experiment.js').Picture}
 */
export function curvesPicture({ curves, ...plotted }) {
  const format = (/** @type {number} */ value) => decimal(value, 3);
  /** @param {import('./map.js').Size} size */
  const drawn = (size) =>
    typeof curves === 'function'
      ? curves(size)
      : Object.entries(curves).map(([name, values], at, { length }) =>
          (at === length - 1 ? strongCurve : plainCurve)(name, values, size),
        );
  return pictureOf(plotted, (size) =>
    curvesChart({ format, ...plotted, curves: drawn(size) }, size),
  );
}

/** @param {string} name @param {(number|null)[]} values null is NaN @param {Pick<Frame, 'palette'>} size @returns {Curve} in ink */
export function plainCurve(name, values, { palette }) {
  return { name, values: numbersIn(values), colour: palette.ink };
}

/** @param {string} name @param {(number|null)[]} values null is NaN @param {Pick<Frame, 'palette'>} size @returns {Curve} the one that matters */
export function strongCurve(name, values, { palette }) {
  return { name, values: numbersIn(values), colour: warm(palette), width: 3 };
}

/** @typedef {Omit<Curve, 'values'|'colour'> & {colour: 'warm'|keyof Palette}} Look of a curve, whatever the theme */

/**
 * Return a curve of each row of an array.
 * @param {{data: any}} rows ids of the rows
 * @param {{data: any}} array
 * @param {Record<string, Look>} looks by id
 * @param {Pick<Frame, 'palette'>} size
 * @returns {Curve[]}
 */
export function rowCurves({ data: rows }, { data }, looks, { palette }) {
  return rows.map((/** @type {string} */ row, /** @type {number} */ at) => {
    const { colour, ...look } = looks[row];
    const ink = colour === 'warm' ? warm(palette) : palette[colour];
    return { ...look, values: numbersIn(data[at]), colour: ink };
  });
}

/**
 * Return the picture of a quantity by layer, on a logarithmic scale.
 * @param {{id: string, isWide?: boolean, title: string, help: string, up: string, over: string}} told `over`: of what there is a curve each
 * @param {import('../rules/experiment.js').Arrays} arrays
 * @param {(size: import('./map.js').Size) => Curve[]} curves
 */
export function layersPicture({ up, over, ...told }, { layer }, curves) {
  return curvesPicture({
    ...told,
    summary: `${told.title}, ${over}.`,
    x: numbersIn(layer.data),
    across: { title: 'layer' },
    up: { title: up, isLog: true },
    quantity: told.help.split('.')[0],
    curves,
  });
}

/** @param {Plotted} plotted @param {Pick<Frame, 'width'|'palette'>} frame @returns {Drawing & {grid: Grid}} */
export function curvesChart(plotted, frame) {
  const { x, curves, across, up, band: area, marker, quantity, format, height } = plotted;
  const { unit = across.title } = plotted;
  const written = across.write ?? ((/** @type {number} */ value) => amount(value, 6));
  /** @type {[number, number]|undefined} */
  const ends = x.length > 1 ? [x[0], x[x.length - 1]] : undefined;
  return chart(
    {
      x: scaleOf({ ...across, range: across.range ?? ends }),
      y: scaleOf(up),
      marks: [
        ...(area ? [ribbon({ ...area, fill: area.colour }, { x })] : []),
        line(
          curves.map(({ colour, hasDots, ...curve }) => ({
            ...curve,
            stroke: colour,
            dots: hasDots ? 5 : 0,
          })),
          {
            x,
            format,
            name: ({ row, column }) => `${curves[row].name}, ${unit} ${written(x[column])}`,
          },
        ),
        ...(marker === undefined ? [] : [ruleAt(x[marker])]),
      ],
      size: { height: height && height - FOOT },
      table: {
        rows: { title: 'curve' },
        columns: { title: across.title, labels: x.map((value) => written(value)) },
        quantity,
      },
    },
    frame,
  );
}

/** @param {Axis} axis */
function scaleOf({ title, isLog = false, range: domain, ticks, write }) {
  return (isLog ? log : linear)(title, { domain, ticks, write });
}
