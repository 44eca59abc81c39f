/**
 * Positions: the encoding that was added to the embeddings, and how alike two positions are in it.
 * Of schemes that add nothing: what they do instead, inside attention.
 */

import { diverging, sequential } from '../core/colour.js';
import { letteringFor } from '../core/figure.js';
import { signed, tick } from '../core/number.js';
import { sideOf, stackOf, stacksOf, tokensOf } from '../core/places.js';
import { cosineSimilarity } from '../core/similarity.js';
import { positionLabels, quoted } from '../core/text.js';
import { matrixAt } from '../core/trace.js';
import { DIMENSION_SPACE, dimensionMap, pairMap, reachOf, sharedGrid } from './position_drawing.js';
import { SCHEMES, schemeOf } from './position_schemes.js';

export const positions = {
  id: 'positions',
  title: 'Positions',
  help: 'Attention alone cannot tell first from last, so a pattern of numbers for each position is added to the token that stands there.',
  terms: [
    ['dimension', 'one of the d_model numbers that describe a token inside the model'],
    ['cosine similarity', 'how alike two patterns are: 1 where they are the same, less the more they differ'],
  ],
  needs: ['*.embedding.positional', ...SCHEMES.needs],
  also: SCHEMES.also,
  wording: (trace) => SCHEMES.wording(schemeOf(trace)),
  places: stacksOf,
  place: (trace, state) => stackOf(state, trace),
  arrangement: 'pair',
  panels: (trace) => SCHEMES.panels(schemeOf(trace)) ?? [
    { id: 'encoding', state: { plot: 'encoding' } },
    { id: 'similarity', state: { plot: 'similarity' } },
  ],
  figure,
};

/**
 * @param {import('../core/trace.js').Trace} trace
 * @param {import('../core/state.js').State & import('../core/figure.js').Frame & {plot: string}} state
 * @returns {import('../core/figure.js').Figure}
 */
function figure(trace, state) {
  const stack = stackOf(state, trace);
  const site = `${stack}.embedding.positional`;
  const subject = { stack, site, side: sideOf(stack, trace), tokens: tokensOf(trace, sideOf(stack, trace)) };
  if (!trace.tensors[site]) return SCHEMES.figure(trace, state, subject);
  const title = state.plot === 'similarity' ? 'Similarity of positions' : 'The encoding that was added';
  const encoding = firstRows(matrixAt(trace.tensors[site]), subject.tokens.length);
  return { title, ...(state.plot === 'similarity' ? similarity : encodingMap)(trace, state, encoding, subject) };
}

/** A model may capture every position it knows; only those of this text were added. */
function firstRows({ rows, columns, data }, count) {
  const kept = Math.min(rows, count);
  return { rows: kept, columns, data: data.subarray(0, kept * columns) };
}

function encodingMap(trace, state, encoding, subject) {
  const labels = positionLabels(subject.tokens);
  const dimensions = Array.from({ length: encoding.columns }, (_, dimension) => String(dimension));
  const reach = reachOf(encoding.data);
  return {
    summary: `Positional encoding: ${encoding.rows} positions by ${encoding.columns} dimensions, none further from 0 than ${tick(reach)}.`,
    ...dimensionMap(encoding, { labels, dimensions, axis: 'dimension', reach, quantity: 'value added' }, state),
    grid: encodingGrid(trace, state, encoding, { ...subject, labels, dimensions }),
  };
}

function similarity(trace, state, encoding, subject) {
  const cosines = cosineSimilarity(encoding);
  const labels = positionLabels(subject.tokens);
  const scale = scaleFor(cosines.data, state.palette.theme);
  const range = rangeInWords(cosines.data, scale);
  return {
    summary: `Cosine similarity between ${cosines.rows} positions, computed from the captured encoding. ${range}`,
    ...pairMap(cosines, { labels, scale, quantity: 'cosine similarity', axes: ['position', 'position'] }, state),
    grid: { ...similarityGrid(trace, state, cosines, { ...subject, labels }), note: range },
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

function encodingGrid(trace, state, encoding, subject) {
  const { tokens, labels, dimensions } = subject;
  const value = (row, column) => encoding.data[row * encoding.columns + column];
  return {
    ...sharedGrid(trace, state, subject, encoding, value),
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

function similarityGrid(trace, state, cosines, subject) {
  const { tokens, labels } = subject;
  const value = (row, column) => cosines.data[row * cosines.columns + column];
  return {
    ...sharedGrid(trace, state, subject, cosines, value),
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

