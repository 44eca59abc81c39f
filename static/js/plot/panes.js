/**
 * Panes: other plots next to the first one of a chart. A pane shares the scale that it does not give.
 */

import { escapeForPlotly } from '../words/text.js';
import { labelWidth, buildAxis, plainAxis, countOf, leftOf } from './scales.js';
import { paperText } from './marks/mark.js';

/** @import { Drawn } from './marks/mark.js' @import { Scale } from './scales.js' */

/**
 * @typedef {Object} Pane
 * @property {Scale} [x] with it, the pane is to the right of the plot; below it if swapped
 * @property {Scale} [y] with it, the pane is below the plot; to its right if swapped
 * @property {Mark<any>[]} marks
 * @property {number} pixels its width to the right, its height below
 * @property {number} [gap] pixels before it
 * @property {boolean} [isAbove] above the plot rather than below it
 * @property {string[]} [title] its lines
 * @property {'above'|'before'|'after'} [titleAt] `above` unless given
 */

/** @typedef {'beside'|'above'|'below'} PaneSide */

/** @typedef {ReturnType<typeof panes>} Panes */

/**
 * Put panes next to the plot of a chart.
 * @param {Pane[]} list in their order from the plot outwards
 */
export function panes(list) {
  return {
    marks: list.flatMap(({ marks }) => marks),
    /** @param {{isSwapped: boolean, width: number}} of */
    stack: (of) => stackOf(list, of),
    /** @param {Stack} stack @param {{main: Plan, whole: {width: number, height: number}}} of */
    draw: (stack, of) => drawnPanes(list, stack, of),
  };
}

/**
 * @typedef {Object} Stack the places of panes, in pixels from the plot outwards
 * @property {{side: PaneSide, from: number, to: number}[]} places
 * @property {number} beside
 * @property {number} above
 * @property {number} below
 * @property {number} left of the plot, for numbers and titles of panes
 * @property {number} head pixels above the plot, for titles of panes to its right
 */

const GAP = 8;
const TYPE = { size: 13, letters: 60 };
const ROOM_FOR_LEVEL = 32;
const LINE = 14;

/** @param {Pane} pane @param {boolean} isSwapped @returns {PaneSide} */
function sideOf({ x, isAbove }, isSwapped) {
  if (Boolean(x) !== isSwapped) return 'beside';
  return isAbove ? 'above' : 'below';
}

/**
 * @param {Pane[]} panes in their order from the plot outwards
 * @param {{isSwapped: boolean, width: number}} of
 * @returns {Stack}
 */
function stackOf(panes, { isSwapped, width }) {
  const end = { beside: 0, above: 0, below: 0 };
  const places = panes.map((pane) => {
    const side = sideOf(pane, isSwapped);
    const from = end[side] + (pane.gap ?? GAP);
    end[side] = from + pane.pixels;
    return { side, from, to: end[side] };
  });
  const lefts = panes.map(({ x, y, title = [], titleAt }, at) => {
    const down = isSwapped ? x : y;
    if (places[at].side === 'beside' || !down) return 0;
    return titleAt === 'before' ? labelWidth(title, TYPE) + 12 : leftOf(down, width);
  });
  const heads = panes.map(({ title = [], pixels }, at) => {
    if (places[at].side !== 'beside' || title.length === 0) return 0;
    return pixels < ROOM_FOR_LEVEL ? labelWidth(title, TYPE) : title.length * LINE;
  });
  const [left, head] = [lefts, heads].map((each) => Math.max(0, ...each));
  return { ...end, places, left, head: head && head + 6 };
}

/**
 * @param {Pane[]} panes
 * @param {Stack} stack
 * @param {{main: Plan, whole: {width: number, height: number}}} of
 * @returns {{drawn: Drawn[], axes: Record<string, Record<string, unknown>>, anchor: string, notes: Record<string, unknown>[]}[]} pane by pane; `anchor`: its axis down the page
 */
function drawnPanes(panes, stack, { main, whole }) {
  return panes.map((pane, at) => {
    const { side, from, to } = stack.places[at];
    const isBeside = side === 'beside';
    const [left, down] = [main.inner.width, main.inner.height + stack.above];
    /** @type {Record<PaneSide, [number, number]>} */
    const domains = {
      beside: [(left + from) / whole.width, (left + to) / whole.width],
      below: [1 - (down + to) / whole.height, 1 - (down + from) / whole.height],
      above: [1 - (stack.above - from) / whole.height, 1 - (stack.above - to) / whole.height],
    };
    const plan = planOf(pane, main, { isBeside, number: at + 2, domain: domains[side] });
    return {
      drawn: pane.marks.map((mark) => onAxes(mark.draw(plan), plan)),
      axes: axesOf(plan, main),
      anchor: plan.names.y,
      notes: titleOf(pane, plan, isBeside),
    };
  });
}

/**
 * @param {Pane} pane
 * @param {Plan} main
 * @param {{isBeside: boolean, number: number, domain: [number, number]}} of
 * @returns {Plan}
 */
function planOf({ x, y, marks, pixels }, main, { isBeside, number, domain }) {
  const { isSwapped, palette, width } = main;
  const inner = isBeside
    ? { width: pixels, height: main.inner.height }
    : { width: main.inner.width, height: pixels };
  /** @param {Scale|undefined} scale @param {'x'|'y'} name */
  const axis = (scale, name) => {
    if (!scale) return main[name];
    const isDown = (name === 'y') !== isSwapped;
    const values = marks.flatMap(({ reach }) => reach[name]);
    const along = isDown ? inner.height : inner.width;
    return buildAxis(scale, { values, pixels: along, width, isDown, palette });
  };
  const [across, down] = isSwapped ? [y, x] : [x, y];
  return {
    ...main,
    x: axis(x, 'x'),
    y: axis(y, 'y'),
    names: { x: across ? `x${number}` : main.names.x, y: down ? `y${number}` : main.names.y },
    domain: isBeside ? { x: domain, y: main.domain.y } : { x: main.domain.x, y: domain },
    inner,
    cell: {
      width: across ? inner.width / countOf(across) : main.cell.width,
      height: down ? inner.height / countOf(down) : main.cell.height,
    },
  };
}

/** Return the axes that a pane has and the plot has not. @param {Plan} plan @param {Plan} main */
function axesOf({ x, y, names, domain, isSwapped }, main) {
  const [across, down] = isSwapped ? [y, x] : [x, y];
  return {
    ...(names.x !== main.names.x && {
      [names.x.replace('x', 'xaxis')]: { ...plainAxis(across), domain: domain.x, anchor: names.y },
    }),
    ...(names.y !== main.names.y && {
      [names.y.replace('y', 'yaxis')]: { ...plainAxis(down), domain: domain.y, anchor: names.x },
    }),
  };
}

/** @param {Pane} pane @param {Plan} plan @param {boolean} isBeside */
function titleOf({ title, titleAt = 'above', pixels }, { domain, palette }, isBeside) {
  if (!title) return [];
  const [left, right] = domain.x;
  const [bottom, top] = domain.y;
  const text = title.map(escapeForPlotly).join('<br>');
  const middle = { y: (bottom + top) / 2, yanchor: 'middle' };
  if (titleAt === 'before')
    return [paperText(text, palette.muted, { x: left, xanchor: 'right', xshift: -8, ...middle })];
  if (titleAt === 'after')
    return [paperText(text, palette.muted, { x: right, xanchor: 'left', xshift: 8, ...middle })];
  const above = { y: top, yanchor: 'bottom', yshift: 5, align: 'left' };
  if (!isBeside || pixels >= ROOM_FOR_LEVEL)
    return [paperText(text, palette.muted, { x: left, xanchor: 'left', ...above })];
  const upright = { x: (left + right) / 2, xanchor: 'center', textangle: -90 };
  return [paperText(text, palette.muted, { ...upright, ...above })];
}

/**
 * Put the drawing of a mark on the axes of its pane.
 * @param {Drawn} drawn
 * @param {Plan} plan
 * @returns {Drawn}
 */
function onAxes({ traces = [], shapes = [], notes = [] }, { names: { x, y } }) {
  /** @param {unknown} ref @param {string} name */
  const named = (ref, name) => (ref === undefined || ref === name[0] ? name : ref);
  /** @param {Record<string, unknown>} part */
  const referred = (part) => ({
    ...part,
    xref: named(part.xref === 'paper' ? `${x} domain` : part.xref, x),
    yref: named(part.yref === 'paper' ? `${y} domain` : part.yref, y),
  });
  return {
    traces: traces.map((trace) => ({ ...trace, xaxis: x, yaxis: y })),
    shapes: shapes.map(referred),
    notes: notes.map(referred),
  };
}
