/**
 * Where attention happens, and between which tokens. A model of one stack has one sentence and one
 * place; an encoder–decoder has two sentences, the source and the target, and three places.
 */

import { layersWith } from './sites.js';

/** @typedef {'source'|'target'} Side the text that was given, or the one that a decoder reads beside it */

/**
 * @typedef {Object} Place
 * @property {'encoder'|'decoder'|'cross'} id
 * @property {string} title as a choice
 * @property {string} name in a sentence: `cross-attention`
 * @property {'encoder'|'decoder'} stack
 * @property {string} ending of its sites, after `layers.N.`
 * @property {Side} rows whose tokens attend
 * @property {Side} columns whose tokens are attended to
 */

const ALL = [
  { id: 'encoder', title: 'Encoder', name: 'encoder', stack: 'encoder', ending: 'self_attention' },
  { id: 'decoder', title: 'Decoder', name: 'decoder', stack: 'decoder', ending: 'self_attention' },
  {
    id: 'cross',
    title: 'Cross',
    name: 'cross-attention',
    stack: 'decoder',
    ending: 'cross_attention',
  },
];

/** What a decoder sees of the source says most of a translation. */
const FIRST_CHOICE = ['cross', 'decoder', 'encoder'];

/**
 * The places whose attention weights a trace holds.
 * @param {import('./trace.js').Trace} trace
 * @returns {Place[]} in the order of the model's parts
 */
export function placesOf(trace) {
  return ALL.filter(
    ({ stack, ending }) => layersWith(trace.tensors, `${ending}.weights`, stack).length > 0,
  ).map((place) => ({
    ...place,
    rows: sideOf(place.stack, trace),
    columns: place.id === 'cross' ? 'source' : sideOf(place.stack, trace),
  }));
}

/**
 * @param {{where?: string}} state
 * @param {import('./trace.js').Trace} trace
 * @returns {Place|null} the chosen place, or the most telling one; null where there is none
 */
export function placeOf({ where }, trace) {
  const places = placesOf(trace);
  const find = (wanted) => places.find(({ id }) => id === wanted);
  return find(where) ?? FIRST_CHOICE.map(find).find(Boolean) ?? null;
}

/**
 * The weights of a place, layer by layer.
 * @param {Pick<Place, 'stack'|'ending'>|null} place
 * @param {import('./trace.js').Trace} trace
 * @returns {{layer: number, site: string}[]}
 */
export function weightsAt(place, { tensors }) {
  return place ? layersWith(tensors, `${place.ending}.weights`, place.stack) : [];
}

/**
 * The stacks of an encoder–decoder, to choose from; of any other model there is nothing to choose.
 * @param {import('./trace.js').Trace} trace
 * @returns {Place[]}
 */
export function stacksOf(trace) {
  return hasTwoSides(trace) ? placesOf(trace).filter(({ id }) => id !== 'cross') : [];
}

/**
 * The stack that is looked at: the chosen one, or the one that predicts.
 * @param {{where?: string}} state
 * @param {import('./trace.js').Trace} trace
 * @returns {'encoder'|'decoder'}
 */
export function stackOf({ where }, trace) {
  if (hasTwoSides(trace)) return where === 'encoder' ? 'encoder' : 'decoder';
  return Object.keys(trace.tensors).some((site) => site.startsWith('encoder.'))
    ? 'encoder'
    : 'decoder';
}

/**
 * The side whose tokens a stack reads.
 * @param {'encoder'|'decoder'} stack
 * @param {import('./trace.js').Trace} trace
 * @returns {Side}
 */
export function sideOf(stack, trace) {
  return stack === 'decoder' && hasTwoSides(trace) ? 'target' : 'source';
}

/** @param {import('./trace.js').Trace} trace */
export function hasTwoSides({ target_tokens: target }) {
  return Boolean(target);
}

/**
 * The side whose tokens the model predicts from.
 * @param {import('./trace.js').Trace} trace
 * @returns {Side}
 */
export function predictingSide(trace) {
  return hasTwoSides(trace) ? 'target' : 'source';
}

/**
 * @param {import('./trace.js').Trace} trace
 * @param {Side} side
 * @returns {import('./trace.js').Token[]}
 */
export function tokensOf(trace, side) {
  return side === 'target' ? trace.target_tokens : trace.tokens;
}

/**
 * Does this model see both ways and say what stands at each place, instead of what comes next?
 * @param {{card?: {kind: string}}} trace
 */
export function isFilling({ card }) {
  return card?.kind === 'encoder';
}
