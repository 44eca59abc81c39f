/** The facts about the model below the page. Loaded when they come into sight. */

import { modelName } from '../api/calls.js';
import { atRoot } from '../api/root.js';
import { counted } from '../words/lists.js';
import { inBytes, grouped } from '../words/numbers.js';
import { element } from './dom.js';
import { ADD_COMMAND, exactness, NOTHING_CHANGED } from './composer.js';

/** The window of a model without one: the most that the experiment takes. */
const ENDLESS = 65536;

/** @param {HTMLElement} host @param {Card} card */
export function showCard(host, card) {
  const [[, kind], ...facts] = factsOf(card);
  host.replaceChildren(
    element(
      'details.card-facts',
      element('summary', `${modelName(card)}: ${kind}`),
      element(
        'dl.facts',
        facts.flatMap(([name, value]) => [element('dt', name), element('dd', value)]),
      ),
      element(
        'p.card-link',
        'Add a model of your own with ',
        element('code', ADD_COMMAND),
        ' or ',
        element('code', 'headlight add ./folder'),
        ', then reload this page.',
      ),
    ),
    element(
      'a.card-link',
      { href: atRoot(`/models/${encodeURIComponent(card.id)}/card`) },
      'Model card',
    ),
    ...cacheLink(card),
  );
}

/** Return a link to the picture of a decoder's cache, with its shape. @param {Card} card */
function cacheLink({ n_heads: heads, n_kv_heads: shared = heads, n_layers: count, attentions }) {
  const terms = attentions?.filter(({ path, scale }) => path.startsWith('decoder') && scale) ?? [];
  if (terms.length === 0) return [];
  const window = Math.min(...terms.map(({ window: reach }) => reach ?? ENDLESS));
  const d_head = Math.round(Number(terms[0].scale) ** -2); // scores are divided by √d
  const shape = { n_heads: heads, n_kv_heads: shared, n_layers: count, d_head, window };
  const link = Object.entries(shape).map((each) => `&${each.join('=')}`);
  const href = atRoot(`/experiments#experiment=kv_cache${link.join('')}`);
  return [' · ', element('a.card-link', { href }, 'Its cache of keys')];
}

/** @param {Card} card */
function factsOf(card) {
  return [
    [
      'Kind',
      `${card.kind.replace('-', '–')}, ${layersOf(card)} of ${counted(card.n_heads, 'head')}, ${rounded(card.parameters)} parameters, ${reachOf(card)}`,
    ],
    ['Positions', card.is_checked === false ? '' : card.positional],
    ['Keys and values', sharingOf(card)],
    ['Experts', expertsOf(card.moe)],
    ['Reads', readingOf(card.normalization)],
    ['Architecture', card.architecture === 'headlight' ? '' : (card.architecture ?? '')],
    ['Self-check', exactness(card)],
    ['Not available', omittedOf(card)],
    ['Trained on', listed(card.trained_on)],
    ['Training text', corpusOf(card.corpus)],
    ['Measured', metricsOf(card.metrics)],
    ['Licence', card.licence],
    ['Attribution', listed(card.attribution)],
    ['Revision', card.revision],
  ].filter(([, value]) => value);
}

/** A part that every layer lacks is listed once. @param {Card} card */
function omittedOf({ omitted = {}, n_layers: count }) {
  const entries = Object.entries(omitted);
  /** @param {string} part */
  const asAny = (part) => part.replace(/\.layers\.\d+\./, '.layers.*.');
  const lines = entries.map(([part, reason]) => {
    const alike = entries.filter(([name, why]) => why === reason && asAny(name) === asAny(part));
    return `${alike.length === count ? asAny(part) : part}: ${reason}`;
  });
  return [...new Set(lines)].join('; ');
}

/** @param {Card} card */
function reachOf({ is_endless: isEndless, max_tokens: most, longest_text: longest = 0 }) {
  if (isEndless) return 'texts of any length';
  const long = longest > most ? ', in Overview up to ' + counted(longest, 'token') : '';
  return `up to ${counted(most, 'token')}${long}`;
}

/** @param {Card} card */
function layersOf({ kind, n_layers: count }) {
  return kind === 'encoder-decoder'
    ? `${count} + ${counted(count, 'layer')}`
    : counted(count, 'layer');
}

/** Only where heads share them. @param {Card} card */
function sharingOf({ n_heads: heads, n_kv_heads: shared = heads }) {
  return shared === heads ? '' : `${shared} for ${counted(heads, 'head')} of queries`;
}

/**
 * Return the visible characters that the tokenizer reads as others; spaces among them do not show.
 *
 * @param {import('../trace/card.js').Normalization} [normalization]
 */
function readingOf({ replacements, lowers_capitals: lowers } = NOTHING_CHANGED) {
  const readings = replacements
    .filter(({ characters }) => characters.trim())
    .map(({ characters, text }) => `${[...characters].join(' ')} as ${text}`);
  return [...readings, ...(lowers ? ['a text in capitals as small letters'] : [])].join('; ');
}

/** The reasons for which documents would be dropped, in words. @type {Record<string, string>} */
const REASONS = {
  exact_duplicate: 'exact duplicates',
  near_duplicate: 'near-duplicates',
  low_quality: 'of low quality',
};

/**
 * Return the size of the training text, and the documents in it that a cleaning would drop.
 *
 * @param {Record<string, any>} [corpus]
 */
export function corpusOf({ by, before, dropped } = {}) {
  if (!before) return '';
  const reasons = Object.entries(dropped ?? {}).map(
    ([kind, count]) => `${rounded(count)} ${REASONS[kind] ?? kind}`,
  );
  return [
    `${counted(before.documents, by ?? 'document')}, ${inBytes(before.bytes)}, ${rounded(before.words)} words`,
    reasons.length ? `among them ${reasons.join(', ')}` : 'no duplicates found',
  ].join('; ');
}

/** @param {string[]|undefined} lines */
function listed(lines) {
  return [lines ?? []].flat().join('; ');
}

/** @param {{n_experts: number, top_k: number, layers: number[]}|null} moe */
function expertsOf(moe) {
  if (!moe) return 'none: the model is dense';
  // Which layers have them, and the positions, only the self-check of a foreign model finds.
  const where = moe.layers.length > 0 ? ` in layers ${moe.layers.join(', ')}` : '';
  return `${moe.n_experts}${where}; the router chooses ${moe.top_k} for each token`;
}

/** Sizes of the measured data, which are not results. */
const AMOUNTS = ['tokens', 'bytes', 'masked_words', 'rows', 'trained_tokens'];

/** Of figures that come in groups, the one that counts, and what to call it. @type {Record<string, [string, (metric: any) => unknown]>} */
const HEADLINES = {
  bleu: ['BLEU', (metric) => metric.text],
  alignment: ['error rate of the head that aligns words best', (metric) => metric.head?.error_rate],
  bits_per_token: ['bits per token', (metric) => metric.inside_trained_length ?? metric],
};

/** @param {any} metric a figure, or a group of them with one weight */
const weightIn = (metric) => metric?.weight ?? metric;

/**
 * Return single numbers, the weights of heads, and headlines; tables are only in the card's file.
 */
function metricsOf(metrics = {}) {
  return Object.entries(metrics)
    .filter(([name]) => !AMOUNTS.includes(name))
    .flatMap(([name, value]) => {
      const [title, pick] = HEADLINES[name] ?? [name.replace(/_/g, ' '), weightIn];
      const figure = pick(value);
      return typeof figure === 'number' ? [`${title} ${Number(figure.toPrecision(3))}`] : [];
    })
    .join('; ');
}

/** @param {number} count @returns {string} `7.4 million`, `950 thousand` */
export function rounded(count) {
  if (count >= 1e9) return `${(count / 1e9).toFixed(1)} billion`;
  if (count >= 1e6) return `${(count / 1e6).toFixed(1)} million`;
  if (count >= 1e4) return `${Math.round(count / 1e3)} thousand`;
  return grouped(count);
}
