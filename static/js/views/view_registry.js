/**
 * The views of the page, in the order in which a part of the map lists them. An entry is what the
 * page needs to know before a view is opened, and imports its code.
 *
 * To add a view: `views/<id>/<id>.js` exports `{ help, terms, figure }` with the pure function
 * `figure(trace, state)` (`types.d.ts` has the types), and an entry here; a test in tests/js/views.
 */

import { weightSites } from '../api/answers.js';
import { FIELDS as ATTENTION_FIELDS } from '../state/attention_switches.js';
import { choice, count, counts, flag, number, ofText, text } from '../state/state.js';

/** @typedef {ViewEntry & {load: () => Promise<View>}} RegisteredView */

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

/** Return true if a model writes its text on. @param {Card} card */
function writesText({ kind, predicts = 'token' }) {
  return kind === 'decoder' && predicts === 'token';
}

/** Return a number from 0 on, or `all`; null: the page chooses. */
function countOrAll() {
  const field = count();
  /** @param {string} written */
  const read = (written) => (written === 'all' ? written : field.read(written));
  return { ...field, read };
}

/** @type {(ViewEntry & {load: () => Promise<ViewCode>})[]} */
const ENTRIES = [
  {
    id: 'attention',
    load: async () => (await import('./attention/attention.js')).attention,
    title: 'Attention',
    of: 'head',
    needs: ['analyses.head_labels'],
    // The finding of a reward model is the reward.
    also: (card) => [
      ...weightSites(card),
      ...(card.analyses?.includes('reward') ? ['analyses.reward.rewards'] : []),
    ],
    fields: ATTENTION_FIELDS,
    overview: 'heads',
  },
  {
    id: 'why',
    load: async () => (await import('./derivation/why.js')).why,
    title: 'Why this cell',
    of: 'head',
    also: weightSites,
    fields: { why_unscaled: flag(), why_temperature: number({ least: 0.2, most: 5, standard: 1 }) },
  },
  {
    id: 'there',
    load: async () => (await import('./there/there.js')).there,
    title: 'Why there',
    of: 'head',
    also: weightSites,
    fields: { there_cut: text() },
  },
  {
    id: 'head',
    load: async () => (await import('./head/head.js')).head,
    title: 'This head',
    of: 'head',
    needs: ['analyses.head_labels'],
    also: weightSites,
    fields: {
      head_from: text(),
      head_to: text(),
      head_same: flag(),
      head_tenths: flag(),
      head_space: choice(['', 'reads', 'values', 'outputs']),
    },
    overview: 'atlas',
  },
  {
    id: 'sky',
    load: async () => (await import('./sky/sky.js')).sky,
    title: 'All heads',
    of: 'head',
    isMore: true,
    needs: ['analyses.head_labels'],
    also: weightSites,
    fields: {
      sky_x: text(),
      sky_y: text(),
      sky_size: text(),
      sky_colour: choice(['label', 'layer']),
      sky_only: text(),
      sky_with: text(),
    },
  },
  {
    id: 'long',
    load: async () => (await import('./long/long.js')).long,
    title: 'Overview',
    of: 'head',
    isListed: (trace) => Boolean(trace.resolution),
    fields: {
      long_region: ofText(counts()),
      long_cell: ofText(counts()),
      long_pool: choice(['mean', 'max']),
    },
    overview: 'maps',
  },
  {
    id: 'positions',
    load: async () => (await import('./positions/positions.js')).positions,
    title: 'Positions',
    of: 'embedding',
    also: ({ positional }) => POSITIONAL[positional] ?? [],
    fields: {
      positions_show: choice(['encoding', 'rotation', 'schemes']),
      positions_pairs: counts(),
      positions_shift: count(),
    },
  },
  {
    id: 'experts',
    load: async () => (await import('./experts/experts.js')).experts,
    title: 'Experts',
    of: 'expert',
    isOffered: ({ moe }) => moe !== null,
    also: ({ moe }) => (moe ? ROUTING.map((site) => `*.experts.${site}`) : []),
    fields: { experts_show: choice(['routing', 'route', 'specialities']) },
  },
  {
    id: 'stream',
    load: async () => (await import('./stream/stream.js')).stream,
    title: 'Stream',
    of: 'stream',
    fields: { stream_show: choice(['lens', 'norms']), stream_layer: count() },
  },
  {
    id: 'next_token',
    load: async () => (await import('./next_token/next_token.js')).nextToken,
    title: 'Next token',
    of: 'logits',
    titleFor: (card) =>
      card?.labels?.length ? 'Labels' : card?.kind === 'encoder' ? 'What fits here' : 'Next token',
    needs: NEXT_TOKEN,
    fields: {
      next_token_temperature: number({ least: 0, most: 2, standard: 1 }),
      next_token_top_k: number({ least: 0, most: 100, standard: 0 }),
      next_token_top_p: number({ least: 0.05, most: 1, standard: 1 }),
    },
  },
  {
    id: 'word',
    load: async () => (await import('./word/word.js')).word,
    title: 'Why this word',
    of: 'logits',
    titleFor: (card) => (card?.labels?.length ? 'Why this label' : 'Why this word'),
    needs: NEXT_TOKEN,
    fields: { word_show: choice(['parts', 'thread', 'saliency']), word_step: count() },
  },
  {
    id: 'similar',
    load: async () => (await import('./similar/similar.js')).similar,
    title: 'Similarity',
    of: 'logits',
    isOffered: ({ pooling }) => Boolean(pooling),
    fields: { similar_text: text() },
  },
  {
    id: 'answer',
    load: async () => (await import('./choices/answer.js')).answer,
    title: 'Answer',
    of: 'logits',
    isOffered: ({ predicts }) => predicts === 'answer',
  },
  {
    id: 'choices',
    load: async () => (await import('./choices/choices.js')).choices,
    title: 'Choices',
    of: 'logits',
    isOffered: ({ predicts }) => predicts === 'score',
    fields: { choices_texts: text() },
  },
  {
    id: 'circuit',
    load: async () => (await import('./circuit/circuit.js')).circuit,
    title: 'Circuit',
    of: 'logits',
    isOffered: (card) => writesText(card) && card.norm_place !== 'post',
    needs: NEXT_TOKEN,
    fields: {
      circuit_task: choice([
        'sentence',
        'agreement',
        'repetition',
        'names',
        'indirect_objects',
        'greater_than',
        'last_digit',
        'carrying',
      ]),
      circuit_text: text(),
      circuit_right: text(),
      circuit_wrong: text(),
      circuit_edges: number({ least: 1, most: 200, standard: 30 }),
      circuit_cut: text(),
      circuit_map: choice(['parts', 'tokens']),
    },
  },
  {
    id: 'generate',
    load: async () => (await import('./generate/generate.js')).generate,
    title: 'Generate',
    of: 'loop',
    isOffered: writesText,
    needs: NEXT_TOKEN,
    fields: {
      generate_temperature: number({ least: 0, most: 2, standard: 0.8 }),
      generate_top_k: number({ least: 0, most: 100, standard: 0 }),
      generate_top_p: number({ least: 0.05, most: 1, standard: 0.9 }),
      // JavaScript has no larger exact integer; the server accepts it too.
      generate_seed: number({ least: 0, most: Number.MAX_SAFE_INTEGER, standard: 0 }),
      generate_penalty: number({ least: 1, most: 2, standard: 1 }),
      generate_stop: text(),
      generate_search: choice(['sampling', 'beams', 'best']),
      generate_width: number({ least: 2, most: 8, standard: 4 }),
      generate_path: ofText(counts()),
      generate_step: ofText(count()),
    },
    overview: 'generation',
  },
  {
    id: 'translate',
    load: async () => (await import('./translate/translate.js')).translate,
    title: 'Alignment',
    of: 'bridge',
    isOffered: ({ kind }) => kind === 'encoder-decoder',
    fields: { translate_threshold: number({ least: 0, most: 0.5, standard: 0.05 }) },
  },
  {
    id: 'compare',
    load: async () => (await import('./compare/compare.js')).compare,
    title: 'Compare',
    of: 'model',
    needs: NEXT_TOKEN,
    also: weightSites,
    fields: {
      compare_with: choice(['edit', 'text', 'model']),
      compare_text: text(),
      compare_model: text(),
      compare_edit: choice([
        'heads',
        'network',
        'experts',
        'no_scaling',
        'temperature',
        'quantize',
      ]),
      compare_to: choice(['zero', 'mean', 'resample']),
      compare_heads: counts(),
      compare_experts: counts(),
      compare_temperature: number({ least: 0.1, most: 5, standard: 2 }),
      compare_bits: number({ least: 2, most: 8, standard: 4 }),
      compare_part: choice(['all', 'attention', 'feed_forward', 'embedding']),
      compare_layer: countOrAll(),
      compare_where: choice(['all', 'encoder', 'decoder', 'cross']),
    },
  },
];

/** A saved page leaves out those that it has no answers for. @type {RegisteredView[]} */
export const VIEWS = ENTRIES.map(({ load, ...entry }) => ({
  ...entry,
  load: async () => {
    const code = await load();
    return {
      ...entry,
      ...code,
      controls:
        code.controls &&
        ((trace, state) => code.controls?.(trace, state).map(bounded(entry)) ?? []),
    };
  },
}));

/** The bounds of a number are those of its field unless the view names its own. @param {ViewEntry} entry @returns {(control: Control) => Control} */
function bounded({ fields = {} }) {
  return (control) => {
    if (control.kind !== 'number' && control.kind !== 'integer') return control;
    const { least, most } = fields[control.name ?? ''] ?? {};
    return least === undefined ? control : { least, most, ...control };
  };
}

/** Import the code of a view. @param {string} id @returns {Promise<View>} */
export async function loadView(id) {
  const view = VIEWS.find((entry) => entry.id === id);
  if (!view) throw new Error(`no view has the id ${id}`);
  return view.load();
}

/**
 * Return the views that the parts of one kind open, of those that a model has something for.
 * @param {Kind} kind
 * @param {Card} card
 */
export function viewsFor(kind, card) {
  const { predicts = 'token', analyses } = card;
  const hasWords = predicts === 'token' || Boolean(analyses?.includes('next_token'));
  return VIEWS.filter(
    ({ of, isOffered, needs }) =>
      of === kind && (isOffered?.(card) ?? true) && (hasWords || needs !== NEXT_TOKEN),
  );
}
