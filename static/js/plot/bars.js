/**
 * Bars from left to right, one row each: the predictions at one token, the likeliest on top, in which
 * the actual token has the key's colour; and logits on both sides of zero.
 */

import { isFilling, isLabelling } from '../trace/attention.js';
import { percent, signed, tick } from '../words/numbers.js';
import { guessInWords, nameOfGuess } from '../words/tokens.js';
import { shortened } from '../words/text.js';
import { matrixAt, rowOf } from '../trace/trace.js';
import { isMask, wordBehind } from '../trace/words.js';
import { css, diverging, sequential } from './colour.js';
import { chart } from './chart.js';
import { bar, endFor, endsFor } from './marks/bar.js';
import { above, rule, text } from './marks/decorations.js';
import { reader } from './marks/mark.js';
import { band, linear, linearTicks, isNarrow, labelWidth, roundTicks } from './scales.js';

/** @import { Side } from '../trace/attention.js' @import { Table } from './chart.js' */

const ROW_HEIGHT = 30;
const LEAST_ROW = 18;
/** Pixels of the axis below the rows. */
const AROUND = 60;
/** Rows are high enough for every label. @param {number} width */
const letteringIn = (width) => ({ size: 13, letters: isNarrow(width) ? 18 : 36, space: 1 });
const WIDEST = 760;

/**
 * Draw the predictions at one token, one bar each. A thin line marks the model's own probability,
 * if the bar is that of being sampled.
 * @template {Guess & {modelProbability?: number}} G
 * @param {G[]} guesses
 * @param {{event: string, side?: Side, query: number|null, say: (row: number) => string, choose?: (row: number) => Patch, table: Pick<Table, 'quantity'|'request'|'call'>, sentence?: Partial<SentenceLink>, cursor?: Partial<CellCursor>, hasOwn?: boolean, token?: number}} of `hasOwn`: the model's own probability is a column of the table; `token`: the one that predicts, if it is not `query`
 * @param {Pick<Frame, 'width'|'height'|'palette'>} frame
 */
export function guessChart(guesses, of, frame) {
  const { event, side, query, say, choose, table, sentence, cursor, hasOwn = false } = of;
  const { palette, width, height } = frame;
  const ends = guesses.map((guess) => ({
    value: Math.max(guess.probability, guess.modelProbability ?? 0),
    text: numberOf(guess),
  }));
  const { x, y, widest } = guessScales(
    guesses.map(({ name }) => name),
    ends,
    { event, width },
  );
  const lines = ownLines(guesses, ends, palette);
  /** @type {Meaning<{row: number, column: number}>} */
  const meaning = {
    value: ({ row, column }) =>
      (column === 1 ? guesses[row].modelProbability : guesses[row].probability) ?? NaN,
    format: (value) => percent(value),
    name: ({ row }) => `“${guessInWords(guesses[row].text)}”`,
    say: ({ row }) => say(row),
    tokens: () => ({ query: of.token ?? query ?? undefined }),
    ...(choose && { choose: ({ row }) => choose(row) }),
  };
  return chart(
    {
      x,
      y,
      marks: [
        reader(guesses.length, hasOwn ? 2 : 1, {
          ...meaning,
          kind: 'bar chart',
          ...(hasOwn && { hits: () => rowHits(guesses.length, Math.max(...ends.map(valueOf))) }),
        }),
        bar(guesses, {
          length: ({ probability }) => probability,
          fill: ({ mark }) => (mark ? palette.key : css(sequential(palette.theme), 128)),
          ...(lines.length === 1 && { text: numberOf }),
        }),
        ...lines,
      ],
      size: {
        widest,
        row: Math.min(ROW_HEIGHT, Math.max(LEAST_ROW, (height - AROUND) / guesses.length)),
      },
      table: {
        rows: { title: 'token' },
        columns: {
          title: '',
          labels: hasOwn ? ['probability of being sampled', 'the model’s own'] : ['probability'],
        },
        ...table,
      },
      sentence: {
        ...(side && { sides: { rows: side, columns: side } }),
        rest: { readout: say(0) },
        ...sentence,
      },
      cursor,
    },
    frame,
  );
}

/**
 * Mark the model's own probabilities by lines, if there are any, with the numbers clear of them.
 * @param {(Guess & {modelProbability?: number})[]} guesses
 * @param {{value: number}[]} ends
 * @param {Frame['palette']} palette
 */
function ownLines(guesses, ends, palette) {
  const marked = guesses.flatMap(({ modelProbability }, row) =>
    modelProbability === undefined ? [] : [{ modelProbability, row }],
  );
  return [
    rule(marked, {
      from: ({ modelProbability, row }) => ({ x: modelProbability, y: row - 0.3 }),
      to: ({ modelProbability, row }) => ({ x: modelProbability, y: row + 0.3 }),
      stroke: palette.ink,
      width: 1.5,
    }),
    ...(marked.length === 0
      ? []
      : [
          text(guesses, {
            x: (_, row) => ends[row].value,
            y: (_, row) => row,
            text: (guess) => `\u00a0${numberOf(guess)}`,
            size: 13,
            at: 'middle right',
          }),
        ]),
  ];
}

/** @param {{value: number}} end */
const valueOf = ({ value }) => value;

/**
 * Hit rows: a bar and the space behind it are one target for the pointer.
 * @param {number} count
 * @param {number} end
 * @returns {Hits}
 */
function rowHits(count, end) {
  return {
    box: (row) => (row === undefined ? null : { x0: 0, x1: end, y0: row - 0.45, y1: row + 0.45 }),
    at: (_, y) => {
      const row = Math.round(y);
      return row >= 0 && row < count ? { row, column: 0 } : null;
    },
  };
}

/** Return the number at the end of a bar. @param {Guess} guess */
function numberOf({ probability, mark }) {
  return `${percent(probability)}${mark ? `, ${mark}` : ''}`;
}

const MOST_TICKS = 4;
/** If all tokens are unlikely, the bars stay short. */
const LEAST_END = 0.026;
/**
 * Return the scales of bars of probabilities, with room for the texts at their ends; no tick
 * exceeds 100 %.
 * @param {string[]} labels of the tokens
 * @param {{value: number, text: string}[]} ends of the bars
 * @param {{event: string, width: number}} of `event`: whose probability it is; `width` of the frame
 */
export function guessScales(labels, ends, { event, width }) {
  const lettering = letteringIn(width);
  const pixels = Math.min(width, WIDEST) - labelWidth(labels, lettering) - 26;
  const end = endFor(ends, pixels, LEAST_END);
  return {
    x: linear(`probability of ${event}`, {
      domain: [0, end],
      ticks: roundTicks(Math.min(end, 1), MOST_TICKS),
      write: (share) => `${tick(share * 100)} %`,
      hasGrid: true,
    }),
    y: band(labels, lettering),
    widest: WIDEST,
  };
}

/**
 * @typedef {Object} Guess a token, with what is said of it
 * @property {string} text
 * @property {string} name
 * @property {number} probability
 * @property {string} mark text next to the right one
 * @property {string} markInWords
 */

/**
 * @typedef {Object} Words
 * @property {string} preposition
 * @property {string} event whose probability it is
 * @property {string} came
 * @property {string} cameInWords
 */

/** A model that fills in predicts the token at a place; the others predict the token after it. */
const FILLING = {
  preposition: 'At',
  event: 'standing here',
  came: 'stands here',
  cameInWords: '; this token stands there',
};
const LABELS = { preposition: 'At', event: 'the label', came: '', cameInWords: '' };
const GOING_ON = {
  preposition: 'After',
  event: 'coming next',
  came: 'came next',
  cameInWords: '; this token came next',
};

/** @param {Trace} trace @returns {Words} */
export function wordsFor(trace) {
  if (isLabelling(trace)) return LABELS;
  return isFilling(trace) ? FILLING : GOING_ON;
}

/**
 * Return the guesses of one row of an analysis.
 * @param {{ids: NamedArray, probabilities: NamedArray, texts: string[]}} prediction `texts` of that row
 * @param {number[]} leading index of the row on every axis but the last
 * @param {(id: number, text: string) => {mark: string, markInWords: string}} mark
 * @param {number} most
 * @returns {Guess[]} likeliest first
 */
export function guessesIn({ ids, probabilities, texts }, leading, mark, most) {
  /** @param {NamedArray} array */
  const at = (array) => rowOf(matrixAt(array, ...leading.slice(0, -1)), leading.at(-1) ?? 0);
  const chosen = at(ids);
  return Array.from(at(probabilities).subarray(0, most), (probability, rank) => ({
    text: texts[rank],
    name: nameOfGuess(texts[rank]),
    probability,
    ...mark(chosen[rank], texts[rank]),
  }));
}

/**
 * Return the mark of the right prediction: that the token follows, is there, or was masked.
 * @param {Trace} trace
 * @param {Token[]} tokens
 * @param {number} query the token at which it is predicted
 * @param {string} hidden the words behind masks
 * @returns {(id: number, text: string) => {mark: string, markInWords: string}} nothing of any other guess
 */
export function marker(trace, tokens, query, hidden) {
  const nothing = { mark: '', markInWords: '' };
  const word = isFilling(trace) && isMask(tokens[query]) ? wordBehind(tokens, query, hidden) : '';
  if (word !== '')
    return (_, text) =>
      text.trim() === word
        ? { mark: 'was here', markInWords: '; it is the word behind the mask' }
        : nothing;
  const { came, cameInWords } = wordsFor(trace);
  const right = isFilling(trace) ? tokens[query].id : tokens[query + 1]?.id;
  const isKnown = right !== undefined && !isMask(tokens[query]) && !isLabelling(trace);
  return (id) => (isKnown && id === right ? { mark: came, markInWords: cameInWords } : nothing);
}

const SIGNED_ROW = { height: 26, least: 16 };
const WIDEST_SIGNED = 720;
const LETTERS = { wide: 48, narrow: 18 };
/** Pixels around the bars: the ends above, the axis below. */
const AROUND_SIGNED = 66;
const LEVELS = { against: 40, quiet: 128, for: 215 };

/**
 * @typedef {Object} Bar
 * @property {string} label
 * @property {string} [short] the label on a phone
 * @property {string} name in a sentence
 * @property {number} value
 * @property {string} [written] in place of the number
 */

/**
 * Return bars on both sides of zero, with their numbers at the ends.
 * @template {Bar} B
 * @param {B[]} bars
 * @param {{title: string, ends: [string, string], table: Table, sentence?: Partial<SentenceLink>, cursor?: Partial<CellCursor>} & Partial<Meaning<B>>} of what is measured, and what its two ends mean
 * @param {Pick<Frame, 'width'|'height'|'palette'>} frame
 */
export function signedBars(bars, { title, ends, table, sentence, cursor, ...meaning }, frame) {
  const { palette, width, height } = frame;
  const colours = diverging(palette.theme);
  const lettering = {
    size: 13,
    letters: isNarrow(width) ? LETTERS.narrow : LETTERS.wide,
    space: 1,
  };
  const [left, right] = ends.map((end) => shortened(end, isNarrow(width) ? 26 : 44));
  const labels = bars.map(({ label, short }) => (isNarrow(width) ? (short ?? label) : label));
  const room = Math.max(height - AROUND_SIGNED, bars.length * SIGNED_ROW.least);
  const pixels = Math.min(width, WIDEST_SIGNED) - labelWidth(labels, lettering) - 26;
  const written = bars.map((each) => ({ value: each.value, text: writtenOf(each) }));
  return chart(
    {
      x: linear(title, {
        domain: endsFor(written, pixels),
        ticks: linearTicks(reachOf(bars), isNarrow(width) ? 4 : 6),
        hasGrid: true,
        hasZero: true,
      }),
      y: band(labels, lettering),
      marks: [
        bar(bars, {
          length: ({ value }) => value,
          fill: ({ value }) => css(colours, value < 0 ? LEVELS.against : LEVELS.for),
          text: writtenOf,
          format: (value) => withSign(value),
          name: ({ name }) => name,
          number: writtenOf,
          ...meaning,
        }),
        above(left && `← ${left}`, right && `${right} →`, isNarrow(width)),
      ],
      size: { widest: WIDEST_SIGNED, row: Math.min(SIGNED_ROW.height, room / bars.length) },
      table: { rows: { title: 'token', labels: bars.map(({ label }) => label) }, ...table },
      sentence,
      cursor,
    },
    frame,
  );
}

/** @param {Bar[]} bars @returns {[number, number]} with zero */
function reachOf(bars) {
  const values = bars.map(({ value }) => value);
  return [Math.min(0, ...values), Math.max(0, ...values)];
}

/** @param {Bar} bar */
function writtenOf({ value, written }) {
  return written ?? withSign(value);
}

/** @param {number} value @returns {string} `+0.42`, `−0.31` */
export function withSign(value) {
  const text = signed(value, 2);
  return value > 0 && !text.startsWith('<') ? `+${text}` : text;
}
