/**
 * Positions: the encoding that was added to the embeddings, and how alike two positions are in it.
 * Of schemes that add nothing: what they do instead, inside attention.
 */

import { signed, tick } from '../../data/number.js';
import { sideOf, stackOf, stacksOf, tokensOf } from '../../data/attention.js';
import { positionLabels, quoted } from '../../data/text.js';
import { matrixAt } from '../../data/trace.js';
import { diverging, sequential } from '../../plot/colour.js';
import { letteringFor } from '../../plot/figure.js';
import {
  DIMENSION_SPACE,
  dimensionMap,
  pairMap,
  reachOf,
  sharedGrid,
  similarityOf,
} from './maps.js';
import { ROTATION } from './rotation.js';
import { schemeOf, SCHEMES } from './schemes.js';
import { headControl, SIDES } from './side_by_side.js';
import { TWINS } from './twins.js';
import { WAVES } from './waves.js';
import { entryOf } from '../registry.js';

/** What can be shown; the parts of the view, each with its own switches, panels and figures. */
const PARTS = {
  encoding: {
    controls: () => [],
    panels: ({ scheme }) => SCHEMES.panels(scheme) ?? ['encoding', 'similarity'],
    figure: maps,
  },
  waves: WAVES,
  rotation: ROTATION,
  schemes: SIDES,
  twins: TWINS,
};

const OPTIONS = [
  { id: 'encoding', title: 'Maps', help: 'all positions by all dimensions' },
  { id: 'waves', title: 'Lines', help: 'single dimensions as waves, and similarity by distance' },
  { id: 'rotation', title: 'Rotation', help: 'what carries one position to another' },
  { id: 'schemes', title: 'Schemes', help: 'four ways to encode as many positions' },
  {
    id: 'twins',
    title: 'Twins',
    help: 'models that differ in their positions alone, on this text',
  },
];

/** @type {import('../../plot/figure.js').View} */
export const positions = {
  ...entryOf('positions'),
  help: 'Attention alone cannot tell first from last, so a pattern of numbers for each position is added to the token that stands there.',
  terms: [
    ['dimension', 'one of the d_model numbers that describe a token inside the model'],
    [
      'cosine similarity',
      'how alike two patterns are: 1 where they are the same, less the more they differ',
    ],
  ],
  wording: (trace, state) => wordingOf(trace, partOf(state)),
  places: stacksOf,
  place: (trace, state) => stackOf(state, trace),
  arrangement: (_, state) =>
    partOf(state) === 'schemes' || partOf(state) === 'twins' ? 'many' : 'pair',
  asks: (trace, state) => PARTS[partOf(state)].asks?.(trace, state, subjectOf(trace, state)) ?? {},
  controls,
  panels,
  figure,
};

/** @param {Record<string, any>} state */
function partOf({ positions_show: show }) {
  return PARTS[show] ? show : 'encoding';
}

const ROTATING = [
  [
    'rotation',
    'turning a pair of numbers like the hand of a clock, which changes its direction and never its length',
  ],
  [
    'R(k)',
    'the rotation that belongs to k steps; each pair of dimensions turns at a speed of its own',
  ],
];
const WORDING = {
  waves: {
    terms: [
      ['dimension', 'one of the d_model numbers that describe a token inside the model'],
      ['distance', 'how many positions two tokens are apart'],
    ],
  },
  rotation: { terms: ROTATING },
  schemes: {
    help: 'Four ways to tell a model where a token stands, for as many positions as this text has.',
    terms: [['slope', 'how much each step away lowers a score; ALiBi gives every head its own']],
  },
  twins: {
    help: 'Small models that were trained alike and differ only in how they encode positions, on this text: how much attention each head gives to the token so many places back.',
    terms: [['mean weight', 'of all tokens that have one so many places back']],
  },
};

/** Of a scheme that adds nothing the words for its maps hold for its lines and turns too. */
function wordingOf(trace, part) {
  const scheme = schemeOf(trace);
  return {
    ...SCHEMES.wording(scheme),
    ...(part === 'waves' && scheme !== '' ? {} : WORDING[part]),
  };
}

/** What is looked at: a stack, its side of the text, and the encoding that was added to it, if any. */
function subjectOf(trace, state) {
  const stack = stackOf(state, trace);
  const site = `${stack}.embedding.positional`;
  const side = sideOf(stack, trace);
  const tokens = tokensOf(trace, side);
  const encoding = trace.tensors[site] ? encodingOf(trace.tensors[site], tokens.length) : null;
  return {
    stack,
    site,
    side,
    tokens,
    encoding,
    scheme: schemeOf(trace),
    heads: trace.card?.n_heads ?? 1,
  };
}

/** @returns {import('../../ui/controls.js').Control[]} */
function controls(trace, state) {
  const part = partOf(state);
  const subject = subjectOf(trace, state);
  const show = {
    kind: 'choice',
    name: 'positions_show',
    label: 'Show',
    options: OPTIONS,
    value: part,
  };
  const hasHeads =
    part !== 'twins' &&
    part !== 'schemes' &&
    ['rotary', 'alibi'].includes(subject.scheme) &&
    !(part === 'rotation' && subject.scheme === 'alibi');
  return [
    show,
    ...(hasHeads ? [headControl(state, subject.heads)] : []),
    ...PARTS[part].controls(trace, state, subject),
  ];
}

function panels(trace, state) {
  return PARTS[partOf(state)]
    .panels(subjectOf(trace, state), state, trace)
    .map((plot) => ({ id: plot, state: { plot } }));
}

/**
 * @param {import('../../data/trace.js').Trace} trace
 * @param {import('../../plot/figure.js').ViewState} state with the panel’s `plot`
 * @returns {import('../../plot/figure.js').Figure}
 */
function figure(trace, state) {
  return PARTS[partOf(state)].figure(trace, state, subjectOf(trace, state));
}

function maps(trace, state, subject) {
  if (!subject.encoding) return SCHEMES.figure(trace, state, subject);
  const title =
    state.plot === 'similarity' ? 'Similarity of positions' : 'The encoding that was added';
  return {
    title,
    ...(state.plot === 'similarity' ? similarity : encodingMap)(
      trace,
      state,
      subject.encoding,
      subject,
    ),
  };
}

const encodings = new WeakMap();

/** Read once from each tensor, so that what is worked out of it can be remembered by it. */
function encodingOf(tensor, count) {
  if (encodings.get(tensor)?.rows !== count)
    encodings.set(tensor, firstRows(matrixAt(tensor), count));
  return encodings.get(tensor);
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
    ...dimensionMap(
      encoding,
      { labels, dimensions, axis: 'dimension', reach, quantity: 'value added' },
      state,
    ),
    grid: encodingGrid(trace, state, encoding, { ...subject, labels, dimensions }),
  };
}

function similarity(trace, state, encoding, subject) {
  const cosines = similarityOf(encoding);
  const labels = positionLabels(subject.tokens);
  const scale = scaleFor(cosines.data, state.palette.theme);
  const range = rangeInWords(cosines.data, scale);
  return {
    summary: `Cosine similarity between ${cosines.rows} positions, computed from the captured encoding. ${range}`,
    ...pairMap(
      cosines,
      { labels, scale, quantity: 'cosine similarity', axes: ['position', 'position'] },
      state,
    ),
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

/** @returns {import('../../plot/grid.js').Grid} */
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
    thinned: {
      rows: letteringFor(state.width),
      columns: { ...letteringFor(state.width), space: DIMENSION_SPACE },
    },
  };
}

/** @returns {import('../../plot/grid.js').Grid} */
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
