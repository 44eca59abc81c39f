/**
 * A logit difference by its parts and by the saliency of each token, as rows of a chart.
 */

import { tokenName, quoted } from '../../words/tokens.js';
import { namedUnit, tokensIn, findUnit } from '../../trace/words.js';
import { isWord } from '../../trace/word_names.js';

/** @import { Bar } from '../../plot/bars.js' */

/** @typedef {{id: number, text: string}} Chosen a token of the vocabulary */

/**
 * The analysis as the API answers it; other members are arrays by name.
 * @typedef {Record<string, any> & {position: number, token: Chosen, against: Chosen, part_names: string[], omitted: Record<string, string>, logits: NamedArray, parts: NamedArray}} Attribution
 */

/** @typedef {Bar & {meaning?: string, from?: string, layer?: number, head?: number, where?: string, isSum?: boolean, expert?: number, token?: number, tokens?: number|number[], isSpecial?: boolean, side?: string, subject?: string, kind?: string}} Part `subject` and `kind` of a layer’s part; `tokens` of a word, the first of them `token` */

const MOST_HEADS = 10;
const MOST_EXPERTS = 8;
/** The label of a part, its name in a sentence, and what it is. @type {Record<string, [label: string, name: string, meaning: string]>} */
export const NAMES = {
  embedding: [
    'embedding',
    'the embedding',
    'the vector that enters the first layer, read straight from the vocabulary',
  ],
  'embedding.tokens': [
    'token embedding',
    'the embedding of the token itself',
    'the vector of the word that is read here, before any layer',
  ],
  'embedding.positional': [
    'position',
    'the encoding of its position',
    'the vector of the place in the text, before any layer',
  ],
  bias: [
    'bias of the last norm',
    'the bias of the last norm',
    'a constant that the last layer norm adds: it favours some tokens whatever the text',
  ],
  remainder: [
    'remainder',
    'the remainder, which no part accounts for',
    'the difference minus all parts; near 0, it is rounding of the computation',
  ],
};
/** @type {Record<string, string>} */
const KINDS = {
  self_attention: 'attention',
  cross_attention: 'cross-attention',
  feed_forward: 'feed-forward',
};
const ATTENTIONS = ['self_attention', 'cross_attention'];
const NEGLIGIBLE = 1e-4;

/** Return the difference that the parts sum to, in logits. @param {Attribution} attribution */
export function differenceOf({ logits }) {
  return logits.data[0] - logits.data[1];
}

/**
 * Return all parts in the order of the model; they sum to the difference.
 * @param {Attribution} attribution
 * @param {Card} [card]
 * @returns {Part[]}
 */
export function partsOf(attribution, card) {
  return attribution.part_names.map((part, index) => {
    const value = attribution.parts.data[index];
    const [, layer, kind] = part.split('.');
    if (part in NAMES) {
      const [label, name, meaning] = NAMES[part];
      const isNothing = part === 'remainder' && Math.abs(value) < NEGLIGIBLE;
      const short = part === 'bias' ? 'last norm’s bias' : label;
      return { label, short, name, meaning, value, ...(isNothing && { written: '0' }) };
    }
    const title = kindOf(kind, Number(layer), card);
    return {
      label: `layer ${layer}, ${title}`,
      short: `${title} ${layer}`,
      name: `the ${title === 'feed-forward' ? 'feed-forward network' : title} of layer ${layer}`,
      subject: `layer ${layer}’s ${title === 'feed-forward' ? 'feed-forward network' : title}`,
      kind,
      value,
      layer: Number(layer),
    };
  });
}

/** @param {string} kind @param {number} layer @param {Card|undefined} card */
function kindOf(kind, layer, card) {
  return kind === 'feed_forward' && card?.moe?.layers.includes(layer) ? 'experts' : KINDS[kind];
}

/**
 * Return the heads that contribute most, for or against; the others together.
 * @param {Attribution} attribution
 * @returns {Part[]}
 */
export function headsOf(attribution) {
  const parts = ATTENTIONS.filter((kind) => `${kind}.heads` in attribution).flatMap((kind) => {
    const { shape, data } = attribution[`${kind}.heads`];
    const isCross = kind === 'cross_attention';
    const before = isCross ? 'cross-attention, ' : '';
    return Array.from({ length: shape[0] * shape[1] }, (_, at) => {
      const [layer, head] = [Math.floor(at / shape[1]), at % shape[1]];
      return {
        label: `${isCross ? 'cross ' : ''}layer ${layer}, head ${head}`,
        name: `${before}layer ${layer}, head ${head}`,
        value: data[at],
        layer,
        head,
        where: isCross ? 'cross' : '',
      };
    });
  });
  return largest(parts, MOST_HEADS, 'head');
}

/**
 * Return the experts that contribute most; the others together. Empty if the model has none.
 * @param {Attribution} attribution
 * @returns {Part[]}
 */
export function expertsOf(attribution) {
  if (!('experts' in attribution)) return [];
  const { shape, data } = attribution.experts;
  const parts = Array.from({ length: shape[0] * shape[1] }, (_, at) => {
    const [layer, expert] = [Math.floor(at / shape[1]), at % shape[1]];
    const label = `layer ${layer}, expert ${expert}`;
    return { label, name: label, value: data[at], layer, expert };
  }).filter(({ value }) => value !== 0);
  return largest(parts, MOST_EXPERTS, 'expert');
}

/**
 * Return the source words, through all heads; the rest is what does not pass through attention.
 * @param {Attribution} attribution
 * @param {Unit[]} words that self-attention reads
 * @param {Unit[]} sources that cross-attention reads
 * @returns {Part[]}
 */
export function sourcesOf(attribution, words, sources) {
  const rows = ATTENTIONS.filter((kind) => `${kind}.keys` in attribution).flatMap((kind) => {
    const isCross = kind === 'cross_attention';
    const units = isCross ? sources : words;
    /** @type {NamedArray} layer × head × key */
    const { shape, data } = attribution[`${kind}.keys`];
    const sums = new Float64Array(shape[2]);
    for (let at = 0; at < data.length; at += 1) sums[at % sums.length] += data[at];
    const reach = isCross ? sums.length : reachOf(attribution, sums);
    return units
      .filter(({ first }) => first < reach)
      .map(({ first, last }, index) => {
        const value = sums.slice(first, last + 1).reduce((sum, each) => sum + each, 0);
        return unitPart(units, index, value, isCross);
      });
  });
  if (rows.length === 0) return [];
  const through = rows.reduce((sum, { value }) => sum + value, 0);
  return [
    ...rows,
    {
      label: 'not by attention',
      meaning: 'the difference minus what all heads moved',
      name: 'what no head carries: the embedding, the feed-forward networks and the biases',
      value: differenceOf(attribution) - through,
    },
  ];
}

/**
 * @param {Unit[]} units
 * @param {number} index
 * @param {number} value
 * @param {boolean} isSource of two texts
 * @returns {Part}
 */
function unitPart(units, index, value, isSource) {
  const unit = units[index];
  const label = tokenName(unit);
  const isRepeated = units.some((other, at) => at !== index && tokenName(other) === label);
  return {
    label: `${isSource ? 'source: ' : ''}${label}${isRepeated ? ` at ${unit.first}` : ''}`,
    name: `${namedUnit(units, index)}${isSource ? ' of the source' : ''}`,
    value,
    token: unit.first,
    tokens: tokensIn(unit),
    isSpecial: !isWord(unit),
    side: isSource ? 'source' : undefined,
  };
}

/**
 * Return a token; the piece of a word is named with the word.
 * @param {Unit[]} pieces
 * @param {Unit[]} words
 * @param {number} index
 * @param {number} value
 * @param {boolean} isSource of two texts
 * @returns {Part}
 */
function piecePart(pieces, words, index, value, isSource) {
  const part = unitPart(pieces, index, value, isSource);
  const at = findUnit(words, index);
  const word = words[at];
  if (!word || word.first === word.last) return part;
  const of = isSource ? ' of the source' : '';
  const label = tokenName(pieces[index]);
  const same = pieces.slice(word.first, word.last + 1).filter((one) => tokenName(one) === label);
  const place = same.length > 1 ? ` at ${index}` : '';
  return {
    ...part,
    label: `${isSource ? 'source: ' : ''}${label}${place} (${tokenName(word)})`,
    name: `${quoted(pieces[index])}${place} of ${namedUnit(words, at)}${of}`,
  };
}

/**
 * Causal heads see no token after the position.
 * @param {Attribution} attribution
 * @param {Float64Array} sums
 */
function reachOf({ position }, sums) {
  const last = sums.findLastIndex((value) => value !== 0);
  return Math.max(position, last) + 1;
}

/**
 * Return the parts that are largest in size, largest first, and the sum of all others.
 * @param {Part[]} parts
 * @param {number} most
 * @param {string} noun
 * @returns {Part[]}
 */
function largest(parts, most, noun) {
  const sorted = [...parts].sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  const others = sorted.slice(most);
  if (others.length === 0) return sorted;
  const value = others.reduce((sum, part) => sum + part.value, 0);
  const label = `${others.length} other ${noun}s`;
  return [...sorted.slice(0, most), { label, name: `the ${label} together`, value, isSum: true }];
}

/**
 * Return the largest part for the token and the largest against it. The bias of the last norm, the
 * remainder and the sum of several others do not count as parts.
 * @param {Part[]} parts
 * @returns {{most: Part|undefined, least: Part|undefined}} undefined: no part has that sign
 */
export function findExtremes(parts) {
  const sorted = parts
    .filter(({ label, isSum }) => !isSum && label !== NAMES.bias[0] && label !== NAMES.remainder[0])
    .sort((a, b) => b.value - a.value);
  const [first, last] = [sorted[0], sorted.at(-1)];
  return {
    most: first && first.value > 0 ? first : undefined,
    least: last && last.value < 0 ? last : undefined,
  };
}

/**
 * Return the source words that contribute most, for or against; special tokens are no words.
 * @param {Part[]} rows as `sourcesOf` returns them
 * @param {number} most
 * @returns {Part[]} largest in size first
 */
export function strongestSources(rows, most) {
  return rows
    .filter(({ token, isSpecial, value }) => token !== undefined && !isSpecial && value !== 0)
    .sort((a, b) => Math.abs(b.value) - Math.abs(a.value))
    .slice(0, most);
}

/**
 * Return the saliency of each token, source and target apart.
 * @param {Record<string, NamedArray>} saliency
 * @param {'gradient_times_input'|'erasure'} kind
 * @param {{pieces: Unit[], words: Unit[]}} text that the decoder, or the only stack, reads
 * @param {{pieces: Unit[], words: Unit[]}} source
 * @returns {Part[]}
 */
export function saliencyParts(saliency, kind, text, source) {
  const hasBoth = `encoder.${kind}` in saliency && `decoder.${kind}` in saliency;
  return ['encoder', 'decoder']
    .filter((stack) => `${stack}.${kind}` in saliency)
    .flatMap((stack) => {
      const isSource = hasBoth && stack === 'encoder';
      const { pieces, words } = isSource ? source : text;
      return Array.from(saliency[`${stack}.${kind}`].data, (value, token) =>
        piecePart(pieces, words, token, value, isSource),
      );
    });
}
