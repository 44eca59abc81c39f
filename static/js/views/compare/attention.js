/**
 * Attention of both sides on one colour scale, and their difference B − A.
 */

import { largestIn } from '../../data/arithmetic.js';
import { valueIn, extent, rowOf } from '../../data/trace.js';
import { percent, share, signed, capitalised } from '../../data/format.js';
import { tokensOf } from '../../data/attention.js';
import { differenceMade } from '../../data/request_code.js';
import { alone, namedUnit, tokensIn, unitLabels } from '../../data/words.js';
import { diverging, sequential } from '../../plot/colour.js';
import { letteringFor } from '../../plot/figure.js';
import { strongestOf } from '../../plot/line_map.js';
import { squaresFigure } from '../../plot/map.js';
import { choosing, queryOf } from '../../state/state.js';
import { difference, meanMoved, openMostChanged, weightsSeen } from './heads.js';
import { attentionOf, byUnits, isSamePlace, matchOf, isMapped, NO_ATTENTION } from './sides.js';

/**
 * @import { Matrix } from '../../data/trace.js'
 * @import { Unit } from '../../data/words.js'
 * @import { Figure, ViewState } from '../../plot/figure.js'
 * @import { Grid } from '../../plot/grid.js'
 * @import { MappedSide, Match, Side } from './sides.js'
 */

const TITLES = { rows: 'query', columns: 'key' };
/** The least number of shared tokens for a difference map. */
const LEAST_SHARED = 2;

/**
 * The attention map of one side.
 * @param {{a: Side, b: Side|null}} sides
 * @param {'a'|'b'} which
 * @param {ViewState} state
 * @returns {Partial<Figure>}
 */
export function sideFigure(sides, which, state) {
  const side = sides[which];
  if (!isMapped(side)) return { notice: NO_ATTENTION };
  /** @type {Subject} */
  const subject = {
    side,
    which,
    matrix: weightsSeen(side.trace, side.site, side.head),
    ...unitsOf(side),
  };
  return {
    help: `${capitalised(attentionOf(side))}.`,
    summary: `Attention weights of ${which.toUpperCase()}, ${attentionOf(side)}: ${subject.matrix.rows} queries by ${subject.matrix.columns} keys.`,
    ...squaresFigure(
      {
        matrix: subject.matrix,
        rows: unitLabels(subject.rows),
        columns: unitLabels(subject.columns),
        titles: TITLES,
        kept: { rows: [], columns: [] },
        quantity: 'attention weight',
        scale: {
          bottom: 0,
          top: ceilingOf(sides, state),
          colours: sequential(state.palette.theme),
        },
      },
      state,
    ),
    grid: {
      ...sideGrid(subject, state),
      ...(which === 'a' ? ofPage(subject, state) : placed(subject, sides, state)),
    },
  };
}

/**
 * @typedef {Object} Subject of one map
 * @property {MappedSide} side
 * @property {'a'|'b'} which
 * @property {Matrix} matrix
 * @property {Unit[]} rows
 * @property {Unit[]} columns
 */

/**
 * @typedef {Object} Compared of the map of differences
 * @property {MappedSide} a
 * @property {MappedSide} b
 * @property {Matrix} before
 * @property {Matrix} after
 * @property {Matrix} changes
 * @property {{rows: Match, columns: Match}} match
 * @property {Unit[]} rows
 * @property {Unit[]} columns
 */

/** @param {MappedSide} side */
function unitsOf({ trace, place }) {
  return {
    rows: alone(tokensOf(trace, place.rows)),
    columns: alone(tokensOf(trace, place.columns)),
  };
}

/**
 * Both maps end at 1, or at the strongest weight of the two.
 * @param {{a: Side, b: Side|null}} of
 * @param {ViewState} state
 */
function ceilingOf({ a, b }, { range }) {
  if (range !== 'head') return 1;
  const strongest = [a, b]
    .filter(isMapped)
    .map(({ trace, site, head }) => extent(weightsSeen(trace, site, head)));
  return Math.max(...strongest) || 1;
}

/** @param {Subject} subject @param {ViewState} state */
function sideGrid({ side, which, matrix, rows, columns }, state) {
  const value = valueIn(matrix);
  /** @param {number} row @param {number} column */
  const say = (row, column) => {
    const name = `${which.toUpperCase()}, ${attentionOf(side)}`;
    if (Number.isNaN(value(row, column)))
      return `${namedUnit(rows, row)} cannot attend to ${namedUnit(columns, column)}, which comes later (${name})`;
    return `${namedUnit(rows, row)} attends to ${namedUnit(columns, column)} with weight ${share(value(row, column))} (${name})`;
  };
  return {
    ...shared(rows, columns, state),
    quantity: `attention weight of ${which.toUpperCase()} (${side.name}), ${attentionOf(side)}`,
    request: { ...side.request, capture: [side.site], heads: [side.head] },
    value,
    format: (/** @type {number} */ weight) => share(weight, 4),
    describe: say,
    tip: (/** @type {number} */ row, /** @type {number} */ column) => [
      `${namedUnit(rows, row)} → ${namedUnit(columns, column)}`,
      Number.isNaN(value(row, column)) ? 'hidden: not yet read' : share(value(row, column), 4),
    ],
    tokens: () => ({}),
    start: { row: rows.length - 1, column: strongestOf(matrix, { row: rows.length - 1 }) },
  };
}

/**
 * The interaction of A's map: its tokens are those of the page's sentences.
 * @param {Subject} subject
 * @param {ViewState} state
 */
function ofPage({ side, matrix, rows, columns }, state) {
  const { place, trace } = side;
  const query = queryOf(state, trace, place.rows);
  /** @param {number} row */
  const shown = (row) => {
    const column = strongestOf(matrix, { row });
    return {
      tint: rowOf(matrix, row),
      readout: `${namedUnit(rows, row)} attends most to ${namedUnit(columns, column)} with weight ${share(matrix.data[row * matrix.columns + column])} (A, ${attentionOf(side)})`,
    };
  };
  return {
    sides: { rows: place.rows, columns: place.columns },
    tokens: (/** @type {number} */ row, /** @type {number} */ column) => ({
      query: row,
      key: column,
    }),
    ofRow: shown,
    choose: (/** @type {number} */ row) => choosing(trace, place.rows, row),
    ceiling: 1,
    chosen: { row: query },
    start: { row: query, column: strongestOf(matrix, { row: query }) },
    rest: shown(query),
  };
}

/**
 * Tokens of B are marked at their counterparts in the page's sentences.
 * @param {Subject} subject
 * @param {{a: Side, b: Side|null}} sides
 * @param {ViewState} state
 */
function placed({ side, rows }, { a, b }, state) {
  if (!isMapped(a) || !isMapped(b) || !isSamePlace(a, b)) return {};
  /** @param {'rows'|'columns'} axis */
  const back = (axis) => {
    const { a: left, b: right, pairs } = matchOf(a, b, side.place[axis]);
    return (/** @type {number} */ index) => {
      const unit = right.findIndex(({ first, last }) => first <= index && index <= last);
      const pair = pairs.find(([, at]) => at === unit);
      return pair ? tokensIn(left[pair[0]]) : undefined;
    };
  };
  const [row, column] = [back('rows'), back('columns')];
  const query = queryOf(state, a.trace, a.place.rows);
  return {
    ...chosenIn(rows.findIndex((_, at) => [row(at) ?? []].flat().includes(query))),
    sides: { rows: a.place.rows, columns: a.place.columns },
    tokens: (/** @type {number} */ at, /** @type {number} */ other) => ({
      query: row(at),
      key: column(other),
    }),
  };
}

/** @param {number} row that is outlined as the chosen query; -1: none */
const chosenIn = (row) => (row >= 0 ? { chosen: { row } } : {});

/** @param {Unit[]} rows @param {Unit[]} columns @param {ViewState} state */
function shared(rows, columns, state) {
  return {
    rows: rows.length,
    columns: columns.length,
    rowTitle: 'query',
    columnTitle: 'key',
    rowLabels: unitLabels(rows),
    columnLabels: unitLabels(columns),
    thinned: { rows: letteringFor(state.width), columns: letteringFor(state.width) },
  };
}

/**
 * The difference B − A over the shared tokens.
 * @param {{a: Side, b: Side}} sides
 * @param {ViewState} state
 * @returns {Partial<Figure>}
 */
export function differenceFigure({ a, b }, state) {
  if (!isMapped(a) || !isMapped(b)) return { notice: NO_ATTENTION };
  if (!isSamePlace(a, b))
    return { notice: `Not comparable: A shows ${kindOf(a)}, B ${kindOf(b)}.` };
  const rows = matchOf(a, b, a.place.rows);
  const columns = matchOf(a, b, a.place.columns);
  if (rows.pairs.length < LEAST_SHARED || columns.pairs.length < LEAST_SHARED)
    return { notice: 'A and B share too few tokens for a difference.' };
  /** @param {MappedSide} side @param {'a'|'b'} name */
  const mapOf = ({ trace, site, head }, name) =>
    byUnits(weightsSeen(trace, site, head), rows[name], columns[name]);
  const [before, after] = [mapOf(a, 'a'), mapOf(b, 'b')];
  const changes = difference(before, after, rows.pairs, columns.pairs);
  const subject = {
    a,
    b,
    before,
    after,
    changes,
    match: { rows, columns },
    rows: kept(rows),
    columns: kept(columns),
  };
  const reach = extent(changes);
  return {
    help: helpOf(subject, reach),
    facts: factsOf(subject),
    actions: a.trace.model === b.trace.model ? openMostChanged({ a, b }, state) : [],
    summary: `Attention weights of B less those of A: ${changes.rows} queries by ${changes.columns} keys, from ${signed(-reach)} to ${signed(reach)}.`,
    ...squaresFigure(
      {
        matrix: changes,
        rows: unitLabels(subject.rows),
        columns: unitLabels(subject.columns),
        titles: TITLES,
        kept: { rows: [], columns: [] },
        quantity: 'change in weight',
        scale: { bottom: -(reach || 1), top: reach || 1, colours: diverging(state.palette.theme) },
      },
      state,
    ),
    grid: differenceGrid(subject, state),
  };
}

/** @param {MappedSide} side */
function kindOf({ place, trace }) {
  return place.id === 'cross'
    ? 'cross-attention'
    : `self-attention of the ${place.stack}${trace.target_tokens && place.rows === 'target' ? ', which reads the target' : ''}`;
}

/** The units of A with a counterpart in B. @param {Match} match */
function kept({ a, pairs }) {
  return pairs.map(([index]) => a[index]);
}

/** @param {Compared} subject @param {number} reach */
function helpOf({ a, b, match: { rows, columns } }, reach) {
  const isWhole = rows.isWhole && columns.isWhole;
  const what =
    rows.isByWord || columns.isByWord
      ? 'The two models tokenize the text differently, so whole words are compared.'
      : isWhole
        ? ''
        : 'Only tokens that A and B share, in the same order, are compared.';
  const heads =
    a.layer !== b.layer || a.head !== b.head
      ? `${capitalised(attentionOf(b))} of B less ${attentionOf(a)} of A.`
      : '';
  const nothing =
    reach === 0
      ? 'No difference here.'
      : `Warm: B attends more; blue: less. Colours end at ±${share(reach)}, the largest change here.`;
  return [nothing, what, heads].filter(Boolean).join(' ');
}

/** @param {Compared} subject */
function factsOf({ changes, match: { rows }, rows: kept_ }) {
  return [
    ['Attention moved', percent(meanMoved(changes))],
    ...(rows.isWhole
      ? []
      : [
          [
            `Shared ${rows.isByWord ? 'words' : 'tokens'}`,
            `${kept_.length} of ${rows.a.length} and ${rows.b.length}`,
          ],
        ]),
  ];
}

/**
 * The units of one side with a counterpart on the other.
 * @param {Match} match
 * @param {'a'|'b'} side
 */
function paired(match, side) {
  return match.pairs.map(([a, b]) => match[side][side === 'a' ? a : b]);
}

/** @param {Compared} subject @param {ViewState} state @returns {Grid} */
function differenceGrid({ a, b, before, after, changes, match, rows, columns }, state) {
  const value = valueIn(changes);
  /** @param {number} row @param {number} column */
  const each = (row, column) =>
    [before, after].map(
      (matrix, of) =>
        matrix.data[match.rows.pairs[row][of] * matrix.columns + match.columns.pairs[column][of]],
    );
  /** @param {MappedSide} mapped @param {'a'|'b'} side */
  const ofSide = ({ site }, side) => ({
    site,
    rows: paired(match.rows, side),
    columns: paired(match.columns, side),
  });
  const query = queryOf(state, a.trace, a.place.rows);
  return {
    ...shared(rows, columns, state),
    ...chosenIn(rows.findIndex(({ first, last }) => first <= query && query <= last)),
    sides: { rows: a.place.rows, columns: a.place.columns },
    quantity: `attention weight of B (${b.name}) less that of A (${a.name}), ${attentionOf(a)}`,
    request: { ...b.request, capture: [b.site], heads: [b.head] },
    before: { ...a.request, capture: [a.site], heads: [a.head] },
    made: differenceMade(ofSide(a, 'a'), ofSide(b, 'b')),
    value,
    format: (change) => signed(change, 4),
    describe: (row, column) => {
      const [was, is] = each(row, column);
      const pair = `${namedUnit(rows, row)} to ${namedUnit(columns, column)}`;
      if (Number.isNaN(value(row, column)))
        return `From ${pair}: masked, the key comes later (B − A)`;
      return `From ${pair} the weight is ${share(was)} in A and ${share(is)} in B: ${signed(value(row, column))} (B − A, ${attentionOf(a)})`;
    },
    tip: (row, column) => [
      `${namedUnit(rows, row)} → ${namedUnit(columns, column)}`,
      Number.isNaN(value(row, column)) ? 'hidden: not yet read' : signed(value(row, column), 4),
    ],
    tokens: (row, column) => ({ query: tokensIn(rows[row]), key: tokensIn(columns[column]) }),
    choose: (row) => choosing(a.trace, a.place.rows, rows[row].last),
    start: largestIn(changes),
  };
}
