/**
 * Schemes side by side: each for as many positions as the text has and for the width of this model.
 * The API computes them without a text; a learned table is taken from a model that has one.
 */

import { positionalPath, modelName } from '../../api/calls.js';
import { noticeOf } from '../../api/answers.js';
import { signed, tick } from '../../words/numbers.js';
import { positionLabels, quoted } from '../../words/tokens.js';
import { matrixAt, range } from '../../trace/trace.js';
import { choice, numbered } from '../../ui/controls.js';
import { biasScale } from './inside_attention.js';
import { dimensionMap, pairMap, positionBand, findReach } from './maps.js';

/** @import { Part, Said, Subject } from './maps.js' */

const MOST_HEIGHT = 420;
const ALL = ['sinusoidal', 'learned', 'rotary', 'alibi'];

/** @type {Part} */
export const SCHEMES = {
  controls(_, state, subject) {
    return [headControl(state, subject.heads)];
  },

  asks(trace, state, subject) {
    const asked = askedOf(trace, state, subject);
    return Object.fromEntries(
      Object.entries(asked).flatMap(([scheme, positional]) =>
        positional ? [[scheme, { positional }]] : [],
      ),
    );
  },
  panels: () => ALL,

  figure(trace, state, subject) {
    const scheme = state.plot;
    const title = TITLES[scheme];
    const asked = askedOf(trace, state, subject)[scheme];
    if (!asked) return { title, notice: 'No model on this server has learned positions.' };
    const answer = state.answers[scheme];
    const computed = answer?.trace;
    if (!computed) return { title, notice: noticeOf(answer) };
    const low = {
      ...state,
      height: Math.min(state.height, MOST_HEIGHT),
      head: Math.min(state.head, subject.heads - 1),
    };
    const isCut = scheme === 'learned' && asked.length < subject.tokens.length;
    const said = {
      model: modelName(
        state.cards.find(({ id }) => id === asked.model),
        asked.model,
      ),
      end: isCut ? asked.length - 1 : 0,
      head: low.head,
    };
    const draw = scheme === 'alibi' ? biasMap : valueMap;
    return {
      title,
      help: HELP[scheme](said),
      ...draw(trace, low, subject, { scheme, asked, tensors: computed.tensors }),
    };
  },
};

/** @param {{head: number}} state @param {number} heads */
export function headControl({ head }, heads) {
  return choice('head', 'Head', Math.min(head, heads - 1), numbered(range(heads), 'head'));
}

/**
 * The requests; none for learned positions if no model has them.
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {Subject} subject
 * @returns {Record<string, PositionalAsk|undefined>}
 */
function askedOf({ card }, { cards }, { tokens, heads }) {
  const length = tokens.length;
  if (!card) return {};
  const tables = cards.filter(({ positional }) => positional === 'learned');
  const learned = // of this model, of its twin, or of any model
    tables.find(({ id }) => id === card.id) ??
    tables.find(({ id }) => id.startsWith('positions-')) ??
    tables[0];
  return {
    sinusoidal: { scheme: 'sinusoidal', length, width: even(card.d_model) },
    learned: learned && { model: learned.id, length: Math.min(length, learned.max_tokens) },
    rotary: { scheme: 'rotary', length, width: even(card.d_model / card.n_heads) },
    alibi: { scheme: 'alibi', length, heads },
  };
}

/** @param {number} width */
function even(width) {
  return width + (width % 2);
}

/** @type {Record<string, string>} */
const TITLES = { sinusoidal: 'Sinusoidal', learned: 'Learned', rotary: 'Rotary', alibi: 'ALiBi' };

/** @type {Record<string, (said: {model: string, end: number, head: number}) => string>} */
const HELP = {
  sinusoidal: () => 'Waves of fixed frequencies, added to the embeddings.',
  learned: ({ model, end }) =>
    `A trained vector for each position, added to the embeddings; the table is from “${model}”${end ? `, which ends at position ${end}` : ''}.`,
  rotary: () =>
    'Queries and keys are rotated; the map shows the cosine of the rotation of each pair of dimensions.',
  alibi: ({ head }) =>
    `Scores are lowered in proportion to the distance from query to key, with a slope for each head; the map shows head ${head}. A decoder uses the half below the diagonal.`,
};

/** @type {Record<string, {tensor: string, axis: string, quantity: string}>} */
const SHOWN = {
  sinusoidal: { tensor: 'encoding', axis: 'dimension', quantity: 'value added' },
  learned: { tensor: 'encoding', axis: 'dimension', quantity: 'value added' },
  rotary: { tensor: 'cos', axis: 'pair', quantity: 'cosine of the rotation' },
};

/**
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {Subject} subject
 * @param {Asked} answered
 */
function valueMap(trace, state, subject, { scheme, asked, tensors }) {
  const { tensor, axis, quantity } = SHOWN[scheme];
  const matrix = matrixAt(tensors[tensor] ?? tensors[`${subject.stack}.${tensor}`]);
  const reach = scheme === 'learned' ? findReach(matrix.data) : 1;
  return {
    summary: `${TITLES[scheme]} positions: ${matrix.rows} positions by ${matrix.columns} ${axis}s, none further from 0 than ${tick(reach)}.`,
    ...dimensionMap(
      matrix,
      {
        y: positionBand(trace, state, subject, {
          labels: positionLabels(subject.tokens.slice(0, matrix.rows)),
        }),
        dimensions: range(matrix.columns).map(String),
        axis,
        reach,
        bar: quantity,
        ...sideMeaning(subject, { asked, axis, quantity: `${quantity}, ${scheme}` }),
      },
      state,
    ),
  };
}

/** @typedef {{scheme: string, asked: PositionalAsk, tensors: Record<string, NamedArray>}} Asked */

/**
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {Subject} subject
 * @param {Asked} answered
 */
function biasMap(trace, state, subject, { asked, tensors }) {
  const { head } = state;
  const matrix = matrixAt(tensors.bias, head);
  const { ramp, reached } = biasScale(matrix);
  return {
    summary: `ALiBi: the bias of head ${head}, ${matrix.rows} queries by ${matrix.columns} keys, ${reached}.`,
    ...pairMap(
      matrix,
      {
        y: positionBand(trace, state, subject, { title: 'query' }),
        axis: 'key',
        ramp,
        ...sideMeaning(subject, { asked, axis: 'key', quantity: `bias, alibi, head ${head}` }),
      },
      state,
    ),
  };
}

/**
 * Name the cells of a map that the API computed without a text.
 * @param {Subject} subject
 * @param {{asked: PositionalAsk, axis: string, quantity: string}} of
 * @returns {Said}
 */
function sideMeaning({ tokens }, { asked, axis, quantity }) {
  return {
    say: ({ row, column, value }) =>
      `${quantity}: position ${row}, ${quoted(tokens[row])}, ${axis} ${column} is ${signed(value)}`,
    name: ({ row, column }) => `position ${row}, ${axis} ${column}`,
    table: { quantity, call: { path: positionalPath(asked) } },
  };
}
