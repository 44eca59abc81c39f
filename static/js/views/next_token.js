/**
 * Next token: what the model expects after the chosen token. A model that sees both ways says instead
 * what may stand at a place, above all where a mask is.
 */

import { css, sequential } from '../core/colour.js';
import { baseLayout, downwards, labelAxis, labelWidth } from '../core/figure.js';
import { filled, isMask, MASK, wordBehind } from '../core/masks.js';
import { percent, tick } from '../core/number.js';
import { bytesInWords } from '../core/pieces.js';
import { hasTwoSides, isFilling, predictingSide, tokensOf, weightsAt } from '../core/places.js';
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
const REQUEST = { capture: [], analyses: ['next_token'] };

export const nextToken = {
  id: 'next_token',
  title: 'Next token',
  help: 'Having read up to the chosen token, the model gives every token of its vocabulary a probability of coming next; these are the likeliest.',
  terms: [['probability', 'how much of its certainty, out of 100 %, the model puts on a token']],
  needs: ['analyses.next_token.ids', 'analyses.next_token.probabilities'],
  wording,
  arrangement: 'many',
  panels,
  figure,
};

/** A model that fills in predicts the token at a place; the others predict the token after it. */
const FILLING = {
  preposition: 'At',
  event: 'standing here',
  came: 'stands here',
  cameInWords: '; it is what stands there',
};
const GOING_ON = {
  preposition: 'After',
  event: 'coming next',
  came: 'came next',
  cameInWords: '; it is what came',
};

function wording(trace) {
  if (isFilling(trace)) {
    return {
      title: 'What fits here',
      help: 'What may stand here: having read what is before and behind a place, the model gives every token of its vocabulary a probability of standing there; these are the likeliest, at masks first.',
    };
  }
  if (!hasTwoSides(trace)) return {};
  return { help: 'Having read the whole source and the target up to the chosen token, the model gives every token of its vocabulary a probability of coming next; these are the likeliest.' };
}

/** Where the model fills in, each mask has a panel; the chosen token comes first. */
function panels(trace, state) {
  if (!isFilling(trace)) return [{ id: '', state: {} }];
  const chosen = queryOf(state, trace);
  const masks = trace.tokens.flatMap((token, index) => (isMask(token) && index !== chosen ? [index] : []));
  return [chosen, ...masks].map((index, place) => ({ id: place === 0 ? '' : String(place + 1), state: { query: index } }));
}

/**
 * @param {import('../core/trace.js').Trace} trace
 * @param {import('../core/state.js').State & import('../core/figure.js').Frame} state
 * @returns {import('../core/figure.js').Figure}
 */
function figure(trace, state) {
  const query = queryOf(state, trace);
  const tokens = tokensOf(trace, predictingSide(trace));
  const words = isFilling(trace) ? FILLING : GOING_ON;
  const title = `${words.preposition} ${isMask(tokens[query]) ? named(tokens, query) : quoted(tokens[query])}`;
  const guesses = guessesAt(trace, tokens, query, state.words ?? '');
  if (!guesses) return { title, notice: 'This model does not predict a next token.' };
  return {
    title,
    summary: `The ${guesses.length} likeliest tokens ${words.preposition.toLowerCase()} ${quoted(tokens[query])}.`,
    ...drawing(state, guesses, words),
    grid: gridOf(trace, state, { query, tokens, guesses, words }),
  };
}

/**
 * @typedef {{text: string, name: string, probability: number, mark: string, markInWords: string}} Guess a token, with what is said of it
 * @returns {Guess[]|null} likeliest first
 */
function guessesAt(trace, tokens, query, hidden) {
  const found = trace.analyses.next_token;
  if (!found?.probabilities) return null;
  const probabilities = rowOf(matrixAt(found.probabilities), query);
  const ids = rowOf(matrixAt(found.ids), query);
  const mark = marker(trace, tokens, query, hidden);
  return Array.from(probabilities.subarray(0, SHOWN), (probability, rank) => {
    const text = found.texts[query][rank];
    return { text, name: bytesInWords(text) ?? visible(text), probability, ...mark(ids[rank], text) };
  });
}

/** What is said of the guess that is right: that it came, stands there, or was there. */
function marker(trace, tokens, query, hidden) {
  const nothing = { mark: '', markInWords: '' };
  const word = isFilling(trace) && isMask(tokens[query]) ? wordBehind(tokens, query, hidden) : '';
  if (word !== '') return (_, text) => (text.trim() === word ? { mark: 'was here', markInWords: '; it is the word behind the mask' } : nothing);
  const { came, cameInWords } = isFilling(trace) ? FILLING : GOING_ON;
  const right = isFilling(trace) ? tokens[query].id : tokens[query + 1]?.id;
  const isKnown = right !== undefined && !isMask(tokens[query]);
  return (id) => (isKnown && id === right ? { mark: came, markInWords: cameInWords } : nothing);
}

function drawing({ palette, width }, guesses, words) {
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
        marker: { color: guesses.map(({ mark }) => (mark ? palette.key : css(scale, 128))), line: { width: 0 } },
      },
    ],
    layout: {
      ...baseLayout(palette, { width: total, height: height + margin.t + margin.b, margin }),
      xaxis: probabilityAxis(guesses, palette, total - margin.l - margin.r, words),
      yaxis: downwards(labelAxis({ labels, pixels: height, title: '', palette, lettering: LETTERING })),
    },
  };
}

/** What stands at the end of a bar. */
function numberOf({ probability, mark }) {
  return `${percent(probability)}${mark ? ` · ${mark}` : ''}`;
}

/** Ends where every bar has room for its number behind it; no tick is past all there is. */
function probabilityAxis(guesses, palette, pixels, { event }) {
  const ends = guesses.map((guess) => guess.probability / (1 - Math.min(0.8, (labelWidth([numberOf(guess)], NUMBER) + 8) / pixels)));
  const end = Math.max(...ends, LEAST_END);
  const tickvals = roundTicks(Math.min(end, 1), MOST_TICKS);
  return {
    range: [0, end],
    tickvals,
    ticktext: tickvals.map((probability) => `${tick(probability * 100)} %`),
    tickfont: { size: 11, color: palette.muted },
    title: { text: `probability of ${event}`, font: { size: 12, color: palette.muted }, standoff: 8 },
    gridcolor: palette.line,
    zerolinecolor: palette.line,
  };
}

function gridOf(trace, state, subject) {
  const { query, guesses, words } = subject;
  const side = predictingSide(trace);
  const last = weightsAt({ ending: 'self_attention', stack: isFilling(trace) ? 'encoder' : 'decoder' }, trace).at(-1)?.layer;
  const say = (row) => sentence(subject, row, last);
  return {
    rows: guesses.length,
    columns: 1,
    sides: { rows: side, columns: side },
    rowTitle: 'token',
    columnTitle: '',
    rowLabels: guesses.map(({ name }) => name),
    columnLabels: ['probability'],
    quantity: `probability of ${words.event} ${words.preposition.toLowerCase()} token ${query}`,
    request: REQUEST,
    value: (row) => guesses[row].probability,
    format: (probability) => percent(probability),
    describe: say,
    tip: (row) => [`“${guesses[row].name}”`, percent(guesses[row].probability)],
    tokens: () => ({ query }),
    start: { row: 0, column: 0 },
    rest: { readout: say(0) },
    ...adding(trace, state, subject),
  };
}

/** A guess can be written: where a mask is, or at the end of the text. */
function adding(trace, state, { query, tokens, guesses }) {
  const choose = (write) => (row) => (isWritable(guesses[row].text) ? write(guesses[row].text) : {});
  if (isFilling(trace)) {
    if (!isMask(tokens[query])) return { note: 'Click a word of the sentence to mask it.' };
    return {
      choose: choose((piece) => filled(trace, query, piece, state.words ?? '')),
      chooseHint: 'Enter puts the token in the place of the mask',
      note: 'Choose a bar to put it in the place of the mask.',
    };
  }
  if (query !== tokens.length - 1) return {};
  const [name, text] = hasTwoSides(trace) ? ['target', trace.target] : ['text', trace.text];
  const whole = hasTwoSides(trace) ? 'translation' : 'sentence';
  return {
    choose: choose((piece) => ({ [name]: text + piece, query: null })),
    chooseHint: `Enter adds the token to the ${whole}`,
    note: `Choose a bar to add it to the ${whole}.`,
  };
}

/** Half a character or a special token cannot be written. */
function isWritable(piece) {
  return bytesInWords(piece) === null && !/^<\/?s>$/.test(piece) && piece !== MASK;
}

/** What comes next is read off what the last layer leaves. */
function sentence({ query, tokens, guesses, words }, row, lastLayer) {
  const { name: guess, probability, markInWords } = guesses[row];
  const where = lastLayer === undefined ? '' : ` (after layer ${lastLayer}, the last)`;
  return `${words.preposition} ${named(tokens, query)}, “${guess}” has probability ${percent(probability)}, rank ${row + 1}${markInWords}${where}`;
}
