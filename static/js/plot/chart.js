/**
 * A chart from its marks: Plotly's data and layout, and what the cursor, the table, the exports and the
 * sentence read of it. No module outside plot/ names a key of Plotly's.
 */

import { baseLayout } from './figure.js';
import { legendFor, legendNotes } from './legend.js';
import { gridOf } from './reading.js';
import { countOf, roomOf } from './room.js';
import { axisOf } from './scales.js';
import { squareRoom } from './square.js';

/**
 * @import { Drawing, Frame } from './figure.js'
 * @import { CellCursor, Grid, NumberGrid, SentenceLink } from './grid.js'
 * @import { Mark, Plan } from './marks/mark.js'
 * @import { Room, Size } from './room.js'
 * @import { Axis, Scale } from './scales.js'
 */

/**
 * @typedef {Object} Chart
 * @property {Scale} x
 * @property {Scale} y
 * @property {Mark<any>[]} marks the last is drawn on top; the cursor reads the first that has numbers
 * @property {Pane[]} [panes] in their order from the plot outwards
 * @property {boolean} [isSwapped] x runs down and y across, as on a narrow page
 * @property {Size & {isZoomable?: boolean}} [size] `isZoomable`: a part of a large map can be shown alone
 * @property {Table} table
 * @property {Partial<SentenceLink>} [sentence] beyond what a band of tokens says
 * @property {Partial<CellCursor>} [cursor]
 */

/** @typedef {{shares: 'x'|'y', scale: Scale, marks: Mark<any>[], pixels: number, gap?: number}} Pane another plot that shares a scale: to the right of the plot if that is y, below it if it is x, and the other way round when swapped; `gap`: pixels before it */

/** @typedef {{rows?: {title: string, labels?: string[]}, columns?: {title: string, labels?: string[]}} & Pick<NumberGrid, 'quantity'> & Partial<Pick<NumberGrid, 'request'|'before'|'made'|'call'|'ofRows'|'writtenNote'>>} Table titles and labels are those of the scales unless given */

const GAP = 8;

/** @param {Chart} spec @param {Pick<Frame, 'width'|'palette'> & {height?: number}} frame @returns {Drawing & {grid: Grid}} */
export function chart(spec, { width, palette, height = Infinity }) {
  const { y, marks, panes = [], isSwapped = false, size = {} } = spec;
  const x = size.isSquare ? leaning(spec.x) : spec.x;
  const [across, down] = isSwapped ? [y, x] : [x, y];
  const all = [...marks, ...panes.flatMap((pane) => pane.marks)];
  const ramps = all.flatMap(({ ramp }) => (ramp && ramp.legend !== 'none' ? [ramp] : []));
  const legend = legendFor(all, width);
  const isBelow = (/** @type {Pane} */ { shares }) => (shares === 'x') !== isSwapped;
  const [below, beside] = [true, false].map((side) =>
    panes
      .filter((pane) => isBelow(pane) === side)
      .reduce((sum, { pixels, gap = GAP }) => sum + pixels + gap, 0),
  );
  const room = (size.isSquare ? squareRoom : roomOf)(
    { across, down, ramps, legend, size, beside, below, edges: edgesOf(all) },
    { width, height },
  );
  const whole = { width: room.inner.width + beside, height: room.inner.height + below };
  const main = planOf({ x, y, marks, isSwapped, palette, room, whole, width });
  const drawn = marks.map((mark) => mark.draw(main));
  const [drawnAcross, drawnDown] = isSwapped ? [main.y, main.x] : [main.x, main.y];
  const others = panesOf(spec, main, { room, whole, width, palette, isBelow });
  const parts = [...drawn, ...others.flatMap(({ drawn: of }) => of)];
  const labelled = labelledIn([x, y], [main.x, main.y]);
  return {
    data: parts.flatMap(({ traces = [] }) => traces),
    layout: {
      ...baseLayout(palette, { width: room.width, height: room.height, margin: room.margin }),
      ...(isOverlaid(parts) && { barmode: 'overlay' }),
      xaxis: { ...plainAxis(drawnAcross, room.axes?.across), ...domainIn(main, 'x') },
      yaxis: { ...plainAxis(drawnDown, room.axes?.down), ...domainIn(main, 'y') },
      ...Object.assign({}, ...others.map(({ axes }) => axes)),
      shapes: parts.flatMap(({ shapes = [] }) => shapes),
      annotations: [
        ...parts.flatMap(({ notes = [] }) => notes),
        ...(size.isSquare ? [] : legendNotes(legend, main, room.margin.l)),
        ...room.notes(palette),
      ],
    },
    grid: gridOf(spec, main, width),
    ...(labelled && { labelled }),
  };
}

/** The labels above a map of square cells lean or stand upright. @param {Scale} scale @returns {Scale} */
function leaning(scale) {
  return scale.kind === 'band' ? { ...scale, side: 'top', isSlanted: true } : scale;
}

/** The pixels that marks take outside the plot. @param {Mark<any>[]} marks */
function edgesOf(marks) {
  const most = (/** @type {'top'|'right'} */ side) =>
    Math.max(0, ...marks.map(({ room }) => room?.[side] ?? 0));
  return { top: most('top'), right: most('right') };
}

/** Whether bars of several marks share places. @param {ReturnType<Mark<any>['draw']>[]} parts */
function isOverlaid(parts) {
  const bars = parts.flatMap(({ traces = [] }) => traces.filter(({ type }) => type === 'bar'));
  return bars.length > 1;
}

/**
 * @param {{x: Scale, y: Scale, marks: Mark<any>[], isSwapped: boolean, palette: Plan['palette'], room: Room, whole: Plan['inner'], width: number}} of
 * @returns {Plan} of the plot without its panes
 */
function planOf({ x, y, marks, isSwapped, palette, room, whole, width }) {
  const { inner } = room;
  const [across, down] = isSwapped ? [y, x] : [x, y];
  /** @param {Scale} scale @param {'x'|'y'} name */
  const axis = (scale, name) =>
    axisOf(scale, {
      values: marks.flatMap(({ reach }) => reach[name]),
      pixels: scale === down ? inner.height : inner.width,
      width,
      isDown: scale === down,
      palette,
    });
  return {
    x: axis(x, 'x'),
    y: axis(y, 'y'),
    names: { x: 'x', y: 'y' },
    domain: { x: [0, inner.width / whole.width], y: [1 - inner.height / whole.height, 1] },
    palette,
    width: room.width,
    inner,
    cell: { width: inner.width / countOf(across), height: inner.height / countOf(down) },
    isSwapped,
    bar: (ramp) => room.bar(ramp, palette),
  };
}

/**
 * @param {Chart} spec
 * @param {Plan} main
 * @param {{room: Room, whole: Plan['inner'], width: number, palette: Plan['palette'], isBelow: (pane: Pane) => boolean}} of
 */
function panesOf(
  { panes = [], isSwapped = false },
  main,
  { room, whole, width, palette, isBelow },
) {
  const from = { right: room.inner.width, down: room.inner.height };
  return panes.map((pane, at) => {
    const { shares, scale, marks, pixels, gap = GAP } = pane;
    const name = shares === 'x' ? 'y' : 'x';
    const drawnOn = isBelow(pane) ? 'y' : 'x';
    const axis = axisOf(scale, {
      values: marks.flatMap(({ reach }) => reach[name]),
      pixels,
      width,
      isDown: isBelow(pane),
      palette,
    });
    const side = isBelow(pane) ? 'down' : 'right';
    const first = from[side] + gap;
    from[side] = first + pixels;
    /** @type {[number, number]} */
    const domain = isBelow(pane)
      ? [1 - from[side] / whole.height, 1 - first / whole.height]
      : [first / whole.width, from[side] / whole.width];
    const own = `${drawnOn}${at + 2}`;
    /** @type {Plan} */
    const plan = {
      ...main,
      [name]: axis,
      names: { ...main.names, [drawnOn]: own },
      domain: { ...main.domain, [drawnOn]: domain },
      inner: isBelow(pane)
        ? { width: main.inner.width, height: pixels }
        : { width: pixels, height: main.inner.height },
      isSwapped,
    };
    return {
      drawn: marks.map((mark) => onAxes(mark.draw(plan), plan)),
      axes: {
        [`${drawnOn}axis${at + 2}`]: {
          ...plainAxis(axis),
          domain,
          anchor: drawnOn === 'x' ? main.names.y : main.names.x,
        },
      },
    };
  });
}

/**
 * What a mark draws, on the axes of its pane.
 * @param {ReturnType<Mark<any>['draw']>} drawn
 * @param {Plan} plan
 */
function onAxes({ traces = [], shapes = [], notes = [] }, { names: { x, y } }) {
  /** @param {unknown} ref @param {string} name */
  const named = (ref, name) => (ref === undefined || ref === name[0] ? name : ref);
  /** @param {Record<string, unknown>} one */
  const referred = (one) => ({
    ...one,
    xref: named(one.xref === 'paper' ? `${x} domain` : one.xref, x),
    yref: named(one.yref === 'paper' ? `${y} domain` : one.yref, y),
  });
  return {
    traces: traces.map((trace) => ({ ...trace, xaxis: x, yaxis: y })),
    shapes: shapes.map(referred),
    notes: notes.map(referred),
  };
}

/** A part of the page for the plot, if panes have the rest. @param {Plan} plan @param {'x'|'y'} name */
function domainIn({ domain }, name) {
  const [from, to] = domain[name];
  return from === 0 && to === 1 ? {} : { domain: [from, to] };
}

/** @param {Axis} axis @param {Record<string, unknown>} [instead] */
function plainAxis({ range, axis }, instead = {}) {
  const { title, ...others } = instead;
  const bare = { ticks: '', showgrid: false, zeroline: false, showline: false, automargin: false };
  return {
    ...bare,
    ...axis,
    ...(title !== undefined && { title: { .../** @type {any} */ (axis.title), text: title } }),
    ...others,
    range,
  };
}

const ORDINAL = { one: 'st', two: 'nd', few: 'rd', other: 'th' };
const ordinals = new Intl.PluralRules('en', { type: 'ordinal' });

/**
 * Says how many labels there are, if some are left out around those that are kept.
 * @param {Scale[]} scales
 * @param {Axis[]} axes
 * @returns {string|undefined}
 */
function labelledIn(scales, axes) {
  if (!scales.some((scale) => scale.kind === 'band' && scale.keep)) return undefined;
  const shown = axes.map(({ axis }) => /** @type {number[]} */ (axis.tickvals ?? []));
  const isWhole = scales.every((scale, at) => countOf(scale) === shown[at].length);
  if (isWhole) return undefined;
  const steps = new Set(
    shown.flatMap((ticks) => ticks.slice(1).map((index, before) => index - ticks[before])),
  );
  const [step] = steps;
  const suffix = ORDINAL[/** @type {keyof typeof ORDINAL} */ (ordinals.select(step))];
  // A kept label displaces its neighbours', so that those that are left may be at no even distance.
  return steps.size === 1
    ? `Every ${step}${suffix} label is shown.`
    : 'Some labels are left out to make room.';
}
