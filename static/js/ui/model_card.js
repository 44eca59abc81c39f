/**
 * What the page says about the model it shows.
 */

import { modelName } from '../api/catalogue.js';
import { counted, rounded } from '../data/number.js';
import { element } from './element.js';

/**
 * @param {HTMLElement} host
 * @param {Object} card
 */
export function showCard(host, card) {
  host.replaceChildren(
    element('h2', {}, `The model: ${modelName(card)}`),
    element(
      'dl',
      { class: 'facts' },
      ...factsOf(card).flatMap(([name, value]) => [
        element('dt', {}, name),
        element('dd', {}, value),
      ]),
    ),
    element(
      'p',
      { class: 'card-link' },
      element('a', { href: `/models/${encodeURIComponent(card.id)}/card` }, 'The whole card'),
    ),
  );
}

function factsOf(card) {
  return [
    [
      'Kind',
      `${card.kind.replace('-', '–')}, ${layersOf(card)} of ${counted(card.n_heads, 'head')}, ${rounded(card.parameters)} parameters, up to ${counted(card.max_tokens, 'token')}`,
    ],
    ['Positions', card.positional],
    ['Keys and values', sharingOf(card)],
    ['Experts', expertsOf(card.moe)],
    ['Trained on', listed(card.trained_on)],
    ['Reaches', metricsOf(card.metrics)],
    ['Licence', card.licence],
    ['Attribution', listed(card.attribution)],
    ['Revision', card.revision],
  ].filter(([, value]) => value);
}

function layersOf({ kind, n_layers: count }) {
  return kind === 'encoder-decoder'
    ? `${count} + ${counted(count, 'layer')}`
    : counted(count, 'layer');
}

/** Only where heads share them. */
function sharingOf({ n_heads: heads, n_kv_heads: shared = heads }) {
  return shared === heads ? '' : `${shared} for ${counted(heads, 'head')} of queries`;
}

function listed(lines) {
  return [lines ?? []].flat().join('; ');
}

function expertsOf(moe) {
  if (!moe) return 'none: the model is dense';
  return `${moe.n_experts} in layers ${moe.layers.join(', ')}; the router chooses ${moe.top_k} for each token`;
}

/** How much was measured is no achievement. */
const AMOUNTS = ['tokens', 'bytes', 'masked_words', 'rows', 'trained_tokens'];

/** Of figures that come in groups, the one that counts, and what to call it. */
const HEADLINES = {
  bleu: ['BLEU', (found) => found.text],
  alignment: ['error rate of the head that aligns words best', (found) => found.head?.error_rate],
  nats_per_token: ['nats per token', (found) => found.inside_trained_length ?? found],
};

/** Single numbers, the weights of heads, and headlines; whole tables belong to the card's file. */
function metricsOf(metrics = {}) {
  return Object.entries(metrics)
    .filter(([name]) => !AMOUNTS.includes(name))
    .map(([name, value]) => {
      const [title, read] = HEADLINES[name] ?? [
        name.replace(/_/g, ' '),
        (found) => found?.weight ?? found,
      ];
      return [title, read(value)];
    })
    .filter(([, value]) => typeof value === 'number')
    .map(([title, value]) => `${title} ${Number(value.toPrecision(3))}`)
    .join(' · ');
}
