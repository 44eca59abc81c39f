/**
 * Two probabilities for each token, one bar above the other, with what changed at the end of the second.
 */

import { css, sequential } from '../../plot/colour.js';
import { baseLayout, downwards, labelAxis, labelWidth } from '../../plot/figure.js';
import { ROUNDING } from '../../data/next_change.js';
import { percent } from '../../data/number.js';
import { escapeForPlotly } from '../../data/text.js';
import { probabilityAxis } from '../../plot/probability_axis.js';

const ROW_HEIGHT = 42;
const BAR = { width: 0.36, apart: 0.19 };
const LETTERING = { size: 13, letters: 14, space: 1 };
const NUMBER = { size: 12, letters: 30, space: 1 };
const WIDEST = 760;
/** Pale for what was, strong for what is. */
const LEVELS = { a: 88, b: 168 };
const KEY_HEIGHT = 24;

/**
 * @param {import('../../data/next_change.js').Expected[]} tokens
 * @param {{event: string}} words whose probability it is
 * @param {import('../../plot/figure.js').Frame} state
 * @returns {{data: Object[], layout: Object, geometry: import('../../plot/figure.js').Geometry}}
 */
export function pairedBars(tokens, { event }, { palette, width }) {
  const labels = tokens.map(({ name }) => name);
  const margin = { l: labelWidth(labels, LETTERING) + 16, r: 16, t: KEY_HEIGHT, b: 44 };
  const height = tokens.length * ROW_HEIGHT;
  const total = Math.min(width, WIDEST);
  const ended = tokens.flatMap((token) =>
    ['a', 'b'].map((side) => ({ probability: token[side] || 0, number: numberOf(token, side) })),
  );
  const axis = probabilityAxis(ended, event, {
    palette,
    pixels: total - margin.l - margin.r,
    lettering: NUMBER,
  });
  return {
    data: ['a', 'b'].map((side) => bars(tokens, side, palette)),
    layout: {
      ...baseLayout(palette, { width: total, height: height + margin.t + margin.b, margin }),
      barmode: 'overlay',
      annotations: keys(palette),
      xaxis: axis,
      yaxis: downwards(
        labelAxis({ labels, pixels: height, title: '', palette, lettering: LETTERING }),
      ),
    },
    geometry: geometryOf(tokens, axis.range[1]),
  };
}

function bars(tokens, side, palette) {
  return {
    type: 'bar',
    orientation: 'h',
    x: tokens.map((token) => (Number.isNaN(token[side]) ? 0 : token[side])),
    y: tokens.map((_, row) => row + middleOf(side)),
    width: BAR.width,
    text: tokens.map((token) => escapeForPlotly(numberOf(token, side))),
    textposition: 'outside',
    textfont: { size: 12, color: side === 'a' ? palette.muted : palette.ink },
    cliponaxis: false,
    hoverinfo: 'none',
    marker: { color: css(sequential(palette.theme), LEVELS[side]), line: { width: 0 } },
  };
}

function middleOf(side) {
  return side === 'a' ? -BAR.apart : BAR.apart;
}

function numberOf(token, side) {
  if (Number.isNaN(token[side])) return 'not among its 20 likeliest';
  const change = side === 'b' && !Number.isNaN(token.a) ? `  ${points(token.b - token.a)}` : '';
  return percent(token[side]) + change;
}

/**
 * A change in percentage points, with its sign.
 * @param {number} change a difference of probabilities
 */
export function points(change) {
  const text = percent(Math.abs(change)).replace(/ %$/, '');
  if (Math.abs(change) < ROUNDING) return '±0';
  if (text.startsWith('<')) return '≈0';
  return `${change > 0 ? '+' : '−'}${text}`;
}

/** Which bar is whose. */
function keys({ theme, ink }) {
  const scale = sequential(theme);
  return ['a', 'b'].flatMap((side, index) => {
    const shared = {
      showarrow: false,
      xref: 'paper',
      yref: 'paper',
      x: 0,
      xanchor: 'left',
      y: 1,
      yanchor: 'bottom',
      yshift: 4,
    };
    return [
      {
        ...shared,
        xshift: index * 44,
        text: '■',
        font: { size: 14, color: css(scale, LEVELS[side]) },
      },
      {
        ...shared,
        xshift: index * 44 + 16,
        text: side.toUpperCase(),
        font: { size: 12, color: ink },
      },
    ];
  });
}

/** Columns of the grid: A, B, and the change, which has the whole row. */
function geometryOf(tokens, end) {
  return {
    box(row, column) {
      if (row === undefined) return null;
      const halves = { 0: [row - 0.5, row], 1: [row, row + 0.5] };
      const [y0, y1] = halves[column] ?? [row - 0.5, row + 0.5];
      return { x0: 0, x1: end, y0, y1 };
    },
    at(_, y) {
      const row = Math.round(y);
      return row >= 0 && row < tokens.length ? { row, column: y < row ? 0 : 1 } : null;
    },
  };
}
