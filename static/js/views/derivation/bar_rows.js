/**
 * Rows of bars over shared columns: dimensions of a head, or keys.
 */

import { escapeForPlotly } from '../../data/format.js';
import { css, sequential } from '../../plot/colour.js';
import {
  baseLayout,
  downwards,
  isNarrow,
  labelAxis,
  labelWidth,
  letteringFor,
} from '../../plot/figure.js';

/** @import { Drawing, Frame, Palette } from '../../plot/figure.js' */

/** Pixels of a lane: its name, room for a number over the tallest bar, the bars, and air below. */
const HEAD = 20;
const NUMBER = 18;
const BARS = 66;
const FOOT = 10;
const LANE = HEAD + NUMBER + BARS + FOOT;
const WIDEST = 880;
const WIDEST_BAR = 46;
const NUMBER_SPACE = 30;
const EDGE = 8;
const HIDDEN = { size: 11, letters: 24, space: 1 };

/**
 * @typedef {Object} Lane
 * @property {string} name
 * @property {ArrayLike<number>} values −∞ and NaN have no bar
 * @property {string} [colour] of its bars; else that of numbers
 * @property {string} [scale] lanes of one name share one scale
 * @property {(value: number) => string} format
 */

/**
 * @typedef {Object} Columns
 * @property {string[]} labels
 * @property {string} title
 * @property {boolean} [areTokens]
 * @property {number} [chosen] whose bars stand out, with their numbers
 * @property {string} [chosenColour]
 * @property {number} [hiddenFrom] the first of the columns that are out of sight
 * @property {string} [hiddenLabel] their label in lanes without bars
 */

/** @param {Lane[]} lanes @param {Columns} columns @param {Frame} state @returns {Drawing} */
export function barRows(lanes, columns, state) {
  const { palette } = state;
  const box = boxFor(lanes.length, columns, state);
  const placed = lanes.map((lane, row) =>
    placedIn(lane, row, lane.scale ? lanes.filter(({ scale }) => scale === lane.scale) : [lane]),
  );
  const lettering = letteringFor(state.width);
  const label = {
    palette,
    lettering,
    pixels: box.across,
    labels: columns.labels,
    title: columns.title,
  };
  return {
    data: placed.map((lane) => barsOf(lane, columns, palette)),
    layout: {
      ...baseLayout(palette, box),
      bargap: 0.3,
      barmode: 'overlay',
      annotations: placed.flatMap((lane, row) => [
        ...writingOf(lane, row, columns, palette),
        ...ofHidden(lane, row, columns, box.across, palette),
      ]),
      shapes: [
        ...placed.map(({ zero }) => baseline(zero, palette)),
        ...shade(columns, lanes.length, palette),
      ],
      xaxis: columns.areTokens
        ? { ...labelAxis(label), tickangle: box.tickangle }
        : labelAxis({ ...label, space: NUMBER_SPACE }),
      yaxis: {
        ...downwards(
          labelAxis({ ...label, labels: lanes.map(() => ''), pixels: box.down, title: '' }),
        ),
        showticklabels: false,
      },
    },
  };
}

/**
 * The width is limited, so that bars stay slim.
 * @param {number} nLanes
 * @param {Columns} columns
 * @param {Frame} state
 */
function boxFor(nLanes, { labels, areTokens }, { width }) {
  const across = Math.min(width - 2 * EDGE, WIDEST, Math.max(240, labels.length * WIDEST_BAR));
  const [tickangle, slant] = isNarrow(width) || labels.length * 60 > across ? [-90, 1] : [0, 0];
  const below = areTokens
    ? Math.ceil(slant * labelWidth(labels, letteringFor(width))) + (slant ? 34 : 46)
    : 44;
  const margin = { l: EDGE, r: EDGE, t: 2, b: below };
  return {
    margin,
    across,
    down: nLanes * LANE,
    tickangle,
    width: across + 2 * EDGE,
    height: nLanes * LANE + 2 + below,
  };
}

/**
 * The bars of a lane, on an axis that counts lanes downwards.
 * @param {Lane} lane
 * @param {number} row
 * @param {Lane[]} group
 */
function placedIn({ values, ...lane }, row, group) {
  const [low, high] = reachOf(group);
  const scale = BARS / LANE / (high - low || 1);
  const zero = row - 0.5 + (HEAD + NUMBER + BARS) / LANE + low * scale;
  return {
    ...lane,
    values: Array.from(values, (value) => (Number.isFinite(value) ? value : NaN)),
    reach: reachOf([{ values }]),
    scale,
    zero,
  };
}

/** The range of the numbers, 0 included. @param {{values: ArrayLike<number>}[]} lanes */
function reachOf(lanes) {
  const known = lanes.flatMap(({ values }) => Array.from(values)).filter(Number.isFinite);
  return [Math.min(0, ...known), Math.max(0, ...known)];
}

/** @param {ReturnType<typeof placedIn>} lane @param {Columns} columns @param {Palette} palette */
function barsOf({ values, zero, scale, colour }, { chosen, chosenColour }, palette) {
  const usual = colour ?? css(sequential(palette.theme), 118);
  return {
    type: 'bar',
    x: values.map((_, column) => column),
    y: values.map((value) => (Number.isNaN(value) ? null : -value * scale)),
    base: zero,
    width: 0.7,
    hoverinfo: 'none',
    marker: {
      color: values.map((_, column) => (column === chosen ? (chosenColour ?? usual) : usual)),
      line: { width: 0 },
    },
  };
}

/**
 * The name of a lane on the left, its range on the right, and the number of the chosen column above
 * the bars.
 * @param {ReturnType<typeof placedIn>} lane
 * @param {number} row
 * @param {Columns} columns
 * @param {Palette} palette
 */
function writingOf(lane, row, columns, palette) {
  const {
    name,
    values,
    reach: [least, most],
    format,
  } = lane;
  const top = {
    showarrow: false,
    xref: 'paper',
    yref: 'y',
    y: row - 0.5,
    yanchor: 'top',
    yshift: -2,
  };
  const value = values[columns.chosen ?? -1];
  return [
    {
      ...top,
      x: 0,
      xanchor: 'left',
      text: escapeForPlotly(name),
      font: { size: 12, color: lane.colour ?? palette.ink },
    },
    {
      ...top,
      x: 1,
      xanchor: 'right',
      text: escapeForPlotly(`${format(least)} … ${format(most)}`),
      font: { size: 11, color: palette.muted },
    },
    ...(value === undefined || Number.isNaN(value)
      ? []
      : [
          {
            showarrow: false,
            xref: 'x',
            yref: 'y',
            x: columns.chosen,
            y: row - 0.5 + (HEAD + NUMBER) / LANE,
            yanchor: 'bottom',
            ...insideOf(columns),
            text: escapeForPlotly(format(value)),
            font: { size: 12, color: columns.chosenColour ?? palette.ink },
          },
        ]),
  ];
}

/** A number at the edge is aligned inwards. @param {Columns} columns */
function insideOf({ chosen = 0, labels }) {
  const place = labels.length > 1 ? chosen / (labels.length - 1) : 0.5;
  if (place < 0.04) return { xanchor: 'left', xshift: -6 };
  return place > 0.96 ? { xanchor: 'right', xshift: 6 } : { xanchor: 'center' };
}

/** @param {number} zero @param {Palette} palette */
function baseline(zero, palette) {
  return {
    type: 'line',
    xref: 'paper',
    yref: 'y',
    x0: 0,
    x1: 1,
    y0: zero,
    y1: zero,
    line: { color: palette.line, width: 1 },
    layer: 'below',
  };
}

/**
 * Labels the shaded columns of a lane: across, word below word, or upright if they are few.
 * @param {{values: number[]}} lane
 * @param {number} row
 * @param {Columns} columns
 * @param {number} across
 * @param {Palette} palette
 */
function ofHidden(
  { values },
  row,
  { hiddenFrom = Infinity, hiddenLabel, labels },
  across,
  palette,
) {
  const isShaded = hiddenLabel !== undefined && hiddenFrom < labels.length;
  if (!isShaded || !values.slice(hiddenFrom).every(Number.isNaN)) return [];
  const room = (across * (labels.length - hiddenFrom)) / labels.length;
  if (room < HIDDEN.size) return [];
  const words = hiddenLabel.split(' ');
  const [isLine, isStack] = [[hiddenLabel], words].map(
    (lines) => labelWidth(lines, HIDDEN) <= room,
  );
  return [
    {
      showarrow: false,
      xref: 'x',
      yref: 'y',
      x: (hiddenFrom + labels.length - 1) / 2,
      y: row - 0.5 + HEAD / LANE,
      yanchor: 'top',
      text:
        isStack && !isLine ? words.map(escapeForPlotly).join('<br>') : escapeForPlotly(hiddenLabel),
      textangle: isStack || isLine ? 0 : -90,
      font: { size: HIDDEN.size, color: palette.muted },
    },
  ];
}

/**
 * The keys that a causal mask hides.
 * @param {Columns} columns
 * @param {number} nLanes
 * @param {Palette} palette
 */
function shade({ hiddenFrom, labels }, nLanes, palette) {
  if (hiddenFrom === undefined || hiddenFrom >= labels.length) return [];
  const area = { x0: hiddenFrom - 0.5, x1: labels.length - 0.5, y0: -0.5, y1: nLanes - 0.5 };
  return [
    {
      type: 'rect',
      xref: 'x',
      yref: 'y',
      ...area,
      fillcolor: palette.line,
      opacity: 0.45,
      line: { width: 0 },
      layer: 'below',
    },
  ];
}
