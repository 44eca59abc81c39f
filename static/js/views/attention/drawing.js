/**
 * An attention map as a matrix: queries as rows, keys as columns, square cells.
 */

import { diverging, plotlyScale, sequential } from '../../plot/colour.js';
import {
  baseLayout,
  colourBar,
  colourBarTitle,
  downwards,
  isNarrow,
  labelAxis,
  labelWidth,
  letteringFor,
  nested,
} from '../../plot/figure.js';
import { createMemo } from '../../state/memoize.js';
import { unitLabels } from '../../data/words.js';

/** @typedef {import('./subject.js').Subject} Subject */

const memo = createMemo();

const ROOM_FOR_GAPS = 12;
const LEAST_SIDE = 160;
export const TITLES = { query: 'query: attends', key: 'key: attended to' };

/**
 * @param {import('../../plot/figure.js').Frame} state
 * @param {Subject} subject
 * @returns {{data: Object[], layout: Object}}
 */
export function matrixDrawing(state, subject) {
  const { palette } = state;
  const { matrix, scale, quantity } = subject;
  const labels = { rows: unitLabels(subject.rows), columns: unitLabels(subject.columns) };
  const lettering = letteringFor(state.width);
  const widths = {
    rows: labelWidth(labels.rows, lettering),
    columns: labelWidth(labels.columns, lettering),
  };
  const box = (isNarrow(state.width) ? tightBox : roomyBox)(state, widths, matrix);
  const axis = { palette, lettering };
  return {
    data: [
      {
        type: 'heatmap',
        z: drawn(subject),
        zmin: scale.bottom,
        zmax: scale.top,
        colorscale: plotlyScale((scale.isSigned ? diverging : sequential)(palette.theme)),
        colorbar: {
          ...colourBar(palette, box.orientation),
          ...(scale.ticks && { tickmode: 'array', ...scale.ticks }),
        },
        hoverinfo: 'none',
        xgap: box.cell >= ROOM_FOR_GAPS ? 1 : 0,
        ygap: box.cell >= ROOM_FOR_GAPS ? 1 : 0,
      },
    ],
    layout: {
      ...baseLayout(palette, box),
      annotations: [
        colourBarTitle(quantity.noun, palette, box.orientation),
        ...box.titles(palette),
      ],
      xaxis: {
        ...labelAxis({
          ...axis,
          labels: labels.columns,
          pixels: box.across,
          title: box.axisTitles.key,
          color: palette.key,
        }),
        side: 'top',
        tickangle: box.tickangle,
      },
      yaxis: downwards(
        labelAxis({
          ...axis,
          labels: labels.rows,
          pixels: box.down,
          title: box.axisTitles.query,
          color: palette.query,
        }),
      ),
    },
  };
}

/** Places on the colour scale: of what is under the threshold the lowest, of what may not be seen none. */
function drawn(subject) {
  return memo([subject], () => {
    const { matrix, scale } = subject;
    const least = leastOf(subject);
    return nested({
      ...matrix,
      data: matrix.data.map((value) => (value < least ? scale.bottom : scale.place(value))),
    });
  });
}

/**
 * The value under which a cell is cut: drawn in the lowest colour.
 * @param {Pick<Subject, 'scale'|'switches'>} subject
 */
export function leastOf({ scale, switches }) {
  if (switches.threshold === 0) return -Infinity;
  return switches.isShare ? switches.threshold : switches.threshold * scale.top;
}

/** Titles beside the axes, labels aslant, the colour bar at the right. */
function roomyBox(size, label, matrix) {
  const slanted = Math.ceil(label.columns * 0.72);
  const margin = { l: label.rows + 30, r: Math.max(76, slanted), t: slanted + 40, b: 12 };
  return {
    ...squaresIn(size, margin, matrix),
    orientation: 'v',
    tickangle: -45,
    axisTitles: TITLES,
    titles: () => [],
  };
}

/** Every pixel for the map: upright labels, both titles in one line above them, the colour bar below. */
function tightBox(size, label, matrix) {
  const margin = { l: label.rows + 14, r: 4, t: label.columns + 28, b: 58 };
  const title = {
    showarrow: false,
    xref: 'paper',
    yref: 'paper',
    y: 1,
    yanchor: 'bottom',
    yshift: label.columns + 8,
  };
  const titles = ({ query, key }) => [
    {
      ...title,
      text: `${TITLES.query} ↓`,
      x: 0,
      xanchor: 'left',
      xshift: -margin.l,
      font: { size: 12, color: query },
    },
    { ...title, text: `${TITLES.key} →`, x: 1, xanchor: 'right', font: { size: 12, color: key } },
  ];
  return {
    ...squaresIn(size, margin, matrix),
    orientation: 'h',
    tickangle: -90,
    axisTitles: { query: '', key: '' },
    titles,
  };
}

/** Cells are square, and the longer side of the map is never too short to be read. */
function squaresIn({ width, height }, margin, { rows, columns }) {
  const room = Math.min(
    (width - margin.l - margin.r) / columns,
    (height - margin.t - margin.b) / rows,
  );
  const cell = Math.max(LEAST_SIDE / Math.max(rows, columns), room);
  const [across, down] = [cell * columns, cell * rows];
  return {
    margin,
    cell,
    across,
    down,
    width: across + margin.l + margin.r,
    height: down + margin.t + margin.b,
  };
}
