/**
 * Why this cell: the derivation of one attention weight from the tensors of the pass, its effect, and
 * query × key in every dimension for all keys of the query.
 */

import { noticeOf } from '../../api/request_cache.js';
import { ATTENTIONS, headInWords, placeOf, tokensOf, weightsAt } from '../../data/attention.js';
import { decimal, share, signed, small, named, quoted, tokenLabels } from '../../data/format.js';
import { highestIn, matrixAt, range, rowOf } from '../../data/trace.js';
import { diverging } from '../../plot/colour.js';
import { squaresFigure } from '../../plot/map.js';
import { choosing, createMemo, queryOf } from '../../state/state.js';
import { entryOf } from '../entry.js';
import { derive, differences, productFormula, sitesOf, termsOf } from './derivation.js';
import { ROUNDING, stepFigure, STEPS } from './steps.js';
import { choice, headControls, tokenOptions } from '../../ui/controls.js';

/**
 * @import { Place } from '../../data/attention.js'
 * @import { Ask, Trace } from '../../data/trace.js'
 * @import { Figure, Frame, Palette, View, ViewState } from '../../plot/figure.js'
 * @import { Grid } from '../../plot/grid.js'
 * @import { Control } from '../../ui/controls.js'
 * @import { Subject } from './steps.js'
 */

const { why_temperature: TEMPERATURE } = entryOf('why').fields;

/** @type {View} */
export const why = {
  ...entryOf('why'),
  help: 'One attention weight derived step by step from its query and key, and its effect on the output.',
  terms: [
    ['query', 'the vector with which a token searches'],
    ['key', 'the vector by which a token is found'],
    ['value', 'the vector that a token passes on when it is found'],
    ['entropy', 'how evenly a row spreads its weight: 2ⁿ equal weights have n bits'],
    ['softmax', 'turns scores into weights between 0 and 1 that sum to 1: exp(s) / Σ exp(s)'],
    ['residual stream', 'the d_model numbers of a token, to which every layer adds its output'],
  ],
  arrangement: 'steps',
  ...ATTENTIONS,
  asks,
  wording,
  controls,
  panels,
  figure,
};

/**
 * The chosen cell; null if the trace holds no attention there.
 * @param {Trace} trace
 * @param {ViewState} state
 */
function cellOf(trace, state) {
  const place = placeOf(state, trace);
  const found = weightsAt(place, trace).find(({ layer }) => layer === state.layer);
  if (!place || !found) return null;
  const path = found.site.replace(/\.weights$/, '');
  const query = queryOf(state, trace, place.rows);
  const weights = rowOf(matrixAt(trace.tensors[found.site], state.head), query);
  const keys = tokensOf(trace, place.columns);
  const strongest = highestIn(weights);
  return {
    place,
    path,
    query,
    key: state.key !== null && state.key < keys.length ? state.key : strongest,
    keys,
    queries: tokensOf(trace, place.rows),
  };
}

/**
 * The requests: one head of one layer, and the same of the edited pass if a switch is set.
 * @param {Trace} trace
 * @param {ViewState} state
 */
function asks(trace, state) {
  const cell = cellOf(trace, state);
  if (!cell) return {};
  const ask = requestOf(trace, state, cell);
  const edits = editsOf(state, cell.place);
  return { plain: ask, ...(edits.length > 0 && { changed: { ...ask, edits } }) };
}

/**
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {NonNullable<ReturnType<typeof cellOf>>} cell
 * @returns {Ask}
 */
function requestOf({ card }, { layer, head }, { path }) {
  return {
    capture: sitesOf(path, card),
    layers: [layer],
    heads: [head],
    analyses: ['head_outputs'],
  };
}

/**
 * The edits of the switches, limited to this attention of this layer.
 * @param {ViewState} state
 * @param {Place} place
 */
function editsOf({ layer, why_unscaled: isUnscaled, why_temperature: value }, { id: where }) {
  return [
    ...(isUnscaled ? [{ kind: 'no_scaling', layer, where }] : []),
    ...(value !== 1 ? [{ kind: 'temperature', value, layer, where }] : []),
  ];
}

/** All steps share one derivation, so it is memoized. */
const memo = createMemo();

/** @param {Trace} trace @param {ViewState} state @returns {Subject|null} null: still on its way */
function subjectOf(trace, state) {
  const { plain, changed } = state.answers ?? {};
  const { where, layer, head, query, source, key } = state;
  const edits = [state.why_unscaled, state.why_temperature];
  const of = [trace, plain, changed, where, layer, head, query, source, key, ...edits];
  return memo(of, () => workedOut(trace, state));
}

/**
 * The subject of all steps. Until the edited pass arrives, its row is derived from the queries and
 * keys of the plain pass, which the edit does not change.
 * @param {Trace} trace
 * @param {ViewState} state
 * @returns {Subject|null}
 */
function workedOut(trace, state) {
  const cell = cellOf(trace, state);
  const plain = state.answers?.plain?.trace;
  if (!cell || !plain) return null;
  const { place, path } = cell;
  const isChanged = editsOf(state, place).length > 0;
  const pass = isChanged ? (state.answers.changed?.trace ?? null) : plain;
  const terms = termsOf(trace.card, path, state.head);
  const softmax = { isScaled: !state.why_unscaled, temperature: state.why_temperature, terms };
  return {
    ...cell,
    plain,
    pass,
    isChanged,
    name: headInWords(trace, place, state.layer, state.head),
    head: state.head,
    now: derive(pass ?? plain, path, cell, softmax),
    before: derive(plain, path, cell, { terms }),
    request: {
      ...requestOf(trace, state, cell),
      ...(isChanged && { edits: editsOf(state, place) }),
    },
  };
}

/**
 * The difference between the derivation and the model's numbers.
 * @param {Trace} trace
 * @param {ViewState} state
 */
function wording(trace, state) {
  const subject = subjectOf(trace, state);
  return subject ? { help: `${why.help} ${checked(subject)}` } : {};
}

/** @param {Subject} subject */
function checked({ now, pass, path }) {
  if (!pass) return 'Waiting for the pass with this change.';
  const { score, weight } = differences(now, pass, path);
  const verdict = `the score is ${small(score)} and the weight ${small(weight)} from the model’s`;
  const far =
    Math.max(score, weight) > ROUNDING
      ? ', more than the usual rounding of 10⁻⁵; the steps explain why'
      : '';
  return `Recomputed in this browser in double precision from the tensors of the pass: ${verdict}${far}.`;
}

/** @param {Trace} trace @param {ViewState} state @returns {Control[]} */
function controls(trace, state) {
  const cell = cellOf(trace, state);
  if (!cell) return [];
  const { place, path, query, key, queries, keys } = cell;
  const [name] = Object.keys(choosing(trace, place.rows, query));
  const isAsTrained = editsOf(state, place).length === 0;
  return [
    ...headControls(weightsAt(place, trace), trace, state),
    choice(name, 'Query', query, tokenOptions(queries)),
    choice('key', 'Key', state.key === null ? null : key, [
      { id: null, title: 'the strongest' },
      ...tokenOptions(keys),
    ]),
    ...(termsOf(trace.card, path, state.head).scale === 1 ? [] : [unscaledFlag(state)]),
    {
      kind: 'number',
      name: 'why_temperature',
      label: 'Softmax temperature',
      value: state.why_temperature,
      least: TEMPERATURE.least,
      most: TEMPERATURE.most,
      step: 0.1,
      shown: signed(state.why_temperature, 1),
    },
    {
      kind: 'button',
      label: 'As trained',
      patch: { why_unscaled: false, why_temperature: 1 },
      disabled: isAsTrained,
    },
  ];
}

/** @param {ViewState} state @returns {Control} */
function unscaledFlag(state) {
  return {
    kind: 'flag',
    name: 'why_unscaled',
    label: 'Leave out 1/√d',
    value: state.why_unscaled,
    help: 'A second pass in which this attention omits the division by √d',
  };
}

/** The notice of a missing answer. @param {ViewState} state */
function refusal({ answers }) {
  return [answers?.plain, answers?.changed].find((answer) => answer?.problem);
}

/** @param {Trace} trace @param {ViewState} state */
function panels(trace, state) {
  if (!cellOf(trace, state) || refusal(state))
    return [{ id: 'product', state: { step: 'product', nth: 1 } }];
  const isTurned = state.answers?.plain?.trace
    ? subjectOf(trace, state)?.now.isTurned
    : trace.card?.positional === 'rotary';
  const steps = Object.keys(STEPS).filter((step) => step !== 'turn' || isTurned);
  return [
    ...steps.map((step, index) => ({ id: step, state: { step, nth: index + 1 } })),
    { id: 'keys', state: { step: 'keys', nth: steps.length + 1 } },
  ];
}

/**
 * @param {Trace} trace
 * @param {ViewState} state with the panel’s `step`, `nth`
 * @returns {Figure}
 */
function figure(trace, state) {
  if (!cellOf(trace, state))
    return { title: 'Why this cell', notice: 'This trace holds no attention weights.' };
  const subject = subjectOf(trace, state);
  if (!subject || refusal(state))
    return {
      title: state.step === 'keys' ? 'All keys' : `Step ${state.nth}`,
      notice: noticeOf(refusal(state) ?? state.answers?.plain),
      isWaiting: !refusal(state),
    };
  if (state.step === 'keys') return allKeysFigure(subject, state);
  const drawn = stepFigure(STEPS[state.step](subject), subject, state);
  return { ...drawn, title: `${state.nth}. ${drawn.title}` };
}

const TITLE = 'All keys of this query';
/** Pixels for the sum and the weight beside each row. */
const BESIDE = 92;
const LEAST_PITCH = 11;
const MOST_CELL = 26;

/** @param {Subject} subject @param {Frame} state @returns {Figure} */
function allKeysFigure(subject, state) {
  const { now, keys, queries } = subject;
  const { rows, columns } = now.metKeys;
  const query = quoted(queries[now.query]);
  const data = now.metKeys.data.map((value, at) => value * now.met.query[at % columns]);
  const most = data.reduce((largest, value) => Math.max(largest, Math.abs(value)), 0) || 1;
  const room = Math.min(state.width - BESIDE, 120 + columns * MOST_CELL);
  const drawing = squaresFigure(
    {
      matrix: { rows, columns, data },
      rows: tokenLabels(keys),
      columns: range(columns).map(String),
      titles: { rows: 'key', columns: 'dimension of the head' },
      quantity: 'query × key',
      scale: { bottom: -most, top: most, colours: diverging(state.palette.theme) },
      numbers: (value) => decimal(value, 1),
    },
    { ...state, width: room, height: Math.max(state.height, rows * (LEAST_PITCH + 1)) },
  );
  /** @type {any[]} */
  const [map, ...numbers] = drawing.data;
  const isBarBelow = map.colorbar.orientation === 'h';
  const [best] = now.row.weights.reduce(
    ([at, weight], one, key) => (one > weight ? [key, one] : [at, weight]),
    [0, -1],
  );
  return {
    title: TITLE,
    help: `The query of ${query} times each key, dimension by dimension. A row sums to query · key, the number beside it; behind the arrow is the weight.`,
    formula: productFormula(now),
    facts: [
      ['keys', String(rows)],
      ['dimensions', String(columns)],
      ['highest weight', `${share(now.row.weights[best])} for ${quoted(keys[best])}`],
    ],
    summary: `Query × key of ${query}: ${rows} keys by ${columns} dimensions.`,
    data: [
      isBarBelow ? map : { ...map, colorbar: { ...map.colorbar, xpad: BESIDE } },
      ...numbers,
      sumsTrace(subject, state.palette),
    ],
    layout: widened(drawing.layout, isBarBelow),
    grid: gridOf(subject, data),
  };
}

/**
 * The sum of each row and its weight.
 * @param {Subject} subject
 * @param {Palette} palette
 */
function sumsTrace({ now }, palette) {
  const { products, weights, scores } = now.row;
  return {
    type: 'scatter',
    mode: 'text',
    // At the edge: Plotly leaves out what is beyond the axis.
    x: Array.from(products, () => now.metKeys.columns - 0.5),
    y: Array.from(products, (_, key) => key),
    text: Array.from(products, (product, key) =>
      scores[key] === -Infinity
        ? '\u00a0masked'
        : `\u00a0${signed(product, 1)} → ${share(weights[key], 2)}`,
    ),
    textposition: 'middle right',
    textfont: {
      size: 11,
      color: Array.from(products, (_, key) => (key === now.key ? palette.key : palette.ink)),
    },
    cliponaxis: false,
    hoverinfo: 'none',
  };
}

/**
 * The layout with room for the sums between the map and its colour bar.
 * @param {import('../../plot/figure.js').Layout} layout
 * @param {boolean} isBarBelow
 */
function widened(layout, isBarBelow) {
  const { margin, annotations, width } = layout;
  const [title, ...others] = annotations;
  return {
    ...layout,
    width: width + BESIDE,
    margin: { ...margin, r: margin.r + BESIDE },
    annotations: [isBarBelow ? title : { ...title, xshift: title.xshift + BESIDE }, ...others],
  };
}

/** @param {Subject} subject @param {Float64Array} data @returns {Grid} */
function gridOf({ now, keys, queries, place, name, request }, data) {
  const { rows, columns } = now.metKeys;
  /** @param {number} key @param {number} dimension */
  const value = (key, dimension) => data[key * columns + dimension];
  /** @param {number} key @param {number} dimension */
  const product = (key, dimension) =>
    `${signed(now.met.query[dimension], 2)} × ${signed(now.metKeys.data[key * columns + dimension], 2)} = ${signed(value(key, dimension), 3)}`;
  /** @param {number} key */
  const sum = (key) =>
    now.row.scores[key] === -Infinity
      ? 'masked'
      : `sum ${signed(now.row.products[key], 2)}, weight ${share(now.row.weights[key])}`;
  return {
    rows,
    columns,
    sides: { rows: place.columns, columns: place.columns },
    rowTitle: 'key',
    columnTitle: 'dimension',
    rowLabels: tokenLabels(keys),
    columnLabels: range(columns).map((dimension) => `dimension ${dimension}`),
    quantity: `query × key by dimension, query ${quoted(queries[now.query])}, ${name}`,
    request,
    made: { said: 'Each row of the keys is multiplied by the row of the query.' },
    value,
    format: (number) => decimal(number, 4),
    describe: (key, dimension) =>
      `${named(keys, key)}, dimension ${dimension}: ${product(key, dimension)}; ${sum(key)}`,
    tip: (key, dimension) => [
      `${named(keys, key)}, dimension ${dimension}`,
      product(key, dimension),
    ],
    tokens: (key) => ({ query: now.query, key }),
    query: null,
    rowOf: () => -1,
    choose: (key) => ({ key }),
    chooseHint: 'Enter derives the key under the cursor',
    note: 'Choose a row to derive that key.',
    chosen: { row: now.key },
    isSigned: true,
    start: { row: now.key, column: 0 },
    rest: { readout: `${named(keys, now.key)}: ${sum(now.key)}` },
  };
}
