/**
 * The finding of a view in one sentence, computed from the trace: the next words, the punctuation that
 * an expert takes, and the reward of a text. `head_insight.js` has that of a head.
 */

import { isFilling, isRating, predictingSide, tokensOf } from '../trace/attention.js';
import { counted, enumerated } from '../words/lists.js';
import { decimal, percent, signed } from '../words/numbers.js';
import { bytesInWords, tokenName } from '../words/tokens.js';
import { isWord } from './head_insight.js';
import { highestIn, layersWith, matrixAt, rowOf } from '../trace/trace.js';
import { isMask, placeInWords } from '../trace/words.js';

/** @import { Token, Trace } from '../trace/trace.js' */

/** @typedef {{query: number|null, source?: number|null, layer: number|null}} Chosen */
/** @typedef {{word: string, probability: number}} Guess */

/** @type {Record<string, (trace: Trace, chosen: Chosen) => string>} */
const FINDINGS = { next_token: ofPrediction, experts: ofPunctuation };

/**
 * Return the finding of a view that is no view of a head. Of a reward model it is the reward, whatever
 * is open.
 * @param {Trace} trace
 * @param {string} view
 * @param {Chosen} chosen
 * @returns {string} '' if there is nothing to say
 */
export function writeFinding(trace, view, chosen) {
  if (isRating(trace)) return ofReward(trace);
  return FINDINGS[view]?.(trace, chosen) ?? '';
}

/** Masks of which the guesses are told. */
const MOST_MASKS = 3;
/** Guesses that are told of each place. */
const MOST_GUESSES = 2;

/** @param {Trace} trace @param {Chosen} chosen */
function ofPrediction(trace, { query }) {
  const tokens = tokensOf(trace, predictingSide(trace));
  const masks = tokens.flatMap((token, index) => (isMask(token) ? [index] : []));
  if (isFilling(trace) && masks.length > 1)
    return masks
      .slice(0, MOST_MASKS)
      .map((mask, index) => likeliest(trace, mask, MASK_NAMES[index]))
      .join(' ');
  const place = query ?? masks[0] ?? (isFilling(trace) ? null : tokens.length - 1);
  if (place === null || place >= tokens.length) return '';
  const where = `${isFilling(trace) ? 'At' : 'After'} ${placeInWords(trace, predictingSide(trace), place)}`;
  return [likeliest(trace, place, where), agreement(trace, place)].filter(Boolean).join(' ');
}

const MASK_NAMES = ['At the first mask', 'At the second mask', 'At the third mask'];

/**
 * Return the listed tokens at a place.
 * @param {Trace} trace
 * @param {number} place
 * @returns {Guess[]} likeliest first
 */
function guessesAt({ analyses }, place) {
  const prediction = analyses.next_token;
  if (!prediction?.probabilities) return [];
  const probabilities = rowOf(matrixAt(prediction.probabilities), place);
  return Array.from(probabilities, (probability, rank) => {
    const text = prediction.texts[place][rank];
    return { word: bytesInWords(text) ?? tokenName({ text, part: null }), probability };
  });
}

/** @param {Trace} trace @param {number} place @param {string} where */
function likeliest(trace, place, where) {
  const guesses = guessesAt(trace, place).slice(0, MOST_GUESSES);
  if (guesses.length === 0) return '';
  const [first, ...others] = guesses.map(
    ({ word, probability }) => `“${word}” (${percent(probability)})`,
  );
  return `${where}, the model expects ${first}${others.length > 0 ? `, then ${enumerated(others)}` : ''}.`;
}

/** Verbs in the singular and in the plural. */
const VERBS = { singular: ['is', 'was', 'has', 'does'], plural: ['are', 'were', 'have', 'do'] };
/** The probability of such verbs from which their number is told. */
const TELLING = 0.05;

/**
 * Return which number the expected verbs have, where verbs that show it are expected.
 * @param {Trace} trace
 * @param {number} place
 */
function agreement(trace, place) {
  const guesses = guessesAt(trace, place);
  /** @param {string[]} forms */
  const sum = (forms) =>
    guesses.reduce(
      (all, { word, probability }) => all + (forms.includes(word) ? probability : 0),
      0,
    );
  const [singular, plural] = [sum(VERBS.singular), sum(VERBS.plural)];
  if (singular + plural < TELLING) return '';
  const [more, less] = singular > plural ? ['singular', 'plural'] : ['plural', 'singular'];
  const shares = [singular, plural].sort((a, b) => b - a).map((share) => percent(share));
  return `Verbs in the ${more} have ${shares[0]} together, in the ${less} ${shares[1]}.`;
}

/** Punctuation marks of a text from which it is told who takes them. */
const LEAST_MARKS = 3;

/**
 * Return the expert of the open layer that takes most punctuation marks, against its share of the
 * other tokens.
 * @param {Trace} trace
 * @param {Chosen} chosen
 */
function ofPunctuation(trace, { layer }) {
  const layers = layersWith(trace.tensors, 'experts.expert_indices');
  const open = layers.find((each) => each.layer === layer) ?? layers[0];
  if (!open) return '';
  const tokens = tokensOf(
    trace,
    open.site.startsWith('encoder') ? 'source' : predictingSide(trace),
  );
  const indices = matrixAt(trace.tensors[open.site]);
  /** @param {(token: Token) => boolean} isCounted */
  const countBy = (isCounted) => {
    /** @type {number[]} */
    const counts = [];
    let total = 0;
    tokens.forEach((token, at) => {
      if (token.is_special || !isCounted(token)) return;
      total += 1;
      for (const expert of rowOf(indices, at)) counts[expert] = (counts[expert] ?? 0) + 1;
    });
    return { counts, total };
  };
  const marks = countBy((token) => token.text.trim() !== '' && !isWord(token));
  const words = countBy(isWord);
  if (marks.total < LEAST_MARKS) return '';
  const expert = highestIn(Array.from(marks.counts, (count) => count ?? 0));
  return `In layer ${open.layer}, expert ${expert} takes ${marks.counts[expert]} of the ${marks.total} punctuation marks, and ${words.counts[expert] ?? 0} of the ${words.total} tokens of words.`;
}

/** @param {Trace} trace */
function ofReward(trace) {
  const { analyses, tokens } = trace;
  const { rewards, contributions } = analyses.reward ?? {};
  if (!rewards) return '';
  const reward = rewards.data[rewards.data.length - 1];
  const sizes = Array.from(contributions.data, Math.abs);
  const most = highestIn(sizes);
  const change = contributions.data[most];
  return `The reward of this text is ${decimal(reward, 2)}; ${placeInWords(trace, 'source', most)} ${change < 0 ? 'lowered' : 'raised'} it most (${change > 0 ? '+' : ''}${signed(change, 2)}, of ${counted(tokens.length, 'token')}).`;
}
