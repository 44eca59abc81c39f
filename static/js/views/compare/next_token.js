/**
 * The next-token distributions of A and B at the chosen token, and the distance between them.
 */

import { divergence, softmax, totalVariation } from '../../data/arithmetic.js';
import { decimal, percent, escapeForPlotly, named, quoted } from '../../data/format.js';
import { nameOfGuess, wordsFor } from '../../plot/bars.js';
import { hasTwoSides, isFilling, predictingSide, tokensOf } from '../../data/attention.js';
import { expectedMade } from '../../data/request_code.js';
import { matrixAt, rowOf } from '../../data/trace.js';
import { css, diverging } from '../../plot/colour.js';
import { baseLayout, downwards, labelAxis, labelWidth, paperText } from '../../plot/figure.js';
import { probabilityAxis } from '../../plot/bars.js';
import { queryOf } from '../../state/state.js';
import { counterpart, matchOf } from './sides.js';

/**
 * @import { NamedArray, Token } from '../../data/trace.js'
 * @import { Figure, Frame, Layout, Palette, PlotlyTrace, ViewState } from '../../plot/figure.js'
 * @import { Geometry, Grid } from '../../plot/grid.js'
 * @import { Words } from '../../plot/bars.js'
 * @import { Side } from './sides.js'
 */

const SHOWN = 12;
/** Of a token that the API does not list. */
const UNLISTED = 'not among its 20 likeliest';

/**
 * @param {{a: Side, b: Side}} sides
 * @param {NamedArray} logits of A, which the page’s own trace leaves out
 * @param {ViewState} state
 * @returns {Partial<Figure>}
 */
export function nextFigure({ a, b }, logits, state) {
  if (isFilling(a.trace) !== isFilling(b.trace))
    return { notice: 'Not comparable: one model predicts the next token, the other fills masks.' };
  if (hasTwoSides(a.trace) !== hasTwoSides(b.trace))
    return { notice: 'Not comparable: one model continues the text, the other translates it.' };
  const query = queryOf(state, a.trace);
  const other = queryIn(a, b, query, state);
  const tokens = tokensOf(a.trace, predictingSide(a.trace));
  if (other < 0)
    return {
      notice: `${named(tokens, query)} has no counterpart in B. Choose another token of the sentence.`,
    };
  const words = wordsFor(a.trace);
  const change = nextChange(
    { logits, likeliest: a.trace.analyses.next_token, tokens, query },
    {
      logits: b.trace.tensors.logits,
      likeliest: b.trace.analyses.next_token,
      tokens: tokensOf(b.trace, predictingSide(b.trace)),
      query: other,
    },
    SHOWN,
  );
  const { geometry, ...drawing } = pairedBars(change.tokens, words, state);
  const theirs = quoted(tokensOf(b.trace, predictingSide(b.trace))[other]);
  return {
    title: `${words.preposition} ${quoted(tokens[query])}`,
    help:
      theirs === quoted(tokens[query]) ? '' : `In B: ${words.preposition.toLowerCase()} ${theirs}.`,
    summary: `The tokens that A or B finds likeliest ${words.preposition.toLowerCase()} ${quoted(tokens[query])}, with the probability that each gives.`,
    facts: factsOf(change),
    ...drawing,
    grid: gridOf({ a, b, query, other, words, tokens, change, geometry }),
  };
}

/**
 * The position in B that corresponds to the chosen token: its counterpart, or the last token of the
 * same prefix.
 * @param {Side} a
 * @param {Side} b
 * @param {number} query
 * @param {ViewState} state
 */
function queryIn(a, b, query, state) {
  const side = predictingSide(a.trace);
  const found = counterpart(matchOf(a, b, side), query);
  if (found >= 0) return found;
  return state.query === null ? queryOf({ ...state, query: null }, b.trace) : -1;
}

/** @param {NextChange} nextChange */
function factsOf({ moved, lost }) {
  if (moved === null)
    return [['Vocabularies', 'two: tokens are matched by their text, and no distance is computed']];
  return [
    ['Probability that moved', `${percent(moved)} (total variation)`],
    ['Kullback–Leibler, A from B', `${decimal(lost ?? 0)} bits`],
  ];
}

const COLUMNS = ['A', 'B', 'B − A'];

/**
 * @param {{a: Side, b: Side, query: number, other: number, words: Words, tokens: Token[], change: NextChange, geometry: Geometry}} subject
 * @returns {Grid}
 */
function gridOf({ a, b, query, other, words, tokens, change, geometry }) {
  /** @param {number} row @param {number} column */
  const value = (row, column) => {
    const token = change.tokens[row];
    return [token.a, token.b, token.b - token.a][column];
  };
  /** @param {number} number @param {number} column */
  const write = (number, column) => {
    if (Number.isNaN(number)) return column === 2 ? 'unknown' : UNLISTED;
    return column === 2 ? `${points(number)} percentage points` : percent(number);
  };
  const side = predictingSide(a.trace);
  /** @param {number} row */
  const both = (row) => {
    const [inA, inB, more] = [0, 1, 2].map((column) => write(value(row, column), column));
    if (inA === UNLISTED) return `is not among A’s 20 likeliest tokens; B gives it ${inB}`;
    if (inB === UNLISTED) return `is not among B’s 20 likeliest tokens; A gives it ${inA}`;
    return `has probability ${inA} in A and ${inB} in B: ${more}`;
  };
  /** @param {number} row */
  const say = (row) =>
    `${words.preposition} ${named(tokens, query)}, “${change.tokens[row].name}” ${both(row)}`;
  return {
    rows: change.tokens.length,
    columns: COLUMNS.length,
    sides: { rows: side, columns: side },
    rowTitle: 'token',
    columnTitle: '',
    kind: 'bar chart',
    rowLabels: change.tokens.map(({ name }) => name),
    columnLabels: COLUMNS,
    quantity: `probability of ${words.event} in A (${a.name}) and B (${b.name})`,
    request: { ...b.request, capture: ['logits'], analyses: ['next_token'] },
    before: { ...a.request, capture: ['logits'], analyses: ['next_token'] },
    made: expectedMade(query, other, {
      isOneVocabulary: change.moved !== null,
      ofEach: OF_EACH,
      most: SHOWN,
    }),
    value,
    format: (number) => (number < 0 ? `${points(number)} %` : percent(number)),
    describe: say,
    tip: (row, column) => [
      `“${change.tokens[row].name}”, ${COLUMNS[column]}`,
      write(value(row, column), column),
    ],
    tokens: () => ({ query }),
    start: { row: 0, column: 0 },
    geometry,
  };
}

const ROW_HEIGHT = 42;
const BAR = { width: 0.36, apart: 0.19 };
const LETTERING = { size: 13, letters: 14, space: 1 };
const NUMBER = { size: 12, letters: 30, space: 1 };
const WIDEST = 760;
/** A is blue and B warm, as in the map of B − A. */
/** @type {('a'|'b')[]} */
const SIDES = ['a', 'b'];
const LEVELS = { a: 40, b: 215 };
const KEY_HEIGHT = 24;

/**
 * @param {Expected[]} tokens
 * @param {{event: string}} words whose probability it is
 * @param {Frame} state
 * @returns {{data: PlotlyTrace[], layout: Layout, geometry: Geometry}}
 */
function pairedBars(tokens, { event }, { palette, width }) {
  const labels = tokens.map(({ name }) => name);
  const margin = { l: labelWidth(labels, LETTERING) + 16, r: 16, t: KEY_HEIGHT, b: 44 };
  const height = tokens.length * ROW_HEIGHT;
  const total = Math.min(width, WIDEST);
  const ended = tokens.flatMap((token) =>
    SIDES.map((side) => ({ probability: token[side] || 0, number: numberOf(token, side) })),
  );
  const axis = probabilityAxis(ended, event, {
    palette,
    pixels: total - margin.l - margin.r,
    lettering: NUMBER,
  });
  return {
    data: SIDES.map((side) => bars(tokens, side, palette)),
    layout: {
      ...baseLayout(palette, { width: total, height: height + margin.t + margin.b, margin }),
      barmode: 'overlay',
      annotations: keys(palette),
      xaxis: axis,
      yaxis: downwards(
        labelAxis({ labels, pixels: height, title: '', palette, lettering: LETTERING }),
      ),
    },
    geometry: geometryOf(tokens, axis.range[1]),
  };
}

/** @param {Expected[]} tokens @param {'a'|'b'} side @param {Palette} palette */
function bars(tokens, side, palette) {
  return {
    type: 'bar',
    orientation: 'h',
    x: tokens.map((token) => (Number.isNaN(token[side]) ? 0 : token[side])),
    y: tokens.map((_, row) => row + middleOf(side)),
    width: BAR.width,
    text: tokens.map((token) => escapeForPlotly(numberOf(token, side))),
    textposition: 'outside',
    textfont: { size: 12, color: side === 'a' ? palette.muted : palette.ink },
    cliponaxis: false,
    hoverinfo: 'none',
    marker: { color: css(diverging(palette.theme), LEVELS[side]), line: { width: 0 } },
  };
}

/** @param {'a'|'b'} side */
function middleOf(side) {
  return side === 'a' ? -BAR.apart : BAR.apart;
}

/** @param {Expected} token @param {'a'|'b'} side */
function numberOf(token, side) {
  if (Number.isNaN(token[side])) return UNLISTED;
  const change = side === 'b' && !Number.isNaN(token.a) ? `  ${points(token.b - token.a)}` : '';
  return percent(token[side]) + change;
}

/**
 * A change in percentage points, with its sign.
 * @param {number} change a difference of probabilities
 */
function points(change) {
  const text = percent(Math.abs(change)).replace(/ %$/, '');
  if (Math.abs(change) < ROUNDING) return '±0';
  if (text.startsWith('<')) return '≈0';
  return `${change > 0 ? '+' : '−'}${text}`;
}

/** The legend: one entry per side. @param {Palette} palette */
function keys({ theme, ink }) {
  const scale = diverging(theme);
  return SIDES.flatMap((side, index) => {
    const above = { x: 0, xanchor: 'left', y: 1, yanchor: 'bottom', yshift: 4 };
    const left = index * 44;
    return [
      paperText('■', css(scale, LEVELS[side]), { ...above, xshift: left }, 14),
      paperText(side.toUpperCase(), ink, { ...above, xshift: left + 16 }),
    ];
  });
}

/**
 * Columns of the grid: A, B, and the change, which spans the row.
 * @param {Expected[]} tokens
 * @param {number} end
 * @returns {Geometry}
 */
function geometryOf(tokens, end) {
  return {
    box(row, column) {
      if (row === undefined) return null;
      const y0 = column === 1 ? row : row - 0.5;
      const y1 = column === 0 ? row : row + 0.5;
      return { x0: 0, x1: end, y0, y1 };
    },
    at(_, y) {
      const row = Math.round(y);
      return row >= 0 && row < tokens.length ? { row, column: y < row ? 0 : 1 } : null;
    },
  };
}

/**
 * @typedef {Object} Expected
 * @property {string} text
 * @property {string} name
 * @property {number} a probability
 * @property {number} b probability; NaN if unknown
 */

/**
 * @typedef {Object} NextChange
 * @property {Expected[]} tokens of either side’s likeliest, by the greater probability
 * @property {number|null} moved total variation distance; null: two vocabularies
 * @property {number|null} lost Kullback–Leibler divergence of A from B, in bits
 */

const OF_EACH = 8;
/** The distance between two passes of equal inputs, from rounding alone. */
const ROUNDING = 1e-6;

/**
 * @typedef {Object} View what one pass expects at one place
 * @property {NamedArray} logits
 * @property {{ids: NamedArray, probabilities: NamedArray, texts: string[][]}} likeliest
 * @property {Token[]} tokens
 * @property {number} query
 */

/**
 * @param {View} a
 * @param {View} b
 * @param {number} most tokens
 * @returns {NextChange}
 */
export function nextChange(a, b, most) {
  const [listA, listB] = [a, b].map(listed);
  if (!isOneVocabulary(a, b))
    return { tokens: byText(listA, listB, most), moved: null, lost: null };
  const [p, q] = [a, b].map(({ logits, query }) => softmax(rowOf(matrixAt(logits), query)));
  const texts = new Map(
    [...listA, ...listB].filter(({ rank }) => rank < OF_EACH).map(({ id, text }) => [id, text]),
  );
  const tokens = [...texts].map(([id, text]) => ({
    text,
    name: nameOfGuess(text),
    a: p[id],
    b: q[id],
  }));
  const moved = totalVariation(p, q);
  const isRounding = moved < ROUNDING;
  return {
    tokens: likeliestFirst(tokens).slice(0, most),
    moved: isRounding ? 0 : moved,
    lost: isRounding ? 0 : divergence(p, q),
  };
}

/** The likeliest tokens of a position, as the API returned them. @param {View} view */
function listed({ likeliest: { ids, probabilities, texts }, query }) {
  const chances = rowOf(matrixAt(probabilities), query);
  return Array.from(rowOf(matrixAt(ids), query), (id, rank) => ({
    id,
    rank,
    text: texts[query][rank],
    probability: chances[rank],
  }));
}

/**
 * Whether both sides use one vocabulary, judged by the tokens both of them returned.
 * @param {View} a
 * @param {View} b
 */
function isOneVocabulary(a, b) {
  if (a.logits.shape.at(-1) !== b.logits.shape.at(-1)) return false;
  const spelled = spelling(a);
  return [...spelling(b)].every(([id, text]) => !spelled.has(id) || spelled.get(id) === text);
}

/** @param {View} view */
function spelling({ likeliest: { ids, texts }, tokens }) {
  const spelled = new Map(tokens.map(({ id, text }) => [id, text]));
  texts.flat().forEach((text, at) => spelled.set(ids.data[at], text));
  return spelled;
}

/**
 * Tokens of two vocabularies are matched by text; a token outside a side's likeliest has no known
 * probability.
 * @param {ReturnType<typeof listed>[number][]} listA
 * @param {ReturnType<typeof listed>[number][]} listB
 * @param {number} most
 */
function byText(listA, listB, most) {
  /** @param {ReturnType<typeof listed>[number][]} list @param {string} text */
  const of = (list, text) => list.find((one) => one.text === text)?.probability ?? NaN;
  const texts = new Set(
    [...listA, ...listB].filter(({ rank }) => rank < OF_EACH).map(({ text }) => text),
  );
  return likeliestFirst(
    [...texts].map((text) => ({
      text,
      name: nameOfGuess(text),
      a: of(listA, text),
      b: of(listB, text),
    })),
  ).slice(0, most);
}

/** @param {Expected[]} tokens */
function likeliestFirst(tokens) {
  /** @param {Expected} expected */
  const greatest = ({ a, b }) => Math.max(...[a, b].filter((chance) => !Number.isNaN(chance)));
  return tokens.sort((one, other) => greatest(other) - greatest(one));
}
