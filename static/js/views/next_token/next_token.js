/**
 * Next token: the distribution after the chosen token. An encoder gives the distribution at each
 * masked position instead.
 */

import { guessesIn, marker, wordsFor, guessChart } from '../../plot/bars.js';
import { filled, isMask, MASK } from '../../trace/words.js';
import { placeInWords } from '../../trace/word_names.js';
import { percent } from '../../words/numbers.js';
import { asTyped, bytesInWords, guessInWords } from '../../words/tokens.js';
import {
  hasTwoSides,
  isFilling,
  isLabelling,
  isOfText,
  isRating,
  labelledAt,
  predictingSide,
  tokensOf,
  weightsAt,
} from '../../trace/attention.js';
import { queryOf } from '../../state/state.js';
import { asksSampled, sampledGuesses, sliders, TERMS } from '../generate/drawing.js';
import { isWritable } from '../../ui/generation.js';

/** @import { Guess } from '../../plot/bars.js' */

const SHOWN = 12;
const PROBABILITY = { probability: 'the share of 100 % the model gives this token' };
const REQUEST = { capture: [], analyses: ['next_token'] };

/** @type {ViewCode} */
export const nextToken = {
  help: 'The model gives every token of its vocabulary a probability of following the chosen token; these are the likeliest.',
  terms: { ...PROBABILITY, ...TERMS },

  wording(trace) {
    if (isRating(trace)) return { terms: {}, help: '' };
    if (isLabelling(trace))
      return { terms: {}, help: 'The probabilities that the model gives its labels.' };
    if (isFilling(trace)) {
      return {
        terms: PROBABILITY,
        help: 'The model reads both sides of a position and gives every token of its vocabulary a probability of standing there; these are the likeliest.',
      };
    }
    if (!hasTwoSides(trace)) return {};
    return {
      terms: PROBABILITY,
      help: 'From the whole source, and the target up to the chosen token, the model gives every token of its vocabulary a probability of coming next; these are the likeliest.',
    };
  },
  asks: (trace, state) => (isWritable(trace) ? asksSampled('next_token', state) : {}),
  controls: (trace, state) =>
    isWritable(trace) && !state.isSaved ? sliders('next_token', state) : [], // they ask a server
  arrangement: 'many',

  /** An encoder has one panel per mask; the chosen token comes first. */
  panels(trace, state) {
    if (!isFilling(trace) || isLabelling(trace)) return [{ id: '', state: {} }];
    const chosen = queryOf(state, trace);
    const masks = trace.tokens.flatMap((token, index) =>
      isMask(token) && index !== chosen ? [index] : [],
    );
    return [chosen, ...masks].map((index, place) => ({
      id: place === 0 ? '' : String(place + 1),
      state: { query: index },
    }));
  },

  figure(trace, state) {
    const query = isOfText(trace) ? labelledAt(trace) : queryOf(state, trace);
    const tokens = tokensOf(trace, predictingSide(trace));
    const words = wordsFor(trace);
    const place = placeInWords(trace, predictingSide(trace), query);
    const title = isOfText(trace) ? 'Labels' : `${words.preposition} ${place}`;
    const guesses = guessesAt(trace, tokens, query, state.words ?? '');
    if (!guesses) return { title, notice: 'This model does not predict a next token.' };
    const sampled = sampledGuesses(guesses, query, 'next_token', state);
    const subject = { query, tokens, place, guesses: sampled ?? guesses, words };
    const event = sampled ? 'being sampled' : words.event;
    return {
      title,
      help: sampled
        ? 'The bar is the probability of being sampled with these settings, the thin line the model’s own.'
        : undefined,
      summary: `The ${guesses.length} likeliest tokens ${words.preposition.toLowerCase()} ${place}.`,
      ...guessChart(
        subject.guesses,
        {
          event,
          side: predictingSide(trace),
          query,
          say: (row) => sentence(subject, row, lastLayer(trace)),
          table: {
            quantity: `probability of ${event} ${words.preposition.toLowerCase()} token ${query}`,
            request: asksSampled('next_token', state).sampled ?? REQUEST,
          },
          ...adding(trace, state, subject),
        },
        state,
      ),
    };
  },
};

/**
 * @param {Trace} trace
 * @param {Token[]} tokens
 * @param {number} query
 * @param {string} hidden
 * @returns {Guess[]|null} likeliest first
 */
function guessesAt(trace, tokens, query, hidden) {
  const prediction = trace.analyses.next_token;
  if (!prediction?.probabilities || isRating(trace)) return null;
  const mark = marker(trace, tokens, query, hidden);
  return guessesIn({ ...prediction, texts: prediction.texts[query] }, [query], mark, SHOWN);
}

/** @param {Trace} trace */
function lastLayer(trace) {
  const stack = isFilling(trace) ? 'encoder' : 'decoder';
  return weightsAt({ ending: 'self_attention', stack }, trace).at(-1)?.layer;
}

/** @typedef {{query: number, tokens: Token[], place: string, guesses: (Guess & {modelProbability?: number})[], words: Words}} Subject the predictions at one token; `modelProbability`: the model’s probability, if the bar is that of being sampled */

/**
 * A guess can be inserted at a mask or at the end of the text.
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {Subject} subject
 * @returns {{choose?: (row: number) => Patch, cursor?: Partial<CellCursor>}}
 */
function adding(trace, state, { query, tokens, guesses }) {
  /** @param {(piece: string) => Patch|null} write @returns {(row: number) => Patch} */
  const choose = (write) => (row) => {
    const { text } = guesses[row]; // special tokens and parts of a character cannot be typed
    const isTyped = bytesInWords(text) === null && !/^<\/?s>$/.test(text) && text !== MASK;
    return isTyped ? (write(asTyped(text)) ?? {}) : {};
  };
  if (isLabelling(trace)) return {};
  if (isFilling(trace)) {
    if (!isMask(tokens[query]))
      return { cursor: { writes: true, note: 'Click a word of the sentence to mask it.' } };
    return {
      choose: choose((piece) => filled(trace, query, piece, state.words ?? '')),
      cursor: {
        writes: true,
        chooseHint: 'Enter replaces the mask with the token',
        note: 'Choose a bar to replace the mask with it.',
      },
    };
  }
  if (query !== tokens.length - 1) return {};
  const [name, text] = hasTwoSides(trace) ? ['target', trace.target] : ['text', trace.text];
  const whole = hasTwoSides(trace) ? 'translation' : 'sentence';
  return {
    choose: choose((piece) => ({ [name]: text + piece, query: null })),
    cursor: {
      writes: true,
      chooseHint: `Enter adds the token to the ${whole}`,
      note: `Choose a bar to add it to the ${whole}.`,
    },
  };
}

/**
 * Return a prediction in words.
 * @param {Subject} subject
 * @param {number} row
 * @param {number|undefined} lastLayer
 */
function sentence({ place, guesses, words }, row, lastLayer) {
  const { text, probability, modelProbability, markInWords } = guesses[row];
  const where = lastLayer === undefined ? '' : ` (after layer ${lastLayer}, the last)`;
  return `${words.preposition} ${place}, “${guessInWords(text)}” ${modelProbability === undefined ? 'has probability' : `has probability ${percent(modelProbability)}, of being sampled`} ${percent(probability)}, rank ${row + 1}${markInWords}${where}`;
}
