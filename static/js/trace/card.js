/** The types of the card of a model, as the API answers it, and the texts that it names. */

import { enumerated } from '../words/lists.js';

/**
 * @import { Takes } from '../views/experts/specialities.js'
 */

/** The project's own texts by the names of their files. @type {[RegExp, string][]} */
const TEXTS = [
  [/^valid\.\w+$/, 'text that was kept out of the training'],
  [/^(train|storybooks|more_kept)\.\w+$/, 'the training text'],
  [/^sample\.\w+$/, 'the sample text'],
  [/^comparisons\.\w+$/, 'the comparisons of answers'],
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
 * @typedef {Object} ExpertTokens the tokens of the training text that each expert takes
 * @property {string[]} text
 * @property {number} tokens how many were read
 * @property {number} least_count
 * @property {Record<string, number>} kinds
 * @property {Record<string, Takes[]>} layers the experts of each, by the layer's index
 */

/**
 * @typedef {Object} RunPicture some figures of a training run in one unit
 * @property {string} title
 * @property {string} unit
 * @property {{name: string, steps: number[], values: number[]}[]} lines
 */

/**
 * @typedef {Object} SoftmaxTerms of one attention: scores = softcap·tanh(scale·q·k / softcap) + bias
 * @property {string} path
 * @property {boolean} is_causal
 * @property {number|null} scale
 * @property {number|null} softcap
 * @property {number|null} window a query sees only keys less than this far away
 * @property {number|null} chunk a query sees only the keys of its own chunk of this length
 * @property {boolean} has_bias
 * @property {boolean} has_sink
 * @property {number[]|null} sinks the score of each head's sink
 * @property {boolean} is_exact
 */

/**
 * The card of a model: as `GET /api/v1/models` lists it, and the rest as `GET /api/v1/models/{id}`
 * answers it.
 * @typedef {Object} Card
 * @property {string} id
 * @property {string} title
 * @property {string} kind `decoder`, `encoder` or `encoder-decoder`
 * @property {number} n_layers
 * @property {number} n_heads
 * @property {number} d_model
 * @property {number} d_ff
 * @property {number} vocab_size
 * @property {number} max_tokens
 * @property {number} [trained_tokens] the longest text of its training
 * @property {number} [longest_text] tokens that it reads only for maps
 * @property {boolean} [is_endless] whether it reads texts of any length
 * @property {string} positional
 * @property {number} n_kv_heads
 * @property {string} norm
 * @property {string} norm_place `pre` or `post`
 * @property {string} activation
 * @property {boolean} has_mask
 * @property {{n_experts: number, top_k: number, layers: number[]}|null} moe
 * @property {number} parameters
 * @property {string} revision
 * @property {string} licence
 * @property {string[]} analyses
 * @property {boolean} [has_atlas] of what its heads attend to over a corpus
 * @property {Record<string, Record<string, number>[]>} [head_labels] by the path of an attention, the labels of each head's profile with their scores
 * @property {{layer: number, head: number, shift: number}|null} [aligner] the head of cross-attention that aligns words best; `shift` is 0 if by the row of the word itself, 1 if by the row that writes it
 * @property {Example[]} examples
 * @property {string[]} [trained_on]
 * @property {string|null} [began_from] the model whose weights the training began with
 * @property {string[]} [attribution]
 * @property {Record<string, any>} [corpus] the figures of its training text; may be empty
 * @property {Record<string, any>} [metrics]
 * @property {ExpertTokens|null} [expert_tokens]
 * @property {HeadProfiles|null} [heads]
 * @property {RunPicture[]} [curves] of the training run
 * @property {Normalization} [normalization]
 * @property {{name: string, axes: string[]}[]} [sites]
 * @property {SoftmaxTerms[]} [attentions] the terms of each softmax
 * @property {Rotation|null} [rotation] of the queries of the first layer; null: not in pairs
 * @property {string} [architecture] `headlight`, or the class of a foreign model
 * @property {'loaded'|'loading'|'not_loaded'} [state]
 * @property {number} [progress] of loading, 0 to 1
 * @property {number} [memory_bytes]
 * @property {boolean} [is_checked] whether a foreign model's self-check made this card
 * @property {Record<string, number>} [checks] the differences that a foreign model's self-check found
 * @property {Record<string, string>} [omitted] the reasons for the sites and features that it lacks
 */

/** @typedef {{first: number[], second: number[], speeds: number[], factor: number, base: number|null, scaling: Record<string, string|number|boolean>, n_tokens?: number}} Rotation the dimensions of each pair, radians per position, and the factor of the rotated numbers; `scaling` are the settings that change the speeds; `n_tokens`, unless 0, is the length of the text that has these speeds */

/** @typedef {{labels: string[], scores: Record<string, {score: number, control: number}>, entropy: number, distance: number, cost: number, strongest: {sentence: number, query: number, key: number, weight: number, query_span: [number, number], key_span: [number, number]}[]}} HeadProfile of one head over many sentences */

/** @typedef {{text: string[], sentences: number, bits_per_byte: number, attentions: Record<string, HeadProfile[]>, examples: {text: string, target: string}[]}} HeadProfiles by the path of an attention */

/** @typedef {{replacements: {characters: string, text: string}[], lowers_capitals: boolean}} Normalization changes that a tokenizer makes to a text */

/** @typedef {{claim: string, measure: string, score: number, against: string, control: number, sentences: number}} Claim of an example, as it was measured */
/** @typedef {{title: string, text: string, claim?: Claim|null, opens: Record<string, string|number>}} Example a text, and the state it opens */
