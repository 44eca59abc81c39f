/**
 * A chart from its marks: Plotly's data and layout, and what the cursor, the table, the exports and the
 * sentence read of it. No module outside plot/ names a key of Plotly's.
 */

import { buildGrid } from './grid.js';
import { countOf, buildAxis, plainAxis, labelWidth } from './scales.js';
import { measureRoom, squareRoom } from './layout.js';
import { paperText } from './marks/mark.js';
import { escapeForPlotly } from '../words/text.js';

/**
 * @import { Panes, Stack } from './panes.js'
 * @import { Room, Size } from './layout.js'
 * @import { Axis, Scale } from './scales.js'
 */

/**
 * @typedef {Object} Chart
 * @property {Scale} x
 * @property {Scale} y
 * @property {Mark<any>[]} marks the last is drawn on top; the cursor reads the first that has numbers
 * @property {Panes} [panes]
 * @property {string} [title] of the plot without its panes
 * @property {boolean} [isSwapped] x runs down and y across, as on a narrow page
 * @property {Size & {isZoomable?: boolean}} [size] `isZoomable`: a part of a large map can fill the plot
 * @property {Table} table
 * @property {Partial<SentenceLink>} [sentence] beyond what a band of tokens says
 * @property {Partial<CellCursor>} [cursor]
 */

/** @typedef {{rows?: {title: string, labels?: string[]}, columns?: {title: string, labels?: string[]}} & Pick<NumberGrid, 'quantity'> & Partial<Pick<NumberGrid, 'request'|'about'|'before'|'made'|'call'|'ofRows'>>} Table titles and labels are those of the scales unless given */

/** Letters of a label on paper. */
const PAPER_LETTERS = 24;

/** @type {Stack} */
const NO_PANES = { places: [], beside: 0, above: 0, below: 0, left: 0, head: 0 };

/** @param {Chart} spec @param {Pick<Frame, 'width'|'palette'|'pageWidth'|'stretch'> & {height?: number}} frame @returns {Drawing & {grid: Grid}} */
export function chart(spec, { width, palette, pageWidth, height = Infinity, stretch }) {
  const { marks, panes, title = '', isSwapped = false, size = {} } = spec;
  const isPaper = pageWidth !== undefined;
  const [x, y] = [size.isSquare ? leaning(spec.x) : spec.x, spec.y].map(
    // On paper no pointer tells the rest of a shortened label.
    isPaper
      ? (scale) => (scale.kind === 'band' ? { ...scale, letters: PAPER_LETTERS } : scale)
      : (scale) => scale,
  );
  const [across, down] = isSwapped ? [y, x] : [x, y];
  const all = [...marks, ...(panes?.marks ?? [])];
  const ramps = all.flatMap(({ ramp }) => (ramp && ramp.legend !== 'none' ? [ramp] : []));
  const legend = legendFor(all, width);
  const stack = panes?.stack({ isSwapped, width }) ?? NO_PANES;
  const room = (size.isSquare ? squareRoom : measureRoom)(
    { across, down, ramps, legend, size, stack, edges: edgesOf(all), hasTitle: title !== '' },
    { width, height, stretch },
  );
  const whole = {
    width: room.inner.width + stack.beside,
    height: room.inner.height + stack.above + stack.below,
  };
  const main = planOf({ x, y, marks, isSwapped, palette, room, whole, width, stack });
  const drawn = marks.map((mark) => mark.draw(main));
  const [drawnAcross, drawnDown] = isSwapped ? [main.y, main.x] : [main.x, main.y];
  const others = panes?.draw(stack, { main, whole }) ?? [];
  const parts = [...drawn, ...others.flatMap(({ drawn: of }) => of)];
  const labelled = labelledIn([x, y], [main.x, main.y]);
  return {
    data: parts.flatMap(({ traces = [] }) => traces),
    layout: {
      ...baseLayout(palette, { width: room.width, height: room.height, margin: room.margin }),
      ...(isOverlaid(parts) && { barmode: 'overlay' }),
      xaxis: {
        ...plainAxis(drawnAcross, room.axes?.across),
        ...domainIn(main, 'x'),
        ...anchorIn(across, stack, others),
      },
      yaxis: { ...plainAxis(drawnDown, room.axes?.down), ...domainIn(main, 'y') },
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
    grid: buildGrid(spec, main, width),
    ...(labelled && { labelled }),
  };
}

/**
 * The labels of the axis across go to the outer edge of the panes that share it.
 * @param {Scale} across
 * @param {Stack} stack
 * @param {ReturnType<Panes['draw']>} panes
 */
function anchorIn(across, { places }, panes) {
  const side = across.kind === 'band' && across.side === 'top' ? 'above' : 'below';
  const last = panes.findLast((_, at) => places[at].side === side);
  return last ? { anchor: last.anchor } : {};
}

/** The labels above a map of square cells lean unless they are level. @param {Scale} scale @returns {Scale} */
function leaning(scale) {
  return scale.kind === 'band'
    ? { ...scale, side: 'top', isSlanted: scale.isSlanted ?? true }
    : scale;
}

/** Return the pixels that marks take outside the plot. @param {Mark<any>[]} marks */
function edgesOf(marks) {
  const most = (/** @type {'left'|'top'|'right'} */ side) =>
    Math.max(0, ...marks.map(({ room }) => room?.[side] ?? 0));
  return { left: most('left'), top: most('top'), right: most('right') };
}

/** Return true if bars of several marks share places. @param {ReturnType<Mark<any>['draw']>[]} parts */
function isOverlaid(parts) {
  const bars = parts.flatMap(({ traces = [] }) => traces.filter(({ type }) => type === 'bar'));
  return bars.length > 1;
}

/**
 * @param {{x: Scale, y: Scale, marks: Mark<any>[], isSwapped: boolean, palette: Plan['palette'], room: Room, whole: Plan['inner'], width: number, stack: Stack}} of
 * @returns {Plan} of the plot without its panes
 */
function planOf({ x, y, marks, isSwapped, palette, room, whole, width, stack }) {
  const { inner } = room;
  const [across, down] = isSwapped ? [y, x] : [x, y];
  /** @param {Scale} scale @param {'x'|'y'} name */
  const axis = (scale, name) =>
    buildAxis(scale, {
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

/** Return a part of the page for the plot, if panes have the rest. @param {Plan} plan @param {'x'|'y'} name */
function domainIn({ domain }, name) {
  const [from, to] = domain[name];
  return from === 0 && to === 1 ? {} : { domain: [from, to] };
}

const ORDINAL = { one: 'st', two: 'nd', few: 'rd', other: 'th' };
const ordinals = new Intl.PluralRules('en', { type: 'ordinal' });

/**
 * Say how many labels there are, if some are left out around those that are kept.
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

/**
 * Return the title of the plot itself, above its left end.
 * @param {string} title
 * @param {Plan} plan
 */
function plotTitle(title, { domain, palette }) {
  if (!title) return [];
  const above = { x: 0, xanchor: 'left', y: domain.y[1], yanchor: 'bottom', yshift: 5 };
  return [paperText(escapeForPlotly(title), palette.muted, above)];
}

/**
 * @param {Palette} palette
 * @param {{width: number, height: number, margin: {l: number, r: number, t: number, b: number}}} size
 */
export function baseLayout(palette, { width, height, margin }) {
  return {
    width,
    height,
    margin: { ...margin, pad: 4 },
    paper_bgcolor: palette.surface,
    plot_bgcolor: palette.surface,
    font: { family: palette.font, size: 13, color: palette.ink },
    hovermode: false,
    dragmode: false,
    showlegend: false,
  };
}

/** @typedef {NonNullable<Mark<any>['names']>} Names */
/** @typedef {{names: Names, isAtEnds: boolean, top: number, right: number}} Legend pixels above the plot and next to it */

const LABEL = { size: 13, letters: 60 };
const LINE = 15;
const ROW = 17;
/** Drawings no narrower than this have room for names at the ends of lines. */
const ROOM_FOR_ENDS = 340;

/** @param {Mark<any>[]} marks @param {number} width of the drawing @returns {Legend} */
function legendFor(marks, width) {
  const names = marks.flatMap((mark) => mark.names ?? []);
  const isAtEnds =
    width >= ROOM_FOR_ENDS && marks.every(({ namesAt = 'ends' }) => namesAt === 'ends');
  if (names.length === 0) return { names, isAtEnds, top: 0, right: 0 };
  if (!isAtEnds) return { names, isAtEnds, top: ROW * rowsOf(names, width).length, right: 0 };
  const right =
    labelWidth(
      names.map(({ name }) => name),
      LABEL,
    ) + 10;
  return { names, isAtEnds, top: 0, right };
}

/** @param {Legend} legend @param {Plan} plan @param {number} left margin */
function legendNotes({ names, isAtEnds }, plan, left) {
  return isAtEnds ? endNames(names, plan) : rowNames(names, plan, left);
}

/** Move names apart that would overlap. @param {Names} names @param {Plan} plan */
function endNames(
  names,
  {
    y: {
      at,
      range: [bottom, top],
    },
    inner,
  },
) {
  const perPixel = (top - bottom) / inner.height;
  const ends = names
    .map(({ name, colour, end }) => ({ name, colour, y: end === undefined ? bottom : at(end) }))
    .map((label) => ({
      ...label,
      y: Number.isFinite(label.y) ? Math.max(bottom, Math.min(top, label.y)) : bottom,
    }))
    .sort((a, b) => a.y - b.y);
  const heights = spread(
    ends.map(({ y }) => (y - bottom) / perPixel),
    LINE,
    inner.height,
  );
  return ends.map(({ name, colour }, index) => ({
    ...paperText(escapeForPlotly(name), colour, { x: 1, xanchor: 'left', xshift: 8 }),
    yref: 'y',
    y: bottom + heights[index] * perPixel,
    yanchor: 'middle',
  }));
}

/** @param {Names} names @param {Plan} plan @param {number} left */
function rowNames(names, { width, palette }, left) {
  return rowsOf(names, width).flatMap((row, index, rows) =>
    row.map(({ text, colour, glyph, from }) =>
      paperText(
        glyph ? markedBy(text, colour) : escapeForPlotly(text),
        glyph ? palette.ink : colour,
        {
          x: 0,
          xanchor: 'left',
          xshift: from - left,
          y: 1,
          yanchor: 'bottom',
          yshift: 4 + ROW * (rows.length - 1 - index),
        },
      ),
    ),
  );
}

/** Return a name whose first letter, a shape, has the colour. @param {string} text @param {string} colour */
function markedBy(text, colour) {
  return `<span style="color:${colour}">${text[0]}</span>${escapeForPlotly(text.slice(1))}`;
}

/** @param {Names} names @param {number} width */
function rowsOf(names, width) {
  /** @type {{text: string, colour: string, glyph?: string, from: number}[][]} */
  const rows = [];
  let from = Infinity;
  for (const { name, colour, isDashed, isSwatch, glyph } of names) {
    const text = `${glyph ?? (isSwatch ? '■' : isDashed ? '┄' : '—')} ${name}`;
    const wide = labelWidth([text], LABEL) + 14;
    if (from + wide > width) {
      rows.push([]);
      from = 8;
    }
    rows.at(-1)?.push({ text, colour, glyph, from });
    from += wide;
  }
  return rows;
}

/**
 * Move ascending places apart, at least so far, within 0 and the end.
 * @param {number[]} places
 * @param {number} gap
 * @param {number} end
 */
export function spread(places, gap, end) {
  const moved = [...places];
  for (let at = 1; at < moved.length; at += 1) moved[at] = Math.max(moved[at], moved[at - 1] + gap);
  for (let at = moved.length - 1; at >= 0; at -= 1)
    moved[at] = Math.min(moved[at], at === moved.length - 1 ? end : moved[at + 1] - gap);
  return moved;
}
