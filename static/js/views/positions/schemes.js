/**
 * Schemes side by side: each for as many positions as the text has and for the width of this model.
 * The API computes them without a text; a learned table is taken from a model that has one.
 *
 * Below, the scheme of a model that adds nothing to its embeddings, as captured in layer 0: rotary
 * rotates queries and keys, ALiBi and learned distances add a bias to the scores.
 */

import { positionalPath, modelName } from '../../api/calls.js';
import { noticeOf } from '../../api/request_cache.js';
import { signed, tick, positionLabels, quoted, named } from '../../data/format.js';
import { matrixAt, range, valueIn, withoutFuture } from '../../data/trace.js';
import { sequential, diverging } from '../../plot/colour.js';
import { choosing, queryOf } from '../../state/state.js';
import { choice, numbered } from '../../ui/controls.js';
import { BASE, pairsOf } from '../../data/arithmetic.js';
import { dimensionMap, pairMap, reachOf, positionMap, sharedGrid } from './maps.js';

/**
 * @import { Ask, Card, Matrix, NamedArray, PositionalAsk, Rotation, Token, Trace } from '../../data/trace.js'
 * @import { Figure, ViewState } from '../../plot/figure.js'
 * @import { Grid } from '../../plot/grid.js'
 * @import { Control } from '../../ui/controls.js'
 * @import { Mapped, Part, Subject } from './maps.js'
 */

const MOST_HEIGHT = 420;
const ALL = ['sinusoidal', 'learned', 'rotary', 'alibi'];

/** @type {Part} */
export const SCHEMES = { controls, asks, panels: () => ALL, figure };

/** @param {Trace} _ @param {ViewState} state @param {Subject} subject @returns {Control[]} */
function controls(_, state, subject) {
  return [headControl(state, subject.heads)];
}

/** @param {{head: number}} state @param {number} heads */
export function headControl({ head }, heads) {
  return choice('head', 'Head', Math.min(head, heads - 1), numbered(range(heads), 'head'));
}

/**
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {Subject} subject
 * @returns {Record<string, Ask>}
 */
function asks(trace, state, subject) {
  const asked = askedOf(trace, state, subject);
  return Object.fromEntries(
    Object.entries(asked).flatMap(([scheme, positional]) =>
      positional ? [[scheme, { positional }]] : [],
    ),
  );
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
  const learned = learnedCard(card, cards);
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

/**
 * The learned table of this model, of its twin, or of any model.
 * @param {Card} card
 * @param {Card[]} cards
 * @returns {Card|undefined}
 */
function learnedCard(card, cards) {
  const learned = cards.filter(({ positional }) => positional === 'learned');
  return (
    learned.find(({ id }) => id === card.id) ??
    learned.find(({ id }) => id.startsWith('positions-')) ??
    learned[0]
  );
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

/** @param {Trace} trace @param {ViewState} state @param {Subject} subject @returns {Figure} */
function figure(trace, state, subject) {
  const scheme = state.plot;
  const title = TITLES[scheme];
  const asked = askedOf(trace, state, subject)[scheme];
  if (!asked) return { title, notice: 'No model on this server has learned positions.' };
  const answer = state.answers[scheme];
  const found = answer?.trace;
  if (!found) return { title, notice: noticeOf(answer) };
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
    ...draw(trace, low, subject, { scheme, asked, tensors: found.tensors }),
  };
}

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
  const reach = scheme === 'learned' ? reachOf(matrix.data) : 1;
  const labels = positionLabels(subject.tokens.slice(0, matrix.rows));
  const dimensions = range(matrix.columns).map(String);
  return {
    summary: `${TITLES[scheme]} positions: ${matrix.rows} positions by ${matrix.columns} ${axis}s, none further from 0 than ${tick(reach)}.`,
    ...dimensionMap(matrix, { labels, dimensions, axis, reach, quantity }, state),
    grid: sideGrid(trace, state, subject, matrix, {
      asked,
      axis,
      labels,
      columnLabels: dimensions,
      quantity: `${quantity}, ${scheme}`,
    }),
  };
}

/** @typedef {{scheme: string, asked: PositionalAsk, tensors: Record<string, NamedArray>}} Asked */

/**
 * A bias of queries by keys, on the diverging scale if it is of both signs, and its range in words.
 * @param {Matrix} matrix NaN: hidden
 * @param {string[]} labels
 * @param {ViewState} state
 */
function biasDrawing(matrix, labels, state) {
  const seen = matrix.data.filter((number) => !Number.isNaN(number));
  const least = seen.reduce((low, value) => Math.min(low, value), 0);
  const most = seen.reduce((high, value) => Math.max(high, value), 0);
  const reach = Math.max(-least, most) || 1;
  const { theme } = state.palette;
  const scale =
    most > 0
      ? { zmin: -reach, zmax: reach, colours: diverging(theme) }
      : { zmin: -reach, zmax: 0, colours: sequential(theme) };
  return {
    range: `from ${tick(least)} to ${tick(most)}`,
    ...pairMap(matrix, { labels, scale, quantity: 'bias', axes: ['query', 'key'] }, state),
  };
}

/**
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {Subject} subject
 * @param {Asked} answered
 */
function biasMap(trace, state, subject, { asked, tensors }) {
  const matrix = matrixAt(tensors.bias, state.head);
  const labels = positionLabels(subject.tokens);
  const { range: reached, ...drawing } = biasDrawing(matrix, labels, state);
  return {
    summary: `ALiBi: the bias of head ${state.head}, ${matrix.rows} queries by ${matrix.columns} keys, ${reached}.`,
    ...drawing,
    grid: {
      ...sideGrid(trace, state, subject, matrix, {
        asked,
        axis: 'key',
        labels,
        columnLabels: labels,
        quantity: `bias, alibi, head ${state.head}`,
      }),
      rowTitle: 'query',
      tokens: (/** @type {number} */ row, /** @type {number} */ column) => ({
        query: row,
        key: column,
      }),
    },
  };
}

/**
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {Subject} subject
 * @param {Matrix} matrix
 * @param {{asked: PositionalAsk, axis: string, labels: string[], columnLabels: string[], quantity: string}} named
 * @returns {Grid}
 */
function sideGrid(
  trace,
  state,
  { side, tokens },
  { rows, columns, data },
  { asked, axis, labels, columnLabels, quantity },
) {
  const query = queryOf(state, trace, side);
  /** @param {number} row @param {number} column */
  const value = (row, column) => data[row * columns + column];
  return {
    rows,
    columns,
    sides: { rows: side, columns: side },
    rowTitle: 'position',
    columnTitle: axis,
    rowLabels: labels,
    columnLabels,
    quantity,
    call: { path: positionalPath(asked) },
    value,
    format: (number) => signed(number, 4),
    describe: (row, column) =>
      `${quantity}: position ${row}, ${quoted(tokens[row])}, ${axis} ${column} is ${signed(value(row, column))}`,
    tip: (row, column) => [`position ${row}, ${axis} ${column}`, signed(value(row, column), 4)],
    tokens: (row) => ({ query: row }),
    choose: (row) => choosing(trace, side, row),
    chosen: query < rows ? { row: query } : {},
    start: { row: Math.min(query, rows - 1), column: 0 },
  };
}

const ATTENTION = 'layers.0.self_attention';

/**
 * The scheme of a model without an added encoding.
 * @param {Trace} trace
 * @returns {'rotary'|'alibi'|'relative'|'none'|''} '' if an encoding is added
 */
export function schemeOf({ tensors, card }) {
  const isAdded = Object.keys(tensors).some((site) => site.endsWith('.embedding.positional'));
  if (isAdded) return '';
  return NOT_ADDED.find((scheme) => scheme === card?.positional) ?? '';
}

/** @type {('rotary'|'alibi'|'relative'|'none')[]} */
const NOT_ADDED = ['rotary', 'alibi', 'relative', 'none'];

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
 * The rotation of the pairs and the cosine of each, from the queries before and after.
 * @param {Trace} trace
 * @param {number} head
 * @param {string} stack
 * @returns {{rotation: Rotation, cosines: Matrix}|null} null: it is not known
 */
export function turnsOf(trace, head, stack) {
  const { before, after } = turnSites(stack);
  const [queries, rotated] = [trace.tensors[before], trace.tensors[after]];
  const rotation = rotationOf(trace, queries);
  if (!queries || !rotated || !rotation) return null;
  const cosines = cosinesOfTurns(matrixAt(queries, head), matrixAt(rotated, head), rotation);
  return { rotation, cosines };
}

/** @param {Trace} trace @param {ViewState} state @param {Subject} subject */
function turns(trace, state, subject) {
  const { before, after: site } = turnSites(subject.stack);
  const found = turnsOf(trace, state.head, subject.stack);
  if (!found) return { title: 'Rotation of each pair', notice: noPairs(trace) };
  const { cosines } = found;
  const value = valueIn(cosines);
  const { tokens } = subject;
  return mapOf(trace, state, { ...subject, site }, cosines, {
    title: 'Rotation of each pair',
    axis: 'pair',
    reach: 1,
    quantity: 'cosine of the rotation',
    request: { capture: [before, site], heads: [state.head] },
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
function cosinesOfTurns(before, after, { first, second }) {
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
  const { range: reached, ...drawing } = biasDrawing(matrix, labels, state);
  const { tokens } = subject;
  return {
    title: `Bias of head ${state.head}`,
    summary: `Bias that head ${state.head} adds to its scores: ${matrix.rows} queries by ${matrix.columns} keys, ${reached}.`,
    ...drawing,
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
