/**
 * The entries of the views, in the order in which a part of the map lists them: what the page needs
 * to know before a view is opened, and what it requests for it. A view extends its entry; its code
 * is imported by `registry.js`.
 */

import { FIELDS as ATTENTION_FIELDS } from '../state/attention_switches.js';
import { choice, count, counts, flag, number, ofText, text } from '../state/state.js';

/**
 * @import { Kind } from '../data/model_parts.js'
 * @import { Card } from '../data/trace.js'
 * @import { Field } from '../state/state.js'
 */

/**
 * @typedef {Object} ViewEntry
 * @property {string} id
 * @property {string} title
 * @property {(card: Card) => string} [titleFor] if it depends on the model
 * @property {Kind} of the parts of the map that open it
 * @property {(card: Card) => boolean} [isOffered] only for models that have what it shows; absent: for all
 * @property {string[]} needs globs over sites that every model has, or `analyses.<id>.<array>`
 * @property {(card: Card) => string[]} [also] globs over sites that only some models have
 * @property {Record<string, Field<any>>} fields its own part of the state
 * @property {'heads'|'maps'|'generation'} [overview] the part of the view that is not a figure
 */

const NEXT_TOKEN = ['analyses.next_token.ids', 'analyses.next_token.probabilities'];
/** @type {Record<string, string[]>} */
const POSITIONAL = {
  sinusoidal: ['*.embedding.positional'],
  learned: ['*.embedding.positional'],
  rotary: ['*.layers.0.self_attention.rotated_queries', '*.layers.0.self_attention.queries'],
  alibi: ['*.layers.0.self_attention.bias'],
  relative: ['*.layers.0.self_attention.bias'],
};
const ROUTING = ['router_probs', 'expert_indices', 'expert_weights'];

/** @type {ViewEntry[]} */
export const ENTRIES = [
  {
    id: 'attention',
    title: 'Attention',
    of: 'head',
    needs: ['analyses.head_labels'],
    also: weightSites,
    fields: ATTENTION_FIELDS,
    overview: 'heads',
  },
  {
    id: 'why',
    title: 'Why this cell',
    of: 'head',
    needs: [],
    also: weightSites,
    fields: { why_unscaled: flag(), why_temperature: number({ least: 0.2, most: 5, standard: 1 }) },
  },
  { id: 'entropy', title: 'Entropy', of: 'head', needs: [], also: weightSites, fields: {} },
  {
    id: 'head',
    title: 'This head',
    of: 'head',
    needs: ['analyses.head_labels'],
    also: weightSites,
    fields: {},
  },
  {
    id: 'long',
    title: 'Overview',
    of: 'head',
    needs: [],
    fields: {
      long_region: ofText(counts()),
      long_cell: ofText(counts()),
      long_pool: choice(['mean', 'max']),
      long_show: choice(['map', 'blocks']),
      long_block: ofText(count()),
    },
    overview: 'maps',
  },
  {
    id: 'positions',
    title: 'Positions',
    of: 'embedding',
    needs: [],
    also: ({ positional }) => POSITIONAL[positional] ?? [],
    fields: {
      positions_show: choice(['encoding', 'waves', 'rotation', 'schemes', 'twins']),
      positions_dimensions: counts(),
      positions_dimension: count(),
      positions_pairs: counts(),
      positions_shift: count(),
      positions_layer: count(),
      positions_scale: choice(['log', 'linear']),
    },
  },
  {
    id: 'experts',
    title: 'Experts',
    of: 'expert',
    isOffered: ({ moe }) => moe !== null,
    needs: [],
    also: ({ moe }) => (moe ? ROUTING.map((site) => `*.experts.${site}`) : []),
    fields: { experts_show: choice(['routing', 'route', 'specialities']), experts_expert: count() },
  },
  {
    id: 'stream',
    title: 'Stream',
    of: 'stream',
    needs: [],
    fields: {
      stream_show: choice(['lens', 'norms', 'writes', 'layer_norm']),
      stream_layer: count(),
    },
  },
  {
    id: 'next_token',
    title: 'Next token',
    of: 'logits',
    titleFor: (card) => (card?.kind === 'encoder' ? 'What fits here' : 'Next token'),
    needs: NEXT_TOKEN,
    fields: {
      next_token_temperature: number({ least: 0, most: 2, standard: 1 }),
      next_token_top_k: number({ least: 0, most: 100, standard: 0 }),
      next_token_top_p: number({ least: 0.05, most: 1, standard: 1 }),
    },
  },
  {
    id: 'word',
    title: 'Why this word',
    of: 'logits',
    needs: NEXT_TOKEN,
    fields: {
      word_show: choice(['parts', 'path', 'patching', 'saliency']),
      word_text: text(),
      word_token: count(),
      word_against: count(),
    },
  },
  {
    id: 'generate',
    title: 'Generate',
    of: 'loop',
    isOffered: ({ kind }) => kind === 'decoder',
    needs: NEXT_TOKEN,
    fields: {
      generate_temperature: number({ least: 0, most: 2, standard: 0.8 }),
      generate_top_k: number({ least: 0, most: 100, standard: 0 }),
      generate_top_p: number({ least: 0.05, most: 1, standard: 0.9 }),
      // JavaScript counts no further exactly; the server takes it too.
      generate_seed: number({ least: 0, most: Number.MAX_SAFE_INTEGER, standard: 0 }),
      generate_path: ofText(counts()),
      generate_step: ofText(count()),
    },
    overview: 'generation',
  },
  {
    id: 'translate',
    title: 'Translate',
    of: 'bridge',
    isOffered: ({ kind }) => kind === 'encoder-decoder',
    needs: [],
    fields: { translate_threshold: number({ least: 0, most: 0.5, standard: 0.05 }) },
  },
  {
    id: 'compare',
    title: 'Compare',
    of: 'model',
    needs: NEXT_TOKEN,
    also: weightSites,
    fields: {
      compare_with: choice(['edit', 'text', 'model']),
      compare_text: text(),
      compare_model: text(),
      compare_edit: choice(['heads', 'experts', 'no_scaling', 'temperature', 'quantize']),
      compare_heads: counts(),
      compare_experts: counts(),
      compare_temperature: number({ least: 0.1, most: 5, standard: 2 }),
      compare_bits: number({ least: 2, most: 8, standard: 4 }),
      compare_part: choice(['all', 'attention', 'feed_forward', 'embedding']),
      compare_layer: count(),
      compare_where: choice(['all', 'encoder', 'decoder', 'cross']),
      compare_shown: choice(['open', 'most']),
    },
  },
];

/**
 * Return the entry of a view, which the view itself extends.
 * @param {string} id
 * @returns {ViewEntry}
 */
export function entryOf(id) {
  const entry = ENTRIES.find((view) => view.id === id);
  if (!entry) throw new Error(`no view has the id ${id}`);
  return entry;
}

/**
 * Globs for all attention weights of a model. A glob that names no site is an error of the request.
 * @param {{kind?: string}} card
 */
export function weightSites({ kind }) {
  const own = '*.self_attention.weights';
  return kind === 'encoder-decoder' ? [own, '*.cross_attention.weights'] : [own];
}

/**
 * The globs and analyses to request, so that each view has what it needs and nothing more.
 * @param {{needs: string[], also?: (card: Card) => string[]}[]} views
 * @param {Card} card
 * @returns {{capture: string[], analyses: string[]}}
 */
export function request(views, card) {
  const needs = [
    ...new Set(views.flatMap((view) => [...view.needs, ...(view.also?.(card) ?? [])])),
  ].filter((need) => hasPart(card, need));
  const analyses = needs.filter(isAnalysis).map((need) => need.split('.')[1]);
  const capture = needs.filter((need) => !isAnalysis(need));
  return { capture, analyses: [...new Set(analyses)] };
}

/** @param {string} need */
const isAnalysis = (need) => need.startsWith('analyses.');

/**
 * Whether a model has a site or an analysis, as far as its card tells: a short card has no sites, and
 * nothing is known of a foreign model before its self-check.
 * @param {Card} card
 * @param {string} need a glob over sites, or `analyses.<id>.<array>`
 */
function hasPart({ analyses, sites, is_checked: isChecked = true }, need) {
  if (!isChecked) return true;
  if (isAnalysis(need)) return analyses?.includes(need.split('.')[1]) ?? true;
  if (!sites) return true;
  const pattern = need.split('*').map((part) => part.replace(/[.]/g, '\\.'));
  const glob = new RegExp(`^${pattern.join('.*')}$`);
  return sites.some(({ name }) => glob.test(name));
}

/**
 * A sentence on the first thing that a view needs and a model lacks, with the reason on its card.
 * @param {{title: string, needs: string[]}} view
 * @param {Card} card
 * @returns {string} empty if it lacks nothing
 */
export function lackOf({ title, needs }, card) {
  const lacking = needs.find((need) => !hasPart(card, need));
  if (lacking === undefined) return '';
  const name = isAnalysis(lacking) ? lacking.split('.')[1] : lacking;
  const [, reason = 'its self-check found no such tensor'] =
    Object.entries(card.omitted ?? {}).find(([part]) => part.includes(name.replace(/^\*\./, ''))) ??
    Object.entries(card.omitted ?? {})[0] ??
    [];
  return `“${title}” is not available for this model, which has no ${name.replace(/_/g, ' ')}: ${reason}.`;
}

/** The numbers of one answer that a server of default settings keeps beside a book's tokens. */
export const MOST_NUMBERS = 7.2e6;

/**
 * The request for the maps of all heads, as fine as one answer holds: mean and maximum, at most 256
 * bins a side.
 * @param {Card} [card]
 * @returns {import('../data/trace.js').Ask & {resolution: number}}
 */
export function overviewAsk({ kind, n_layers: layers, n_heads: heads } = /** @type {Card} */ ({})) {
  const maps = 2 * (layers ?? 1) * (heads ?? 1) * (kind === 'encoder-decoder' ? 3 : 1);
  const fits = [256, 192, 128, 96, 64, 48].find((bins) => maps * bins ** 2 <= MOST_NUMBERS);
  return { capture: [], analyses: [], resolution: fits ?? 32 };
}
