/**
 * The drawing of the logit lens: layers by positions, set in lines as text is, so that the token in
 * each cell can be read however long the sentence is.
 */

import { inkOn, levelOf, plotlyScale, sequential } from '../../plot/colour.js';
import {
  baseLayout,
  downwards,
  isNarrow,
  shortBar,
  shortBarTitle,
  shortBarWidth,
} from '../../plot/figure.js';
import { escapeForPlotly, nameOf, shortened } from '../../data/text.js';

const CELL = { roomy: { least: 54, most: 104 }, tight: { least: 46, most: 80 }, height: 26 };
const LETTER = 6.6;
const TYPE = 11;
const BAR_TITLE = 'probability of the likeliest token';

/**
 * How the lens is set: `perLine` positions stand side by side, `lines` such lines below one another.
 * The first row of a line holds the tokens, the others the layers.
 * @typedef {Object} Setting
 * @property {number} layers
 * @property {number} count
 * @property {number} perLine
 * @property {number} lines
 * @property {number} cell width in pixels
 * @property {{l: number, r: number, t: number, b: number}} margin
 */

/**
 * @param {number} count of positions
 * @param {number} layers
 * @param {number} width pixels
 * @returns {Setting}
 */
export function settingFor(count, layers, width) {
  const { least, most } = isNarrow(width) ? CELL.tight : CELL.roomy;
  const margin = { l: isNarrow(width) ? 42 : 76, r: 4, t: 0, b: 44 };
  const room = width - margin.l - margin.r;
  const lines = Math.ceil(count / Math.max(1, Math.min(count, Math.floor(room / least))));
  const perLine = Math.ceil(count / lines);
  const cell = Math.min(most, room / perLine);
  return {
    layers,
    count,
    perLine,
    lines,
    cell,
    margin: { ...margin, r: Math.max(margin.r, beyond(cell * perLine, width - margin.l)) },
  };
}

/** What the colour bar and its title take beyond a map of few tokens. */
function beyond(map, most) {
  return Math.min(shortBarWidth(BAR_TITLE), most) - map;
}

/**
 * Where a cell of layers by positions lies.
 * @param {Setting} setting
 * @returns {import('../../plot/figure.js').Geometry}
 */
export function geometryOf({ layers, count, perLine, lines }) {
  const block = layers + 1;
  return {
    box: (row, column) => {
      if (column === undefined) return null;
      const top = Math.floor(column / perLine) * block + 1;
      const x = column % perLine;
      const [first, last] = row === undefined ? [0, layers - 1] : [row, row];
      return { x0: x - 0.5, x1: x + 0.5, y0: top + first - 0.5, y1: top + last + 0.5 };
    },
    at: (x, y) => {
      const line = Math.floor((y + 0.5) / block);
      const row = Math.round(y) - line * block - 1;
      const column = line * perLine + Math.round(x);
      const isInside =
        line >= 0 &&
        line < lines &&
        row >= 0 &&
        row < layers &&
        x > -0.5 &&
        x < perLine - 0.5 &&
        column < count;
      return isInside ? { row, column } : null;
    },
  };
}

/**
 * @param {{tokens: import('../../data/trace.js').Token[], probabilities: import('../../data/trace.js').Matrix, nameAt: (layer: number, position: number) => string, isRight: (layer: number, position: number) => boolean}} lens layers by positions
 * @param {import('../../plot/figure.js').Frame} state
 * @returns {{data: Object[], layout: Object}}
 */
export function lensMap({ tokens, probabilities, nameAt, isRight }, { palette, width }) {
  const setting = settingFor(tokens.length, probabilities.rows, width);
  const { margin, perLine, lines, layers, cell } = setting;
  const cells = cellsOf(setting);
  const rows = lines * (layers + 1);
  return {
    data: [
      heatmap(cells, probabilities, setting, palette),
      heads(tokens, setting, palette),
      names(cells, { probabilities, nameAt }, setting, palette),
      underlines(
        cells.filter(({ layer, position }) => isRight(layer, position)),
        palette,
      ),
    ],
    layout: {
      ...baseLayout(palette, {
        width: margin.l + perLine * cell + margin.r,
        height: rows * CELL.height + margin.t + margin.b,
        margin,
      }),
      annotations: [shortBarTitle(BAR_TITLE, palette)],
      xaxis: { ...bareAxis(perLine), tickvals: [] },
      yaxis: downwards({
        ...bareAxis(rows),
        ...layerTicks(setting, isNarrow(width)),
        tickfont: { size: TYPE, color: palette.muted },
      }),
    },
  };
}

/** Every cell with its place on the axes. */
function cellsOf({ count, layers, perLine }) {
  return Array.from({ length: count }, (_, position) =>
    Array.from({ length: layers }, (__, layer) => ({
      layer,
      position,
      x: position % perLine,
      y: Math.floor(position / perLine) * (layers + 1) + 1 + layer,
    })),
  ).flat();
}

function heatmap(cells, { columns, data }, { perLine, lines, layers }, palette) {
  const z = Array.from({ length: lines * (layers + 1) }, () => new Array(perLine).fill(null));
  for (const { layer, position, x, y } of cells) z[y][x] = data[layer * columns + position];
  return {
    type: 'heatmap',
    z,
    zmin: 0,
    zmax: 1,
    colorscale: plotlyScale(sequential(palette.theme)),
    colorbar: shortBar(palette),
    hoverinfo: 'none',
    xgap: 2,
    ygap: 4,
  };
}

/** The tokens themselves, above what is read at them. */
function heads(tokens, { perLine, layers, cell }, palette) {
  return {
    ...textTrace(),
    x: tokens.map((_, position) => position % perLine),
    y: tokens.map((_, position) => Math.floor(position / perLine) * (layers + 1) + 0.12),
    text: tokens.map((token) => fitted(nameOf(token), cell)),
    textfont: { size: TYPE, color: palette.muted },
  };
}

function names(cells, { probabilities: { columns, data }, nameAt }, { cell }, palette) {
  const scale = sequential(palette.theme);
  return {
    ...textTrace(),
    x: cells.map(({ x }) => x),
    y: cells.map(({ y }) => y),
    text: cells.map(({ layer, position }) => fitted(nameAt(layer, position), cell)),
    textfont: {
      size: TYPE,
      color: cells.map(({ layer, position }) =>
        inkOn(scale, levelOf(data[layer * columns + position], 1)),
      ),
    },
  };
}

function textTrace() {
  return { type: 'scatter', mode: 'text', hoverinfo: 'none', cliponaxis: false };
}

/** As much of a name as a cell has room for, safe for Plotly. */
function fitted(name, width) {
  return escapeForPlotly(shortened(name, Math.max(1, Math.floor((width - 6) / LETTER))));
}

/** In the gap below each cell whose guess is right; one path, however many there are. */
function underlines(cells, palette) {
  return {
    type: 'scatter',
    mode: 'lines',
    x: cells.flatMap(({ x }) => [x - 0.44, x + 0.44, null]),
    y: cells.flatMap(({ y }) => [y + 0.47, y + 0.47, null]),
    line: { color: palette.key, width: 2.5 },
    hoverinfo: 'none',
    cliponaxis: false,
  };
}

function bareAxis(count) {
  return {
    range: [-0.5, count - 0.5],
    tickmode: 'array',
    ticks: '',
    showgrid: false,
    zeroline: false,
    showline: false,
    title: { text: '' },
  };
}

function layerTicks({ lines, layers }, isTight) {
  const tickvals = Array.from({ length: lines * (layers + 1) }, (_, row) => row);
  const head = isTight ? 'layer' : 'after layer';
  return {
    tickvals,
    ticktext: tickvals.map((row) =>
      row % (layers + 1) === 0 ? head : String((row % (layers + 1)) - 1),
    ),
  };
}
