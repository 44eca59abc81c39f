/**
 * Next token: what the model expects after the chosen token.
 */

import { css, sequential } from '../core/colour.js';
import { baseLayout, downwards, labelAxis, labelWidth } from '../core/figure.js';
import { percent, tick } from '../core/number.js';
import { bytesInWords } from '../core/pieces.js';
import { layersWith } from '../core/sites.js';
import { queryOf } from '../core/state.js';
import { escapeForPlotly, named, quoted, visible } from '../core/text.js';
import { roundTicks } from '../core/ticks.js';
import { matrixAt, rowOf } from '../core/trace.js';

const SHOWN = 12;
const ROW_HEIGHT = 30;
/** Rows are high enough for every label. */
const LETTERING = { size: 13, letters: 14, space: 1 };
const NUMBER = { size: 12, letters: 24, space: 1 };
const WIDEST = 760;
const MOST_TICKS = 4;
/** Where all are unlikely, bars stay short. */
const LEAST_END = 0.026;

export const nextToken = {
  id: 'next_token',
  title: 'Next token',
  help: 'Having read up to the chosen token, the model gives every token of its vocabulary a probability of coming next; these are the likeliest.',
  terms: [['probability', 'how much of its certainty, out of 100 %, the model puts on a token']],
  needs: ['analyses.next_token.ids', 'analyses.next_token.probabilities'],
  figure,
};

/**
 * @param {import('../core/trace.js').Trace} trace
 * @param {import('../core/state.js').State & import('../core/figure.js').Frame} state
 * @returns {import('../core/figure.js').Figure}
 */
function figure(trace, state) {
  const query = queryOf(state, trace);
  const title = `After ${quoted(trace.tokens[query])}`;
  const guesses = guessesAt(trace, query);
  if (!guesses) return { title, notice: 'This model does not predict a next token.' };
  return {
    title,
    summary: `The ${guesses.length} likeliest tokens after ${quoted(trace.tokens[query])}.`,
    ...drawing(state, guesses),
    grid: gridOf(trace, query, guesses),
  };
}

/**
 * @returns {{text: string, name: string, probability: number, isNext: boolean}[]|null} likeliest first
 */
function guessesAt({ analyses, tokens }, query) {
  const found = analyses.next_token;
  if (!found?.probabilities) return null;
  const probabilities = rowOf(matrixAt(found.probabilities), query);
  const ids = rowOf(matrixAt(found.ids), query);
  const came = tokens[query + 1]?.id;
  return Array.from(probabilities.subarray(0, SHOWN), (probability, rank) => ({
    text: found.texts[query][rank],
    name: bytesInWords(found.texts[query][rank]) ?? visible(found.texts[query][rank]),
    probability,
    isNext: ids[rank] === came,
  }));
}

function drawing({ palette, width }, guesses) {
  const scale = sequential(palette.theme);
  const labels = guesses.map(({ name }) => name);
  const margin = { l: labelWidth(labels, LETTERING) + 16, r: 16, t: 4, b: 44 };
  const height = guesses.length * ROW_HEIGHT;
  const total = Math.min(width, WIDEST);
  return {
    data: [
      {
        type: 'bar',
        orientation: 'h',
        x: guesses.map(({ probability }) => probability),
        y: guesses.map((_, rank) => rank),
        width: 0.66,
        text: guesses.map((guess) => escapeForPlotly(numberOf(guess))),
        textposition: 'outside',
        textfont: { size: 12, color: palette.ink },
        cliponaxis: false,
        hoverinfo: 'none',
        marker: { color: guesses.map(({ isNext }) => (isNext ? palette.key : css(scale, 128))), line: { width: 0 } },
      },
    ],
    layout: {
      ...baseLayout(palette, { width: total, height: height + margin.t + margin.b, margin }),
      xaxis: probabilityAxis(guesses, palette, total - margin.l - margin.r),
      yaxis: downwards(labelAxis({ labels, pixels: height, title: '', palette, lettering: LETTERING })),
    },
  };
}

/** What stands at the end of a bar. */
function numberOf({ probability, isNext }) {
  return `${percent(probability)}${isNext ? ' · came next' : ''}`;
}

/** Ends where every bar has room for its number behind it; no tick is past all there is. */
function probabilityAxis(guesses, palette, pixels) {
  const ends = guesses.map((guess) => guess.probability / (1 - Math.min(0.8, (labelWidth([numberOf(guess)], NUMBER) + 8) / pixels)));
  const end = Math.max(...ends, LEAST_END);
  const tickvals = roundTicks(Math.min(end, 1), MOST_TICKS);
  return {
    range: [0, end],
    tickvals,
    ticktext: tickvals.map((probability) => `${tick(probability * 100)} %`),
    tickfont: { size: 11, color: palette.muted },
    title: { text: 'probability of coming next', font: { size: 12, color: palette.muted }, standoff: 8 },
    gridcolor: palette.line,
    zerolinecolor: palette.line,
  };
}

function gridOf({ tokens, text, tensors }, query, guesses) {
  const isLast = query === tokens.length - 1;
  const say = (row) => sentence(guesses[row], named(tokens, query), row, layersWith(tensors, 'self_attention.weights').at(-1)?.layer);
  return {
    rows: guesses.length,
    columns: 1,
    rowTitle: 'token',
    columnTitle: '',
    rowLabels: guesses.map(({ name }) => name),
    columnLabels: ['probability'],
    quantity: `probability of coming next after token ${query}`,
    value: (row) => guesses[row].probability,
    format: (probability) => percent(probability),
    describe: say,
    tip: (row) => [`“${guesses[row].name}”`, percent(guesses[row].probability)],
    tokens: () => ({ query }),
    start: { row: 0, column: 0 },
    rest: { readout: say(0) },
    ...(isLast && { choose: (row) => appended(text, guesses[row].text), chooseHint: 'Enter adds the token to the sentence', note: 'Choose a bar to add it to the sentence.' }),
  };
}

/** The text with one more token. Half a character or an end mark cannot be written. */
function appended(text, piece) {
  const cannot = bytesInWords(piece) !== null || /^<\/?s>$/.test(piece);
  return cannot ? {} : { text: text + piece, query: null };
}

/** What comes next is read off what the last layer leaves. */
function sentence({ name: guess, probability, isNext }, name, rank, lastLayer) {
  const came = isNext ? '; it is what came' : '';
  const where = lastLayer === undefined ? '' : ` (after layer ${lastLayer}, the last)`;
  return `After ${name}, “${guess}” has probability ${percent(probability)}, rank ${rank + 1}${came}${where}`;
}
