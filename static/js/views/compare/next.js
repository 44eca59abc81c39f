/**
 * What A and B expect at the chosen token, and how far apart they are.
 */

import { wordsFor } from '../../data/guesses.js';
import { OF_EACH, nextChange } from '../../data/next_change.js';
import { decimal, percent } from '../../data/number.js';
import { hasTwoSides, isFilling, predictingSide, tokensOf } from '../../data/places.js';
import { queryOf } from '../../state/state.js';
import { expectedMade } from '../../data/steps.js';
import { named, quoted } from '../../data/text.js';
import { counterpart, matchOf } from './match.js';
import { pairedBars, points } from './paired_bars.js';

/** @typedef {import('./sides.js').Side} Side */

const SHOWN = 12;

/**
 * @param {{a: Side, b: Side}} sides
 * @param {import('../../data/trace.js').NamedArray} logits of A, which the page’s own trace leaves out
 * @param {Object} state
 * @returns {Partial<import('../../plot/figure.js').Figure>}
 */
export function nextFigure({ a, b }, logits, state) {
  if (isFilling(a.trace) !== isFilling(b.trace))
    return {
      notice:
        'One of the two says what comes next, the other what stands at a place: these are no answers to one question.',
    };
  if (hasTwoSides(a.trace) !== hasTwoSides(b.trace))
    return {
      notice:
        'One of the two goes on with the text, the other translates it: these are no answers to one question.',
    };
  const query = queryOf(state, a.trace);
  const other = queryIn(a, b, query, state);
  const tokens = tokensOf(a.trace, predictingSide(a.trace));
  if (other < 0)
    return {
      notice: `${named(tokens, query)} has nothing that stands for it in B. Choose another token of the sentence.`,
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

/** The place in B that stands for the chosen token: its like, or what was read up to the same point. */
function queryIn(a, b, query, state) {
  const side = predictingSide(a.trace);
  const found = counterpart(matchOf(a, b, side), query);
  if (found >= 0) return found;
  return state.query === null ? queryOf({ ...state, query: null }, b.trace) : -1;
}

function factsOf({ moved, lost }) {
  if (moved === null)
    return [
      ['Vocabularies', 'two: tokens are matched by what they spell, and no distance is taken'],
    ];
  return [
    ['Moved from token to token', `${percent(moved)} (total variation)`],
    ['Kullback–Leibler, A from B', `${decimal(lost)} bits`],
  ];
}

const COLUMNS = ['A', 'B', 'B − A'];

function gridOf({ a, b, query, other, words, tokens, change, geometry }) {
  const value = (row, column) => {
    const token = change.tokens[row];
    return [token.a, token.b, token.b - token.a][column];
  };
  const write = (number, column) => {
    if (Number.isNaN(number)) return 'not known: not among the 20 likeliest';
    return column === 2 ? `${points(number)} percentage points` : percent(number);
  };
  const side = predictingSide(a.trace);
  const say = (row) =>
    `${words.preposition} ${named(tokens, query)}, “${change.tokens[row].name}” has probability ${write(value(row, 0), 0)} in A and ${write(value(row, 1), 1)} in B: ${write(value(row, 2), 2)}`;
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
