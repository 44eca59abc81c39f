/**
 * Positions: the positional encoding that was added to the embeddings, and the similarity of
 * positions. For schemes that add none: their effect inside attention.
 */

import { noticeOf } from '../../api/answers.js';
import { signed, tick } from '../../words/numbers.js';
import { quoted } from '../../words/tokens.js';
import { sideOf, chooseStack, findStacks, tokensOf } from '../../trace/attention.js';
import { matrixAt, rowOf } from '../../trace/trace.js';
import { createMemo } from '../../state/state.js';
import { choice } from '../../ui/controls.js';
import { readScheme, WITHOUT_ENCODING } from './inside_attention.js';
import {
  pairMap,
  positionBand,
  positionMap,
  findReach,
  restOf,
  computeSimilarity,
} from './maps.js';
import { ROTATION } from './rotation.js';
import { headControl, SCHEMES } from './schemes.js';

/** @import { Part, Subject } from './maps.js' */

/** The parts of the view, each with its own switches, panels and figures. @type {Record<string, Part>} */
const PARTS = {
  encoding: {
    controls: () => [],
    panels: ({ scheme }) => WITHOUT_ENCODING.panels(scheme) ?? ['encoding', 'similarity'],
    figure: maps,
  },
  rotation: ROTATION,
  schemes: SCHEMES,
};

const OPTIONS = [
  { id: 'encoding', title: 'Maps', help: 'all positions by all dimensions' },
  { id: 'rotation', title: 'Rotation', help: 'the rotation from one position to another' },
  { id: 'schemes', title: 'Schemes', help: 'four positional encodings side by side' },
];

/** @type {ViewCode} */
export const positions = {
  help: 'Attention alone does not know the order of tokens, so a vector for each position is added to the embedding of its token.',
  terms: {
    dimension:
      'one of the d_model numbers that describe a token inside the model; d_model is their count',
    'cosine similarity':
      'how similar two vectors are: 1 if they point the same way, less the more they differ',
  },
  wording: (trace, state) => wordingOf(trace, partOf(state)),
  places: findStacks,
  place: (trace, state) => chooseStack(state, trace),
  arrangement: (_, state) => (partOf(state) === 'schemes' ? 'many' : 'pair'),
  asks: (trace, state) => ({
    ...PARTS[partOf(state)].asks?.(trace, state, subjectOf(trace, state)),
    ...lengthAsk(trace, state),
  }),

  controls(trace, state) {
    const part = partOf(state);
    const subject = subjectOf(trace, state);
    const show = choice('positions_show', 'Show', part, OPTIONS);
    const hasHeads =
      part !== 'schemes' &&
      ['rotary', 'alibi', 'relative'].includes(subject.scheme) &&
      (part !== 'rotation' || subject.scheme === 'rotary');
    return [
      show,
      ...(hasHeads ? [headControl(state, subject.heads)] : []),
      ...PARTS[part].controls(trace, state, subject),
    ];
  },

  panels(trace, state) {
    return PARTS[partOf(state)]
      .panels(subjectOf(trace, state), state, trace)
      .map((plot) => ({ id: plot, state: { plot } }));
  },

  /** The state has the panel’s `plot`. */
  figure(trace, state) {
    const answer = state.answers?.of_length;
    const isAsked = 'of_length' in lengthAsk(trace, state);
    if (isAsked && !answer?.trace)
      return { title: 'Rotation', notice: noticeOf(answer), isWaiting: !answer?.problem };
    const shown = isAsked && answer?.trace ? ofItsLength(trace, answer.trace) : trace;
    return PARTS[partOf(state)].figure(shown, state, subjectOf(shown, state));
  },
};

/** The parts that show how the queries of a text are rotated. */
const ROTATED = ['encoding', 'rotation'];

/** @param {ViewState} state */
function partOf({ positions_show: show }) {
  return PARTS[show] ? show : 'encoding';
}

const ROTATING = {
  rotation:
    'turning a pair of numbers like the hand of a clock: its direction changes, its length does not',
  'R(k)': 'the rotation by k steps; each pair of dimensions has its own speed',
};
/** @type {Record<string, {help?: string, terms: Record<string, string>}>} */
const WORDING = {
  rotation: { terms: ROTATING },
  schemes: {
    help: 'Four ways to encode the positions of tokens, for the length of this text.',
    terms: {
      slope: 'how much each step of distance lowers a score; in ALiBi every head has its own',
    },
  },
};

/** @param {Trace} trace @param {string} part */
function wordingOf(trace, part) {
  return { ...WITHOUT_ENCODING.wording(readScheme(trace)), ...WORDING[part] };
}

/**
 * Return the subject: a stack, its side of the text, and the encoding that was added to it, if any.
 * @param {Trace} trace
 * @param {ViewState} state
 * @returns {Subject}
 */
function subjectOf(trace, state) {
  const stack = chooseStack(state, trace);
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
    scheme: readScheme(trace),
    heads: trace.card?.n_heads ?? 1,
  };
}

/**
 * Return the request for the rotation of a text, where it depends on the length and the card has
 * that of another one. One position more than a single one shows the speeds.
 * @param {Trace} trace
 * @param {ViewState} state
 * @returns {Record<string, Ask>}
 */
function lengthAsk(trace, state) {
  const { card } = trace;
  const { length } = subjectOf(trace, state).tokens;
  const known = card?.rotation?.n_tokens ?? 0;
  if (!card || known === 0 || known === length || !ROTATED.includes(partOf(state))) return {};
  return { of_length: { positional: { model: card.id, length: Math.max(2, length) } } };
}

const memo = createMemo();

/**
 * Return the trace with a card that has the rotation for the length of its text.
 * @param {Trace} trace
 * @param {Pick<Encoding, 'tensors'>} encoding rotary, of the model
 * @returns {Trace}
 */
function ofItsLength(trace, encoding) {
  return memo([trace, encoding], () => {
    const { angles, cos } = encoding.tensors; // (position, pair)
    const { card } = trace;
    const rotation = {
      .../** @type {Rotation} */ (card?.rotation),
      speeds: Array.from(rowOf(matrixAt(angles), 1)),
      factor: cos.data[0], // of the cosine of 0
      n_tokens: angles.shape[0],
    };
    return { ...trace, card: { .../** @type {Card} */ (card), rotation } };
  });
}

/** @param {Trace} trace @param {ViewState} state @param {Subject} subject @returns {Figure} */
function maps(trace, state, subject) {
  const { encoding } = subject;
  if (!encoding) return WITHOUT_ENCODING.figure(trace, state, subject);
  const title =
    state.plot === 'similarity' ? 'Similarity of positions' : 'The encoding that was added';
  return {
    title,
    ...(state.plot === 'similarity' ? similarity : encodingMap)(trace, state, encoding, subject),
  };
}

/** @type {WeakMap<NamedArray, Matrix>} */
const encodings = new WeakMap();

/**
 * One matrix per tensor, so that results can be cached by it.
 * @param {NamedArray} tensor
 * @param {number} count
 * @returns {Matrix}
 */
function encodingOf(tensor, count) {
  const known = encodings.get(tensor);
  if (known?.rows === count) return known;
  // A learned table may hold more positions than the text has; only those were added.
  const { rows, columns, data } = matrixAt(tensor);
  const kept = Math.min(rows, count);
  const encoding = { rows: kept, columns, data: data.subarray(0, kept * columns) };
  encodings.set(tensor, encoding);
  return encoding;
}

/**
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {Matrix} encoding
 * @param {Subject} subject
 */
function encodingMap(trace, state, encoding, subject) {
  const { tokens } = subject;
  return positionMap(trace, state, subject, encoding, {
    name: 'Positional encoding',
    axis: 'dimension',
    reach: findReach(encoding.data),
    bar: 'value added',
    quantity: 'positional encoding',
    say: ({ row, column, value }) =>
      `Position ${row}, ${quoted(tokens[row])}: ${signed(value)} is added to dimension ${column}`,
  });
}

/**
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {Matrix} encoding
 * @param {Subject} subject
 */
function similarity(trace, state, encoding, subject) {
  const cosines = computeSimilarity(encoding);
  const { tokens, site } = subject;
  const least = leastOf(cosines.data);
  // If all similarities are high, the scale starts at the tenth below the least.
  const bottom = least < 0 ? -1 : Math.min(9, Math.floor(least * 10)) / 10;
  const values =
    tick(least) === '1'
      ? 'All similarities are 1'
      : `The similarities range from ${tick(least)} to 1`;
  const reach = `${values}; the colours run from ${tick(bottom)} to 1.`;
  return {
    summary: `Cosine similarity between ${cosines.rows} positions, computed from the captured encoding. ${reach}`,
    ...pairMap(
      cosines,
      {
        y: positionBand(trace, state, subject),
        axis: 'position',
        ramp: { title: 'cosine similarity', domain: [bottom, 1], isDiverging: least < 0 },
        say: ({ row, column, value }) =>
          `Positions ${row} (${quoted(tokens[row])}) and ${column} (${quoted(tokens[column])}): cosine similarity ${signed(value)}`,
        name: ({ row, column }) => `positions ${row} and ${column}`,
        table: {
          quantity: 'cosine similarity of positional encodings',
          request: { capture: [site] },
        },
        sentence: { rest: restOf(trace, state, subject) },
        cursor: { note: reach, isReadFromStart: true },
      },
      state,
    ),
  };
}

/** @param {Float64Array} cosines */
function leastOf(cosines) {
  return cosines.reduce((low, cosine) => Math.min(low, cosine), 1);
}
