/**
 * Attention: one head's weights, every query by every key.
 */

import { plotlyScale, sequential } from '../core/colour.js';
import { baseLayout, colourBar, colourBarTitle, downwards, isNarrow, labelAxis, labelWidth, letteringFor, nested } from '../core/figure.js';
import { share } from '../core/number.js';
import { isCausal, layersWith } from '../core/sites.js';
import { queryOf } from '../core/state.js';
import { named, tokenLabels } from '../core/text.js';
import { matrixAt, rowOf } from '../core/trace.js';

const SITE = 'self_attention.weights';
const ROOM_FOR_GAPS = 12;
const TITLES = { query: 'query: attends', key: 'key: attended to' };

export const attention = {
  id: 'attention',
  title: 'Attention',
  help: 'Each row is a token looking back: the stronger a cell’s colour, the more of that earlier token it takes in. A row sums to 1.',
  terms: [
    ['query', 'the token that attends (a row)'],
    ['key', 'a token it attends to (a column)'],
    ['head', 'one of several attentions that a layer runs side by side'],
  ],
  needs: [`*.${SITE}`],
  overview: 'heads',
  figure,
};

/**
 * @param {import('../core/trace.js').Trace} trace
 * @param {import('../core/state.js').State & import('../core/figure.js').Frame} state
 * @returns {import('../core/figure.js').Figure}
 */
function figure(trace, state) {
  const found = layersWith(trace.tensors, SITE).find(({ layer }) => layer === state.layer);
  if (!found) return { title: 'Attention', notice: 'This trace holds no attention weights.' };
  const weights = weightsOf(trace, found.site, state.head);
  const title = `Layer ${state.layer}, head ${state.head}`;
  return {
    title,
    summary: `Attention weights of layer ${state.layer}, head ${state.head}: ${weights.rows} queries by ${weights.columns} keys.`,
    ...drawing(trace, state, weights),
    grid: gridOf(trace, state, weights),
  };
}

/** A head's weights; the future, which a decoder never sees, is NaN rather than 0. */
function weightsOf({ tensors }, site, head) {
  const matrix = matrixAt(tensors[site], head);
  if (!isCausal(site)) return matrix;
  for (let query = 0; query < matrix.rows; query += 1) {
    matrix.data.fill(NaN, query * matrix.columns + query + 1, (query + 1) * matrix.columns);
  }
  return matrix;
}

function drawing({ tokens }, state, weights) {
  const { palette } = state;
  const labels = tokenLabels(tokens);
  const lettering = letteringFor(state.width);
  const box = (isNarrow(state.width) ? tightBox : roomyBox)(state, labelWidth(labels, lettering));
  const axis = { labels, pixels: box.side, palette, lettering };
  return {
    data: [
      {
        type: 'heatmap',
        z: nested(weights),
        zmin: 0,
        zmax: ceilingOf(weights, state.range),
        colorscale: plotlyScale(sequential(palette.theme)),
        colorbar: colourBar(palette, box.orientation),
        hoverinfo: 'none',
        xgap: box.side / labels.length >= ROOM_FOR_GAPS ? 1 : 0,
        ygap: box.side / labels.length >= ROOM_FOR_GAPS ? 1 : 0,
      },
    ],
    layout: {
      ...baseLayout(palette, box),
      annotations: [colourBarTitle('attention weight', palette, box.orientation), ...box.titles(palette)],
      xaxis: { ...labelAxis({ ...axis, title: box.axisTitles.key, color: palette.key }), side: 'top', tickangle: box.tickangle },
      yaxis: downwards(labelAxis({ ...axis, title: box.axisTitles.query, color: palette.query })),
    },
  };
}

/** Titles beside the axes, labels aslant, the colour bar at the right. */
function roomyBox(size, label) {
  const slanted = Math.ceil(label * 0.72);
  const margin = { l: label + 30, r: Math.max(76, slanted), t: slanted + 40, b: 12 };
  return { ...squareIn(size, margin), orientation: 'v', tickangle: -45, axisTitles: TITLES, titles: () => [] };
}

/** Every pixel for the map: upright labels, both titles in one line above them, the colour bar below. */
function tightBox(size, label) {
  const margin = { l: label + 14, r: 4, t: label + 28, b: 58 };
  const title = { showarrow: false, xref: 'paper', yref: 'paper', y: 1, yanchor: 'bottom', yshift: label + 8 };
  const titles = ({ query, key }) => [
    { ...title, text: `${TITLES.query} ↓`, x: 0, xanchor: 'left', xshift: -margin.l, font: { size: 12, color: query } },
    { ...title, text: `${TITLES.key} →`, x: 1, xanchor: 'right', font: { size: 12, color: key } },
  ];
  return { ...squareIn(size, margin), orientation: 'h', tickangle: -90, axisTitles: { query: '', key: '' }, titles };
}

function squareIn({ width, height }, margin) {
  const side = Math.max(160, Math.min(width - margin.l - margin.r, height - margin.t - margin.b));
  return { margin, side, width: side + margin.l + margin.r, height: side + margin.t + margin.b };
}

function ceilingOf({ data }, range) {
  if (range !== 'head') return 1;
  return data.reduce((most, weight) => (weight > most ? weight : most), 0) || 1;
}

function gridOf(trace, state, weights) {
  const { tokens } = trace;
  const labels = tokenLabels(tokens);
  const value = (row, column) => weights.data[row * weights.columns + column];
  const query = queryOf(state, trace);
  const strongest = strongestKey(weights, query);
  return {
    rows: weights.rows,
    columns: weights.columns,
    rowTitle: 'query',
    columnTitle: 'key',
    rowLabels: labels,
    columnLabels: labels,
    quantity: `attention weight, layer ${state.layer}, head ${state.head}`,
    value,
    format: (weight) => share(weight, 4),
    describe: (row, column) => sentence(tokens, row, column, value(row, column), state),
    tip: (row, column) => [
      `${named(tokens, row)} → ${named(tokens, column)}`,
      Number.isNaN(value(row, column)) ? 'hidden: not yet read' : share(value(row, column), 4),
    ],
    tokens: (row, column) => ({ query: row, key: column }),
    tint: (row) => rowOf(weights, row),
    choose: (row) => ({ query: row }),
    ceiling: ceilingOf(weights, state.range),
    chosen: { row: query },
    start: { row: query, column: strongest },
    rest: {
      readout: sentence(tokens, query, strongest, value(query, strongest), state, 'attends most to'),
      tint: rowOf(weights, query),
    },
    thinned: { rows: letteringFor(state.width), columns: letteringFor(state.width) },
  };
}

function strongestKey(weights, query) {
  const row = rowOf(weights, query);
  return row.reduce((best, weight, key) => (weight > row[best] ? key : best), 0);
}

function sentence(tokens, row, column, weight, { layer, head }, verb = 'attends to') {
  const where = `(layer ${layer}, head ${head})`;
  if (Number.isNaN(weight)) {
    return `${named(tokens, row)} cannot attend to ${named(tokens, column)}, which comes later ${where}`;
  }
  const target = row === column ? 'itself' : named(tokens, column);
  return `${named(tokens, row)} ${verb} ${target} with weight ${share(weight)} ${where}`;
}
