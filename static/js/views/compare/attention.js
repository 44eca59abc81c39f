/**
 * Attention of both sides on one colour scale, and their difference B − A.
 */

import { largestIn } from '../../trace/arithmetic.js';
import { extent, rowOf } from '../../trace/trace.js';
import { capitalised } from '../../words/lists.js';
import { percent, share, signed } from '../../words/numbers.js';
import { tokensOf } from '../../trace/attention.js';
import { alone, namedUnit, someOf, tokensIn, unitLabels } from '../../trace/words.js';
import { tokenName } from '../../words/tokens.js';
import { chart } from '../../plot/chart.js';
import { findStrongest } from '../../plot/lines.js';
import { cell } from '../../plot/marks/mark.js';
import { roleBands } from '../../plot/roles.js';
import { band } from '../../plot/scales.js';
import { choosing, queryOf } from '../../state/state.js';
import { difference, meanMoved, openMostChanged, weightsSeen } from './heads.js';
import { byUnits, alignTokens } from './match.js';
import { attentionOf, isMapped, isSamePlace, NO_ATTENTION } from './sides.js';

/**
 * @import { Table } from '../../plot/chart.js'
 * @import { Datum } from '../../plot/marks/mark.js'
 * @import { Match } from './match.js'
 * @import { Side } from './sides.js'
 */

/** The least number of compared tokens for a difference map. */
const LEAST_SHARED = 2;

/**
 * Draw the attention map of one side.
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
    rows: alone(tokensOf(side.trace, side.place.rows)),
    columns: alone(tokensOf(side.trace, side.place.columns)),
  };
  return {
    help: `${capitalised(attentionOf(side))}.`,
    summary: `Attention weights of ${which.toUpperCase()}, ${attentionOf(side)}: ${subject.matrix.rows} queries by ${subject.matrix.columns} keys.`,
    ...weightMap(
      subject,
      {
        ramp: { title: 'attention weight', domain: [0, ceilingOf(sides, state)] },
        meaning: meaningOf(subject),
        table: {
          quantity: `attention weight of ${which.toUpperCase()} (${side.name}), ${attentionOf(side)}`,
          request: { ...side.request, capture: [side.site], heads: [side.head] },
        },
      },
      which === 'a' ? ofPage(subject, state) : placed(subject, sides, state),
      state,
    ),
  };
}

/** @typedef {{meaning?: Partial<Meaning<Datum>>, sentence?: Partial<SentenceLink>, cursor?: Partial<CellCursor>}} Links what a map has to do with the page's sentences */

/**
 * Draw a map of queries by keys.
 * @param {{matrix: Matrix, rows: Unit[], columns: Unit[], side: MappedSide}} subject `side`: whose tokens the units are
 * @param {{ramp: Ramp, meaning: Partial<Meaning<Datum>>, table: Table}} of
 * @param {Links} links
 * @param {ViewState} state
 */
function weightMap({ matrix, rows, columns, side }, { ramp, meaning, table }, links, state) {
  const { query, key } = state.palette;
  const last = rows.length - 1;
  return chart(
    {
      x: band(unitLabels(columns), { title: 'key', ink: key, keep: [] }),
      y: band(unitLabels(rows), { title: 'query', ink: query, keep: [] }),
      marks: [
        cell(matrix, {
          ramp,
          name: ({ row, column }) => `${namedUnit(rows, row)} → ${namedUnit(columns, column)}`,
          ...meaning,
          ...links.meaning,
        }),
        ...roleBands(side.trace, side.place, { rows, columns }),
      ],
      size: { isSquare: true, isZoomable: true },
      table,
      sentence: links.sentence,
      cursor: {
        start: { row: last, column: findStrongest(matrix, { row: last }) },
        ...links.cursor,
      },
    },
    state,
  );
}

/** Return a number, or the reason that there is none. @param {number} value @param {(value: number) => string} write */
function shown(value, write) {
  return Number.isNaN(value) ? 'hidden: not yet read' : write(value);
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

/** @param {Subject} subject @returns {Partial<Meaning<Datum>>} */
function meaningOf({ side, which, rows, columns }) {
  const name = `${which.toUpperCase()}, ${attentionOf(side)}`;
  /** @param {number} weight */
  const write = (weight) => share(weight, 4);
  return {
    format: write,
    number: ({ value }) => shown(value, write),
    say: ({ row, column, value }) =>
      Number.isNaN(value)
        ? `${namedUnit(rows, row)} cannot attend to ${namedUnit(columns, column)}, which comes later (${name})`
        : `${namedUnit(rows, row)} attends to ${namedUnit(columns, column)} with weight ${share(value)} (${name})`,
  };
}

/**
 * The links of A's map: its tokens are those of the page's sentences.
 * @param {Subject} subject
 * @param {ViewState} state
 * @returns {Links}
 */
function ofPage({ side, matrix, rows, columns }, state) {
  const { place, trace } = side;
  const query = queryOf(state, trace, place.rows);
  /** @param {number} row */
  const ofRow = (row) => {
    const column = findStrongest(matrix, { row });
    return {
      tint: rowOf(matrix, row),
      readout: `${namedUnit(rows, row)} attends most to ${namedUnit(columns, column)} with weight ${share(matrix.data[row * matrix.columns + column])} (A, ${attentionOf(side)})`,
    };
  };
  return {
    meaning: {
      tokens: ({ row, column }) => ({ query: row, key: column }),
      choose: ({ row }) => choosing(trace, place.rows, row),
    },
    sentence: {
      sides: { rows: place.rows, columns: place.columns },
      ofRow,
      ceiling: 1,
      rest: ofRow(query),
    },
    cursor: {
      chosen: { row: query },
      start: { row: query, column: findStrongest(matrix, { row: query }) },
    },
  };
}

/**
 * The links of B's map: its tokens are marked at their counterparts in the page's sentences.
 * @param {Subject} subject
 * @param {{a: Side, b: Side|null}} sides
 * @param {ViewState} state
 * @returns {Links}
 */
function placed({ side, rows }, { a, b }, state) {
  if (!isMapped(a) || !isMapped(b) || !isSamePlace(a, b)) return {};
  /** @param {'rows'|'columns'} axis */
  const back = (axis) => {
    const { a: left, b: right, pairs } = alignTokens(a, b, side.place[axis]);
    return (/** @type {number} */ index) => {
      const unit = right.findIndex(({ first, last }) => first <= index && index <= last);
      const pair = pairs.find(([, at]) => at === unit);
      return pair ? tokensIn(left[pair[0]]) : undefined;
    };
  };
  const [rowInA, columnInA] = [back('rows'), back('columns')];
  const query = queryOf(state, a.trace, a.place.rows);
  return {
    meaning: { tokens: ({ row, column }) => ({ query: rowInA(row), key: columnInA(column) }) },
    sentence: { sides: { rows: a.place.rows, columns: a.place.columns } },
    cursor: chosenIn(rows.findIndex((_, at) => [rowInA(at) ?? []].flat().includes(query))),
  };
}

/** @param {number} row that is outlined as the chosen query; -1: none */
const chosenIn = (row) => (row >= 0 ? { chosen: { row } } : {});

/**
 * Draw the difference B − A over the compared tokens.
 * @param {{a: Side, b: Side}} sides
 * @param {ViewState} state
 * @returns {Partial<Figure>}
 */
export function differenceFigure({ a, b }, state) {
  if (!isMapped(a) || !isMapped(b)) return { notice: NO_ATTENTION };
  if (!isSamePlace(a, b))
    return { notice: `Not comparable: A shows ${kindOf(a)}, B ${kindOf(b)}.` };
  const rows = alignTokens(a, b, a.place.rows);
  const columns = alignTokens(a, b, a.place.columns);
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
    ...weightMap(
      { ...subject, matrix: changes, side: a },
      {
        ramp: { title: 'change in weight', domain: [-(reach || 1), reach || 1], isDiverging: true },
        meaning: changeIn(subject),
        table: {
          quantity: `attention weight of B (${b.name}) less that of A (${a.name}), ${attentionOf(a)}`,
          request: { ...b.request, capture: [b.site], heads: [b.head] },
          before: { ...a.request, capture: [a.site], heads: [a.head] },
          made: 'The first answer is B, the second A: the drawing shows B less A for the tokens or words that both share',
        },
      },
      linksOf(subject, state),
      state,
    ),
  };
}

/** @param {MappedSide} side */
function kindOf({ place, trace }) {
  return place.id === 'cross'
    ? 'cross-attention'
    : `self-attention of the ${place.stack}${trace.target_tokens && place.rows === 'target' ? ', which reads the target' : ''}`;
}

/** Return the units of A with a counterpart in B, one of another name by both: `saw/ran`. @param {Match} match */
function kept({ a, b, pairs }) {
  const units = [...a];
  for (const [inA, inB] of pairs) {
    const [ours, theirs] = [tokenName(a[inA]), tokenName(b[inB])];
    if (ours !== theirs) units[inA] = { ...a[inA], text: `${ours}/${theirs}`, part: null };
  }
  return someOf(
    units,
    pairs.map(([inA]) => inA),
  );
}

/** @param {Compared} subject @param {number} reach */
function helpOf({ a, b, match: { rows, columns } }, reach) {
  const isWhole = rows.isWhole && columns.isWhole;
  const what =
    rows.isByWord || columns.isByWord
      ? 'The two models tokenize the text differently, so whole words are compared.'
      : isWhole
        ? ''
        : 'A word is compared with itself in the other text, or with the one that replaced it; the others are left out.';
  const heads =
    a.layer !== b.layer || a.head !== b.head
      ? `${capitalised(attentionOf(b))} of B less ${attentionOf(a)} of A.`
      : '';
  const nothing =
    reach === 0
      ? 'No difference here.'
      : `Warm: B attends more; blue: less. Colour scale: ±${share(reach)}.`;
  return [nothing, what, heads].filter(Boolean).join(' ');
}

/** @param {Compared} subject */
function factsOf({ changes, match: { rows }, rows: kept_ }) {
  return [
    ['Attention moved', percent(meanMoved(changes))],
    ...(rows.isWhole
      ? []
      : [
          ['Compared words and pieces', `${kept_.length} of ${rows.a.length} and ${rows.b.length}`],
        ]),
    ...(rows.nReplaced > 0 ? [['Replaced words and pieces', String(rows.nReplaced)]] : []),
  ];
}

/** @param {Compared} subject @returns {Partial<Meaning<Datum>>} */
function changeIn({ a, before, after, match, rows, columns }) {
  /** @param {number} row @param {number} column */
  const each = (row, column) =>
    [before, after].map(
      (matrix, of) =>
        matrix.data[match.rows.pairs[row][of] * matrix.columns + match.columns.pairs[column][of]],
    );
  /** @param {number} change */
  const write = (change) => signed(change, 4);
  return {
    format: write,
    number: ({ value }) => shown(value, write),
    say: ({ row, column, value }) => {
      const [was, is] = each(row, column);
      const pair = `${namedUnit(rows, row)} to ${namedUnit(columns, column)}`;
      if (Number.isNaN(value)) return `From ${pair}: masked, the key comes later (B − A)`;
      return `From ${pair} the weight is ${share(was)} in A and ${share(is)} in B: ${signed(value)} (B − A, ${attentionOf(a)})`;
    },
  };
}

/** @param {Compared} subject @param {ViewState} state @returns {Links} */
function linksOf({ a, changes, rows, columns }, state) {
  const query = queryOf(state, a.trace, a.place.rows);
  return {
    meaning: {
      tokens: ({ row, column }) => ({ query: tokensIn(rows[row]), key: tokensIn(columns[column]) }),
      choose: ({ row }) => choosing(a.trace, a.place.rows, rows[row].last),
    },
    sentence: { sides: { rows: a.place.rows, columns: a.place.columns } },
    cursor: {
      ...chosenIn(rows.findIndex(({ first, last }) => first <= query && query <= last)),
      start: largestIn(changes),
    },
  };
}
