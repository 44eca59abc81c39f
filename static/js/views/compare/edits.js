/**
 * The edits that a pass can be compared with: what is switched off, to zero or to values of a corpus,
 * and other changes of the softmax or the weights.
 */

import { counted } from '../../words/lists.js';
import { range } from '../../trace/trace.js';

/** @typedef {'heads'|'network'|'experts'|'no_scaling'|'temperature'|'quantize'} EditKind */
/** @typedef {'zero'|'mean'|'resample'} Baseline what heads and networks that are off write: nothing, their mean over a corpus, or what they wrote at a token drawn from it */
/** @typedef {'all'|'attention'|'feed_forward'|'embedding'} Part of the weights */

/**
 * @typedef {Object} Wish
 * @property {EditKind} kind
 * @property {number[]} heads to switch off
 * @property {Baseline} [to]
 * @property {string[]} [attentions] the paths of those in which heads are off
 * @property {string[]} [networks] the paths of those that are off
 * @property {number[]} experts to switch off
 * @property {number} temperature
 * @property {number} bits of each weight
 * @property {Part} part whose weights are quantized
 * @property {string[]|null} modules of that part, as globs; null: all
 * @property {number|null} layer null: in every layer
 * @property {'all'|'encoder'|'decoder'|'cross'} where
 */

/** @param {Wish} wish @returns {Edit[]} the member `edits` of a request */
export function writeEdits(wish) {
  const { kind, heads, experts, temperature, bits, modules, layer, where, to = 'zero' } = wish;
  const place = { ...(layer !== null && { layer }), ...(where !== 'all' && { where }) };
  const { attentions = [], networks = [] } = wish;
  if (kind === 'network')
    return networks.map((path) =>
      to === 'zero'
        ? { kind: 'scale', site: `${path}.output`, value: 0 }
        : { kind: CORPUS[to], site: `${path}.output` },
    );
  if (kind === 'heads' && to !== 'zero')
    return attentions.map((path) => ({ kind: CORPUS[to], site: `${path}.context`, heads }));
  return [
    {
      heads: { kind: 'heads_off', heads, ...place },
      experts: { kind: 'experts_off', experts, ...place },
      no_scaling: { kind: 'no_scaling', ...place },
      temperature: { kind: 'temperature', value: temperature, ...place },
      quantize: { kind: 'quantize', bits, ...(modules && { parts: modules }) },
    }[kind],
  ];
}

const PLACES = {
  all: '',
  encoder: ' of the encoder',
  decoder: ' of the decoder',
  cross: ' of cross-attention',
};

/** @param {Wish} wish @returns {string} `head 0 off in all layers` */
export function editInWords(wish) {
  const { kind, heads, experts, temperature, bits, part, layer, where, to = 'zero' } = wish;
  if (kind === 'quantize') {
    const named = [PARTS[part], layer === null ? '' : `layer ${layer}`].filter(Boolean);
    return `${named.join(' of ') || 'the same model'} at ${bits} bits`;
  }
  const layers = layer === null ? 'all layers' : `layer ${layer}`;
  const what = {
    heads: `${listed('head', heads)} ${IN_WORDS[to]}`,
    network: `the network${layer === null ? 's' : ''} ${IN_WORDS[to]}`,
    experts: `${listed('expert', experts)} off`,
    no_scaling: 'no division by √d_head',
    temperature: `softmax temperature ${temperature}`,
  }[kind];
  return `${what} in ${layers}${PLACES[where]}`;
}

/** @type {Record<Part, string>} */
const PARTS = {
  all: '',
  attention: 'attention',
  feed_forward: 'feed-forward',
  embedding: 'the embedding',
};

/** The kinds of edit that set a value of a corpus. */
const CORPUS = { mean: 'corpus_mean', resample: 'resample' };
/** @type {Record<Baseline, string>} */
const IN_WORDS = {
  zero: 'off',
  mean: 'at the mean over a corpus',
  resample: 'as at a token drawn from a corpus',
};

/**
 * Return the paths of attentions and networks, in one layer or in all.
 * @param {Card|undefined} card
 * @param {number|null} layer
 * @param {Wish['where']} where
 */
export function pathsOf(card, layer, where) {
  if (!card) return { attentions: [], networks: [] };
  const layers = layer === null ? range(card.n_layers) : [layer];
  const stacks = card.kind === 'encoder-decoder' ? ['encoder', 'decoder'] : [card.kind];
  /** @param {string} stack @param {string} id @param {string} name */
  const of = (stack, id, name) =>
    where === 'all' || where === id ? layers.map((n) => `${stack}.layers.${n}.${name}`) : [];
  const attentions = stacks.flatMap((stack) => of(stack, stack, 'self_attention'));
  const crossing = stacks.length > 1 ? of('decoder', 'cross', 'cross_attention') : [];
  const networks = stacks
    .flatMap((stack) => of(stack, stack, ''))
    .map((path) => {
      const isExpert = card.moe?.layers.includes(Number(path.split('.')[2]));
      return `${path}${isExpert ? 'experts' : 'feed_forward'}`;
    });
  return { attentions: [...attentions, ...crossing], networks };
}

const NAMED = 4;

/** @param {string} noun @param {number[]} numbers */
function listed(noun, numbers) {
  if (numbers.length > NAMED) return counted(numbers.length, noun);
  return `${noun}${numbers.length === 1 ? '' : 's'} ${numbers.join(', ')}`;
}
