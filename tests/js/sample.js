/**
 * A small trace, and the bytes it would come as.
 */

import { ok } from 'node:assert/strict';

const LAYERS = 2;
const HEADS = 2;
const EXPERTS = 4;

export const TEXT = 'it saw <b> it';
export const TOKENS = [
  { id: 0, text: '<s>', start: 0, end: 0, word: null, is_special: true },
  { id: 5, text: 'it', start: 0, end: 2, word: 0, is_special: false },
  { id: 6, text: ' saw', start: 2, end: 6, word: 1, is_special: false },
  { id: 7, text: ' <b>', start: 6, end: 10, word: 2, is_special: false },
  { id: 5, text: ' it', start: 10, end: 13, word: 3, is_special: false },
];
const COUNT = TOKENS.length;

/** A text without the marks that isolate its direction. */
export const plain = (text) => text.replace(/[\u2068\u2069]/g, '');

export const near = (found, wanted, within = 1e-6) =>
  ok(Math.abs(found - wanted) <= within, `${found} is not ${wanted}`);

/** Colours need no browser here. */
export const PALETTE = {
  theme: 'light',
  font: 'sans-serif',
  surface: '#fff',
  sunken: '#eee',
  ink: '#000',
  muted: '#555',
  line: '#ddd',
  query: '#00f',
  key: '#080',
  beam: '#f80',
};

export const FRAME = {
  text: TEXT,
  target: null,
  model: 'tiny',
  view: 'attention',
  where: '',
  words: '',
  layer: 1,
  head: 0,
  query: null,
  source: null,
  key: null,
  range: 'one',
  token: null,
  off: '',
  weight: null,
  weight_fixed: false,
  map: 'effect',
  width: 600,
  height: 600,
  palette: PALETTE,
  answers: {},
  cards: [],
};

const sizeOf = (shape) => shape.reduce((product, size) => product * size, 1);

/** An array of a trace, of these numbers. */
export const array = (axes, shape, data) => ({ axes, shape, scale: 1, data });

/**
 * An array of a trace, of numbers that are made.
 * @param {string[]} axes
 * @param {number[]} shape
 * @param {number | ((at: number) => number)} value of every element, or by its place
 * @param {Float32ArrayConstructor | Float64ArrayConstructor | Int32ArrayConstructor} [Kind]
 */
export function tensor(axes, shape, value, Kind = Float32Array) {
  const of = typeof value === 'function' ? value : () => value;
  return array(
    axes,
    shape,
    Kind.from({ length: sizeOf(shape) }, (_, at) => of(at)),
  );
}

/** The first head looks at the token before, the second at the first token. */
function weights() {
  return Uint16Array.from({ length: HEADS * COUNT * COUNT }, (_, at) => {
    const [head, query, key] = [
      Math.floor(at / COUNT / COUNT),
      Math.floor(at / COUNT) % COUNT,
      at % COUNT,
    ];
    if (key > query) return 0;
    if (query === 0) return 65535;
    return Math.round((key === (head === 0 ? query - 1 : 0) ? 0.8 : 0.2 / query) * 65535);
  });
}

function positional() {
  return Float32Array.from({ length: COUNT * 4 }, (_, at) => {
    const angle = Math.floor(at / 4) / (at % 4 < 2 ? 1 : 100);
    return at % 2 === 0 ? Math.sin(angle) : Math.cos(angle);
  });
}

function routing() {
  const each = (Kind, numbers) => Kind.from(Array(COUNT).fill(numbers).flat());
  return {
    probs: each(Float32Array, [0.5, 0.3, 0.15, 0.05]),
    indices: each(Int32Array, [0, 1]),
    chosen: each(Float32Array, [0.625, 0.375]),
  };
}

/** Arrays by name: `[axes, shape, data]`. */
export function arrays({ isDense = false } = {}) {
  const named = {
    'decoder.embedding.positional': [['position', 'd_model'], [COUNT, 4], positional()],
  };
  for (let layer = 0; layer < LAYERS; layer += 1) {
    named[`decoder.layers.${layer}.self_attention.weights`] = [
      ['head', 'query', 'key'],
      [HEADS, COUNT, COUNT],
      weights(),
    ];
  }
  if (!isDense) {
    const { probs, indices, chosen } = routing();
    named['decoder.layers.1.experts.router_probs'] = [['query', 'expert'], [COUNT, EXPERTS], probs];
    named['decoder.layers.1.experts.expert_indices'] = [['query', 'top_k'], [COUNT, 2], indices];
    named['decoder.layers.1.experts.expert_weights'] = [['query', 'top_k'], [COUNT, 2], chosen];
  }
  named['analyses.next_token.ids'] = [
    ['query', 'rank'],
    [COUNT, 3],
    Int32Array.from({ length: COUNT * 3 }, (_, at) => [6, 9, 5][at % 3]),
  ];
  named['analyses.next_token.probabilities'] = [
    ['query', 'rank'],
    [COUNT, 3],
    Float32Array.from({ length: COUNT * 3 }, (_, at) => [0.5, 0.25, 0.0001][at % 3]),
  ];
  return named;
}

/** @returns {import('../../static/js/trace/trace.js').Trace} as the page would hold it */
export function sampleTrace(options) {
  const tensors = {};
  const analyses = { next_token: { texts: TOKENS.map(() => [' saw', '<i>&', '\n']) } };
  for (const [name, [axes, shape, data]] of Object.entries(arrays(options))) {
    const array = { axes, shape, data, scale: data instanceof Uint16Array ? 1 / 65535 : 1 };
    if (name.startsWith('analyses.next_token.')) analyses.next_token[name.split('.')[2]] = array;
    else tensors[name] = array;
  }
  return {
    id: 'x',
    model: 'tiny',
    revision: 'r',
    text: TEXT,
    tokens: TOKENS,
    target_tokens: null,
    tensors,
    analyses,
    timings: { forward_ms: 3 },
  };
}

export const TARGET = 'il vit';
export const TARGET_TOKENS = [
  { id: 0, text: '<s>', start: 0, end: 0, word: null, is_special: true },
  { id: 8, text: 'il', start: 0, end: 2, word: 0, is_special: false },
  { id: 9, text: ' vit', start: 2, end: 6, word: 1, is_special: false },
];

/** Weights of two heads: most of each row lies on the key that `favourite` names. */
function leaning(rows, columns, favourite) {
  const data = new Float32Array(HEADS * rows * columns).fill(0.3 / columns);
  for (let row = 0; row < HEADS * rows; row += 1)
    data[row * columns + favourite(row % rows)] += 0.7;
  return array(['head', 'query', 'key'], [HEADS, rows, columns], data);
}

/** A trace of an encoder–decoder: the source of `sampleTrace`, and a target that goes along with it. */
export function pairTrace() {
  const { analyses, ...trace } = sampleTrace();
  const target = TARGET_TOKENS.length;
  const wide = (count) => tensor(['position', 'd_model'], [count, 4], (at) => Math.sin(at + 1));
  const tensors = {
    'encoder.embedding.positional': wide(COUNT),
    'decoder.embedding.positional': wide(target),
  };
  for (let layer = 0; layer < LAYERS; layer += 1) {
    tensors[`encoder.layers.${layer}.self_attention.weights`] = leaning(COUNT, COUNT, (row) =>
      Math.min(row + 1, COUNT - 1),
    );
    tensors[`decoder.layers.${layer}.self_attention.weights`] = leaning(target, target, () => 0);
    tensors[`decoder.layers.${layer}.cross_attention.weights`] = leaning(
      target,
      COUNT,
      layer === 0 ? () => 0 : (row) => row * 2,
    );
  }
  const part = (name) => ({
    ...analyses.next_token[name],
    shape: [target, 3],
    data: analyses.next_token[name].data.slice(0, target * 3),
  });
  return {
    ...trace,
    tensors,
    target: TARGET,
    target_tokens: TARGET_TOKENS,
    card: { kind: 'encoder-decoder', positional: 'sinusoidal' },
    analyses: {
      next_token: {
        ids: part('ids'),
        probabilities: part('probabilities'),
        texts: TARGET_TOKENS.map(() => [' saw', '<i>&', '</s>']),
      },
    },
  };
}

export const FILL_TEXT = 'it [MASK] <b> it';

/** A trace of an encoder that fills in; the second word is masked. */
export function fillTrace() {
  const trace = sampleTrace({ isDense: true });
  const tensors = {};
  for (const [site, array] of Object.entries(trace.tensors))
    tensors[site.replace('decoder', 'encoder')] = array;
  const tokens = TOKENS.map((token, index) => {
    if (index === 2)
      return { id: 2, text: '[MASK]', start: 2, end: 9, word: null, is_special: true };
    return index < 2 ? token : { ...token, start: token.start + 3, end: token.end + 3 };
  });
  return {
    ...trace,
    tensors,
    tokens,
    text: FILL_TEXT,
    card: { kind: 'encoder', positional: 'learned', has_mask: true },
  };
}

/** A trace of a decoder that adds nothing to its embeddings, with what it has in its place. */
export function schemeTrace(positional) {
  const trace = { ...sampleTrace(), card: { kind: 'decoder', positional } };
  delete trace.tensors['decoder.embedding.positional'];
  const site = 'decoder.layers.0.self_attention';
  const perHead = (axes, columns, value) =>
    tensor(axes, [HEADS, COUNT, columns], (at) =>
      value(Math.floor(at / columns) % COUNT, at % columns, Math.floor(at / columns / COUNT)),
    );
  if (positional === 'rotary') {
    trace.tensors[`${site}.queries`] = perHead(['head', 'query', 'd_head'], 4, (_, column) =>
      column % 2 === 0 ? 2 : 0,
    );
    trace.tensors[`${site}.rotated_queries`] = perHead(
      ['head', 'query', 'd_head'],
      4,
      (position, column) => {
        const angle = position / (column < 2 ? 1 : 100);
        return 2 * (column % 2 === 0 ? Math.cos(angle) : Math.sin(angle));
      },
    );
  }
  if (positional === 'alibi' || positional === 'relative')
    trace.tensors[`${site}.bias`] = perHead(
      ['head', 'query', 'key'],
      COUNT,
      (query, key, head) => -Math.abs(query - key) / 2 ** (head + 1),
    );
  return trace;
}

/** A trace of many tokens, everything in it evenly spread. @param {number} count */
export function longTrace(count) {
  const trace = sampleTrace();
  const tokens = Array.from({ length: count }, (_, index) => ({
    ...TOKENS[1 + (index % 4)],
    id: index,
  }));
  const flat = (columns, axes, value) => tensor(axes, [count, columns], value);
  return {
    ...trace,
    tokens,
    tensors: {
      'decoder.embedding.positional': flat(8, ['position', 'd_model'], 0.5),
      'decoder.layers.1.self_attention.weights': tensor(
        ['head', 'query', 'key'],
        [1, count, count],
        1 / count,
      ),
      'decoder.layers.1.experts.router_probs': flat(4, ['query', 'expert'], 0.25),
      'decoder.layers.1.experts.expert_indices': flat(2, ['query', 'top_k'], 1),
      'decoder.layers.1.experts.expert_weights': flat(2, ['query', 'top_k'], 0.5),
    },
    analyses: {
      next_token: {
        ids: flat(3, ['query', 'rank'], 1),
        probabilities: flat(3, ['query', 'rank'], 0.3),
        texts: tokens.map(() => ['a', 'b', 'c']),
      },
    },
  };
}

/** The figures of a view, one for each of its panels. */
export function figuresOf(view, trace, state = {}) {
  const panels = view.panels?.(trace, { ...FRAME, ...state }) ?? [{ id: '', state: {} }];
  return panels.map((panel) => view.figure(trace, { ...FRAME, ...state, ...panel.state }));
}

const DTYPES = new Map([
  [Uint16Array, 'U16'],
  [Float32Array, 'F32'],
  [Int32Array, 'I32'],
  [Uint8Array, 'U8'],
]);

/**
 * @param {Record<string, [unknown, number[], ArrayBufferView]>} named
 * @param {Record<string, unknown>} metadata values become JSON
 * @param {number} [padding] spaces after the header, as writers add to align the data
 */
export function safetensorsFile(named, metadata = {}, padding = 0) {
  const header = {
    __metadata__: Object.fromEntries(
      Object.entries(metadata).map(([key, value]) => [key, JSON.stringify(value)]),
    ),
  };
  const parts = [];
  let offset = 0;
  for (const [name, [, shape, data]] of Object.entries(named)) {
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    header[name] = {
      dtype: DTYPES.get(data.constructor),
      shape,
      data_offsets: [offset, offset + bytes.length],
    };
    parts.push(bytes);
    offset += bytes.length;
  }
  const text = new TextEncoder().encode(JSON.stringify(header) + ' '.repeat(padding));
  const file = new Uint8Array(8 + text.length + offset);
  new DataView(file.buffer).setBigUint64(0, BigInt(text.length), true);
  file.set(text, 8);
  let at = 8 + text.length;
  for (const bytes of parts) {
    file.set(bytes, at);
    at += bytes.length;
  }
  return file.buffer;
}

/** As the API names them; the last has no score. */
export const LABELS = [
  'previous',
  'next',
  'current',
  'same_token',
  'induction',
  'monotonic',
  'sink',
  'broad',
  'positional',
  'narrow',
  'mixed',
];

/**
 * The analysis `head_labels` as the API sends it.
 * @param {Record<string, {label: string, scores?: Record<string, number>}[]>} found heads by attention
 * @param {Record<string, number>} [queries] over how many each score is a mean, if not over four
 */
export function headLabels(found, queries = {}) {
  const names = LABELS.slice(0, -1);
  const analysis = { labels: LABELS };
  for (const [path, heads] of Object.entries(found)) {
    const scores = heads.flatMap(({ scores: of = {} }) => names.map((name) => of[name] ?? 0));
    const labelOf = (at) => LABELS.indexOf(heads[at].label);
    const count = names.length;
    analysis[`${path}.label`] = tensor(['head'], [heads.length], labelOf, Int32Array);
    analysis[`${path}.label_scores`] = tensor(
      ['head', 'label'],
      [heads.length, count],
      (at) => scores[at],
    );
    analysis[`${path}.label_queries`] = tensor(
      ['label'],
      [count],
      (at) => queries[names[at]] ?? 4,
      Int32Array,
    );
  }
  return analysis;
}
