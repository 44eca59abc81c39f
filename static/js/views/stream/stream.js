/**
 * Stream: the norm of the residual stream, the writes of each part, the inputs of the layer norms,
 * and the logit lens.
 */

import { modelName } from '../../api/calls.js';
import { noticeOf } from '../../api/answers.js';
import { isFilling, sideOf, chooseStack, findStacks, tokensOf } from '../../trace/attention.js';
import { capitalised } from '../../words/lists.js';
import { amount, signed } from '../../words/numbers.js';
import { named } from '../../words/tokens.js';
import { columnOf, extent, valueIn } from '../../trace/trace.js';
import { isTurned, band, linear, tokenBand } from '../../plot/scales.js';
import { chart } from '../../plot/chart.js';
import { cell } from '../../plot/marks/mark.js';
import { line } from '../../plot/marks/line.js';
import { choosing, queryOf } from '../../state/state.js';
import { isCentred, normDepth, rowMeans, streamDepth, writtenDepth } from './depth.js';
import { lensAsks, lensFigure, lensPanels } from './lens.js';
import { choice } from '../../ui/controls.js';

/**
 * @import { Ask, Matrix, Trace } from '../../trace/trace.js'
 * @import { Card } from '../../trace/card.js'
 * @import { Figure, ViewCode, ViewState } from '../../plot/figure.js'
 * @import { Depth, StreamArrays, Step } from './depth.js'
 */

const LENS = 'lens';
const STREAM = {
  'residual stream':
    'the vector of d_model numbers of each token, to which every part of every layer adds',
};
const LENS_TERM = {
  'logit lens':
    'the last norm and the token embeddings, applied to the stream after an earlier layer',
};
const LENS_WITHOUT_NORM = {
  'logit lens': 'the token embeddings, applied to the stream after an earlier layer',
};
const MOST_SIDE_BY_SIDE = 48;

const OPTIONS = [
  { id: LENS, title: 'Logit lens', help: 'The prediction of each layer' },
  { id: 'norms', title: 'Norms', help: 'The norm of the stream' },
  { id: 'writes', title: 'Writes', help: 'The vectors that each part adds to the stream' },
  { id: 'layer_norm', title: 'Layer norms', help: 'The inputs of the layer norms' },
];

/** @type {ViewCode} */
export const stream = {
  help: 'Each row applies the model’s final unembedding to an earlier layer. The cell shows the likeliest next token, its colour the probability.',
  terms: { ...STREAM, ...LENS_TERM },
  asks: (trace, state) => partOf(state).asks(trace),
  controls: (_, state) => [choice('stream_show', 'Show', state.stream_show ?? LENS, OPTIONS)],
  places: (trace, state) => (isLens(state) ? [] : findStacks(trace)),
  place: (trace, state) => chooseStack(state, trace),

  /** The lens takes the whole width, as do the maps of a long text. */
  arrangement(trace, state) {
    if (isLens(state)) return 'led';
    return (trace.target_tokens ?? trace.tokens).length > MOST_SIDE_BY_SIDE ? '' : 'many';
  },

  /** Return the wording that depends on the part and on the model. */
  wording(trace, state) {
    if (!isLens(state)) return WORDING[state.stream_show](trace);
    const terms =
      trace.card?.norm_place === 'post' ? { ...STREAM, ...LENS_WITHOUT_NORM } : stream.terms;
    if (!isFilling(trace)) return { terms };
    return {
      terms,
      help: 'Each row applies the model’s final unembedding to an earlier layer. The cell shows the likeliest token at that position, its colour the probability.',
    };
  },
  panels: (trace, state) => partOf(state).panels(trace, state),
  figure: (trace, state) => partOf(state).figure(trace, state),
};

/** @param {ViewState} state */
function isLens({ stream_show: show = LENS }) {
  return show === LENS;
}

/** @param {ViewState} state */
function partOf(state) {
  return isLens(state)
    ? { asks: lensAsks, panels: lensPanels, figure: lensFigure }
    : { asks: depthAsks, panels: depthPanels, figure: depthFigure };
}

const NORM = { norm: 'the length of a vector: the root of the sum of its squares' };
/** @type {Record<string, (trace: Trace) => {help: string, terms: Record<string, string>}>} */
const WORDING = {
  norms: ({ card }) => ({
    help:
      card?.norm_place === 'post'
        ? 'Every part of every layer adds its vector to the stream, and the norm after it rescales the sum.'
        : 'Every part of every layer adds its vector to the stream. No norm rescales it, so it mostly grows with depth.',
    terms: { ...STREAM, ...NORM },
  }),
  writes: () => ({
    help: 'Attention and the feed-forward network (or the experts) each add a vector to the stream: its norm, and its cosine with the stream.',
    terms: {
      ...STREAM,
      cosine:
        '1 if two vectors point the same way, 0 at right angles, −1 if they point opposite ways',
    },
  }),
  layer_norm: layerNormWording,
};

/** @param {Trace} trace */
function layerNormWording({ card }) {
  const name = card?.norm === 'rms_norm' ? 'RMSNorm' : 'LayerNorm';
  const wheres = /** @type {Record<string, string>} */ ({
    post: `${name} follows every part: its input is the stream plus the part’s output.`,
    output: `${name} precedes the prediction: its input is the stream. Those of the parts are given what a part computes, which is not shown.`,
  });
  const where =
    wheres[card?.norm_place ?? ''] ??
    `${name} precedes every part and the prediction: its input is the stream.`;
  return {
    help: `${where} It rescales the token’s numbers.`,
    terms: {
      ...STREAM,
      norm:
        card?.norm === 'rms_norm'
          ? 'divides a token’s d_model numbers by their root mean square'
          : 'subtracts the mean of a token’s d_model numbers and divides by their standard deviation',
    },
  };
}

const REQUEST = { capture: [], analyses: ['residual_stream'] };

/**
 * @typedef {Object} Quantity
 * @property {string} title
 * @property {string} unit on an axis and a colour bar
 * @property {string} [help]
 * @property {(arrays: StreamArrays, stack: 'encoder'|'decoder', card?: Card) => Depth} read
 * @property {(step: Step, value: string, token: string, number: number) => string} say
 * @property {boolean} [isSigned]
 * @property {number} [reach] the end of the colour scale on both sides; absent: the greatest value
 */

/** @param {string} name */
const isMany = (name) => /^the experts/.test(name);

/** @type {Record<string, Quantity>} */
const QUANTITIES = {
  residual_norm: {
    title: 'Norm of the stream',
    unit: 'norm of the stream',
    help: 'The norm of a token’s residual vector, after the embedding and after each part of each layer.',
    read: streamDepth,
    say: ({ name }, value, token) =>
      `${capitalised(name)} the stream has norm ${value} at ${token}`,
  },
  written_norm: {
    title: 'Norm of the vector that each part adds',
    unit: 'norm of the added vector',
    help: 'The norm of the vector that each part adds to the stream.',
    read: (arrays, stack, card) => writtenDepth(arrays, stack, card, 'written_norm'),
    say: ({ name }, value, token) =>
      `At ${token}, ${name} add${isMany(name) ? '' : 's'} a vector of norm ${value}`,
  },
  cosine: {
    title: 'Along or against the stream',
    unit: 'cosine with the stream',
    help: 'The cosine between the vector that a part adds and the stream it is added to: above 0 it lengthens the stream, below 0 it cancels part of it.',
    read: (arrays, stack, card) => writtenDepth(arrays, stack, card, 'cosine'),
    say: ({ name }, value, token, number) =>
      `At ${token}, ${name} write${isMany(name) ? '' : 's'} ${number < 0 ? 'against' : 'along'} the stream: cosine ${value}`,
    isSigned: true,
    reach: 1,
  },
  mean: {
    title: 'Mean of the input of each norm',
    unit: 'mean over d_model',
    help: 'LayerNorm subtracts this mean from each of the token’s d_model numbers.',
    read: (arrays, stack, card) => normDepth(arrays, stack, card, 'mean'),
    say: ({ name }, value, token) => `The input of ${name} has mean ${value} at ${token}`,
    isSigned: true,
  },
  deviation: {
    title: 'Standard deviation of the input of each norm',
    unit: 'standard deviation over d_model',
    help: 'LayerNorm divides by this standard deviation, so the inputs of all parts have the same scale, however long the stream has become.',
    read: (arrays, stack, card) => normDepth(arrays, stack, card, 'deviation'),
    say: ({ name }, value, token) =>
      `The input of ${name} has standard deviation ${value} at ${token}`,
  },
  root_mean_square: {
    title: 'Root mean square of the input of each norm',
    unit: 'root mean square over d_model',
    help: 'RMSNorm divides by it and keeps the mean.',
    read: (arrays, stack, card) => normDepth(arrays, stack, card, 'root_mean_square'),
    say: ({ name }, value, token) =>
      `The input of ${name} has root mean square ${value} at ${token}`,
  },
};

/** The quantities of each heading. */
/** @type {Record<string, (arrays: StreamArrays) => string[]>} */
const SEEN = {
  norms: () => ['residual_norm'],
  writes: () => ['written_norm', 'cosine'],
  layer_norm: (arrays) => (isCentred(arrays) ? ['mean', 'deviation'] : ['root_mean_square']),
};

/**
 * Return the request of the maps and lines; none for a model whose stream is not available.
 * @param {Trace} trace
 * @returns {Record<string, Ask>}
 */
function depthAsks({ card }) {
  return hasStream(card) ? { stream: REQUEST } : {};
}

/** @param {Card|undefined} card */
function hasStream(card) {
  return card?.analyses?.includes('residual_stream') ?? true;
}

/** The maps come first, then the lines. @param {Trace} _ @param {ViewState} state */
function depthPanels(_, state) {
  const arrays = streamIn(state);
  if (!arrays) return [{ id: 'waiting', state: {} }];
  const seen = SEEN[state.stream_show](arrays);
  return [
    ...seen.map((quantity) => ({ id: quantity, state: { quantity, drawn: 'map' } })),
    ...seen.map((quantity) => ({ id: `${quantity}-line`, state: { quantity, drawn: 'line' } })),
  ];
}

/**
 * @param {Trace} trace
 * @param {ViewState} state with the panel’s `quantity`, `drawn`
 * @returns {Figure}
 */
function depthFigure(trace, state) {
  const title = 'Residual stream';
  if (!hasStream(trace.card))
    return {
      title,
      notice: `The residual stream of ${modelName(trace.card, trace.model)} is not available.`,
    };
  const arrays = streamIn(state);
  if (!arrays) return { title, notice: noticeOf(state.answers?.stream) };
  const subject = subjectOf(trace, state, arrays);
  return state.drawn === 'line' ? lineFigure(state, subject) : mapFigure(trace, state, subject);
}

/** @param {ViewState} state @returns {StreamArrays|null} */
function streamIn({ answers }) {
  return answers?.stream?.trace?.analyses.residual_stream ?? null;
}

/** @param {Trace} trace @param {ViewState} state @param {StreamArrays} arrays */
function subjectOf(trace, state, arrays) {
  const quantity = QUANTITIES[state.quantity];
  const stack = chooseStack(state, trace);
  const side = sideOf(stack, trace);
  const tokens = tokensOf(trace, side);
  const depth = quantity.read(arrays, stack, trace.card);
  return {
    quantity,
    side,
    tokens,
    depth,
    scale: scaleFor(quantity, depth.matrix),
    query: queryOf(state, trace, side),
  };
}

/**
 * Return a scale from 0 to the maximum, or symmetric about 0.
 * @param {Pick<Quantity, 'isSigned'|'reach'>} quantity
 * @param {Pick<Matrix, 'data'>} matrix
 */
function scaleFor({ isSigned = false, reach }, { data }) {
  const most = reach ?? (extent({ data }) || 1);
  const digits = most >= 100 ? 0 : most >= 10 ? 1 : 2;
  const short = reach === 1 ? shortCosine : (/** @type {number} */ value) => signed(value, digits);
  return { least: isSigned ? -most : 0, most, isSigned, short };
}

/** `.42`, `−.05` @param {number} value */
function shortCosine(value) {
  return signed(value, 2).replace(/0\./, '.');
}

/** @param {ReturnType<typeof subjectOf>} subject @param {number} value */
function written({ quantity: { reach } }, value) {
  return reach === 1 ? signed(value) : amount(value, 4);
}

/** @param {Trace} trace @param {ViewState} state @param {ReturnType<typeof subjectOf>} subject */
function mapFigure(trace, state, subject) {
  const { quantity, side, tokens, depth, scale, query } = subject;
  const { steps, matrix } = depth;
  /** @param {{row: number, column: number, value: number}} cell */
  const say = ({ row, column, value }) =>
    quantity.say(steps[row], written(subject, value), named(tokens, column), value);
  const last = steps.length - 1;
  return {
    title: quantity.title,
    summary: `${quantity.title}: ${matrix.rows} steps through the depth by ${matrix.columns} positions.`,
    help: quantity.help,
    ...chart(
      {
        x: tokenBand(
          tokens,
          { side, query, choose: (token) => choosing(trace, side, token) },
          { side: 'top', isSlanted: true },
        ),
        y: stepBand(steps, { side: 'top', isSlanted: true }),
        isSwapped: isTurned(state),
        marks: [
          cell(matrix, {
            ramp: {
              title: quantity.unit,
              domain: [scale.least, scale.most],
              isDiverging: scale.isSigned,
              write: amount,
            },
            text: ({ value }) => scale.short(value),
            format: (value) => written(subject, value),
            name: ({ row, column }) => `${steps[row].title}, ${named(tokens, column)}`,
            say,
          }),
        ],
        table: {
          rows: { title: STEP },
          columns: { title: 'token' },
          quantity: quantity.unit,
          request: REQUEST,
        },
        sentence: {
          rest: { readout: say({ row: last, column: query, value: valueIn(matrix)(last, query) }) },
        },
      },
      state,
    ),
  };
}

/** @param {ViewState} state @param {ReturnType<typeof subjectOf>} subject */
function lineFigure({ palette, ...state }, subject) {
  const { quantity, side, tokens, depth, query, scale } = subject;
  const { steps, matrix } = depth;
  const here = named(tokens, query);
  const lines = [
    { name: `at ${here}`, values: columnOf(matrix, query), stroke: palette.query, dots: 6 },
    {
      name: `mean over ${tokens.length} tokens`,
      values: rowMeans(matrix),
      stroke: palette.muted,
      dash: /** @type {const} */ ('dot'),
      dots: 4,
    },
  ];
  return {
    title: `${quantity.title} at ${here}`,
    summary: `${quantity.title} through the depth, ${steps.length} steps, at ${here} and in the mean over all tokens.`,
    ...chart(
      {
        x: stepBand(steps, { isSlanted: true }),
        y: linear(quantity.unit, { domain: [scale.least, scale.most], pad: 0.05, hasZero: true }),
        marks: [
          line(lines, {
            names: 'above',
            format: (value) => written(subject, value),
            name: ({ row, column }) => `${steps[column].title}, ${row === 0 ? here : 'mean'}`,
            say: ({ row, column, value }) =>
              quantity.say(
                steps[column],
                written(subject, value),
                row === 0 ? here : 'the mean over all tokens',
                value,
              ),
            tokens: () => ({ query }),
          }),
        ],
        size: { height: 240 },
        table: {
          rows: { title: 'line' },
          columns: { title: STEP },
          quantity: `${quantity.unit} through the depth`,
          request: REQUEST,
        },
        sentence: { sides: { rows: side, columns: side }, rest: { readout: '' } },
      },
      { ...state, palette },
    ),
  };
}

const STEP = 'step through the depth';

/** @param {Step[]} steps @param {Parameters<typeof band>[1]} options */
function stepBand(steps, options) {
  return band(
    steps.map(({ title }) => title),
    { letters: 19, ...options },
  );
}
