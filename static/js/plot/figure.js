/**
 * The types of views and figures, and the parts that figures share: margins, label axes, colour
 * bars. Axes count cells (0, 1, 2 …) and carry labels as ticks: on a category axis Plotly would
 * merge tokens that occur twice and read "2024" as a number.
 */

import { columnsOf, escapeForPlotly, shortened } from '../data/format.js';
import { plotlyScale } from './colour.js';

/**
 * @import { Writing } from '../api/generation.js'
 * @import { Answer } from '../api/request_cache.js'
 * @import { Kind } from '../data/model_parts.js'
 * @import { Ask, Card, Matrix, Trace } from '../data/trace.js'
 * @import { Field, Patch, State } from '../state/state.js'
 * @import { Control } from '../ui/controls.js'
 * @import { Term } from '../ui/formula.js'
 * @import { Handlers } from '../ui/view_section.js'
 * @import { Grid } from './grid.js'
 */

/** @typedef {Record<string, any>} PlotlyTrace */

/** @typedef {{width: number, height: number, margin: {l: number, r: number, t: number, b: number}} & Record<string, any>} Layout of Plotly */

/** @typedef {{data: PlotlyTrace[], layout: Layout, labelled?: string}} Drawing `labelled`: a sentence if not every token has its label */

/** @typedef {{theme: 'light'|'dark', font: string, surface: string, sunken: string, ink: string, muted: string, line: string, query: string, key: string, beam: string}} Palette colours as `rgb(…)` */

/**
 * @typedef {Object} Figure
 * @property {string} title
 * @property {string} [summary] one sentence for screen readers
 * @property {PlotlyTrace[]} [data] Plotly's traces
 * @property {Layout} [layout] Plotly's layout
 * @property {Grid} [grid]
 * @property {string} [notice] replaces the drawing, if there is nothing to draw
 * @property {boolean} [isWaiting] the notice is temporary: the previous drawing may stay, dimmed
 * @property {string} [help] one sentence under the title
 * @property {Term[]} [formula] its lines, above the help
 * @property {string[][]} [facts] pairs of a name and a number
 * @property {{label: string, patch: Patch}[]} [actions] buttons below it
 */

/** @typedef {Figure & Drawing & {grid: Grid}} DrawnFigure a figure without a notice */

/**
 * The drawing context of a view: size, colours, answers and models.
 * @typedef {Object} Frame
 * @property {number} width pixels the drawing may take
 * @property {number} height pixels it should not exceed
 * @property {Palette} palette
 * @property {number} layer
 * @property {number} head
 * @property {Record<string, Answer>} answers to the view's requests, by name
 * @property {Card[]} cards of all models, in short
 */

/**
 * The input of a view: the page's state, the view's own fields, and the frame.
 * @typedef {State & Frame & Record<string, any>} ViewState
 */

/** @typedef {State & Omit<Frame, 'width'|'layer'|'head'> & Record<string, any>} PageState what the page draws a view from */

/**
 * Layout of several figures. `pair`: two side by side; `triple`: three side by side, the rest
 * below; `many`: as many as fit; `led`: the first alone, the rest as `many`; `steps`: one below the
 * other, each beside its text.
 * @typedef {'pair'|'triple'|'many'|'led'|'steps'|''} Arrangement
 */

/** @typedef {{element: HTMLElement, show: (trace: Trace, state: ViewState) => void, state?: () => {generation: Writing}, leave?: () => void}} Overview */

/**
 * What the page knows of a view before it is opened.
 * @typedef {Object} ViewEntry
 * @property {string} id
 * @property {string} title
 * @property {(card: Card) => string} [titleFor] if it depends on the model
 * @property {Kind} of the parts of the map that open it
 * @property {(card: Card) => boolean} [isOffered] only for models that have what it shows; absent: for all
 * @property {string[]} [needs] globs over sites that every model has, or `analyses.<id>.<array>`
 * @property {(card: Card) => string[]} [also] globs over sites that only some models have
 * @property {Record<string, Field<any>>} [fields] its own part of the state
 * @property {'heads'|'maps'|'generation'} [overview] the part of the view that is not a figure
 */

/**
 * @typedef {Object} ViewCode
 * @property {string} help one sentence
 * @property {string[][]} terms pairs of a word and its meaning
 * @property {(trace: Trace, state: ViewState) => {help?: string, terms?: string[][], answer?: string[]}} [wording] texts that depend on the model; `answer`: sentences above the drawings, the first a headline
 * @property {(trace: Trace, state: ViewState) => {id: string, title: string}[]} [places] the attentions or stacks to choose from, if there are several
 * @property {(trace: Trace, state: ViewState) => string|undefined} [place] the open one
 * @property {(trace: Trace, state: ViewState) => Record<string, Ask>} [asks] bodies of the further requests that this state needs, by name
 * @property {(trace: Trace, state: ViewState) => string[][]} [route] a path to draw on the map: its stops, each the ids of a part and of those that may stand for it
 * @property {(trace: Trace, state: ViewState) => Promise<void>|undefined} [prepare] loads modules that only some states need; undefined: nothing is left to load
 * @property {(trace: Trace, state: ViewState) => Control[]} [controls] its switches
 * @property {(handlers: Handlers) => Overview} [createOverview] builds that part
 * @property {Arrangement | ((trace: Trace, state: ViewState) => Arrangement)} [arrangement] of several figures; absent: one below the other
 * @property {(trace: Trace, state: ViewState) => {id: string, state: Patch}[]} [panels] several figures, each with state of its own
 * @property {(trace: Trace, state: ViewState) => Figure} figure
 */

/** @typedef {ViewEntry & ViewCode} View */

/**
 * Typography of the labels of an axis.
 * @typedef {Object} Lettering
 * @property {number} size of the type, in pixels
 * @property {number} letters after which a label is cut
 * @property {number} space pixels a label needs along its axis
 */

/**
 * The state of a view as a whole; its figures have a width each.
 * @param {PageState} page
 * @returns {ViewState}
 */
export function viewState(page) {
  return { ...page, layer: page.layer ?? 0, head: page.head ?? 0, width: Infinity };
}

/** @type {Lettering} */
const ROOMY = { size: 12, letters: 12, space: 15 };
/** @type {Lettering} */
const TIGHT = { size: 11, letters: 9, space: 12 };
const LETTER_WIDTH = 0.6;
const NARROW = 480;

const HEIGHTS = { least: 320, most: 760, beside: 120 };

/** The greatest height of a drawing that still fits on the screen. @param {number} windowHeight */
export function plotHeight(windowHeight) {
  return Math.max(HEIGHTS.least, Math.min(HEIGHTS.most, windowHeight - HEIGHTS.beside));
}

/** Whether the width is that of a phone. @param {number} width pixels */
export function isNarrow(width) {
  return width < NARROW;
}

/**
 * @param {number} width pixels the drawing may take
 * @returns {Lettering}
 */
export function letteringFor(width) {
  return isNarrow(width) ? TIGHT : ROOMY;
}

/**
 * The width of the longest label, in pixels.
 * @param {string[]} labels
 * @param {{size: number, letters: number}} [lettering]
 */
export function labelWidth(labels, { size, letters } = ROOMY) {
  const columns = labels.reduce(
    (most, label) => Math.max(most, columnsOf(shortened(label, letters))),
    1,
  );
  return Math.ceil(columns * size * LETTER_WIDTH);
}

/**
 * @param {string[]} labels
 * @param {number[]} indices
 * @param {Lettering} [lettering]
 * @returns {{tickvals: number[], ticktext: string[]}} safe for Plotly
 */
export function ticks(labels, indices, { letters } = ROOMY) {
  return {
    tickvals: indices,
    ticktext: indices.map((index) => escapeForPlotly(shortened(labels[index], letters))),
  };
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
    font: { family: palette.font, size: 12, color: palette.ink },
    hovermode: false,
    dragmode: false,
    showlegend: false,
  };
}

/**
 * @param {Palette} palette
 * @param {'v'|'h'} orientation vertical beside the map, horizontal below it
 */
export function colourBar(palette, orientation) {
  const shared = {
    tickfont: { size: 11, color: palette.muted },
    orientation,
    thickness: 10,
    outlinewidth: 0,
    ticks: '',
    nticks: 6,
    len: 1,
    xpad: 0,
    ypad: 0,
  };
  const beside = { x: 1.02, xanchor: 'left', y: 0.5, yanchor: 'middle' };
  const below = { x: 0.5, xanchor: 'center', y: 0, yanchor: 'top', ypad: 8 };
  return { ...shared, ...(orientation === 'v' ? beside : below) };
}

/**
 * Words beside a drawing.
 * @template {Record<string, unknown>} T
 * @param {string} text safe for Plotly
 * @param {string} color
 * @param {T} place `x` and `y` as shares of the plot area, shifts in pixels, anchors
 * @param {number} [size] of the type
 */
export function paperText(text, color, place, size = 12) {
  return { text, showarrow: false, xref: 'paper', yref: 'paper', font: { size, color }, ...place };
}

const SHORT_BAR = 110;
const BAR_GAP = 12;

/**
 * A short colour bar below the left end of a wide map.
 * @param {Palette} palette
 * @param {{tickvals: number[], ticktext?: string[]}} [ticks]
 */
export function shortBar(palette, ticks = { tickvals: [0, 0.5, 1] }) {
  return {
    ...colourBar(palette, 'h'),
    thickness: 6,
    lenmode: 'pixels',
    len: SHORT_BAR,
    x: 0,
    xanchor: 'left',
    ...ticks,
  };
}

/**
 * The title of a short colour bar, to its right.
 * @param {string} text
 * @param {Palette} palette
 */
export function shortBarTitle(text, palette) {
  const below = { x: 0, xanchor: 'left', y: 0, yanchor: 'top', yshift: -4 };
  return paperText(text, palette.muted, { ...below, xshift: SHORT_BAR + BAR_GAP });
}

/** @param {string} title @returns {number} pixels that a short bar and its title take together */
export function shortBarWidth(title) {
  return SHORT_BAR + BAR_GAP + labelWidth([title], { size: 12, letters: title.length });
}

/**
 * The title of a colour bar. Plotly's own title overlaps the numbers of a vertical bar.
 * @param {string} title
 * @param {Palette} palette
 * @param {'v'|'h'} orientation
 */
export function colourBarTitle(title, palette, orientation) {
  if (orientation === 'h') {
    const below = { x: 0.5, xanchor: 'center', y: 0, yanchor: 'top', yshift: -34 };
    return paperText(title, palette.muted, below);
  }
  const beside = { x: 1, xanchor: 'left', xshift: 56, y: 0.5, yanchor: 'middle', textangle: 90 };
  return paperText(title, palette.muted, beside);
}

/**
 * A heatmap without tips of Plotly's, as the page has its own.
 * @param {(number|null)[][]} z
 * @param {{bottom?: number, top?: number, colours: Uint8Array}} scale the values of its ends, 0 and 1 by default
 * @param {Record<string, unknown>} colorbar
 * @param {[number, number]} gaps pixels between columns, and between rows
 */
export function heatmapTrace(z, { bottom = 0, top = 1, colours }, colorbar, [xgap, ygap] = [1, 1]) {
  return {
    type: 'heatmap',
    z,
    zmin: bottom,
    zmax: top,
    colorscale: plotlyScale(colours),
    colorbar,
    hoverinfo: 'none',
    xgap,
    ygap,
  };
}

/**
 * @param {Matrix} matrix
 * @returns {(number|null)[][]} nested rows as Plotly wants them; nothing is null
 */
export function nested({ rows, columns, data }) {
  return Array.from({ length: rows }, (_, row) =>
    Array.from(data.subarray(row * columns, (row + 1) * columns), (value) =>
      Number.isNaN(value) ? null : value,
    ),
  );
}

/**
 * @param {number} first first index shown
 * @param {number} last last index shown
 * @param {number} pixels length of the axis
 * @param {number} least pixels a label needs along the axis
 * @param {number[]} [kept] indices that are always among them; they displace those too near
 * @returns {number[]} indices in order, otherwise a power of two apart
 */
export function ticksFor(first, last, pixels, least, kept = []) {
  const count = last - first + 1;
  const step = stepFor(count, pixels, least);
  const always = kept.filter((index) => index >= first && index <= last);
  const reach = (least * count) / Math.max(pixels, 1);
  const ticks = [];
  for (let index = Math.ceil(first / step) * step; index <= last; index += step)
    if (always.every((one) => Math.abs(one - index) >= reach)) ticks.push(index);
  return [...new Set([...ticks, ...always])].sort((a, b) => a - b);
}

/**
 * How far apart the labels of an axis are that has no room for all; 1: all are shown.
 * @param {number} count of labels
 * @param {number} pixels length of the axis
 * @param {number} least pixels a label needs along the axis
 */
function stepFor(count, pixels, least) {
  return 2 ** Math.max(0, Math.ceil(Math.log2((count * least) / Math.max(pixels, 1))));
}

const ROUND = [1, 2, 2.5, 5, 10];

/**
 * Round tick values from 0 up, for an axis of amounts.
 * @param {number} end past which there is no tick
 * @param {number} most ticks besides that of 0
 * @returns {number[]}
 */
export function roundTicks(end, most) {
  const power = 10 ** Math.floor(Math.log10(end / most));
  const step = power * (ROUND.find((factor) => factor * power * most >= end * (1 - 1e-9)) ?? 10);
  return Array.from({ length: Math.floor(end / step + 1e-9) + 1 }, (_, count) => count * step);
}
