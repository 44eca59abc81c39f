/**
 * Several heads over each other: each cell and each line has the colour of the head that it belongs
 * to, a cell that of the head with the largest weight.
 */

import { headColour } from '../../plot/colour.js';
import { isNarrow } from '../../plot/figure.js';

/**
 * @import { Matrix } from '../../data/trace.js'
 * @import { Drawing, Palette, PlotlyTrace } from '../../plot/figure.js'
 */

/** @typedef {{head: number, matrix: Matrix}} HeadMatrix */

/**
 * The heatmap of the largest weights, split into one of each head.
 * @param {Drawing} drawing
 * @param {HeadMatrix[]} overlaid
 * @param {{palette: Palette, width: number}} frame
 * @returns {Drawing}
 */
export function overlaidMatrix({ data: [map], layout }, overlaid, { palette, width }) {
  const { columns } = overlaid[0].matrix;
  /** @param {number} at */
  const winner = (at) =>
    overlaid.reduce(
      (best, { matrix }, index) =>
        matrix.data[at] > overlaid[best].matrix.data[at] ? index : best,
      0,
    );
  const maps = overlaid.map((_, index) => ({
    ...map,
    z: map.z.map((/** @type {(number|null)[]} */ row, /** @type {number} */ y) =>
      row.map((value, x) => (winner(y * columns + x) === index ? value : null)),
    ),
    colorscale: [
      [0, palette.surface],
      [1, headColour(palette.theme, index)],
    ],
    showscale: false,
  }));
  return { data: [...maps, ...legendTraces(overlaid, palette)], layout: withLegend(layout, width) };
}

/**
 * The lines of each head in its colour, over the words of the largest weights.
 * @param {typeof import('../../plot/line_map.js').linesFigure} linesFigure
 * @param {import('../../plot/line_map.js').Wanted} wanted
 * @param {HeadMatrix[]} overlaid
 */
export function overlaidLines(linesFigure, wanted, overlaid) {
  const { palette, width } = wanted;
  const whole = linesFigure(wanted);
  const lines = overlaid.flatMap(({ matrix }, index) =>
    linesFigure({ ...wanted, weights: matrix })
      .data.filter((trace) => isLine(trace, palette))
      .map((trace) => ({
        ...trace,
        line: { ...trace.line, color: headColour(palette.theme, index) },
      })),
  );
  const others = whole.data.filter((trace) => !isLine(trace, palette) && !trace.marker);
  return {
    ...whole,
    data: [...lines, ...others, ...legendTraces(overlaid, palette)],
    layout: withLegend(whole.layout, width, true),
  };
}

/** @param {PlotlyTrace} trace @param {Palette} palette */
function isLine({ mode, line }, palette) {
  return mode === 'lines' && line.color !== palette.surface;
}

/**
 * @param {HeadMatrix[]} overlaid
 * @param {Palette} palette
 * @returns {PlotlyTrace[]} without points, for the legend alone
 */
function legendTraces(overlaid, { theme }) {
  return overlaid.map(({ head }, index) => ({
    type: 'scatter',
    mode: 'markers',
    x: [null],
    y: [null],
    name: `head ${head}`,
    showlegend: true,
    hoverinfo: 'none',
    marker: { symbol: 'square', size: 12, color: headColour(theme, index) },
  }));
}

/**
 * The legend in place of the colour bar.
 * @param {import('../../plot/figure.js').Layout} layout
 * @param {number} width
 * @param {boolean} [isBelow]
 */
function withLegend(layout, width, isBelow = isNarrow(width)) {
  const [, ...annotations] = layout.annotations ?? [];
  const place = isBelow
    ? { orientation: 'h', x: 0, xanchor: 'left', y: 0, yanchor: 'top' }
    : { orientation: 'v', x: 1.01, xanchor: 'left', y: 1, yanchor: 'top' };
  return {
    ...layout,
    annotations,
    showlegend: true,
    legend: { ...place, itemclick: false, itemdoubleclick: false, font: { size: 12 } },
  };
}
