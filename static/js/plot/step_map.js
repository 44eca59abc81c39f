/**
 * A map of the steps through a model by the positions of a text. In a narrow layout the positions run
 * downwards.
 */

import { transposed } from '../data/arithmetic.js';
import { amount } from '../data/format.js';
import { tokenLabels } from '../data/text.js';
import { diverging, levelOf, sequential } from './colour.js';
import {
  baseLayout,
  downwards,
  heatmapTrace,
  isNarrow,
  labelAxis,
  labelWidth,
  letteringFor,
  nested,
  shortBar,
  shortBarTitle,
  textInCells,
} from './figure.js';

/**
 * @import { Matrix, Token } from '../data/trace.js'
 * @import { Drawing, Frame, Lettering, Palette } from './figure.js'
 */

const STEP_HEIGHT = 22;
const TOKEN_HEIGHT = { most: 20, least: 4 };
const LONGEST_MAP = 1280;
const STEP_LETTERS = 19;
const NUMBER_WIDTH = 34;
const NUMBER_HEIGHT = 12;
const ROOM_FOR_GAPS = 10;
/** The height of a label at 45°, relative to its length. */
export const SLANT = 0.72;

/**
 * @typedef {Object} Scale
 * @property {number} least
 * @property {number} most
 * @property {boolean} [isSigned]
 * @property {(value: number, step: number, position: number) => string} short what a cell says
 * @property {number} [room] pixels of width that it needs; 34 if absent
 */

/** Whether positions run downwards. @param {number} width pixels the drawing may take */
export function isDown(width) {
  return isNarrow(width);
}

/**
 * @param {Matrix} matrix
 * @param {{steps: string[], tokens: Token[], scale: Scale, quantity: string}} named rows and columns, and what the numbers measure
 * @param {Frame} state
 * @returns {Drawing}
 */
export function stepMap(matrix, { steps, tokens, scale, quantity }, { palette, width }) {
  const labels = { tokens: tokenLabels(tokens), steps };
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
export function stepLettering(width) {
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
 * @param {ReturnType<typeof acrossBox>} box
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
 * @param {ReturnType<typeof acrossBox>} box
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
 * @param {ReturnType<typeof acrossBox>} box
 */
function numbers(matrix, { least, most, short, room = NUMBER_WIDTH }, colours, box) {
  const { rows, columns, data } = matrix;
  const { isDown: down, cell } = box;
  if (cell.width < room || cell.height < NUMBER_HEIGHT) return [];
  const cells = Array.from({ length: rows * columns }, (_, at) => {
    const [step, position] = [Math.floor(at / columns), at % columns];
    return {
      ...(down ? { x: step, y: position } : { x: position, y: step }),
      text: short(data[at], step, position),
      level: levelOf(data[at] - least, most - least),
    };
  });
  return [textInCells(cells, colours, cell.width >= 40 ? 11 : 10)];
}

/**
 * The title of the colour bar, clear of its numbers; below the bar on a phone.
 * @param {string} text
 * @param {Palette} palette
 * @param {ReturnType<typeof acrossBox>} box
 */
function barTitle(text, palette, { isDown: down }) {
  const title = shortBarTitle(text, palette);
  return { ...title, ...(down ? { xshift: 0, yshift: -32 } : { xshift: title.xshift + 8 }) };
}
