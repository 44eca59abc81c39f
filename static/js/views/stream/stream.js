/**
 * Stream: the logit lens, and the norms of the residual stream and of what each part adds to it.
 */

import { modelName } from '../../api/calls.js';
import { noticeOf } from '../../api/answers.js';
import { isFilling, sideOf, chooseStack, findStacks, tokensOf } from '../../trace/attention.js';
import { capitalised } from '../../words/lists.js';
import { amount } from '../../words/numbers.js';
import { named } from '../../words/tokens.js';
import { extent, valueIn } from '../../trace/trace.js';
import { isTurned, band, tokenBand } from '../../plot/scales.js';
import { chart } from '../../plot/chart.js';
import { cell } from '../../plot/marks/mark.js';
import { choosing, queryOf } from '../../state/state.js';
import { streamDepth, writtenDepth } from './depth.js';
import { lensAsks, lensFigure, lensPanels } from './lens.js';
import { choice } from '../../ui/controls.js';

/** @import { Depth, StreamArrays, Step } from './depth.js' */

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
  { id: 'norms', title: 'Norms', help: 'The norms of the stream and of what each part adds' },
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
    if (!isLens(state)) return normsWording(trace);
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

/** @param {Trace} trace @returns {Record<string, Ask>} */
const depthAsks = ({ card }) => (hasStream(card) ? { stream: REQUEST } : {});

const NORM = { norm: 'the length of a vector: the root of the sum of its squares' };

/** @param {Trace} trace */
function normsWording({ card }) {
  return {
    help:
      card?.norm_place === 'post'
        ? 'Every part of every layer adds its vector to the stream, and the norm after it rescales the sum.'
        : 'Every part of every layer adds its vector to the stream. No norm rescales it, so it mostly grows with depth.',
    terms: { ...STREAM, ...NORM },
  };
}

const REQUEST = { capture: [], analyses: ['residual_stream'] };

/**
 * @typedef {Object} Quantity
 * @property {string} title
 * @property {string} unit on an axis and a colour bar
 * @property {string} [help]
 * @property {(arrays: StreamArrays, stack: 'encoder'|'decoder', card?: Card) => Depth} read
 * @property {(step: Step, value: string, token: string) => string} say
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
    say: ({ name }, value, where) => `${capitalised(name)} the stream has norm ${value} ${where}`,
  },
  written_norm: {
    title: 'Norm of the vector that each part adds',
    unit: 'norm of the added vector',
    help: 'The norm of the vector that each part adds to the stream.',
    read: writtenDepth,
    say: ({ name }, value, where) =>
      `${capitalised(where)}, ${name} add${isMany(name) ? '' : 's'} a vector of norm ${value}`,
  },
};

/** @param {Card|undefined} card */
function hasStream(card) {
  return card?.analyses?.includes('residual_stream') ?? true;
}

/** @param {Trace} _ @param {ViewState} state */
function depthPanels(_, state) {
  if (!streamIn(state)) return [{ id: 'waiting', state: {} }];
  return Object.keys(QUANTITIES).map((quantity) => ({ id: quantity, state: { quantity } }));
}

/** @param {Trace} trace @param {ViewState} state with the panel’s `quantity` @returns {Figure} */
function depthFigure(trace, state) {
  const title = 'Residual stream';
  if (!hasStream(trace.card))
    return {
      title,
      notice: `The residual stream of ${modelName(trace.card, trace.model)} is not available.`,
    };
  const arrays = streamIn(state);
  if (!arrays) return { title, notice: noticeOf(state.answers?.stream) };
  return mapFigure(trace, state, subjectOf(trace, state, arrays));
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
    most: extent(depth.matrix) || 1,
    query: queryOf(state, trace, side),
  };
}

/** @param {number} value */
function written(value) {
  return amount(value, 4);
}

/** @param {Trace} trace @param {ViewState} state @param {ReturnType<typeof subjectOf>} subject */
function mapFigure(trace, state, subject) {
  const { quantity, side, tokens, depth, most, query } = subject;
  const digits = most >= 100 ? 0 : most >= 10 ? 1 : 2;
  const { steps, matrix } = depth;
  /** @param {{row: number, column: number, value: number}} cell */
  const say = ({ row, column, value }) =>
    quantity.say(steps[row], written(value), `at ${named(tokens, column)}`);
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
            ramp: { title: quantity.unit, domain: [0, most], write: amount },
            text: ({ value }) => value.toFixed(digits),
            format: written,
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

const STEP = 'step through the depth';

/** @param {Step[]} steps @param {Parameters<typeof band>[1]} options */
function stepBand(steps, options) {
  return band(
    steps.map(({ title }) => title),
    { letters: 19, ...options },
  );
}
