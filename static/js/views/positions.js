/**
 * Positions: the encoding that was added to the embeddings, and how alike two positions are in it.
 */

import { diverging, plotlyScale, sequential } from '../core/colour.js';
import { baseLayout, colourBar, colourBarTitle, downwards, isNarrow, labelAxis, labelWidth, letteringFor, nested } from '../core/figure.js';
import { signed, tick } from '../core/number.js';
import { cosineSimilarity } from '../core/similarity.js';
import { matches } from '../core/sites.js';
import { queryOf } from '../core/state.js';
import { positionLabels, quoted } from '../core/text.js';
import { matrixAt } from '../core/trace.js';

const SITE = '*.embedding.positional';
const DIMENSION_SPACE = 44;
const NUMBER_SPACE = 26;
const ROW_HEIGHT = { least: 3, most: 22 };

export const positions = {
  id: 'positions',
  title: 'Positions',
  help: 'Attention alone cannot tell first from last, so a pattern of numbers for each position is added to the token that stands there.',
  terms: [
    ['dimension', 'one of the d_model numbers that describe a token inside the model'],
    ['cosine similarity', 'how alike two patterns are: 1 where they are the same, less the more they differ'],
  ],
  needs: [SITE],
  arrangement: 'pair',
  panels: () => [
    { id: 'encoding', state: { plot: 'encoding' } },
    { id: 'similarity', state: { plot: 'similarity' } },
  ],
  figure,
};

/**
 * @param {import('../core/trace.js').Trace} trace
 * @param {import('../core/state.js').State & import('../core/figure.js').Frame & {plot: 'encoding'|'similarity'}} state
 * @returns {import('../core/figure.js').Figure}
 */
function figure(trace, state) {
  const title = state.plot === 'similarity' ? 'Similarity between positions' : 'The encoding that was added';
  const site = Object.keys(trace.tensors).find((name) => matches(SITE, name));
  if (!site) return { title, notice: 'This model adds no positional encoding to its embeddings.' };
  const encoding = firstRows(matrixAt(trace.tensors[site]), trace.tokens.length);
  return { title, ...(state.plot === 'similarity' ? similarity : encodingMap)(trace, state, encoding) };
}

/** A model may capture every position it knows; only those of this text were added. */
function firstRows({ rows, columns, data }, count) {
  const kept = Math.min(rows, count);
  return { rows: kept, columns, data: data.subarray(0, kept * columns) };
}

function encodingMap(trace, state, encoding) {
  const { palette } = state;
  const labels = positionLabels(trace.tokens);
  const dimensions = Array.from({ length: encoding.columns }, (_, dimension) => String(dimension));
  const margin = marginFor(labels, state.width);
  const pixels = state.width - margin.l - margin.r;
  const height = clampHeight(encoding.rows, state.height - margin.t - margin.b);
  const reach = reachOf(encoding.data);
  const lettering = letteringFor(state.width);
  return {
    summary: `Positional encoding: ${encoding.rows} positions by ${encoding.columns} dimensions, none further from 0 than ${tick(reach)}.`,
    data: [heatmap(encoding, { zmin: -reach, zmax: reach, colours: diverging(palette.theme) }, state)],
    layout: {
      ...baseLayout(palette, { width: state.width, height: height + margin.t + margin.b, margin }),
      annotations: [colourBarTitle('value added', palette, orientationFor(state.width))],
      xaxis: { ...labelAxis({ labels: dimensions, pixels, title: 'dimension', palette, lettering, space: DIMENSION_SPACE }), side: 'top' },
      yaxis: downwards(labelAxis({ labels, pixels: height, title: 'position', palette, lettering })),
    },
    grid: encodingGrid(trace, state, encoding, labels, dimensions),
  };
}

function similarity(trace, state, encoding) {
  const { palette } = state;
  const cosines = cosineSimilarity(encoding);
  const labels = positionLabels(trace.tokens);
  const margin = marginFor(labels, state.width);
  const room = state.width - margin.l - margin.r;
  const side = Math.max(120, Math.min(room, state.height - margin.t - margin.b));
  const lettering = letteringFor(state.width);
  const scale = scaleFor(cosines.data, palette.theme);
  const range = rangeInWords(cosines.data, scale);
  const numbers = labels.map((_, position) => String(position));
  return {
    summary: `Cosine similarity between ${cosines.rows} positions, computed from the captured encoding. ${range}`,
    data: [heatmap(cosines, scale, state)],
    layout: {
      ...baseLayout(palette, { width: side + margin.l + margin.r, height: side + margin.t + margin.b, margin }),
      annotations: [colourBarTitle('cosine similarity', palette, orientationFor(state.width))],
      xaxis: { ...labelAxis({ labels: numbers, pixels: side, title: 'position', palette, lettering, space: NUMBER_SPACE }), side: 'top' },
      yaxis: downwards(labelAxis({ labels, pixels: side, title: 'position', palette, lettering })),
    },
    grid: { ...similarityGrid(trace, state, cosines, labels), note: range },
  };
}

/** Where all are alike, the scale begins at the tenth below the least, so that differences show. */
function scaleFor(cosines, theme) {
  const least = leastOf(cosines);
  if (least < 0) return { zmin: -1, zmax: 1, colours: diverging(theme) };
  return { zmin: Math.min(9, Math.floor(least * 10)) / 10, zmax: 1, colours: sequential(theme) };
}

function leastOf(cosines) {
  return cosines.reduce((low, cosine) => Math.min(low, cosine), 1);
}

/** What there is, and where the colours begin and end: the two need not be the same. */
function rangeInWords(cosines, { zmin, zmax }) {
  const least = Math.floor(leastOf(cosines) * 100) / 100;
  const found = least === 1 ? 'Here all are 1' : `Here they are between ${tick(least)} and 1`;
  return `${found}; the colours run from ${tick(zmin)} to ${tick(zmax)}.`;
}

function heatmap(matrix, { zmin, zmax, colours }, { palette, width }) {
  return {
    type: 'heatmap',
    z: nested(matrix),
    zmin,
    zmax,
    colorscale: plotlyScale(colours),
    colorbar: { ...colourBar(palette, orientationFor(width)), ...endsAt(zmin, zmax) },
    hoverinfo: 'none',
  };
}

/** Numbers at both ends of the colour bar, and at three places between. */
function endsAt(zmin, zmax) {
  const tickvals = [0, 1, 2, 3, 4].map((quarter) => zmin + ((zmax - zmin) * quarter) / 4);
  return { tickvals, ticktext: tickvals.map(tick) };
}

function orientationFor(width) {
  return isNarrow(width) ? 'h' : 'v';
}

/** The scale is the same on both sides of zero, and zero keeps the middle colour. */
function reachOf(data) {
  return data.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;
}

function marginFor(labels, width) {
  const left = labelWidth(labels, letteringFor(width)) + 30;
  return isNarrow(width) ? { l: left, r: 8, t: 48, b: 58 } : { l: left, r: 76, t: 48, b: 12 };
}

function clampHeight(rows, room) {
  return Math.max(rows * ROW_HEIGHT.least, Math.min(rows * ROW_HEIGHT.most, Math.max(room, 200)));
}

function encodingGrid(trace, state, encoding, labels, dimensions) {
  const { tokens } = trace;
  const value = (row, column) => encoding.data[row * encoding.columns + column];
  return {
    ...sharedGrid(trace, state, encoding, value),
    columnTitle: 'dimension',
    rowLabels: labels,
    columnLabels: dimensions,
    quantity: 'positional encoding',
    describe: (row, column) =>
      `Position ${row}, ${quoted(tokens[row])}: ${signed(value(row, column))} is added to dimension ${column}`,
    tip: (row, column) => [`position ${row}, dimension ${column}`, signed(value(row, column), 4)],
    tokens: (row) => ({ query: row }),
    thinned: { rows: letteringFor(state.width), columns: { ...letteringFor(state.width), space: DIMENSION_SPACE } },
  };
}

function similarityGrid(trace, state, cosines, labels) {
  const { tokens } = trace;
  const value = (row, column) => cosines.data[row * cosines.columns + column];
  return {
    ...sharedGrid(trace, state, cosines, value),
    columnTitle: 'position',
    rowLabels: labels,
    columnLabels: labels,
    quantity: 'cosine similarity of positional encodings',
    describe: (row, column) =>
      `Positions ${row} (${quoted(tokens[row])}) and ${column} (${quoted(tokens[column])}): cosine similarity ${signed(value(row, column))}`,
    tip: (row, column) => [`positions ${row} and ${column}`, signed(value(row, column), 4)],
    tokens: (row, column) => ({ query: row, key: column }),
  };
}

function sharedGrid(trace, state, { rows, columns }, value) {
  const query = queryOf(state, trace);
  return {
    rows,
    columns,
    rowTitle: 'position',
    value,
    format: (number) => signed(number, 4),
    choose: (row) => ({ query: row }),
    chosen: { row: query },
    start: { row: query, column: 0 },
    rest: { readout: `${quoted(trace.tokens[query])} stands at position ${query}` },
  };
}
