/**
 * A chart from its marks: Plotly's data and layout, and what the cursor, the table, the exports and the
 * sentence read of it. No module outside plot/ names a key of Plotly's.
 */

import { baseLayout } from './figure.js';
import { legendFor, legendNotes } from './legend.js';
import { gridOf } from './reading.js';
import { coverOf, drawnPanes, onAxes, plotTitle, stackOf } from './panes.js';
import { countOf, footOf, roomOf } from './room.js';
import { axisOf, plainAxis } from './scales.js';
import { squareRoom } from './square.js';

/**
 * @import { Drawing, Frame } from './figure.js'
 * @import { CellCursor, Grid, NumberGrid, SentenceLink } from './grid.js'
 * @import { Mark, Plan } from './marks/mark.js'
 * @import { Pane, Stack } from './panes.js'
 * @import { Room, Size } from './room.js'
 * @import { Axis, Scale } from './scales.js'
 */

/**
 * @typedef {Object} Chart
 * @property {Scale} x
 * @property {Scale} y
 * @property {Mark<any>[]} marks the last is drawn on top; the cursor reads the first that has numbers
 * @property {Pane[]} [panes] in their order from the plot outwards
 * @property {string} [title] of the plot without its panes
 * @property {boolean} [isSwapped] x runs down and y across, as on a narrow page
 * @property {Size & {isZoomable?: boolean}} [size] `isZoomable`: a part of a large map can be shown alone
 * @property {Table} table
 * @property {Partial<SentenceLink>} [sentence] beyond what a band of tokens says
 * @property {Partial<CellCursor>} [cursor]
 * @property {boolean} [isCovered] the cursor goes over the plot and the panes below it, from 0 to 1
 */

/** @typedef {{rows?: {title: string, labels?: string[]}, columns?: {title: string, labels?: string[]}} & Pick<NumberGrid, 'quantity'> & Partial<Pick<NumberGrid, 'request'|'before'|'made'|'call'|'ofRows'|'writtenNote'>>} Table titles and labels are those of the scales unless given */

/** @param {Chart} spec @param {Pick<Frame, 'width'|'palette'> & {height?: number}} frame @returns {Drawing & {grid: Grid}} */
export function chart(spec, { width, palette, height = Infinity }) {
  const {
    y,
    marks,
    panes = [],
    title = '',
    isSwapped = false,
    isCovered = false,
    size = {},
  } = spec;
  const x = size.isSquare ? leaning(spec.x) : spec.x;
  const [across, down] = isSwapped ? [y, x] : [x, y];
  const all = [...marks, ...panes.flatMap((pane) => pane.marks)];
  const ramps = all.flatMap(({ ramp }) => (ramp && ramp.legend !== 'none' ? [ramp] : []));
  const legend = legendFor(all, width);
  const stack = stackOf(panes, { isSwapped, foot: footOf(across, width), width });
  const room = (size.isSquare ? squareRoom : roomOf)(
    { across, down, ramps, legend, size, stack, edges: edgesOf(all), hasTitle: title !== '' },
    { width, height },
  );
  const whole = {
    width: room.inner.width + stack.beside,
    height: room.inner.height + stack.above + stack.below,
  };
  const main = planOf({ x, y, marks, isSwapped, isCovered, palette, room, whole, width, stack });
  const drawn = marks.map((mark) => (isCovered ? onAxes(mark.draw(main), main) : mark.draw(main)));
  const [drawnAcross, drawnDown] = isSwapped ? [main.y, main.x] : [main.x, main.y];
  const others = drawnPanes(panes, stack, { main, whole, isCovered });
  const parts = [...drawn, ...others.flatMap(({ drawn: of }) => of)];
  const labelled = labelledIn([x, y], [main.x, main.y]);
  const cover = isCovered ? coverOf(stack, main, whole.height) : null;
  return {
    data: [...(cover ? [cover.trace] : []), ...parts.flatMap(({ traces = [] }) => traces)],
    layout: {
      ...baseLayout(palette, { width: room.width, height: room.height, margin: room.margin }),
      ...(isOverlaid(parts) && { barmode: 'overlay' }),
      xaxis: {
        ...plainAxis(drawnAcross, room.axes?.across),
        ...domainIn(main, 'x'),
        ...anchorIn(across, stack, others),
      },
      ...(cover && { yaxis: cover.axis }),
      [cover ? 'yaxis2' : 'yaxis']: {
        ...plainAxis(drawnDown, room.axes?.down),
        ...domainIn(main, 'y'),
      },
      ...Object.assign({}, ...others.map(({ axes }) => axes)),
      shapes: parts.flatMap(({ shapes = [] }) => shapes),
      annotations: [
        ...parts.flatMap(({ notes = [] }) => notes),
        ...plotTitle(title, main),
        ...others.flatMap(({ notes }) => notes),
        ...(size.isSquare ? [] : legendNotes(legend, main, room.margin.l)),
        ...room.notes(palette),
      ],
    },
    grid: gridOf(spec, main, width),
    ...(labelled && { labelled }),
  };
}

/**
 * The labels of the axis across go to the outer edge of the panes that share it.
 * @param {Scale} across
 * @param {Stack} stack
 * @param {ReturnType<typeof drawnPanes>} panes
 */
function anchorIn(across, { places }, panes) {
  const side = across.kind === 'band' && across.side === 'top' ? 'above' : 'below';
  const last = panes.findLast(({ anchor }, at) => anchor && places[at].side === side);
  return last ? { anchor: last.anchor } : {};
}

/** The labels above a map of square cells lean unless they are level. @param {Scale} scale @returns {Scale} */
function leaning(scale) {
  return scale.kind === 'band'
    ? { ...scale, side: 'top', isSlanted: scale.isSlanted ?? true }
    : scale;
}

/** The pixels that marks take outside the plot. @param {Mark<any>[]} marks */
function edgesOf(marks) {
  const most = (/** @type {'left'|'top'|'right'} */ side) =>
    Math.max(0, ...marks.map(({ room }) => room?.[side] ?? 0));
  return { left: most('left'), top: most('top'), right: most('right') };
}

/** Whether bars of several marks share places. @param {ReturnType<Mark<any>['draw']>[]} parts */
function isOverlaid(parts) {
  const bars = parts.flatMap(({ traces = [] }) => traces.filter(({ type }) => type === 'bar'));
  return bars.length > 1;
}

/**
 * @param {{x: Scale, y: Scale, marks: Mark<any>[], isSwapped: boolean, isCovered: boolean, palette: Plan['palette'], room: Room, whole: Plan['inner'], width: number, stack: Stack}} of
 * @returns {Plan} of the plot without its panes
 */
function planOf({ x, y, marks, isSwapped, isCovered, palette, room, whole, width, stack }) {
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
    names: { x: 'x', y: isCovered ? 'y2' : 'y' },
    domain: {
      x: [0, inner.width / whole.width],
      y: [1 - (stack.above + inner.height) / whole.height, 1 - stack.above / whole.height],
    },
    palette,
    width: room.width,
    inner,
    cell: { width: inner.width / countOf(across), height: inner.height / countOf(down) },
    isSwapped,
    bar: (ramp) => room.bar(ramp, palette),
  };
}

/** A part of the page for the plot, if panes have the rest. @param {Plan} plan @param {'x'|'y'} name */
function domainIn({ domain }, name) {
  const [from, to] = domain[name];
  return from === 0 && to === 1 ? {} : { domain: [from, to] };
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
