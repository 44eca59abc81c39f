/**
 * The heads that link two tokens: all heads of a place, ranked by their weight from one to the other.
 */

import { weightsAt } from './attention.js';
import { isCausal } from './trace.js';

/**
 * @import { Place } from './attention.js'
 * @import { Trace } from './trace.js'
 */

/**
 * @param {Trace} trace
 * @param {Place} place
 * @param {number} query
 * @param {number} key
 * @returns {{layer: number, head: number, weight: number}[]} the highest weight first; empty if the key is masked
 */
export function rankedByPair(trace, place, query, key) {
  return weightsAt(place, trace)
    .flatMap(({ layer, site }) => {
      if (isCausal(site) && key > query) return [];
      const { shape, data, scale } = trace.tensors[site];
      const [nHeads, nQueries, nKeys] = shape;
      return Array.from({ length: nHeads }, (_, head) => ({
        layer,
        head,
        weight: data[(head * nQueries + query) * nKeys + key] * scale,
      }));
    })
    .sort((a, b) => b.weight - a.weight);
}
