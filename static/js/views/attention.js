/**
 * Attention: one head's weights, every query by every key.
 */

import { plotlyScale, sequential } from '../core/colour.js';
import { baseLayout, colourBar, colourBarTitle, downwards, isNarrow, labelAxis, labelWidth, letteringFor, nested } from '../core/figure.js';
import { share } from '../core/number.js';
import { placeOf, placesOf, tokensOf, weightsAt } from '../core/places.js';
import { isCausal } from '../core/sites.js';
import { choosing, queryOf } from '../core/state.js';
import { named, tokenLabels } from '../core/text.js';
import { columnOf, matrixAt, rowOf } from '../core/trace.js';

const ROOM_FOR_GAPS = 12;
const LEAST_SIDE = 160;
const TITLES = { query: 'query: attends', key: 'key: attended to' };
const HEAD = ['head', 'one of several attentions that a layer runs side by side'];

export const attention = {
  id: 'attention',
  title: 'Attention',
  help: 'Each row is a token looking back: the stronger a cell’s colour, the more of that earlier token it takes in. A row sums to 1.',
  terms: [
    ['query', 'the token that attends (a row)'],
    ['key', 'a token it attends to (a column)'],
    HEAD,
  ],
  needs: ['*.self_attention.weights', '*.cross_attention.weights'],
  overview: 'heads',
  wording: (trace, state) => WORDING[placeOf(state, trace)?.id] ?? {},
  places: (trace) => (placesOf(trace).length > 1 ? placesOf(trace) : []),
  place: (trace, state) => placeOf(state, trace)?.id,
  figure,
};

/** What is said differently where a token does not only look back. */
const WORDING = {
  encoder: {
    help: 'Each row is a token looking both ways: the stronger a cell’s colour, the more of that token it takes in. A row sums to 1.',
  },
  cross: {
    help: 'Each row is a token of the target looking at the source: what it takes in helps to choose the token that comes after it. A row sums to 1.',
    terms: [
      ['query', 'the token of the target that attends (a row)'],
      ['key', 'a token of the source it attends to (a column)'],
      HEAD,
    ],
  },
};

/**
 * @param {import('../core/trace.js').Trace} trace
 * @param {import('../core/state.js').State & import('../core/figure.js').Frame} state
 * @returns {import('../core/figure.js').Figure}
 */
function figure(trace, state) {
  const place = placeOf(state, trace);
  const found = weightsAt(place, trace).find(({ layer }) => layer === state.layer);
  if (!found) return { title: 'Attention', notice: 'This trace holds no attention weights.' };
  const subject = subjectOf(trace, state, place, found.site);
  return {
    title: subject.name[0].toUpperCase() + subject.name.slice(1),
    summary: `Attention weights of ${subject.name}: ${subject.weights.rows} queries by ${subject.weights.columns} keys.`,
    ...drawing(state, subject),
    grid: gridOf(trace, state, subject),
  };
}

/** What is shown: a head's weights, the tokens of both axes, and the head by its name. */
function subjectOf(trace, state, place, site) {
  const where = placesOf(trace).length > 1 ? `${place.name}, ` : '';
  return {
    place,
    site,
    name: `${where}layer ${state.layer}, head ${state.head}`,
    weights: weightsOf(trace, site, state.head),
    queries: tokensOf(trace, place.rows),
    keys: tokensOf(trace, place.columns),
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

function drawing(state, { weights, queries, keys }) {
  const { palette } = state;
  const labels = { rows: tokenLabels(queries), columns: tokenLabels(keys) };
  const lettering = letteringFor(state.width);
  const widths = { rows: labelWidth(labels.rows, lettering), columns: labelWidth(labels.columns, lettering) };
  const box = (isNarrow(state.width) ? tightBox : roomyBox)(state, widths, weights);
  const axis = { palette, lettering };
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
        xgap: box.cell >= ROOM_FOR_GAPS ? 1 : 0,
        ygap: box.cell >= ROOM_FOR_GAPS ? 1 : 0,
      },
    ],
    layout: {
      ...baseLayout(palette, box),
      annotations: [colourBarTitle('attention weight', palette, box.orientation), ...box.titles(palette)],
      xaxis: { ...labelAxis({ ...axis, labels: labels.columns, pixels: box.across, title: box.axisTitles.key, color: palette.key }), side: 'top', tickangle: box.tickangle },
      yaxis: downwards(labelAxis({ ...axis, labels: labels.rows, pixels: box.down, title: box.axisTitles.query, color: palette.query })),
    },
  };
}

/** Titles beside the axes, labels aslant, the colour bar at the right. */
function roomyBox(size, label, weights) {
  const slanted = Math.ceil(label.columns * 0.72);
  const margin = { l: label.rows + 30, r: Math.max(76, slanted), t: slanted + 40, b: 12 };
  return { ...squaresIn(size, margin, weights), orientation: 'v', tickangle: -45, axisTitles: TITLES, titles: () => [] };
}

/** Every pixel for the map: upright labels, both titles in one line above them, the colour bar below. */
function tightBox(size, label, weights) {
  const margin = { l: label.rows + 14, r: 4, t: label.columns + 28, b: 58 };
  const title = { showarrow: false, xref: 'paper', yref: 'paper', y: 1, yanchor: 'bottom', yshift: label.columns + 8 };
  const titles = ({ query, key }) => [
    { ...title, text: `${TITLES.query} ↓`, x: 0, xanchor: 'left', xshift: -margin.l, font: { size: 12, color: query } },
    { ...title, text: `${TITLES.key} →`, x: 1, xanchor: 'right', font: { size: 12, color: key } },
  ];
  return { ...squaresIn(size, margin, weights), orientation: 'h', tickangle: -90, axisTitles: { query: '', key: '' }, titles };
}

/** Cells are square, and the longer side of the map is never too short to be read. */
function squaresIn({ width, height }, margin, { rows, columns }) {
  const room = Math.min((width - margin.l - margin.r) / columns, (height - margin.t - margin.b) / rows);
  const cell = Math.max(LEAST_SIDE / Math.max(rows, columns), room);
  const [across, down] = [cell * columns, cell * rows];
  return { margin, cell, across, down, width: across + margin.l + margin.r, height: down + margin.t + margin.b };
}

function ceilingOf({ data }, range) {
  if (range !== 'head') return 1;
  return data.reduce((most, weight) => (weight > most ? weight : most), 0) || 1;
}

function gridOf(trace, state, subject) {
  const { place, site, name, weights, queries, keys } = subject;
  const value = (row, column) => weights.data[row * weights.columns + column];
  const query = queryOf(state, trace, place.rows);
  return {
    rows: weights.rows,
    columns: weights.columns,
    sides: { rows: place.rows, columns: place.columns },
    rowTitle: 'query',
    columnTitle: 'key',
    rowLabels: tokenLabels(queries),
    columnLabels: tokenLabels(keys),
    quantity: `attention weight, ${name}`,
    request: { capture: [site], heads: [state.head] },
    value,
    format: (weight) => share(weight, 4),
    describe: (row, column) => sentence(subject, row, column),
    tip: (row, column) => [
      `${named(queries, row)} → ${named(keys, column)}`,
      Number.isNaN(value(row, column)) ? 'hidden: not yet read' : share(value(row, column), 4),
    ],
    tokens: (row, column) => ({ query: row, key: column }),
    ofRow: (row) => rowShown(subject, row),
    ...(place.id === 'cross' && { ofColumn: (column) => columnShown(subject, column) }),
    choose: (row) => choosing(trace, place.rows, row),
    ceiling: ceilingOf(weights, state.range),
    chosen: { row: query },
    start: { row: query, column: strongestIn(rowOf(weights, query)) },
    rest: rowShown(subject, query),
    thinned: { rows: letteringFor(state.width), columns: letteringFor(state.width) },
  };
}

/** What a query looks at. */
function rowShown(subject, row) {
  const tint = rowOf(subject.weights, row);
  return { tint, readout: sentence(subject, row, strongestIn(tint), 'attends most to') };
}

/** Who looks at a key. These weights are of different rows, so they need not sum to 1. */
function columnShown({ queries, keys, weights, name }, column) {
  const tint = columnOf(weights, column);
  const row = strongestIn(tint);
  return { tint, readout: `${named(keys, column)} is attended to most by ${named(queries, row)}, with weight ${share(tint[row])} (${name})` };
}

function strongestIn(weights) {
  return weights.reduce((best, weight, index) => (weight > weights[best] ? index : best), 0);
}

function sentence({ place, weights, queries, keys, name }, row, column, verb = 'attends to') {
  const weight = weights.data[row * weights.columns + column];
  if (Number.isNaN(weight)) {
    return `${named(queries, row)} cannot attend to ${named(keys, column)}, which comes later (${name})`;
  }
  const target = row === column && place.rows === place.columns ? 'itself' : named(keys, column);
  return `${named(queries, row)} ${verb} ${target} with weight ${share(weight)} (${name})`;
}
