/**
 * The scheme of a model that adds nothing to its embeddings, as captured in layer 0: rotary rotates
 * queries and keys, ALiBi and learned distances add a bias to the scores.
 */

import { BASE, pairsOf } from '../../trace/arithmetic.js';
import { signed, tick } from '../../words/numbers.js';
import { named, quoted } from '../../words/tokens.js';
import { matrixAt, withoutFuture } from '../../trace/trace.js';
import { pairMap, positionBand, positionMap, restOf } from './maps.js';

/** @import { Subject } from './maps.js' */

const ATTENTION = 'layers.0.self_attention';

/**
 * Return the scheme of a model without an added encoding.
 * @param {Trace} trace
 * @returns {'rotary'|'alibi'|'relative'|'none'|''} '' if an encoding is added
 */
export function readScheme({ tensors, card }) {
  const isAdded = Object.keys(tensors).some((site) => site.endsWith('.embedding.positional'));
  if (isAdded) return '';
  return NOT_ADDED.find((scheme) => scheme === card?.positional) ?? '';
}

/** @type {('rotary'|'alibi'|'relative'|'none')[]} */
const NOT_ADDED = ['rotary', 'alibi', 'relative', 'none'];

/** @type {Record<string, {help: string, terms: Record<string, string>}>} */
const WORDING = {
  rotary: {
    help: 'Nothing is added to the embeddings: every layer rotates each query and key by angles proportional to its position, so that a score depends on their distance.',
    terms: {
      pair: 'two numbers of a query that are rotated together; each pair has its own speed',
      'cosine of the rotation': '1 if a pair is unchanged, −1 after half a turn',
    },
  },
  alibi: {
    help: 'Nothing is added to the embeddings: every layer lowers each score in proportion to the distance between query and key, with a slope for each head.',
    terms: { bias: 'a number added to a score before the softmax; 0 at distance 0' },
  },
  relative: {
    help: 'Nothing is added to the embeddings: each head adds a number to each score that it has learned for the distance between query and key.',
    terms: { bias: 'a number added to a score before the softmax' },
  },
  none: {
    help: 'Attention alone does not know the order of tokens, and this model has no positional encoding.',
    terms: {},
  },
};

/** @type {Record<string, string[]>} */
const PANELS = { rotary: ['turns'], alibi: ['bias'], relative: ['bias'], none: ['none'] };

export const WITHOUT_ENCODING = {
  wording: (/** @type {string} */ scheme) => WORDING[scheme] ?? {},
  panels: (/** @type {string} */ scheme) => PANELS[scheme],
  figure: capturedFigure,
};

/**
 * @param {Trace} trace
 * @param {ViewState} state with the panel’s `plot`
 * @param {Subject} subject
 * @returns {Figure}
 */
function capturedFigure(trace, state, subject) {
  /** @type {Record<string, (trace: Trace, state: ViewState, subject: Subject) => Figure|null>} */
  const drawings = { turns, bias };
  const draw = drawings[state.plot];
  return (
    draw?.(trace, state, subject) ?? {
      title: 'No positional encoding',
      notice: noticeFor(trace, subject),
    }
  );
}

/** @param {Trace} trace @param {Subject} subject */
function noticeFor({ card }, { stack }) {
  if (card?.positional !== 'none')
    return 'This model adds no positional encoding to its embeddings.';
  if (stack === 'encoder')
    return 'This model has no positional encoding: it treats any order of the same tokens alike.';
  return 'This model has no positional encoding; only the causal mask tells it anything about the order.';
}

/**
 * Return the sites of the queries of layer 0 before and after the rotation.
 * @param {string} stack
 */
export function turnSites(stack) {
  return {
    before: `${stack}.${ATTENTION}.queries`,
    after: `${stack}.${ATTENTION}.rotated_queries`,
  };
}

/**
 * Draw the cosine of the rotation of each pair, from the queries before and after.
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {Subject} subject
 */
function turns(trace, state, subject) {
  const title = 'Rotation of each pair';
  const { before, after } = turnSites(subject.stack);
  const [queries, rotated] = [trace.tensors[before], trace.tensors[after]];
  const rotation = readRotation(trace, queries);
  if (!queries || !rotated || !rotation) return { title, notice: noPairs(trace) };
  const { tokens } = subject;
  const { head } = state;
  const cosines = cosinesOfTurns(matrixAt(queries, head), matrixAt(rotated, head), rotation);
  return {
    title,
    ...positionMap(trace, state, subject, cosines, {
      name: title,
      axis: 'pair',
      reach: 1,
      bar: 'cosine of the rotation',
      quantity: `cosine of the rotation, layer 0, head ${head}`,
      request: { capture: [before, after], heads: [head] },
      say: ({ row, column, value }) =>
        `Position ${row}, ${quoted(tokens[row])}: pair ${column} is rotated by an angle whose cosine is ${signed(value)} (layer 0, head ${head})`,
    }),
  };
}

/**
 * Return the rotation by a model's card. The models of this project turn neighbouring dimensions.
 * @param {Trace} trace
 * @param {NamedArray} [queries] (head, query, d_head)
 * @returns {Rotation|null} null: it is not known
 */
export function readRotation({ card }, queries) {
  if (card?.rotation) return card.rotation;
  if (!queries || (card?.architecture ?? 'headlight') !== 'headlight') return null;
  return { ...pairsOf(queries.shape[2]), factor: 1, base: BASE, scaling: {} };
}

/** Return why no rotation is drawn. @param {Trace} trace */
export function noPairs({ card }) {
  const reason = card?.omitted?.rotation;
  return reason
    ? `Not drawn: ${reason}.`
    : 'The queries of this model before rotation are not known.';
}

/**
 * @param {Matrix} before position × d_head
 * @param {Matrix} after
 * @param {Rotation} rotation
 * @returns {Matrix} position × pair, between −1 and 1; NaN if a pair is 0
 */
function cosinesOfTurns(before, after, { first, second }) {
  const columns = first.length;
  const data = Float64Array.from({ length: before.rows * columns }, (_, at) => {
    const row = Math.floor(at / columns) * before.columns;
    const [i, j] = [row + first[at % columns], row + second[at % columns]];
    const [a, b] = [before.data[i], before.data[j]];
    const [c, d] = [after.data[i], after.data[j]];
    const lengths = Math.hypot(a, b) * Math.hypot(c, d);
    return lengths === 0 ? NaN : Math.max(-1, Math.min(1, (a * c + b * d) / lengths));
  });
  return { rows: before.rows, columns, data };
}

/**
 * Return the bias of a head by ALiBi or by learned distances: the same for every text.
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {Subject} subject
 * @returns {Figure|null}
 */
function bias(trace, state, subject) {
  const site = `${subject.stack}.${ATTENTION}.bias`;
  if (!trace.tensors[site]) return null;
  const matrix = withoutFuture(matrixAt(trace.tensors[site], state.head), site);
  const { ramp, reached } = biasScale(matrix);
  const { tokens } = subject;
  const { head } = state;
  return {
    title: `Bias of head ${head}`,
    summary: `Bias that head ${head} adds to its scores: ${matrix.rows} queries by ${matrix.columns} keys, ${reached}.`,
    ...pairMap(
      matrix,
      {
        y: positionBand(trace, state, subject, { title: 'query' }),
        axis: 'key',
        ramp,
        say({ row, column, value }) {
          const [query, key] = [named(tokens, row), named(tokens, column)];
          return Number.isNaN(value)
            ? `${query} cannot attend to ${key}, which comes later (head ${head})`
            : `${key} is ${Math.abs(row - column)} away from ${query}: the score changes by ${signed(value)} (head ${head})`;
        },
        name: ({ row, column }) => `query ${row}, key ${column}`,
        number: ({ value }) => (Number.isNaN(value) ? 'hidden: not yet read' : signed(value, 4)),
        table: { quantity: `bias, head ${head}`, request: { capture: [site], heads: [head] } },
        sentence: { rest: restOf(trace, state, subject) },
        cursor: { isReadFromStart: true },
      },
      state,
    ),
  };
}

/**
 * Scale a bias of queries by keys, diverging if it is of both signs, and say its range.
 * @param {Matrix} matrix NaN: hidden
 * @returns {{ramp: Ramp, reached: string}}
 */
export function biasScale({ data }) {
  const seen = data.filter((number) => !Number.isNaN(number));
  const least = seen.reduce((low, value) => Math.min(low, value), 0);
  const most = seen.reduce((high, value) => Math.max(high, value), 0);
  const reach = Math.max(-least, most) || 1;
  return {
    ramp: { title: 'bias', domain: [-reach, most > 0 ? reach : 0], isDiverging: most > 0 },
    reached: `from ${tick(least)} to ${tick(most)}`,
  };
}
