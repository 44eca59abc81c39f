/**
 * Bars from left to right, one row each: the predictions at one token, the likeliest on top, in which
 * the actual token has the key's colour; and logits on both sides of zero.
 */

import { isFilling } from '../data/attention.js';
import { percent, signed, tick, bytesInWords, escapeForPlotly, visible } from '../data/format.js';
import { matrixAt, rowOf } from '../data/trace.js';
import { isMask, wordBehind } from '../data/words.js';
import { css, diverging, sequential } from './colour.js';
import { chart } from './chart.js';
import { bar, endFor } from './marks/bar.js';
import { rule } from './marks/other.js';
import { band, linear } from './scales.js';
import {
  baseLayout,
  downwards,
  isNarrow,
  labelAxis,
  labelWidth,
  roundTicks,
  amountAxis,
  paperText,
} from './figure.js';

/**
 * @import { Side } from '../data/attention.js'
 * @import { NamedArray, Token, Trace } from '../data/trace.js'
 * @import { Patch } from '../state/state.js'
 * @import { CellCursor, NumberGrid } from './grid.js'
 * @import { Drawing, Frame, Lettering, Palette } from './figure.js'
 */

const ROW_HEIGHT = 30;
/** Rows are high enough for every label. */
const LETTERING = { size: 13, letters: 14, space: 1 };
const NUMBER = { size: 12, letters: 24, space: 1 };
const WIDEST = 760;

/**
 * @param {Frame} state
 * @param {Guess[]} guesses
 * @param {Pick<Words, 'event'>} words
 * @returns {Drawing}
 */
export function guessBars({ palette, width }, guesses, words) {
  const scale = sequential(palette.theme);
  const labels = guesses.map(({ name }) => name);
  const ended = guesses.map((guess) => ({
    probability: guess.probability,
    number: numberOf(guess),
  }));
  const margin = { l: labelWidth(labels, LETTERING) + 16, r: 16, t: 4, b: 44 };
  const height = guesses.length * ROW_HEIGHT;
  const total = Math.min(width, WIDEST);
  return {
    data: [
      barTrace(
        guesses.map(({ mark }, row) => ({
          value: ended[row].probability,
          written: ended[row].number,
          colour: mark ? palette.key : css(scale, 128),
        })),
        palette,
      ),
    ],
    layout: {
      ...baseLayout(palette, { width: total, height: height + margin.t + margin.b, margin }),
      xaxis: probabilityAxis(ended, words.event, {
        palette,
        pixels: total - margin.l - margin.r,
        lettering: NUMBER,
      }),
      yaxis: downwards(
        labelAxis({ labels, pixels: height, title: '', palette, lettering: LETTERING }),
      ),
    },
  };
}

/**
 * The predictions at one token, one bar each. A thin line marks the model's own probability, if the
 * bar is that of being sampled.
 * @param {(Guess & {own?: number})[]} guesses
 * @param {{event: string, side: Side, query: number, say: (row: number) => string, choose?: (row: number) => Patch, cursor?: Partial<CellCursor>} & Pick<NumberGrid, 'quantity'|'request'>} of
 * @param {Frame} state
 */
export function guessChart(guesses, { event, side, query, say, choose, cursor, ...source }, state) {
  const { palette, width } = state;
  const labels = guesses.map(({ name }) => name);
  const pixels = Math.min(width, WIDEST) - labelWidth(labels, LETTERING) - 26;
  const ends = guesses.map((guess) => ({ value: guess.probability, text: numberOf(guess) }));
  const owns = guesses.flatMap(({ own }, row) => (own === undefined ? [] : [{ own, row }]));
  const end = endFor(ends, pixels, Math.max(LEAST_END, ...owns.map(({ own }) => own)));
  return chart(
    {
      x: linear(`probability of ${event}`, {
        domain: [0, end],
        ticks: roundTicks(Math.min(end, 1), MOST_TICKS),
        write: (share) => `${tick(share * 100)} %`,
        hasGrid: true,
      }),
      y: band(labels, { ...LETTERING }),
      marks: [
        bar(guesses, {
          x: ({ probability }) => probability,
          fill: ({ mark }) => (mark ? palette.key : css(sequential(palette.theme), 128)),
          text: numberOf,
          format: (value) => percent(value),
          name: ({ name }) => `“${name}”`,
          say: (guess) => say(guesses.indexOf(guess)),
          tokens: () => ({ query }),
          ...(choose && { choose: (guess) => choose(guesses.indexOf(guess)) }),
        }),
        rule(owns, {
          from: ({ own, row }) => ({ x: own, y: row - 0.4 }),
          to: ({ own, row }) => ({ x: own, y: row + 0.4 }),
          stroke: palette.ink,
          width: 1.5,
        }),
      ],
      size: { widest: WIDEST, row: ROW_HEIGHT },
      table: {
        rows: { title: 'token' },
        columns: { title: '', labels: ['probability'] },
        ...source,
      },
      sentence: { sides: { rows: side, columns: side }, rest: { readout: say(0) } },
      cursor,
    },
    state,
  );
}

/**
 * Bars from left to right, one row each, with their numbers at the ends.
 * @param {{value: number, written: string, colour: string}[]} rows
 * @param {Palette} palette
 */
export function barTrace(rows, palette) {
  return {
    type: 'bar',
    orientation: 'h',
    x: rows.map(({ value }) => value),
    y: rows.map((_, row) => row),
    width: 0.66,
    text: rows.map(({ written }) => escapeForPlotly(written)),
    textposition: 'outside',
    textfont: { size: 12, color: palette.ink },
    cliponaxis: false,
    hoverinfo: 'none',
    marker: { color: rows.map(({ colour }) => colour), line: { width: 0 } },
  };
}

/** The number at the end of a bar. @param {Guess} guess */
function numberOf({ probability, mark }) {
  return `${percent(probability)}${mark ? ` · ${mark}` : ''}`;
}

/**
 * The part that all grids of guesses share: one row per guess, all for one token.
 * @param {Guess[]} guesses
 * @param {{side: Side, query: number, say: (row: number) => string}} of
 */
export function guessesGrid(guesses, { side, query, say }) {
  return {
    rows: guesses.length,
    columns: 1,
    sides: { rows: side, columns: side },
    rowTitle: 'token',
    columnTitle: '',
    rowLabels: guesses.map(({ name }) => name),
    columnLabels: ['probability'],
    value: (/** @type {number} */ row) => guesses[row].probability,
    format: (/** @type {number} */ probability) => percent(probability),
    describe: say,
    tip: (/** @type {number} */ row) => [
      `“${guesses[row].name}”`,
      percent(guesses[row].probability),
    ],
    tokens: () => ({ query }),
    start: { row: 0, column: 0 },
    rest: { readout: say(0) },
  };
}

const MOST_TICKS = 4;
/** If all tokens are unlikely, the bars stay short. */
const LEAST_END = 0.026;
const MOST_TAKEN = 0.8;
const GAP = 8;

/**
 * The axis leaves room for the number behind each bar; no tick exceeds 100 %.
 * @param {{probability: number, number: string}[]} bars `number`: what stands at its end
 * @param {string} event whose probability it is
 * @param {{palette: Palette, pixels: number, lettering: Lettering}} set `pixels`: how long the axis is; `lettering` of the numbers
 * @returns {{range: [number, number]} & Record<string, unknown>} an axis of Plotly's
 */
export function probabilityAxis(bars, event, { palette, pixels, lettering }) {
  /** @param {{probability: number, number: string}} of */
  const endOf = ({ probability, number }) =>
    probability / (1 - Math.min(MOST_TAKEN, (labelWidth([number], lettering) + GAP) / pixels));
  const end = Math.max(...bars.map(endOf), LEAST_END);
  const tickvals = roundTicks(Math.min(end, 1), MOST_TICKS);
  return {
    range: [0, end],
    tickvals,
    ticktext: tickvals.map((probability) => `${tick(probability * 100)} %`),
    ...amountAxis(`probability of ${event}`, palette),
  };
}

/**
 * @typedef {Object} Guess a token, with what is said of it
 * @property {string} text
 * @property {string} name
 * @property {number} probability
 * @property {string} mark text beside the right one
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
const GOING_ON = {
  preposition: 'After',
  event: 'coming next',
  came: 'came next',
  cameInWords: '; this token came next',
};

/** @param {Trace} trace @returns {Words} */
export function wordsFor(trace) {
  return isFilling(trace) ? FILLING : GOING_ON;
}

/**
 * The guesses of one row of an analysis.
 * @param {{ids: NamedArray, probabilities: NamedArray, texts: string[]}} found `texts` of that row
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
 * @param {string} text
 * @returns {string} the token with its spaces shown, or the bytes that it is
 */
export function nameOfGuess(text) {
  return bytesInWords(text) ?? visible(text);
}

/**
 * The mark of the right prediction: that the token follows, stands there, or was masked.
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
  const isKnown = right !== undefined && !isMask(tokens[query]);
  return (id) => (isKnown && id === right ? { mark: came, markInWords: cameInWords } : nothing);
}

const SIGNED_ROW = { height: 26, least: 18 };
const WIDEST_SIGNED = 720;
const LETTERS = { wide: 48, narrow: 18 };
/** The share of the room that bars have at least, beside their numbers. */
const LEAST_BARS = 0.3;
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
 * @param {Bar[]} bars
 * @param {{title: string, ends: [string, string]}} axis what is measured, and what its two ends mean
 * @param {Frame} state
 * @returns {Drawing}
 */
export function signedBars(bars, { title, ends }, { palette, width, height: room }) {
  const scale = diverging(palette.theme);
  const lettering = {
    size: 13,
    letters: isNarrow(width) ? LETTERS.narrow : LETTERS.wide,
    space: 1,
  };
  const labels = bars.map(({ label, short }) => (isNarrow(width) ? (short ?? label) : label));
  const margin = { l: labelWidth(labels, lettering) + 14, r: 12, t: 22, b: 44 };
  const height = Math.min(
    bars.length * SIGNED_ROW.height,
    Math.max(room - margin.t - margin.b, bars.length * SIGNED_ROW.least),
  );
  const total = Math.min(width, WIDEST_SIGNED);
  const range = rangeOf(bars, total - margin.l - margin.r);
  return {
    data: [
      barTrace(
        bars.map((bar) => ({
          value: bar.value,
          written: writtenOf(bar),
          colour: css(scale, bar.value < 0 ? LEVELS.against : LEVELS.for),
        })),
        palette,
      ),
    ],
    layout: {
      ...baseLayout(palette, { width: total, height: height + margin.t + margin.b, margin }),
      xaxis: {
        range,
        nticks: isNarrow(width) ? 4 : 6,
        tickformat: '~g',
        ...amountAxis(title, palette),
        zeroline: true,
        zerolinecolor: palette.muted,
        zerolinewidth: 1,
      },
      yaxis: downwards(labelAxis({ labels, pixels: height, title: '', palette, lettering })),
      annotations: endsOf(ends, palette),
    },
  };
}

/** @param {Bar} bar */
export function writtenOf({ value, written }) {
  return written ?? withSign(value);
}

/** @param {number} value @returns {string} `+0.42`, `−0.31` */
export function withSign(value) {
  const text = signed(value, 2);
  return value > 0 && !text.startsWith('<') ? `+${text}` : text;
}

/**
 * The ends of the axis leave room for what is written beside the bars of either side.
 * @param {Bar[]} bars
 * @param {number} pixels
 * @returns {[number, number]}
 */
function rangeOf(bars, pixels) {
  const values = bars.map(({ value }) => value);
  const least = Math.min(0, ...values);
  const most = Math.max(0, ...values);
  const [left, right] = [
    (/** @type {Bar} */ { value }) => value < 0,
    (/** @type {Bar} */ { value }) => value >= 0,
  ].map((isOfSide) => {
    const written = bars.filter(isOfSide).map(writtenOf);
    return written.length > 0 ? labelWidth(written, NUMBER) + GAP : 0;
  });
  const scale = Math.max(LEAST_BARS * pixels, pixels - left - right) / (most - least || 1);
  return [least - left / scale, most + right / scale];
}

/** @param {[string, string]} ends @param {{muted: string}} palette */
function endsOf([left, right], { muted }) {
  const above = { y: 1, yanchor: 'bottom' };
  return [
    paperText(escapeForPlotly(left && `← ${left}`), muted, { ...above, x: 0, xanchor: 'left' }),
    paperText(escapeForPlotly(right && `${right} →`), muted, { ...above, x: 1, xanchor: 'right' }),
  ].filter(({ text }) => text);
}
