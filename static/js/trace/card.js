/** The types of the card of a model, as the API answers it, and the texts that it names. */

import { counted, enumerated } from '../words/lists.js';

/** @import { ModelAnswer, ModelSummary } from '../api/schemas' */

/** The project's own texts by the names of their files. @type {[RegExp, string][]} */
const TEXTS = [
  [/^valid\.\w+$/, 'text that was kept out of the training'],
  [/^(train|storybooks|more_kept)\.\w+$/, 'the training text'],
  [/^sample\.\w+$/, 'the sample text'],
  [/^comparisons\.\w+$/, 'the comparisons of answers'],
  [/^solutions of /, 'test problems'],
];

/**
 * Return the texts that a figure was measured on: the project's own by what they are, others by name.
 * @param {string[]} names
 */
export function textsInWords(names) {
  const words = names.map((name) => TEXTS.find(([pattern]) => pattern.test(name))?.[1] ?? name);
  return enumerated([...new Set(words)]);
}

/**
 * @param {HeadProfiles} profiles
 * @param {number|null} [count] of the texts, if not all
 * @returns {string} `1,000 sentences`, `500 solutions`
 */
export function countedTexts({ text, sentences }, count = sentences) {
  return counted(count ?? sentences, /^solutions/.test(text[0]) ? 'solution' : 'sentence');
}

/** @typedef {NonNullable<ModelAnswer['attentions']>[number]} SoftmaxTerms of one attention: scores = softcap·tanh(scale·q·k / softcap) + bias */

/**
 * The card of a model: as `GET /api/v1/models` lists it, and the rest as `GET /api/v1/models/{id}`
 * answers it.
 * @typedef {ModelSummary & Partial<ModelAnswer>} Card
 */

/** @typedef {{first: number[], second: number[], speeds: number[], factor: number, base: number|null, scaling: Record<string, string|number|boolean>, n_tokens?: number}} Rotation the dimensions of each pair, radians per position, and the factor of the rotated numbers; `scaling` are the settings that change the speeds; `n_tokens`, unless 0, is the length of the text that has these speeds */

/** @typedef {NonNullable<ModelAnswer['heads']>} HeadProfiles by the path of an attention */
/** @typedef {HeadProfiles['attentions'][string][number]} HeadProfile of one head over many sentences */
/** @typedef {ModelSummary['normalization']} Normalization changes that a tokenizer makes to a text */
/** @typedef {ModelSummary['examples'][number]} Example a text, and the state it opens */
/** @typedef {NonNullable<Example['claim']>} Claim of an example, as it was measured */

/**
 * Return the earlier heads that write what a head reads, over many sentences, the strongest first.
 * @param {{heads?: HeadProfiles|null}|undefined} card
 * @param {string} path of the attention
 * @param {number} head
 * @returns {{name: string, share: number, side: string}[]} empty if none stands out, or none was measured
 */
export function feedersOf(card, path, head) {
  const of = card?.heads?.feeders?.[path]?.[head];
  const sides = /** @type {const} */ (['queries', 'keys', 'values']);
  return sides
    .flatMap((side) => (of?.[side] ?? []).map(({ name, share }) => ({ name, share, side })))
    .sort((a, b) => b.share - a.share);
}
