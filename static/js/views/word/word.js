/**
 * Why this word: the difference between the logits of a predicted token and of another, by layer,
 * head, expert and source token.
 */

import { guessInWords, nameOfGuess } from '../../words/tokens.js';
import { noticeOf } from '../../api/answers.js';
import { hasTwoSides, isLabelling, predictingSide, tokensOf } from '../../trace/attention.js';
import { capitalised, enumerated } from '../../words/lists.js';
import { percent, signed } from '../../words/numbers.js';
import { alone, isUnspaced } from '../../trace/words.js';
import { placeInWords, wordUnits } from '../../trace/word_names.js';
import { walked } from '../../rules/thread.js';
import { signedBars, withSign, wordsFor } from '../../plot/bars.js';
import {
  differenceOf,
  expertsOf,
  findExtremes,
  headsOf,
  NAMES,
  partsOf,
  saliencyParts,
  sourcesOf,
  strongestSources,
} from './parts.js';
import {
  asks,
  comparedIn,
  controls,
  attributionIn,
  probabilitiesOf,
  refusalOf,
  requestOf,
  showOf,
} from './explained.js';
import { threadFigure } from './thread.js';

/** @import { Side } from '../../trace/attention.js' @import { Part } from './parts.js' */

const LOGIT = {
  logit: 'the score of a token before the softmax; one logit more multiplies its odds by e ≈ 2.7',
};
/** @type {Record<string, Record<string, string>>} */
const TERMS = {
  thread: {
    ...LOGIT,
    lead: 'the score of the key less the mean score of the keys that the token sees',
    cut: 'the query, the key or the logits read zero in place of what the part wrote',
  },
  saliency: {
    ...LOGIT,
    gradient: 'by how much the difference changes if a number changes a little',
    erasure: 'the difference with the token’s vector, less that without it',
  },
};

/** @type {ViewCode} */
export const word = {
  help: 'Why the model expects this word or label rather than another: how much each part of it adds to the difference.',
  terms: {
    ...LOGIT,
    'frozen scale':
      'the last norm divides by a number that depends on all parts; it is held at its value in this pass, so that the parts sum to the difference',
    direct:
      'what a part writes straight to the prediction; effects passed on through later parts are counted there',
    ...Object.fromEntries(['bias', 'remainder'].map((part) => [NAMES[part][0], NAMES[part][2]])),
  },
  arrangement: (_, state) => (showOf(state) === 'thread' ? '' : 'many'),
  asks,
  walk: (_, state, by) => walked(state, by),
  controls,

  /**
   * Return the difference in words, and the parts and tokens that speak most for it and against
   * it.
   */
  wording(trace, state) {
    const attribution = attributionIn(state);
    const show = showOf(state);
    const terms = TERMS[show] ?? word.terms;
    const help = HELP[show] ?? word.help;
    if (!attribution || show !== 'parts') return { help, terms };
    const { preposition } = wordsFor(trace);
    const place = placeInWords(trace, predictingSide(trace), attribution.position);
    const [token, against] = tokensIn(attribution);
    const ahead = differenceOf(attribution);
    const [chance, rivalChance] = probabilitiesOf(trace, attribution, ahead).map((probability) =>
      probability === null ? '' : ` (${percent(probability)})`,
    );
    const headline = `${preposition} ${place}, “${token}”${chance} is ${signed(Math.abs(ahead), 2)} logits ${ahead < 0 ? 'behind' : 'ahead of'} “${against}”${rivalChance}: the bars sum to ${withSign(ahead)}.`;
    return {
      help,
      terms,
      answer: [headline, ...contributions(trace, attribution), ...unexplained(attribution)],
    };
  },

  panels(trace, state) {
    const attribution = attributionIn(state);
    const show = showOf(state);
    if (!attribution) return [{ id: 'layers', state: { chart: 'layers' } }];
    if (show === 'saliency')
      return ['gradient_times_input', 'erasure'].map((chart) => ({ id: chart, state: { chart } }));
    if (show === 'thread') return [{ id: 'thread', state: {} }];
    return Object.keys(CHARTS)
      .filter((chart) => CHARTS[chart].rows(attribution, trace).length > 0)
      .map((chart) => ({ id: chart, state: { chart } }));
  },

  /** The state has the panel’s `chart`. */
  figure(trace, state) {
    const reason = refusalOf(trace, state);
    const why = isLabelling(trace) ? 'Why this label' : 'Why this word';
    if (reason) return { title: why, notice: reason };
    const attribution = attributionIn(state);
    if (!attribution) {
      const answer = state.answers?.parts;
      return { title: why, notice: noticeOf(answer), isWaiting: !answer?.problem };
    }
    if (showOf(state) === 'thread') return threadFigure(trace, state);
    const { title, help: meaning, rows } = chartOf(state.chart ?? 'layers');
    const parts = rows(attribution, trace);
    const help = SUMMED.includes(state.chart ?? 'layers')
      ? `${meaning} They sum to ${withSign(differenceOf(attribution))}.`
      : meaning;
    const [token, against] = tokensIn(attribution);
    return {
      title,
      help,
      summary: `${title}: contributions to the logit of “${token}” minus that of “${against}”, in logits.`,
      ...partBars(trace, state, { attribution, parts, title }),
    };
  },
};

/** Return the sentence about a remainder that is too large for rounding. @param {Attribution} attribution */
function unexplained({ omitted }) {
  return omitted?.remainder ? [`Of the difference, ${omitted.remainder}.`] : [];
}

/**
 * Return the parts for and against the token, and the tokens that the heads moved it from.
 * @param {Trace} trace
 * @param {Attribution} attribution
 * @returns {string[]} at most two sentences
 */
function contributions(trace, attribution) {
  const [token, against] = tokensIn(attribution);
  const all = partsOf(attribution, trace.card);
  const [part, head] = [all, headsOf(attribution)].map(findExtremes);
  const bias = all.find(({ label }) => label === NAMES.bias[0]);
  return [
    strongestInWords(token, bias && bias.value > 0 ? bias : undefined, part.most, head.most),
    strongestInWords(against, bias && bias.value < 0 ? bias : undefined, part.least, head.least),
    ...sourcesInWords(trace, attribution),
  ].filter(Boolean);
}

/**
 * Return the part that does most for a token, and the strongest head: `Layer 3’s attention does most
 * for “were” (+4.04), above all head 3 (+2.87).`
 * @param {string} token
 * @param {Part|undefined} bias if it favours the token; told where its bar is the longest
 * @param {Part|undefined} part
 * @param {Part|undefined} head
 * @returns {string} '' if nothing favours it
 */
function strongestInWords(token, bias, part, head) {
  const most = part ?? head ?? bias;
  if (!most) return '';
  const isBiased = bias && bias !== most && Math.abs(bias.value) > Math.abs(most.value);
  const before = isBiased ? `apart from ${NAMES.bias[1]} (${sizeOf(bias)}), ` : '';
  const who = most === head ? headInWords(head) : (most.subject ?? most.name);
  const does = who.endsWith('experts') ? 'do' : 'does';
  const sentence = `${before}${who} ${does} most for “${token}” (${sizeOf(most)})`;
  return `${capitalised(sentence)}${most === head ? '' : strongestHead(most, head)}.`;
}

/** @param {Part} part @param {Part|undefined} head */
function strongestHead({ kind, layer }, head) {
  if (!head) return '';
  const isWithin =
    layer === head.layer && kind === (head.where ? 'cross_attention' : 'self_attention');
  return isWithin
    ? `, above all head ${head.head} (${sizeOf(head)})`
    : `; of single heads, ${headInWords(head)} (${sizeOf(head)})`;
}

/** @param {Part} head */
function headInWords({ head, layer, where }) {
  return `head ${head} of layer ${layer}${where ? ' of cross-attention' : ''}`;
}

/** Return a size, whichever of the two tokens it favours. @param {Part} part */
function sizeOf({ value }) {
  return withSign(Math.abs(value));
}

const MOST_SOURCES = 3;

/**
 * Return the words that counted most, each with the token that it favours, and the start of the
 * text where that counted more.
 * @param {Trace} trace
 * @param {Attribution} attribution
 * @returns {string[]} at most two sentences
 */
function sourcesInWords(trace, attribution) {
  const [token, against] = tokensIn(attribution);
  const rows = sourceRows(trace, attribution);
  const [first, ...others] = strongestSources(rows, MOST_SOURCES);
  /** @param {Part} row */
  const favoured = (row) => `${sizeOf(row)} for “${row.value > 0 ? token : against}”`;
  /** @param {Part} row */
  const sized = (row) => `${row.name} (${favoured(row)})`;
  const special = rows.find(
    ({ isSpecial, value }) => isSpecial && Math.abs(value) > Math.abs(first?.value ?? 0),
  );
  return [
    ...(first
      ? [
          `The ${nounOf(first)} that counted most is ${sized(first)}${others.length > 0 ? `, before ${enumerated(others.map(sized))}` : ''}.`,
        ]
      : []),
    ...(special ? [`${special.name}, which is no word, counted ${favoured(special)}.`] : []),
  ];
}

/** Return what a part of the text is called. @param {Part} row */
function nounOf({ label }) {
  const [name] = label.replace('source: ', '').split(' at ');
  if (/^\p{N}+$/u.test(name)) return name.length === 1 ? 'digit' : 'number';
  return isUnspaced(name) && [...name].length === 1 ? 'character' : 'word';
}

/** @param {Trace} trace @param {Attribution} attribution */
function sourceRows(trace, attribution) {
  const [text, source] = textsOf(trace);
  return sourcesOf(attribution, text.words, source.words);
}

/** Return the text that predicts and the source, in tokens and in words. @param {Trace} trace */
function textsOf(trace) {
  return [predictingSide(trace), /** @type {Side} */ ('source')].map((side) => {
    const tokens = tokensOf(trace, side);
    return { tokens, pieces: alone(tokens), words: wordUnits(trace, side) };
  });
}

/** Return the names of the two tokens; their spaces are shown where only these differ. @param {Attribution} attribution */
function tokensIn({ token, against }) {
  const texts = [token.text, against.text];
  const words = texts.map(guessInWords);
  return words[0] === words[1] ? texts.map(nameOfGuess) : words;
}

/** @type {Record<string, string>} */
const HELP = {
  thread:
    'From the predicted word backwards: the head that spoke for it, the earlier part that made it look where it did, and so on to a token. A share of a sum is no cause: the cut is.',
  saliency:
    'Gradient × input multiplies each token’s vector by the slope of the difference there, as if the model were a straight line; erasure sets the vector to 0 and reads the text again. The two agree only as far as the model is linear, and neither tells which head or layer did it, as “Parts” does.',
};

/** Charts whose bars sum to the difference. */
const SUMMED = ['layers', 'tokens'];

/** @type {Record<string, {title: string, help: string, rows: (attribution: Attribution, trace: Trace) => Part[]}>} */
const CHARTS = {
  layers: {
    title: 'By layer',
    help: 'Every part of the model in order; the remainder is what they leave.',
    rows: (attribution, { card }) => partsOf(attribution, card),
  },
  heads: {
    title: 'By head',
    help: 'The heads that add or take most.',
    rows: (attribution) => headsOf(attribution),
  },
  tokens: {
    title: 'By word',
    help: 'The words from which the heads moved it: weight × value × output matrix, summed over all heads and over the tokens of the word.',
    rows: (attribution, trace) => sourceRows(trace, attribution),
  },
  experts: {
    title: 'By expert',
    help: 'The experts that this token was routed to, each with its weight.',
    rows: (attribution) => expertsOf(attribution),
  },
};

/**
 * @param {string} chart
 * @returns {{title: string, help: string, rows: (attribution: Attribution, trace: Trace) => Part[]}}
 */
function chartOf(chart) {
  if (chart in CHARTS) return CHARTS[chart];
  const isErasure = chart === 'erasure';
  return {
    title: isErasure ? 'Erasure' : 'Gradient × input',
    help: isErasure
      ? 'By how much the difference falls if the token’s vector is set to 0.'
      : 'The gradient of the difference times the token’s vector.',
    rows: (attribution, trace) => {
      const [text, source] = textsOf(trace);
      return saliencyParts(
        attribution,
        isErasure ? 'erasure' : 'gradient_times_input',
        text,
        source,
      );
    },
  };
}

/**
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {{attribution: Attribution, parts: Part[], title: string}} of
 */
function partBars(trace, state, { attribution, parts, title }) {
  const side = predictingSide(trace);
  const [token, against] = tokensIn(attribution);
  /** @param {Part} part */
  const say = ({ name, value }) => {
    const amount = `${signed(Math.abs(value), 2)} logits`;
    if (value === 0) return `${capitalised(name)}: nothing for “${token}” or “${against}”`;
    return `${capitalised(name)}: ${amount} for “${value > 0 ? token : against}” against “${value > 0 ? against : token}”`;
  };
  const first = parts.reduce((best, { value }, row) => (value > parts[best].value ? row : best), 0);
  const isOfTokens = parts.some(({ token: place }) => place !== undefined);
  const isOfHeads = parts.some(({ head }) => head !== undefined);
  return signedBars(
    parts,
    {
      title: 'logits',
      ends: [`for “${against}”`, `for “${token}”`],
      more: ({ meaning }) => [meaning ?? []].flat(),
      say,
      // The token that predicts, and the source token of the row if it is of that text.
      tokens: ({ token: place, tokens: key = place, side: text }) =>
        key === undefined || (hasTwoSides(trace) && text === 'source')
          ? { query: attribution.position }
          : { query: attribution.position, key },
      ...(isOfHeads && { choose: opening }),
      table: {
        rows: { title: title.replace('By ', ''), labels: parts.map(({ label }) => label) },
        columns: { title: '', labels: ['logits'] },
        quantity: `contribution to the logit of “${token}” minus that of “${against}”, in logits`,
        request: requestOf(trace, state),
        about: comparedIn(trace, attribution),
      },
      sentence: {
        sides: { rows: side, columns: side },
        rowOf: (index) =>
          isOfTokens
            ? parts.findIndex((part) => [part.tokens ?? part.token].flat().includes(index))
            : -1,
        rest: { readout: say(parts[first]) },
      },
      cursor: {
        start: { row: first, column: 0 },
        ...(isOfHeads && {
          chooseHint: 'Enter opens the head',
          note: 'Choose a bar to open the head.',
        }),
      },
    },
    state,
  );
}

/** A bar of a head opens the head. @param {Part} part @returns {Patch} */
function opening({ layer, head, where }) {
  return head === undefined ? {} : { view: 'attention', layer, head, ...(where && { where }) };
}
