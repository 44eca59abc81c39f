/**
 * Next token: what the model expects after the chosen token. A model that sees both ways says instead
 * what may stand at a place, above all where a mask is.
 */

import { guessesIn, marker, wordsFor } from '../../data/guesses.js';
import { filled, isMask, MASK } from '../../data/words.js';
import { percent } from '../../data/number.js';
import { bytesInWords, named, quoted } from '../../data/text.js';
import {
  hasTwoSides,
  isFilling,
  predictingSide,
  tokensOf,
  weightsAt,
} from '../../data/attention.js';
import { queryOf } from '../../state/state.js';
import { guessBars, guessesGrid } from '../../plot/guess_bars.js';
import { entryOf } from '../registry.js';

const SHOWN = 12;
const REQUEST = { capture: [], analyses: ['next_token'] };

/** @type {import('../../plot/figure.js').View} */
export const nextToken = {
  ...entryOf('next_token'),
  help: 'Having read up to the chosen token, the model gives every token of its vocabulary a probability of coming next; these are the likeliest.',
  terms: [['probability', 'how much of its certainty, out of 100 %, the model puts on a token']],
  wording,
  arrangement: 'many',
  panels,
  figure,
};

function wording(trace) {
  if (isFilling(trace)) {
    return {
      help: 'What may stand here: having read what is before and behind a place, the model gives every token of its vocabulary a probability of standing there; these are the likeliest, at masks first.',
    };
  }
  if (!hasTwoSides(trace)) return {};
  return {
    help: 'Having read the whole source and the target up to the chosen token, the model gives every token of its vocabulary a probability of coming next; these are the likeliest.',
  };
}

/** Where the model fills in, each mask has a panel; the chosen token comes first. */
function panels(trace, state) {
  if (!isFilling(trace)) return [{ id: '', state: {} }];
  const chosen = queryOf(state, trace);
  const masks = trace.tokens.flatMap((token, index) =>
    isMask(token) && index !== chosen ? [index] : [],
  );
  return [chosen, ...masks].map((index, place) => ({
    id: place === 0 ? '' : String(place + 1),
    state: { query: index },
  }));
}

/**
 * @param {import('../../data/trace.js').Trace} trace
 * @param {import('../../plot/figure.js').ViewState} state
 * @returns {import('../../plot/figure.js').Figure}
 */
function figure(trace, state) {
  const query = queryOf(state, trace);
  const tokens = tokensOf(trace, predictingSide(trace));
  const words = wordsFor(trace);
  const title = `${words.preposition} ${isMask(tokens[query]) ? named(tokens, query) : quoted(tokens[query])}`;
  const guesses = guessesAt(trace, tokens, query, state.words ?? '');
  if (!guesses) return { title, notice: 'This model does not predict a next token.' };
  return {
    title,
    summary: `The ${guesses.length} likeliest tokens ${words.preposition.toLowerCase()} ${quoted(tokens[query])}.`,
    ...guessBars(state, guesses, words),
    grid: gridOf(trace, state, { query, tokens, guesses, words }),
  };
}

/** @returns {import('../../data/guesses.js').Guess[]|null} likeliest first */
function guessesAt(trace, tokens, query, hidden) {
  const found = trace.analyses.next_token;
  if (!found?.probabilities) return null;
  const mark = marker(trace, tokens, query, hidden);
  return guessesIn({ ...found, texts: found.texts[query] }, [query], mark, SHOWN);
}

/** @returns {import('../../plot/grid.js').Grid} */
function gridOf(trace, state, subject) {
  const { query, guesses, words } = subject;
  const side = predictingSide(trace);
  const last = weightsAt(
    { ending: 'self_attention', stack: isFilling(trace) ? 'encoder' : 'decoder' },
    trace,
  ).at(-1)?.layer;
  const say = (row) => sentence(subject, row, last);
  return {
    ...guessesGrid(guesses, { side, query, say }),
    quantity: `probability of ${words.event} ${words.preposition.toLowerCase()} token ${query}`,
    request: REQUEST,
    ...adding(trace, state, subject),
  };
}

/** A guess can be written: where a mask is, or at the end of the text. */
function adding(trace, state, { query, tokens, guesses }) {
  const choose = (write) => (row) =>
    canBeTyped(guesses[row].text) ? write(guesses[row].text) : {};
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
function canBeTyped(piece) {
  return bytesInWords(piece) === null && !/^<\/?s>$/.test(piece) && piece !== MASK;
}

/** What comes next is read off what the last layer leaves. */
function sentence({ query, tokens, guesses, words }, row, lastLayer) {
  const { name: guess, probability, markInWords } = guesses[row];
  const where = lastLayer === undefined ? '' : ` (after layer ${lastLayer}, the last)`;
  return `${words.preposition} ${named(tokens, query)}, “${guess}” has probability ${percent(probability)}, rank ${row + 1}${markInWords}${where}`;
}
