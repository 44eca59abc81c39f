/**
 * The next-token distributions of A and B at the chosen token, and the distance between them.
 */

import { divergence, softmax, totalVariation } from '../../trace/arithmetic.js';
import { decimal, percent } from '../../words/numbers.js';
import { guessInWords, nameOfGuess, named } from '../../words/tokens.js';
import { placeInWords } from '../../trace/word_names.js';
import { guessScales, wordsFor } from '../../plot/bars.js';
import { hasTwoSides, isFilling, predictingSide, tokensOf } from '../../trace/attention.js';
import { matrixAt, rowOf } from '../../trace/trace.js';
import { chart } from '../../plot/chart.js';
import { css, diverging } from '../../plot/colour.js';
import { bar } from '../../plot/marks/bar.js';
import { reader } from '../../plot/marks/mark.js';
import { queryOf } from '../../state/state.js';
import { counterpart, alignTokens } from './match.js';

/** @import { Side } from './sides.js' */

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
  const queryB = queryIn(a, b, query, state);
  const tokens = tokensOf(a.trace, predictingSide(a.trace));
  if (queryB < 0)
    return {
      notice: `${named(tokens, query)} has no counterpart in B. Choose another token of the sentence.`,
    };
  const words = wordsFor(a.trace);
  const place = placeInWords(a.trace, predictingSide(a.trace), query);
  const change = nextChange(
    { logits, likeliest: a.trace.analyses.next_token, tokens, query },
    {
      logits: b.trace.tensors.logits,
      likeliest: b.trace.analyses.next_token,
      tokens: tokensOf(b.trace, predictingSide(b.trace)),
      query: queryB,
    },
    SHOWN,
  );
  const theirs = placeInWords(b.trace, predictingSide(b.trace), queryB);
  return {
    title: `${words.preposition} ${place}`,
    help: theirs === place ? '' : `In B: ${words.preposition.toLowerCase()} ${theirs}.`,
    summary: `The tokens that A or B finds likeliest ${words.preposition.toLowerCase()} ${place}, with the probability that each gives.`,
    facts: factsOf(change),
    ...pairedBars({ a, b, query, words, place, change }, state),
  };
}

/**
 * Return the position in B that corresponds to the chosen token: its counterpart, or the last token
 * of the same prefix.
 * @param {Side} a
 * @param {Side} b
 * @param {number} query
 * @param {ViewState} state
 */
function queryIn(a, b, query, state) {
  const side = predictingSide(a.trace);
  const inB = counterpart(alignTokens(a, b, side), query);
  if (inB >= 0) return inB;
  return state.query === null ? queryOf(state, b.trace) : -1;
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

/** @typedef {{a: Side, b: Side, query: number, words: Words, place: string, change: NextChange}} Subject */

const ROW_HEIGHT = 42;
const BAR = { width: 0.36, apart: 0.19 };
/** A is blue and B warm, as in the map of B − A. */
const SIDES = /** @type {const} */ ([
  { id: 'a', level: 40, offset: -BAR.apart },
  { id: 'b', level: 215, offset: BAR.apart },
]);

/** @param {Subject} subject @param {ViewState} state */
function pairedBars(subject, { palette, width }) {
  const { a, b, words, change } = subject;
  const { tokens } = change;
  const side = predictingSide(a.trace);
  const { x, y, widest } = guessScales(
    tokens.map(({ name }) => name),
    tokens.flatMap((token) =>
      SIDES.map(({ id }) => ({ value: token[id] || 0, text: numberOf(token, id) })),
    ),
    { event: words.event, width },
  );
  return chart(
    {
      x,
      y,
      marks: [
        reader(tokens.length, COLUMNS.length, {
          kind: 'bar chart',
          ...meaningOf(subject),
          hits: (plan) => hitsOf(tokens.length, plan),
        }),
        ...SIDES.map(({ id, level, offset }) =>
          bar(tokens, {
            length: (token) => token[id],
            at: (_, row) => row + offset,
            thickness: BAR.width,
            fill: css(diverging(palette.theme), level),
            text: (token) => numberOf(token, id),
            ink: id === 'a' ? palette.muted : palette.ink,
            swatch: id.toUpperCase(),
          }),
        ),
      ],
      size: { widest, row: ROW_HEIGHT },
      table: {
        rows: { title: 'token' },
        columns: { title: '', labels: COLUMNS },
        quantity: `probability of ${words.event} in A (${a.name}) and B (${b.name})`,
        request: { ...b.request, capture: ['logits'], analyses: ['next_token'] },
        before: { ...a.request, capture: ['logits'], analyses: ['next_token'] },
        made: 'The first answer is B, the second A: the drawing shows the softmax of both at the chosen token, and B less A',
      },
      sentence: { sides: { rows: side, columns: side } },
    },
    { palette, width },
  );
}

/** @param {Subject} subject @returns {Meaning<{row: number, column: number}>} */
function meaningOf({ query, words, place, change }) {
  /** @param {{row: number, column: number}} cell */
  const value = ({ row, column }) => {
    const token = change.tokens[row];
    return [token.a, token.b, token.b - token.a][column];
  };
  /** @param {{row: number, column: number}} cell */
  const write = (cell) => {
    const number = value(cell);
    if (Number.isNaN(number)) return cell.column === 2 ? 'unknown' : UNLISTED;
    return cell.column === 2 ? `${points(number)} percentage points` : percent(number);
  };
  /** @param {number} row */
  const both = (row) => {
    const [inA, inB, more] = [0, 1, 2].map((column) => write({ row, column }));
    if (inA === UNLISTED) return `is not among A’s 20 likeliest tokens; B gives it ${inB}`;
    if (inB === UNLISTED) return `is not among B’s 20 likeliest tokens; A gives it ${inA}`;
    return `has probability ${inA} in A and ${inB} in B: ${more}`;
  };
  const names = change.tokens.map(({ text }) => guessInWords(text));
  /** Spaces tell `a` from `·a`. @param {number} row */
  const called = (row) =>
    names.filter((name) => name === names[row]).length > 1
      ? nameOfGuess(change.tokens[row].text)
      : names[row];
  return {
    value,
    format: (number) => (number < 0 ? `${points(number)} %` : percent(number)),
    name: ({ row, column }) => `“${called(row)}”, ${COLUMNS[column]}`,
    number: write,
    say: ({ row }) => `${words.preposition} ${place}, “${called(row)}” ${both(row)}`,
    tokens: () => ({ query }),
  };
}

/**
 * Cells of A, of B, and of the change, which spans the row.
 * @param {number} count of tokens
 * @param {Plan} plan
 * @returns {Hits}
 */
function hitsOf(count, { x }) {
  return {
    box(row, column) {
      if (row === undefined) return null;
      const y0 = column === 1 ? row : row - 0.5;
      const y1 = column === 0 ? row : row + 0.5;
      return { x0: 0, x1: x.range[1], y0, y1 };
    },
    at(_, y) {
      const row = Math.round(y);
      return row >= 0 && row < count ? { row, column: y < row ? 0 : 1 } : null;
    },
  };
}

/** @param {Expected} token @param {'a'|'b'} side */
function numberOf(token, side) {
  if (Number.isNaN(token[side])) return UNLISTED;
  const change = side === 'b' && !Number.isNaN(token.a) ? `  ${points(token.b - token.a)}` : '';
  return percent(token[side]) + change;
}

/**
 * Return a change in percentage points, with its sign.
 * @param {number} change a difference of probabilities
 */
function points(change) {
  const text = percent(Math.abs(change)).replace(/ %$/, '');
  if (Math.abs(change) < ROUNDING) return '±0';
  if (text.startsWith('<')) return '≈0';
  const least = text.startsWith('>') ? (change > 0 ? '>' : '<') : '';
  return `${least}${change > 0 ? '+' : '−'}${text.replace('>', '')}`;
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
/** The distance between two passes of equal inputs, only from rounding. */
const ROUNDING = 1e-6;

/**
 * @typedef {Object} View what one pass expects at one place
 * @property {NamedArray} logits
 * @property {{ids: NamedArray, probabilities: NamedArray, texts: string[][]}} likeliest
 * @property {Token[]} tokens
 * @property {number} query
 */

/** @param {View} a @param {View} b @param {number} most tokens @returns {NextChange} */
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

/** Return the likeliest tokens of a position, as the API returned them. @param {View} view */
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
 * Return true if both sides use one vocabulary, judged by the tokens both of them returned.
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
  const of = (list, text) => list.find((token) => token.text === text)?.probability ?? NaN;
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
  return tokens.sort((token, next) => greatest(next) - greatest(token));
}
