/**
 * Schemes that add nothing to the embeddings: rotary rotates queries and keys, ALiBi subtracts a
 * bias from the scores, and some models have no positions. All is captured in layer 0.
 */

import { BASE, pairsOf } from '../../data/arithmetic.js';
import { signed, tick } from '../../data/format.js';
import { matrixAt, valueIn, withoutFuture } from '../../data/trace.js';
import { named, positionLabels, quoted } from '../../data/text.js';
import { diverging, sequential } from '../../plot/colour.js';
import { pairMap, positionMap, reachOf, sharedGrid } from './maps.js';

/**
 * @import { Side } from '../../data/attention.js'
 * @import { Matrix, NamedArray, Rotation, Token, Trace } from '../../data/trace.js'
 * @import { Figure, ViewState } from '../../plot/figure.js'
 * @import { Mapped, Subject } from './maps.js'
 */

const ATTENTION = 'layers.0.self_attention';

/**
 * The scheme of a model without an added encoding.
 * @param {Trace} trace
 * @returns {'rotary'|'alibi'|'relative'|'none'|''} '' if an encoding is added
 */
export function schemeOf({ tensors, card }) {
  const isAdded = Object.keys(tensors).some((site) => site.endsWith('.embedding.positional'));
  if (isAdded) return '';
  return SCHEMES.find((scheme) => scheme === card?.positional) ?? '';
}

/** @type {('rotary'|'alibi'|'relative'|'none')[]} */
const SCHEMES = ['rotary', 'alibi', 'relative', 'none'];

/** @type {Record<string, {help: string, terms: string[][]}>} */
const WORDING = {
  rotary: {
    help: 'Nothing is added to the embeddings: every layer rotates each query and key by angles proportional to its position, so that a score depends on their distance.',
    terms: [
      ['pair', 'two numbers of a query that are rotated together; each pair has its own speed'],
      ['cosine of the rotation', '1 if a pair is unchanged, −1 after half a turn'],
    ],
  },
  alibi: {
    help: 'Nothing is added to the embeddings: every layer lowers each score in proportion to the distance between query and key, with a slope for each head.',
    terms: [['bias', 'a number added to a score before the softmax; 0 at distance 0']],
  },
  relative: {
    help: 'Nothing is added to the embeddings: each head adds a number to each score that it has learned for the distance between query and key.',
    terms: [['bias', 'a number added to a score before the softmax']],
  },
  none: {
    help: 'Attention alone does not know the order of tokens, and this model has no positional encoding.',
    terms: [],
  },
};

/** @type {Record<string, string[]>} */
const PANELS = {
  rotary: ['queries', 'turns'],
  alibi: ['bias'],
  relative: ['bias'],
  none: ['none'],
};

export const WITHOUT_ENCODING = {
  wording: (/** @type {string} */ scheme) => WORDING[scheme] ?? {},
  panels: (/** @type {string} */ scheme) => PANELS[scheme],
  figure,
};

/**
 * @param {Trace} trace
 * @param {ViewState} state with the panel’s `plot`
 * @param {Subject} subject
 * @returns {Figure}
 */
function figure(trace, state, subject) {
  /** @type {Record<string, (trace: Trace, state: ViewState, subject: Subject) => Figure|null>} */
  const drawings = { queries: rotatedQueries, turns, bias };
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

/** @param {Trace} trace @param {ViewState} state @param {Subject} subject */
function rotatedQueries(trace, state, subject) {
  const site = `${subject.stack}.${ATTENTION}.rotated_queries`;
  if (!trace.tensors[site]) return null;
  const queries = matrixAt(trace.tensors[site], state.head);
  const reach = reachOf(queries.data);
  const value = valueIn(queries);
  const { tokens } = subject;
  return mapOf(trace, state, { ...subject, site }, queries, {
    title: `Rotated queries of layer 0, head ${state.head}`,
    axis: 'dimension',
    reach,
    quantity: 'rotated query',
    describe: (row, column) =>
      `Position ${row}, ${quoted(tokens[row])}: dimension ${column} of its rotated query is ${signed(value(row, column))} (layer 0, head ${state.head})`,
  });
}

/** The sites of the queries of layer 0 before and after the rotation. @param {string} stack */
export function turnSites(stack) {
  return {
    before: `${stack}.${ATTENTION}.queries`,
    after: `${stack}.${ATTENTION}.rotated_queries`,
  };
}

/**
 * The cosine of each pair's rotation, from the queries before and after.
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {Subject} subject
 */
function turns(trace, state, subject) {
  const site = `${subject.stack}.${ATTENTION}.rotated_queries`;
  const before = trace.tensors[site.replace('rotated_', '')];
  const rotation = rotationOf(trace, before);
  if (!trace.tensors[site] || !before || !rotation)
    return { title: 'Rotation of each pair', notice: noPairs(trace) };
  const cosines = cosinesOfTurns(
    matrixAt(before, state.head),
    matrixAt(trace.tensors[site], state.head),
    rotation,
  );
  const value = valueIn(cosines);
  const { tokens } = subject;
  return mapOf(trace, state, { ...subject, site }, cosines, {
    title: 'Rotation of each pair',
    axis: 'pair',
    reach: 1,
    quantity: 'cosine of the rotation',
    request: { capture: [site.replace('rotated_', ''), site], heads: [state.head] },
    describe: (row, column) =>
      `Position ${row}, ${quoted(tokens[row])}: pair ${column} is rotated by an angle whose cosine is ${signed(value(row, column))} (layer 0, head ${state.head})`,
  });
}

/**
 * The rotation by a model's card. The models of this project turn neighbouring dimensions.
 * @param {Trace} trace
 * @param {NamedArray} [queries] (head, query, d_head)
 * @returns {Rotation|null} null: it is not known
 */
export function rotationOf({ card }, queries) {
  if (card?.rotation) return card.rotation;
  if (!queries || (card?.architecture ?? 'headlight') !== 'headlight') return null;
  return { ...pairsOf(queries.shape[2]), factor: 1, base: BASE, scaling: {} };
}

/** Why no rotation is drawn. @param {Trace} trace */
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
export function cosinesOfTurns(before, after, { first, second }) {
  const columns = first.length;
  const data = Float64Array.from({ length: before.rows * columns }, (_, at) => {
    const row = Math.floor(at / columns) * before.columns;
    const [one, other] = [row + first[at % columns], row + second[at % columns]];
    const [a, b] = [before.data[one], before.data[other]];
    const [c, d] = [after.data[one], after.data[other]];
    const lengths = Math.hypot(a, b) * Math.hypot(c, d);
    return lengths === 0 ? NaN : Math.max(-1, Math.min(1, (a * c + b * d) / lengths));
  });
  return { rows: before.rows, columns, data };
}

/**
 * A map of what one head of layer 0 does.
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {Subject} subject
 * @param {Matrix} matrix
 * @param {Omit<Mapped, 'name'|'bar'> & {title: string}} mapped
 * @returns {Figure}
 */
function mapOf(trace, state, subject, matrix, { title, quantity, ...mapped }) {
  const { head } = state;
  return {
    title,
    ...positionMap(trace, state, subject, matrix, {
      name: title,
      bar: quantity,
      quantity: `${quantity}, layer 0, head ${head}`,
      request: { capture: [subject.site], heads: [head] },
      ...mapped,
    }),
  };
}

/**
 * The bias of a head by ALiBi or by learned distances: the same for every text.
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {Subject} subject
 * @returns {Figure|null}
 */
function bias(trace, state, subject) {
  const site = `${subject.stack}.${ATTENTION}.bias`;
  if (!trace.tensors[site]) return null;
  const matrix = withoutFuture(matrixAt(trace.tensors[site], state.head), site);
  const value = valueIn(matrix);
  const labels = positionLabels(subject.tokens);
  const seen = matrix.data.filter((number) => !Number.isNaN(number));
  const [least, most] = [Math.min(...seen, 0), Math.max(...seen, 0)];
  const reach = Math.max(-least, most) || 1;
  const scale =
    most > 0
      ? { zmin: -reach, zmax: reach, colours: diverging(state.palette.theme) }
      : { zmin: -reach, zmax: 0, colours: sequential(state.palette.theme) };
  const { tokens } = subject;
  return {
    title: `Bias of head ${state.head}`,
    summary: `Bias that head ${state.head} adds to its scores: ${matrix.rows} queries by ${matrix.columns} keys, from ${tick(least)} to ${tick(most)}.`,
    ...pairMap(matrix, { labels, scale, quantity: 'bias', axes: ['query', 'key'] }, state),
    grid: {
      ...sharedGrid(trace, state, { ...subject, site }, matrix, value),
      request: { capture: [site], heads: [state.head] },
      rowTitle: 'query',
      columnTitle: 'key',
      rowLabels: labels,
      columnLabels: labels,
      quantity: `bias, head ${state.head}`,
      describe: (row, column) => biasInWords(tokens, row, column, value(row, column), state.head),
      tip: (row, column) => [
        `query ${row}, key ${column}`,
        Number.isNaN(value(row, column)) ? 'hidden: not yet read' : signed(value(row, column), 4),
      ],
      tokens: (row, column) => ({ query: row, key: column }),
    },
  };
}

/**
 * @param {Token[]} tokens
 * @param {number} row
 * @param {number} column
 * @param {number} number
 * @param {number} head
 */
function biasInWords(tokens, row, column, number, head) {
  const [query, key] = [named(tokens, row), named(tokens, column)];
  if (Number.isNaN(number))
    return `${query} cannot attend to ${key}, which comes later (head ${head})`;
  return `${key} is ${Math.abs(row - column)} away from ${query}: the score changes by ${signed(number)} (head ${head})`;
}
