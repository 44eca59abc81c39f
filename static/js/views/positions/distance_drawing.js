/**
 * One quantity over the distance between two positions: a line for its mean, in a band from the least
 * to the greatest.
 */

import { css, sequential, translucent } from '../../plot/colour.js';
import { baseLayout, isNarrow, labelAxis, letteringFor } from '../../plot/figure.js';
import { tick } from '../../data/number.js';

const HEIGHT = { roomy: 360, narrow: 260 };
const LINE_LEVEL = 150;
/** Ticks by how many tenths there are between the ends. */
const STEPS = [
  [6, 1],
  [12, 2],
  [Infinity, 5],
];
const MOST_DOTS = 128;
const SHARED = { type: 'scatter', hoverinfo: 'none', cliponaxis: false };

/**
 * @param {{mean: Float64Array, least: Float64Array, most: Float64Array}} found by distance
 * @param {{labels: string[], axis: string, quantity: string}} named
 * @param {import('../../plot/figure.js').Frame} state
 * @returns {{data: Object[], layout: Object, geometry: import('../../plot/figure.js').Geometry}}
 */
export function distanceDrawing(found, { labels, axis, quantity }, state) {
  const { palette, width } = state;
  const margin = { l: 64, r: 16, t: 12, b: 44 };
  const height = isNarrow(width) ? HEIGHT.narrow : HEIGHT.roomy;
  const range = rangeOf(found);
  const lettering = letteringFor(width);
  return {
    data: [bandOf(found, palette), lineOf(found, palette)],
    layout: {
      ...baseLayout(palette, { width, height, margin }),
      xaxis: labelAxis({
        labels,
        pixels: width - margin.l - margin.r,
        title: axis,
        palette,
        lettering,
        space: 28,
      }),
      yaxis: amountAxis(range, quantity, palette),
    },
    geometry: geometryOf(found, range),
  };
}

/** From the tenth below the least to the tenth above the greatest. */
function rangeOf({ least, most }) {
  const [low, high] = [Math.min(...least), Math.max(...most)];
  const [from, to] = [Math.floor(low * 10 + 1e-6), Math.ceil(high * 10 - 1e-6)];
  return [Math.min(from, to - 1) / 10, to / 10];
}

function amountAxis([from, to], title, palette) {
  const [first, last] = [Math.round(from * 10), Math.round(to * 10)];
  const [, step] = STEPS.find(([most]) => last - first <= most);
  const tenths = Array.from({ length: last - first + 1 }, (_, index) => first + index).filter(
    (tenth) => tenth % step === 0,
  );
  const tickvals = tenths.map((tenth) => tenth / 10);
  return {
    range: [from, to],
    tickvals,
    ticktext: tickvals.map(tick),
    tickfont: { size: 11, color: palette.muted },
    title: { text: title, font: { size: 12, color: palette.muted }, standoff: 8 },
    gridcolor: palette.line,
    zeroline: false,
  };
}

function bandOf({ least, most }, palette) {
  const columns = Array.from(least, (_, column) => column);
  const color = translucent(css(sequential(palette.theme), LINE_LEVEL), 0.25);
  return {
    ...SHARED,
    mode: 'lines',
    fill: 'toself',
    fillcolor: color,
    line: { width: 0 },
    x: [...columns, ...[...columns].reverse()],
    y: [...most, ...[...least].reverse()],
  };
}

function lineOf({ mean }, palette) {
  return {
    ...SHARED,
    mode: mean.length > MOST_DOTS ? 'lines' : 'lines+markers',
    x: Array.from(mean, (_, column) => column),
    y: Array.from(mean),
    line: { color: css(sequential(palette.theme), LINE_LEVEL), width: 2 },
    marker: { size: 5, color: palette.ink },
  };
}

/** Rows are mean, least and greatest; under a point lies whichever of them is nearest. */
function geometryOf({ mean, least, most }, [from, to]) {
  const rows = [mean, least, most];
  const half = (to - from) * 0.025;
  return {
    box(row, column) {
      if (column === undefined) return null;
      const value = rows[row ?? 0][column];
      return { x0: column - 0.5, x1: column + 0.5, y0: value - half, y1: value + half };
    },
    at(x, y) {
      const column = Math.round(x);
      if (column < 0 || column >= mean.length) return null;
      const away = rows.map((values) => Math.abs(values[column] - y));
      return { row: away.indexOf(Math.min(...away)), column };
    },
  };
}
