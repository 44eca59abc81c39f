/**
 * The parts of a model as its map shows them: the effect of each in this pass, in numbers and
 * words. Each part opens a view, and a view shows some parts.
 */

import { withSign } from '../../plot/bars.js';
import { percent } from '../../words/numbers.js';
import { shortened } from '../../words/text.js';
import { guessInWords, quoted } from '../../words/tokens.js';
import {
  hasTwoSides,
  isFilling,
  isOfText,
  labelledAt,
  isRating,
  labelsInWords,
  labelledHeads,
  choosePlace,
  findPlaces,
  predictingSide,
  describeRole,
  chooseStack,
  tokensOf,
} from '../../trace/attention.js';
import { matrixAt } from '../../trace/trace.js';
import { isMask } from '../../trace/words.js';
import { placeInWords } from '../../trace/word_names.js';

/** @import { RoleShares } from '../../plot/roles.js' */

/**
 * @typedef {Object} Part
 * @property {string} id unique on a map: `head decoder 2 3`
 * @property {Kind} kind
 * @property {'encoder'|'decoder'} stack
 * @property {number} layer −1 outside of the layers
 * @property {'encoder'|'decoder'|'cross'} [place] of a head
 * @property {number} [index] of a head, counted from 0
 */

/**
 * @typedef {Object} Layer
 * @property {Part[]} heads of the self-attention
 * @property {Part[]} cross heads of the cross-attention; none without one
 * @property {Part} network the feed-forward network, or all experts of the layer
 * @property {Part} stream behind this layer
 * @property {Part} folded the layer as one part
 */

/** @typedef {{id: 'encoder'|'decoder', embedding: Part, layers: Layer[]}} Stack */

/** @typedef {{stacks: Stack[], isLabelled: boolean, bridge: Part|null, logits: Part}} Anatomy */

/**
 * @typedef {Object} Reading what a part does in this pass
 * @property {number|null} level 0 to 1: a share of the largest of its kind; null: nothing measured
 * @property {number|null} [effect] on the prediction, −1 to 1: a share of the largest; null: not known
 * @property {string} words read out: `layer 2, head 3: previous token, writes 31 %`
 * @property {string} label on the part
 * @property {string} [note] a second, shorter line on it
 * @property {boolean} [isOff] switched off
 */

/** The analyses that the map draws, in the form of a view’s entry. */
export const MAP = { needs: ['analyses.head_norms', 'analyses.residual_stream'] };

/** @param {Card} card @returns {Anatomy} */
export function buildAnatomy(card) {
  const isPair = card.kind === 'encoder-decoder';
  /** @type {('encoder'|'decoder')[]} */
  const ids = isPair ? ['encoder', 'decoder'] : [card.kind === 'encoder' ? 'encoder' : 'decoder'];
  const stacks = ids.map((id) => stackWith(id, card, isPair && id === 'decoder'));
  const stack = ids.at(-1) ?? 'decoder';
  /** @param {Kind} kind @returns {Part} */
  const single = (kind) => ({ id: kind, kind, stack, layer: -1 });
  return {
    stacks,
    isLabelled: Object.keys(card.head_labels ?? {}).length > 0,
    bridge: isPair ? single('bridge') : null,
    logits: single('logits'),
  };
}

/**
 * @param {'encoder'|'decoder'} stack
 * @param {Card} card
 * @param {boolean} hasCross
 * @returns {Stack}
 */
function stackWith(stack, { n_layers: nLayers, n_heads: nHeads, moe }, hasCross) {
  /** @param {Kind} kind @param {number} [layer] @returns {Part} */
  const part = (kind, layer = -1) => ({
    id: layer < 0 ? `${kind} ${stack}` : `${kind} ${stack} ${layer}`,
    kind,
    stack,
    layer,
  });
  /** @param {Kind} kind @param {number} layer @param {number} count @param {Part['place']} [place] */
  const several = (kind, layer, count, place) =>
    Array.from({ length: count }, (_, index) => ({
      ...part(kind, layer),
      id: `${kind} ${place ?? stack} ${layer} ${index}`,
      index,
      ...(place && { place }),
    }));
  const layers = Array.from({ length: nLayers }, (_, layer) => {
    const isRouted = Boolean(moe?.layers.includes(layer));
    return {
      heads: several('head', layer, nHeads, stack),
      cross: hasCross ? several('head', layer, nHeads, 'cross') : [],
      network: part(isRouted ? 'expert' : 'network', layer),
      stream: part('stream', layer),
      folded: part('layer', layer),
    };
  });
  return { id: stack, embedding: part('embedding'), layers };
}

/**
 * Return the numbers of a pass, for the words and colours of all parts.
 * @param {Card} card
 * @param {Trace} trace
 * @param {(part: Part) => boolean} [isOff] the heads that are switched off
 * @param {Effects|null} [effects] on the chosen prediction
 * @param {number} [query] the chosen place of the text whose prediction is told; absent: the last token, or the first mask
 * @param {RoleShares|null} [roles] the shares of a role, in place of those of what is written
 * @returns {(part: Part) => Reading}
 */
export function readParts(
  card,
  trace,
  isOff = () => false,
  effects = null,
  query = undefined,
  roles = null,
) {
  const norms = trace.analyses.head_norms ?? {};
  const streams = trace.analyses.residual_stream ?? {};
  const labels = new Map(
    findPlaces(trace).flatMap((place) =>
      labelledHeads(trace, place).flatMap(({ heads }) =>
        heads.map((head) => [`${place.id} ${head.layer} ${head.head}`, head]),
      ),
    ),
  );
  /** @type {Map<string, number[]>} */
  const remembered = new Map();
  /** @param {string} key @param {() => number[]} make */
  const once = (key, make) => {
    if (!remembered.has(key)) remembered.set(key, make());
    return remembered.get(key) ?? [];
  };
  /** @param {Part} part */
  const sharesOf = ({ place, stack, layer }) => {
    const ending = place === 'cross' ? 'cross_attention' : 'self_attention';
    const path = `${stack}.layers.${layer}.${ending}`;
    return once(path, () => sharesIn(norms[path]));
  };
  /** @param {number|undefined} value in logits @param {number} [most] */
  const effectIn = (value, most = effects?.most ?? 1) =>
    effects && value !== undefined ? value / most : null;
  /** @param {number|undefined} value in logits */
  const effectSaid = (value) =>
    effects && value !== undefined
      ? `${withSign(value)} for “${guessInWords(effects.token)}” against “${guessInWords(effects.against)}”`
      : '';
  /** @param {string} stack @param {string} name */
  const byLayer = (stack, name) =>
    once(`${stack} ${name}`, () => mediansIn(streams[`${stack}.${name}`]));

  /** @type {Record<Exclude<Kind, 'loop'|'model'>, (part: Part) => Reading>} */
  const readings = {
    embedding: () => {
      const has = card.positional && card.positional !== 'none';
      const words = has ? `embedding and ${card.positional} positions` : 'embedding';
      return { level: null, words, label: 'Embedding', note: 'E' };
    },
    layer: (part) => ({ level: null, words: `layer ${part.layer}`, label: String(part.layer) }),
    head: (part) => {
      const { layer, index = 0, place } = part;
      const written = sharesOf(part)[index];
      const head = labels.get(`${place} ${layer} ${index}`);
      const effect = effects?.heads.get(`${place} ${layer} ${index}`);
      const to = roles?.heads.get(`${place} ${layer} ${index}`);
      const where = { cross: 'cross-attention, ', encoder: 'encoder, ', decoder: 'decoder, ' };
      const prefix = hasTwoSides(trace) && place ? where[place] : '';
      const does = [
        isOff(part) ? 'switched off' : '',
        head ? labelsInWords(head) : '',
        effectSaid(effect),
        written === undefined ? '' : `writes ${percent(written, 0)}`,
        to === undefined ? '' : `gives ${percent(to, 0)} of its attention to ${roles?.role}`,
      ];
      const level = written === undefined ? null : written / Math.max(...sharesOf(part));
      return {
        level: roles ? (to ?? null) : level,
        words: said(`${prefix}layer ${layer}, head ${index}`, does),
        label: String(index),
        effect: effectIn(effect),
        note: head ? describeRole(head) : '',
        isOff: isOff(part),
      };
    },
    expert: (part) => {
      const { n_experts: count = 0, top_k: chosen = 0 } = card.moe ?? {};
      const { words, ...reading } = readings.network(part);
      return {
        ...reading,
        words: words.replace('feed-forward network', `${count} experts, ${chosen} for each token`),
        label: 'experts',
        note: String(count),
      };
    },
    network: ({ stack, layer }) => {
      const effect = effects?.networks.get(`${stack} ${layer}`);
      const norm = byLayer(stack, 'written_norm.feed_forward')[layer];
      const others = ['self_attention', 'cross_attention'].map(
        (part) => byLayer(stack, `written_norm.${part}`)[layer] ?? 0,
      );
      const written = norm === undefined ? null : norm / (norm + others[0] + others[1] || 1);
      return {
        level: roles ? null : written,
        effect: effectIn(effect, effects?.mostOfNetworks),
        words: said(`layer ${layer}, feed-forward network`, [
          effectSaid(effect),
          written === null ? '' : `writes ${percent(written, 0)} of what the layer adds`,
        ]),
        label: 'feed-forward',
        note: 'ff',
      };
    },
    stream: ({ stack, layer }) => {
      const all = byLayer(stack, 'residual_norm.after');
      const norm = all[layer];
      return {
        level: norm === undefined ? null : norm / Math.max(...all),
        words: said(`residual stream after layer ${layer}`, [
          norm === undefined ? '' : `median norm ${Number(norm.toPrecision(3))}`,
        ]),
        label: '',
        note: '≈',
      };
    },
    bridge: () => ALIGNMENT,
    logits: () => readPrediction(trace, query),
  };
  return (part) => readings[/** @type {keyof typeof readings} */ (part.kind)](part);
}

const ALIGNMENT = {
  level: null,
  words: 'from encoder to decoder: the alignment of the words',
  label: 'Alignment',
  note: '⇒',
};
/** The name of the last part where a model puts out no tokens. @type {Record<string, string>} */
const OUTPUTS = {
  ...{ label: 'Label', labels: 'Labels', token_label: 'Label' },
  ...{ answer: 'Answer', score: 'Score', vector: 'Vector' },
};
/** @param {Trace} trace @param {number} [query] @returns {Reading} */
function readPrediction(trace, query) {
  const best = likeliest(trace, query);
  const title =
    OUTPUTS[trace.card?.predicts ?? 'token'] ??
    (isFilling(trace) ? 'What fits here' : 'Next token');
  if (!best) return { level: null, words: title, label: title, note: 'out' };
  const { after, probability } = best;
  const guess = `${quoted(best.token)} ${percent(probability, 0)}`;
  const place = after === null ? '' : placeInWords(trace, predictingSide(trace), after);
  return {
    level: probability,
    words: `${place ? `after ${place}` : title.toLowerCase()}: ${guess}`,
    label: place
      ? hasTwoSides(trace)
        ? `${place} → ${guess}`
        : `After ${place}: ${guess}`
      : title,
    note: shortened(guessInWords(best.text), 7) || '→',
  };
}

/** @param {string} name @param {(string|undefined)[]} facts */
function said(name, facts) {
  const known = facts.filter(Boolean);
  return known.length > 0 ? `${name}: ${known.join(', ')}` : name;
}

/**
 * Return each head's share of what its attention writes: its norms over the text's tokens, of all
 * heads'.
 * @param {NamedArray|undefined} norms head × query
 */
function sharesIn(norms) {
  if (!norms) return [];
  const { rows, columns, data } = matrixAt(norms);
  const sums = Array.from({ length: rows }, (_, head) =>
    data.subarray(head * columns, (head + 1) * columns).reduce((sum, norm) => sum + norm, 0),
  );
  const whole = sums.reduce((sum, part) => sum + part, 0) || 1;
  return sums.map((part) => part / whole);
}

/**
 * Return the median over the tokens, layer by layer: one token with a huge norm says nothing of the
 * others.
 * @param {NamedArray|undefined} array layer × query
 */
function mediansIn(array) {
  if (!array) return [];
  const { rows, columns, data } = matrixAt(array);
  return Array.from({ length: rows }, (_, layer) => {
    const sorted = data.slice(layer * columns, (layer + 1) * columns).sort();
    return sorted[Math.floor((columns - 1) / 2)];
  });
}

/**
 * Return the likeliest token after the chosen one, or else after the last one or at the first mask.
 * @param {Trace} trace
 * @param {number} [query]
 * @returns {{text: string, token: Token, after: number|null, probability: number}|null} `after`: its index, if it is not the last; null also at a mask
 */
function likeliest(trace, query) {
  const prediction = trace.analyses.next_token;
  if (!prediction?.probabilities || isRating(trace)) return null;
  const tokens = tokensOf(trace, predictingSide(trace));
  const mask = tokens.findIndex(isMask);
  const standard = isFilling(trace) && mask >= 0 ? mask : tokens.length - 1;
  const chosen = query !== undefined && query < tokens.length ? query : standard;
  const row = isOfText(trace) ? labelledAt(trace) : chosen;
  const text = prediction.texts?.[row]?.[0];
  const probability = matrixAt(prediction.probabilities).data[
    row * prediction.probabilities.shape[1]
  ];
  if (text === undefined) return null;
  return {
    text,
    probability,
    after: isFilling(trace) || row === tokens.length - 1 ? null : row,
    token: { id: -1, text, start: 0, end: 0, word: null, is_special: false },
  };
}

/**
 * Return the change of the state when a part is chosen: its view opens, at its place.
 * @param {Part} part
 * @param {string} view that opens
 * @returns {Patch}
 */
export function openPart({ kind, stack, layer, index, place }, view) {
  /** @type {Partial<Record<Kind, Patch>>} */
  const at = {
    head: { layer, head: index, where: place, attention_which: 'head' },
    layer: { layer },
    expert: { layer, where: stack },
    stream: { stream_layer: layer, where: stack },
    network: { stream_layer: layer, where: stack, stream_show: 'norms' },
    embedding: { where: stack },
  };
  return { view, ...at[kind] };
}

/**
 * Return the parts that the open view shows.
 * @param {Anatomy} anatomy
 * @param {Kind} kind whose view is open
 * @param {State & Record<string, any>} state
 * @param {Trace} trace
 * @param {(part: {layer: number, head: number}) => boolean} isHeadShown
 * @returns {Set<string>} their ids
 */
export function litParts({ stacks, bridge, logits }, kind, state, trace, isHeadShown) {
  const place = choosePlace(state, trace)?.id;
  const stack = stacks.length > 1 ? chooseStack(state, trace) : stacks[0].id;
  const layers = stacks.flatMap(({ layers: all }) => all);
  const stackLayers = stacks.find(({ id }) => id === stack)?.layers ?? [];
  /** @type {Partial<Record<Kind, () => (Part|null)[]>>} */
  const shown = {
    head: () =>
      layers
        .flatMap(({ heads, cross }) => [...heads, ...cross])
        .filter((part) => part.place === place)
        .filter(({ layer, index = 0 }) => isHeadShown({ layer, head: index })),
    expert: () => {
      const networks = stackLayers.map(({ network }) => network);
      const chosen = networks[state.layer ?? 0];
      return [
        chosen?.kind === 'expert'
          ? chosen
          : (networks.find(({ kind }) => kind === 'expert') ?? null),
      ];
    },
    embedding: () => stacks.filter(({ id }) => id === stack).map(({ embedding }) => embedding),
    stream: () => stackLayers.map(({ stream }) => stream),
    bridge: () => [bridge],
    logits: () => [logits],
  };
  const parts = shown[kind]?.() ?? [logits];
  return new Set(parts.flatMap((part) => (part ? [part.id] : [])));
}
