/**
 * The prediction that is explained, chosen by the switches of the view, and what is asked of the
 * server about it.
 */

import {
  isFilling,
  isLabelling,
  isOfText,
  isRating,
  labelledAt,
  predictingSide,
  tokensOf,
} from '../../trace/attention.js';
import { percent } from '../../words/numbers.js';
import { nameOfGuess, named } from '../../words/tokens.js';
import { guessesAt, rivalOf } from '../../rules/prediction.js';
import { choosing, queryOf } from '../../state/state.js';
import { choice, tokenOptions } from '../../ui/controls.js';

const CHOICES = 12;
const ANALYSIS = 'logit_attribution';
/** The parts a card leaves out where no logit is split; the reason of the first is told. */
const UNSPLIT = ['sum', 'norms', 'logit_lens', 'linear_exit'];

const SHOW = [
  { id: 'parts', title: 'Parts', help: 'The exact contribution of each part to the prediction' },
  { id: 'thread', title: 'Step by step', help: 'Why each head looked where it did' },
  { id: 'saliency', title: 'Saliency', help: 'Gradient × input, and erasure of each token' },
];
/** @type {Record<string, string>} */
const ANALYSES = { parts: ANALYSIS, thread: 'attention_thread', saliency: 'saliency' };

/**
 * Return the prediction that is explained: its position, and the two tokens that were chosen, or
 * null.
 * @param {Trace} trace
 * @param {ViewState} state
 */
function subjectOf(trace, state) {
  const position = isOfText(trace) ? labelledAt(trace) : queryOf(state, trace);
  return { position, token: state.token ?? null, against: rivalOf(state) };
}

/** @param {Trace} trace @param {ViewState} state @returns {Ask} */
export function requestOf(trace, state) {
  const { position, token, against } = subjectOf(trace, state);
  return {
    capture: [],
    analyses: [ANALYSES[showOf(state)]],
    logit_difference: {
      position,
      ...(token !== null && { token }),
      ...(against !== null && { against }),
    },
  };
}

/**
 * Name the two tokens that are compared and the place of the prediction, for a caption.
 * @param {Trace} trace
 * @param {Attribution} attribution
 */
export function comparedIn(trace, { token, against, position }) {
  const place = isFilling(trace) ? 'at' : 'after';
  const tokens = tokensOf(trace, predictingSide(trace));
  const [chosen, rival] = [token, against].map(({ text }) => nameOfGuess(text.trim() || text));
  return `“${chosen}” rather than “${rival}”, ${place} token ${position}, ${named(tokens, position)}`;
}

/** @param {Trace} trace @param {ViewState} state @returns {Record<string, Ask>} */
export function asks(trace, state) {
  return refusalOf(trace, state) ? {} : { parts: requestOf(trace, state) };
}

/** @param {ViewState} state */
export function showOf({ word_show: show }) {
  return show ?? 'parts';
}

/**
 * Return the reason for which the model has no attribution.
 * @param {Trace} trace
 * @param {ViewState} state
 */
export function refusalOf({ card }, state) {
  if (card && isRating({ card })) return 'This model rates a text and predicts no word.';
  if (!card || card.analyses.includes(ANALYSES[showOf(state)])) return '';
  const reason = UNSPLIT.map((name) => card.omitted?.[name]).find(Boolean);
  return reason
    ? `No logit of this model is the sum of what its parts write: ${reason}.`
    : 'This model does not offer the sites from which a logit can be split.';
}

/** @param {ViewState} state @returns {Attribution|null} */
export function attributionIn(state) {
  return state.answers?.parts?.trace?.analyses[ANALYSES[showOf(state)]] ?? null;
}

/**
 * Return the probabilities of the two tokens: of the listed ones as listed; that of an unlisted token
 * follows from the other's, because the odds of two tokens are e to the difference of their logits.
 * @param {Trace} trace
 * @param {Attribution} attribution
 * @param {number} difference of the logits
 * @returns {[number|null, number|null]} null: neither token is listed
 */
export function probabilitiesOf(trace, { position, token, against }, difference) {
  const listed = new Map(
    guessesAt(trace, position, Infinity).map(({ id, probability }) => [id, probability]),
  );
  const [ofToken, ofAgainst] = [listed.get(token.id) ?? NaN, listed.get(against.id) ?? NaN];
  const odds = Math.exp(difference);
  const [first, second] = [
    Number.isNaN(ofToken) ? ofAgainst * odds : ofToken,
    Number.isNaN(ofAgainst) ? ofToken / odds : ofAgainst,
  ];
  return [Number.isNaN(first) ? null : first, Number.isNaN(second) ? null : second];
}

/** @param {Trace} trace @param {ViewState} state @returns {Control[]} */
export function controls(trace, state) {
  const side = predictingSide(trace);
  const tokens = tokensOf(trace, side);
  const { position, token, against } = subjectOf(trace, state);
  const guesses = withChosen(
    guessesAt(trace, position, CHOICES),
    [token, against],
    attributionIn(state),
  );
  const options = guesses.map(({ id, text, probability }) => ({
    id,
    title: Number.isNaN(probability)
      ? nameOfGuess(text)
      : `${nameOfGuess(text)}  ${percent(probability)}`,
  }));
  const [name] = Object.keys(choosing(trace, side, position));
  const [likeliest] = options;
  const title = isFilling(trace) ? 'Word at' : 'Word after';
  const placed = choice(name, title, position, tokenOptions(tokens), {
    help: 'The position whose prediction is explained',
  });
  return [
    choice('word_show', 'Show', showOf(state), SHOW),
    ...(isOfText(trace) ? [] : [placed]),
    choice('token', 'Why', token, [
      { id: null, title: `the likeliest: ${likeliest?.title ?? ''}` },
      ...options,
    ]),
    choice('against', 'rather than', state.against ?? null, [
      { id: null, title: `the ${isLabelling(trace) ? 'label' : 'word'} that shows most` },
      ...options.filter(({ id }) => id !== (token ?? likeliest?.id)),
    ]),
  ];
}

/**
 * Return the guesses with the tokens of a link that are not among them.
 * @param {{id: number, text: string, probability: number}[]} guesses
 * @param {(number|null)[]} chosen
 * @param {Attribution|null} attribution
 */
function withChosen(guesses, chosen, attribution) {
  const known = new Map(
    [attribution?.token, attribution?.against].map((marked) => [marked?.id, marked?.text]),
  );
  const lacking = chosen.filter((id) => id !== null && guesses.every((guess) => guess.id !== id));
  return [
    ...guesses,
    ...lacking.map((id) => ({
      id: id ?? 0,
      text: known.get(id ?? 0) ?? `token ${id}`,
      probability: NaN,
    })),
  ];
}
