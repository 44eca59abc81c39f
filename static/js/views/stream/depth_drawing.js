/**
 * The residual stream by depth, one row per step, and its drawings: a map of steps by positions, and
 * lines over the steps. In a narrow layout the positions of the map run downwards.
 */

import { transposed } from '../../data/arithmetic.js';
import { amount } from '../../data/format.js';
import { escapeForPlotly, tokenLabels } from '../../data/text.js';
import { diverging, levelOf, sequential } from '../../plot/colour.js';
import {
  baseLayout,
  downwards,
  isNarrow,
  labelAxis,
  labelWidth,
  letteringFor,
  heatmapTrace,
  nested,
  textInCells,
  shortBar,
  shortBarTitle,
} from '../../plot/figure.js';

/**
 * @import { Card, Matrix, NamedArray, Token } from '../../data/trace.js'
 * @import { Drawing, Frame, Lettering, Palette } from '../../plot/figure.js'
 * @import { Geometry } from '../../plot/grid.js'
 */

const STEP_HEIGHT = 22;
const TOKEN_HEIGHT = { most: 20, least: 4 };
const LONGEST_MAP = 1280;
const STEP_LETTERS = 19;
const ROOM_FOR_NUMBERS = { width: 34, height: 14 };
const ROOM_FOR_GAPS = 10;
const LINE_HEIGHT = 240;
/** The height of a label at 45°, relative to its length. */
const SLANT = 0.72;
/** A point can be hit within a tenth of the axis. */
const POINT = 0.05;

/**
 * @typedef {Object} Scale
 * @property {number} least
 * @property {number} most
 * @property {boolean} isSigned
 * @property {(value: number) => string} short a number in a cell
 */

/** Whether positions run downwards. @param {number} width pixels the drawing may take */
export function isDown(width) {
  return isNarrow(width);
}

/**
 * @param {Depth} depth
 * @param {{tokens: Token[], scale: Scale, quantity: string}} named
 * @param {Frame} state
 * @returns {Drawing}
 */
export function depthMap({ steps, matrix }, { tokens, scale, quantity }, { palette, width }) {
  const labels = { tokens: tokenLabels(tokens), steps: steps.map(({ title }) => title) };
  const box = (isDown(width) ? downBox : acrossBox)(labels, width);
  const colours = (scale.isSigned ? diverging : sequential)(palette.theme);
  return {
    data: [heatmap(matrix, scale, colours, palette, box), ...numbers(matrix, scale, colours, box)],
    layout: {
      ...baseLayout(palette, box),
      ...axes(labels, palette, box),
      annotations: [barTitle(quantity, palette, box)],
    },
  };
}

/** @param {number} width @returns {Lettering} with room for the name of a step */
function stepLettering(width) {
  return { ...letteringFor(width), letters: STEP_LETTERS };
}

/** @param {{tokens: string[], steps: string[]}} labels @param {number} width */
function acrossBox(labels, width) {
  const lettering = letteringFor(width);
  const l = labelWidth(labels.steps, stepLettering(width)) + 12;
  /** @param {string[]} tokens */
  const slanted = (tokens) => Math.ceil(labelWidth(tokens, lettering) * SLANT);
  const margin = {
    l,
    r: Math.max(8, slanted(labels.tokens.slice(-1))),
    t: slanted(labels.tokens) + 14,
    b: 40,
  };
  const size = { across: width - margin.l - margin.r, down: labels.steps.length * STEP_HEIGHT };
  return {
    isDown: false,
    lettering,
    margin,
    ...size,
    width,
    height: size.down + margin.t + margin.b,
    cell: { width: size.across / labels.tokens.length, height: STEP_HEIGHT },
  };
}

/** @param {{tokens: string[], steps: string[]}} labels @param {number} width */
function downBox(labels, width) {
  const lettering = letteringFor(width);
  const top = labelWidth(labels.steps, stepLettering(width)) + 10;
  const margin = { l: labelWidth(labels.tokens, lettering) + 14, r: 4, t: top, b: 56 };
  const cell = Math.max(
    TOKEN_HEIGHT.least,
    Math.min(TOKEN_HEIGHT.most, LONGEST_MAP / labels.tokens.length),
  );
  const size = { across: width - margin.l - margin.r, down: labels.tokens.length * cell };
  return {
    isDown: true,
    lettering,
    margin,
    ...size,
    width,
    height: size.down + margin.t + margin.b,
    cell: { width: size.across / labels.steps.length, height: cell },
  };
}

/**
 * @param {{tokens: string[], steps: string[]}} of
 * @param {Palette} palette
 * @param {ReturnType<typeof acrossBox>} acrossBox
 */
function axes(
  { tokens, steps },
  palette,
  { isDown: down, across, down: pixels, lettering, width },
) {
  const shared = { title: '', palette };
  const tokenAxis = labelAxis({
    ...shared,
    labels: tokens,
    pixels: down ? pixels : across,
    lettering,
  });
  const stepAxis = labelAxis({
    ...shared,
    labels: steps,
    pixels: down ? across : pixels,
    lettering: stepLettering(width),
  });
  if (down)
    return { xaxis: { ...stepAxis, side: 'top', tickangle: -90 }, yaxis: downwards(tokenAxis) };
  return { xaxis: { ...tokenAxis, side: 'top', tickangle: -45 }, yaxis: downwards(stepAxis) };
}

/**
 * @param {Matrix} matrix
 * @param {Scale} scale
 * @param {Uint8Array} colours
 * @param {Palette} palette
 * @param {ReturnType<typeof acrossBox>} acrossBox
 */
function heatmap(matrix, { least, most }, colours, palette, { isDown: down, cell }) {
  const tickvals = [least, (least + most) / 2, most];
  return heatmapTrace(
    nested(down ? transposed(matrix) : matrix),
    { bottom: least, top: most, colours },
    shortBar(palette, { tickvals, ticktext: tickvals.map((value) => amount(value)) }),
    [cell.width >= ROOM_FOR_GAPS ? 1 : 0, cell.height >= ROOM_FOR_GAPS ? 1 : 0],
  );
}

/**
 * The numbers in the cells, if each has room.
 * @param {Matrix} matrix
 * @param {Scale} scale
 * @param {Uint8Array} colours
 * @param {ReturnType<typeof acrossBox>} acrossBox
 */
function numbers({ rows, columns, data }, { least, most, short }, colours, { isDown: down, cell }) {
  if (cell.width < ROOM_FOR_NUMBERS.width || cell.height < ROOM_FOR_NUMBERS.height) return [];
  const cells = Array.from({ length: rows * columns }, (_, at) => {
    const [step, position] = [Math.floor(at / columns), at % columns];
    return {
      ...(down ? { x: step, y: position } : { x: position, y: step }),
      text: short(data[at]),
      level: levelOf(data[at] - least, most - least),
    };
  });
  return [textInCells(cells, colours, cell.width >= 40 ? 11 : 10)];
}

/**
 * The title of the colour bar, clear of its numbers; below the bar on a phone.
 * @param {string} text
 * @param {Palette} palette
 * @param {ReturnType<typeof acrossBox>} acrossBox
 */
function barTitle(text, palette, { isDown: down }) {
  const title = shortBarTitle(text, palette);
  return { ...title, ...(down ? { xshift: 0, yshift: -32 } : { xshift: title.xshift + 8 }) };
}

/**
 * @typedef {{name: string, values: number[], color: string, isDashed?: boolean}} Line
 */

/**
 * Lines over the depth, each with its name at its end.
 * @param {Step[]} steps
 * @param {Line[]} lines
 * @param {{least: number, most: number, quantity: string}} scale
 * @param {Frame} state
 * @returns {Drawing}
 */
export function depthLines(steps, lines, { least, most, quantity }, { palette, width }) {
  const labels = steps.map(({ title }) => title);
  const lettering = stepLettering(width);
  const margin = {
    l: 52,
    r: 16,
    t: 26,
    b: labelWidth(labels, lettering) * (isNarrow(width) ? 1 : SLANT) + 18,
  };
  const across = width - margin.l - margin.r;
  return {
    data: lines.map(({ values, color, isDashed }) => ({
      type: 'scatter',
      mode: 'lines+markers',
      x: steps.map((_, step) => step),
      y: values,
      line: { color, width: 2, dash: isDashed ? 'dot' : 'solid' },
      marker: { color, size: isDashed ? 4 : 6 },
      hoverinfo: 'none',
      cliponaxis: false,
    })),
    layout: {
      ...baseLayout(palette, { width, height: LINE_HEIGHT + margin.t + margin.b, margin }),
      annotations: legend(lines),
      xaxis: {
        ...labelAxis({ labels, pixels: across, title: '', palette, lettering }),
        tickangle: isNarrow(width) ? -90 : -45,
      },
      yaxis: {
        range: rangeAround(least, most),
        nticks: 6,
        title: { text: quantity, font: { size: 12, color: palette.muted }, standoff: 6 },
        tickfont: { size: 11, color: palette.muted },
        gridcolor: palette.line,
        zerolinecolor: palette.muted,
        zerolinewidth: 1,
      },
    },
  };
}

/**
 * The range leaves room for the points at its ends.
 * @param {number} least
 * @param {number} most
 */
function rangeAround(least, most) {
  const room = (most - least) * POINT;
  return [least < 0 ? least - room : least, most + room];
}

/** The legend above the lines, each name in the colour of its line. @param {Line[]} lines */
function legend(lines) {
  let left = 0;
  return lines.map(({ name, color, isDashed }) => {
    const text = `${isDashed ? '┄' : '—'} ${escapeForPlotly(name)}`;
    const annotation = {
      text,
      showarrow: false,
      xref: 'paper',
      yref: 'paper',
      x: 0,
      xanchor: 'left',
      xshift: left,
      y: 1,
      yanchor: 'bottom',
      yshift: 6,
      font: { size: 12, color },
    };
    left += labelWidth([text], { size: 12, letters: 60 }) + 16;
    return annotation;
  });
}

/**
 * The geometry of the points: rows are lines, columns steps.
 * @param {Line[]} lines
 * @param {{least: number, most: number}} scale
 * @returns {Geometry}
 */
export function pointsOf(lines, { least, most }) {
  const reach = (most - least) * POINT;
  return {
    box: (row, column) => {
      if (row === undefined || column === undefined) return null;
      const y = lines[row].values[column];
      return { x0: column - 0.25, x1: column + 0.25, y0: y - reach, y1: y + reach };
    },
    at: (x, y) => {
      const column = Math.round(x);
      if (column < 0 || column >= lines[0].values.length) return null;
      const distances = lines.map(({ values }) => Math.abs(values[column] - y));
      return { row: distances.indexOf(Math.min(...distances)), column };
    },
  };
}

/** @typedef {Record<string, NamedArray>} Found what `residual_stream` gives */

/**
 * @typedef {Object} Step
 * @property {string} title on an axis: `0 · attention`
 * @property {string} name in a sentence: `the attention of layer 0`
 */

/** @typedef {{steps: Step[], matrix: Matrix}} Depth steps by positions */

const PARTS = ['self_attention', 'cross_attention', 'feed_forward'];
const PLACES = ['before', 'between', 'middle', 'after'];
/** @type {Record<string, string>} */
const TITLES = {
  self_attention: 'attention',
  cross_attention: 'cross-attention',
  feed_forward: 'feed-forward',
};
/** @type {Record<string, string>} */
const NORMS = {
  self_attention: 'attention_norm',
  cross_attention: 'cross_attention_norm',
  feed_forward: 'feed_forward_norm',
};

/**
 * The norm of the stream after the embedding and after every part of every layer.
 * @param {Found} found
 * @param {'encoder'|'decoder'} stack
 * @param {Card} [card]
 * @returns {Depth}
 */
export function streamDepth(found, stack, card) {
  const places = PLACES.filter((place) => `${stack}.residual_norm.${place}` in found);
  /** @param {string} place @param {number} layer */
  const at = (place, layer) => rowAt(found[`${stack}.residual_norm.${place}`], layer);
  const parts = partsIn(found, stack);
  const rows = eachWrite(found, stack, card).map(({ step, part, layer }) => ({
    step: { title: step.title, name: `after ${step.name}` },
    row: at(places[parts.indexOf(part) + 1], layer),
  }));
  return depthOf([
    { step: { title: 'embedding', name: 'after the embedding' }, row: at('before', 0) },
    ...rows,
  ]);
}

/**
 * The writes of every part of every layer.
 * @param {Found} found
 * @param {'encoder'|'decoder'} stack
 * @param {Card|undefined} card
 * @param {'written_norm'|'cosine'} quantity
 * @returns {Depth}
 */
export function writtenDepth(found, stack, card, quantity) {
  return depthOf(
    eachWrite(found, stack, card).map(({ step, part, layer }) => ({
      step,
      row: rowAt(found[`${stack}.${quantity}.${part}`], layer),
    })),
  );
}

/**
 * The inputs of every layer norm, and of the final norm if there is one.
 * @param {Found} found
 * @param {'encoder'|'decoder'} stack
 * @param {Card|undefined} card
 * @param {'mean'|'deviation'|'root_mean_square'} quantity
 * @returns {Depth}
 */
export function normDepth(found, stack, card, quantity) {
  const side = card?.norm_place === 'post' ? 'after' : 'before';
  const rows = eachWrite(found, stack, card).map(({ step, part, layer }) => ({
    step: { title: step.title, name: `the norm ${side} ${step.name}` },
    row: rowAt(found[`${stack}.${quantity}.${NORMS[part]}`], layer),
  }));
  const last = found[`${stack}.${quantity}.norm`];
  return depthOf(
    last
      ? [...rows, { step: { title: 'last norm', name: 'the last norm' }, row: rowAt(last, 0) }]
      : rows,
  );
}

/**
 * Whether the norm is by mean and deviation, rather than by root mean square.
 * @param {Found} found
 */
export function isCentred(found) {
  return Object.keys(found).some((name) => name.includes('.deviation.'));
}

/** @param {Found} found @param {string} stack */
function partsIn(found, stack) {
  return PARTS.filter((part) => `${stack}.written_norm.${part}` in found);
}

/** @param {Found} found @param {string} stack @param {Card|undefined} card */
function eachWrite(found, stack, card) {
  const parts = partsIn(found, stack);
  const layers = found[`${stack}.residual_norm.before`].shape[0];
  return Array.from({ length: layers }, (_, layer) =>
    parts.map((part) => ({ part, layer, step: stepOf(part, layer, card) })),
  ).flat();
}

/** @param {string} part @param {number} layer @param {Card|undefined} card */
function stepOf(part, layer, card) {
  const title =
    part === 'feed_forward' && card?.moe?.layers.includes(layer) ? 'experts' : TITLES[part];
  return {
    title: `${layer} · ${title}`,
    name: `the ${title === 'feed-forward' ? 'feed-forward network' : title} of layer ${layer}`,
  };
}

/** @param {NamedArray} array @param {number} layer */
function rowAt({ shape, data, scale }, layer) {
  const columns = shape[shape.length - 1];
  return Float64Array.from(
    { length: columns },
    (_, column) => data[layer * columns + column] * scale,
  );
}

/** @param {{step: Step, row: Float64Array}[]} rows @returns {Depth} */
function depthOf(rows) {
  const columns = rows[0].row.length;
  const data = new Float64Array(rows.length * columns);
  rows.forEach(({ row }, index) => data.set(row, index * columns));
  return { steps: rows.map(({ step }) => step), matrix: { rows: rows.length, columns, data } };
}

/** @param {Matrix} matrix @returns {number[]} the mean of every row */
export function rowMeans({ rows, columns, data }) {
  return Array.from(
    { length: rows },
    (_, row) =>
      data.subarray(row * columns, (row + 1) * columns).reduce((sum, value) => sum + value, 0) /
      columns,
  );
}
