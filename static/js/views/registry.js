/**
 * The views of the page: each entry with `load`, which imports the view itself, once.
 *
 * To add a view: a folder with a module that exports `{ ...entryOf(id), help, terms, figure }`, the
 * pure function `figure(trace, state)` (`plot/figure.js` has the types), an entry in `entry.js`, its
 * import here, and a test in tests/js/views.
 */

import { ENTRIES } from './entry.js';

/**
 * @import { Kind } from '../data/model_parts.js'
 * @import { Card } from '../data/trace.js'
 * @import { View } from '../plot/figure.js'
 * @import { ViewEntry } from './entry.js'
 */

/** @typedef {ViewEntry & {load: () => Promise<View>}} RegisteredView */

/** @type {Record<string, () => Promise<View>>} */
const LOADS = {
  attention: async () => {
    const { attention } = await import('./attention/attention.js');
    const { createHeadsBlock } = await import('../ui/heads_block.js');
    return { ...attention, createOverview: createHeadsBlock };
  },
  why: async () => (await import('./derivation/why.js')).why,
  entropy: async () => (await import('./entropy/entropy.js')).entropy,
  head: async () => (await import('./head/head.js')).head,
  long: async () => {
    const { long } = await import('./long/long.js');
    const { smallMapsOf } = await import('./long/subject.js');
    const { createMapHeads } = await import('../ui/map_heads.js');
    return { ...long, createOverview: (handlers) => createMapHeads(handlers, smallMapsOf) };
  },
  positions: async () => (await import('./positions/positions.js')).positions,
  experts: async () => (await import('./experts/experts.js')).experts,
  stream: async () => (await import('./stream/stream.js')).stream,
  next_token: async () => (await import('./next_token/next_token.js')).nextToken,
  word: async () => (await import('./word/word.js')).word,
  generate: async () => {
    const { generate } = await import('./generate/generate.js');
    const { createGeneration } = await import('../ui/generation.js');
    return { ...generate, createOverview: createGeneration };
  },
  translate: async () => (await import('./translate/translate.js')).translate,
  compare: async () => (await import('./compare/compare.js')).compare,
};

/** A saved page leaves out those that it has no answers for. */
export const VIEWS = ENTRIES.map((entry) => ({ ...entry, load: LOADS[entry.id] }));

/**
 * Import the code of a view.
 * @param {string} id
 * @returns {Promise<View>}
 */
export async function loadView(id) {
  const view = VIEWS.find((entry) => entry.id === id);
  if (!view) throw new Error(`no view has the id ${id}`);
  return view.load();
}

/**
 * The views that the parts of one kind open, of those that a model has something for.
 * @param {Kind} kind
 * @param {Card} card
 */
export function viewsFor(kind, card) {
  return VIEWS.filter(({ of, isOffered }) => of === kind && (isOffered?.(card) ?? true));
}
