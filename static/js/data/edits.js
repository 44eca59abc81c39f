/**
 * A change of the forward pass, as the page's state says it, the API takes it, and a person reads it.
 */

import { counted } from './number.js';

/** @typedef {'heads'|'experts'|'no_scaling'|'temperature'} EditKind */

/**
 * @typedef {Object} Wish
 * @property {EditKind} kind
 * @property {number[]} heads to switch off
 * @property {number[]} experts to switch off
 * @property {number} temperature
 * @property {number|null} layer null: in every layer
 * @property {'all'|'encoder'|'decoder'|'cross'} where
 */

/**
 * @param {Wish} wish
 * @returns {Object[]} the member `edits` of a request
 */
export function editsOf({ kind, heads, experts, temperature, layer, where }) {
  const place = { ...(layer !== null && { layer }), ...(where !== 'all' && { where }) };
  return [
    {
      heads: { kind: 'heads_off', heads, ...place },
      experts: { kind: 'experts_off', experts, ...place },
      no_scaling: { kind: 'no_scaling', ...place },
      temperature: { kind: 'temperature', value: temperature, ...place },
    }[kind],
  ];
}

const PLACES = {
  all: '',
  encoder: ' of the encoder',
  decoder: ' of the decoder',
  cross: ' of cross-attention',
};

/**
 * @param {Wish} wish
 * @returns {string} `head 0 off in all layers`
 */
export function editInWords({ kind, heads, experts, temperature, layer, where }) {
  const layers = layer === null ? 'all layers' : `layer ${layer}`;
  const what = {
    heads: `${listed('head', heads)} off`,
    experts: `${listed('expert', experts)} off`,
    no_scaling: 'no division by √d_head',
    temperature: `softmax temperature ${temperature}`,
  }[kind];
  return `${what} in ${layers}${PLACES[where]}`;
}

const NAMED = 4;

function listed(noun, numbers) {
  if (numbers.length > NAMED) return counted(numbers.length, noun);
  return `${noun}${numbers.length === 1 ? '' : 's'} ${numbers.join(', ')}`;
}
