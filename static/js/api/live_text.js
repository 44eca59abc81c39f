/**
 * Of a model whose graph runs in the browser: the tokens of a text, and the inputs of a pass. The graph
 * and its manifest are those of `headlight.model.export`.
 */

import { range } from '../trace/trace.js';

/** @typedef {{edits?: Edit[], position?: number, token?: number, against?: number, isTakingAway?: boolean, target?: Token[], names?: string[], rows?: number[][]}} Wish of a pass; `names`: the outputs; `isTakingAway`: in further rows each head and each network is off; `rows`: the targets of a beam */

/** The words of the byte-level tokenizer (Radford et al. 2019). */
const WORDS = /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu;

/** A typed mask, with the space before it, as tokens take that in. */
const MASK = /( ?\[MASK\])/;

/**
 * Return the encoder of a model, as `headlight.model.tokenizer` encodes: offsets count code points.
 * @param {Manifest} manifest @param {new (tokenizer: any, config: any) => any} Library cuts one word
 * @returns {(text: string) => Token[]}
 */
export function createEncoder(manifest, Library) {
  const { tokenizer, texts, lowers_capitals: lowers, start_id, mask_id: mask } = manifest;
  const library = new Library({ ...tokenizer, normalizer: null }, {});
  const replaced = new Map(
    (tokenizer.normalizer?.normalizers ?? []).flatMap((/** @type {any} */ { pattern, content }) =>
      [...pattern.Regex.slice(1, -1)].map((letter) => [letter, content]),
    ),
  );
  const { vocab } = tokenizer.model;
  const lengths = new Map(Object.keys(vocab).map((piece) => [vocab[piece], [...piece].length]));
  const utf8 = new TextEncoder();
  /** @param {number} id @param {number} start @param {number} end */
  const special = (id, start, end) => ({
    ...{ id, text: texts[id], start, end, word: null, is_special: true },
  });

  /** @param {string} part @param {number} start in the text @param {number} nWords before it */
  function piecesOf(part, start, nWords) {
    const letters = [...part].map((letter) => replaced.get(letter) ?? letter);
    const places = letters.flatMap((letter, at) => Array(utf8.encode(letter).length).fill(at));
    /** @type {Token[]} */
    const tokens = [];
    let byte = 0;
    [...letters.join('').matchAll(WORDS)].forEach(([piece], word) => {
      for (const id of library.encode(piece, { add_special_tokens: false }).ids) {
        const next = byte + (lengths.get(id) ?? 0);
        const span = { start: start + places[byte], end: start + places[next - 1] + 1 };
        tokens.push({ id, text: texts[id], ...span, word: nWords + word, is_special: false });
        byte = next;
      }
    });
    return tokens;
  }

  return (text) => {
    const parts = mask === null ? [text] : text.split(MASK);
    const letters = parts.filter((_, at) => at % 2 === 0).join('');
    const isLowered = asRead(letters, lowers) !== letters;
    /** @type {Token[]} */
    const tokens = [special(start_id, 0, 0)];
    let [start, nWords] = [0, 0];
    for (const [at, part] of parts.entries()) {
      const end = start + [...part].length;
      const pieces = piecesOf(isLowered ? part.toLowerCase() : part, start, nWords);
      tokens.push(...(at % 2 === 0 ? pieces : [special(Number(mask), start, end)]));
      nWords = 1 + Math.max(-1, ...tokens.map(({ word }) => word ?? -1));
      start = end;
    }
    return tokens;
  };
}

/** @param {string} text @param {boolean} lowers a text in capitals is read in small letters */
function asRead(text, lowers) {
  const isUpper = /\p{Uppercase}/u.test(text) && !/\p{Lowercase}|\p{Lt}/u.test(text);
  const lowered = text.toLowerCase();
  const isRead = lowers && isUpper && /[\p{L}\p{No}\p{Nl}]{2}/u.test(text);
  return isRead && [...lowered].length === [...text].length ? lowered : text;
}

/** Return true if the graph can take the edits of a request. @param {Edit[]} edits */
export function takesEdits(edits) {
  return edits.every(({ kind, site = '', value, positions, heads }) => {
    if (kind === 'set' && site.endsWith('.weights'))
      return Array.isArray(value) && positions?.length === 1 && heads?.length === 1;
    if (kind === 'set' || kind === 'scale')
      return /\.(feed_forward|experts)\.output$/.test(site) && value === 0 && !positions;
    return ['heads_off', 'experts_off', 'no_scaling', 'temperature'].includes(kind);
  });
}

/** Return where an attention or a network is, as an edit names it. @param {string} path */
const whereOf = (path) => (path.includes('cross_attention') ? 'cross' : path.split('.')[0]);

/** Return 1 for the tokens of each word. @param {Token[]} tokens @returns {[string, any, number[]]} */
function wordsOf(tokens) {
  const count = 1 + Math.max(0, ...tokens.map(({ word }) => word ?? 0));
  const rows = range(count).map((row) => tokens.map(({ word }) => Number(word === row)));
  return ['float32', Float32Array.from(rows.flat()), [count, tokens.length]];
}

/**
 * Return the inputs of a pass, as `neutral_inputs` of `headlight.model.export`, with what is wished.
 * @param {Manifest} manifest @param {Token[]} tokens @param {Wish} wish
 * @returns {Record<string, [type: string, data: any, shape: number[]]>}
 */
export function inputsOf({ attentions, networks, parts, analyses, sizes, texts }, tokens, wish) {
  const {
    edits = [],
    position = (wish.target ?? tokens).length - 1,
    token = -1,
    against = -1,
    names = [],
  } = wish;
  const { n_heads: nHeads, n_experts: nExperts, d_head: width } = sizes;
  const [nOfHeads, { length }] = [attentions.length * nHeads, tokens];
  const { target = [], rows: beam = [target.map(({ id }) => id)] } = wish;
  const off = wish.isTakingAway ? parts : [];
  const nRows = off.length + beam.length;
  const longest = Math.max(length, target.length);
  const ones = (/** @type {number} */ count) => new Float32Array(count).fill(1);
  const [heads, scales] = [ones(nRows * nOfHeads), ones(nRows * networks.length)];
  const [experts, factors] = [ones(networks.length * nExperts), ones(attentions.length)];
  off.forEach(({ site, head }, at) => {
    const [path] = site.split(/\.(?:context|output)$/);
    if (head === null) scales[(at + 1) * networks.length + networks.indexOf(path)] = 0;
    else heads[(at + 1) * nOfHeads + attentions.indexOf(path) * nHeads + head] = 0;
  });
  for (const { kind, site, value, layer, where, heads: some = [], experts: unused = [] } of edits) {
    const isHere = (/** @type {string} */ path) =>
      (where ?? whereOf(path)) === whereOf(path) &&
      (layer === undefined || path.includes(`.layers.${layer}.`));
    attentions.forEach((path, at) => {
      if (kind === 'heads_off' && isHere(path))
        for (const head of some) heads[at * nHeads + head] = 0;
      if (kind === 'no_scaling' && isHere(path)) factors[at] *= Math.sqrt(width);
      if (kind === 'temperature' && isHere(path)) factors[at] /= Number(value);
    });
    networks.forEach((path, at) => {
      if (site === `${path}.output`) scales[at] = 0;
      if (kind === 'experts_off' && isHere(path))
        for (const expert of unused) experts[at * nExperts + expert] = 0;
    });
  }
  const rows = edits.filter(({ site = '' }) => site.endsWith('.weights'));
  const places = rows.flatMap(({ site = '', heads: [head] = [], positions: [query] = [] }) => [
    ...[attentions.indexOf(site.replace('.weights', '')), head, query],
  ]);
  const words = new Set([...tokens, ...target].map(({ text }) => text.trim()));
  /** @param {boolean[]} each @returns {[string, any, number[]]} */
  const flags = (each) => ['bool', Uint8Array.from(each, Number), [each.length]];
  /** @param {number[]} each @param {number[]} shape @returns {[string, any, number[]]} */
  const integers = (each, shape) => ['int64', BigInt64Array.from(each, BigInt), shape];
  const nSet = Math.max(rows.length, 1);
  const setTo = new Float32Array(nSet * longest);
  rows.forEach(({ value }, at) => setTo.set(/** @type {any} */ (value), at * longest));
  /** @param {string} prefix @param {Token[]} some @param {number[][]} ids */
  function factsOf(prefix, some, ids) {
    const first = some.find(({ word }) => word !== null)?.word;
    const padded = range(nRows).flatMap((row) => ids[row] ?? ids[0]);
    return {
      [`${prefix}ids`]: integers(padded, [nRows, some.length]),
      [`${prefix}is_typed`]: flags(some.map((each) => !each.is_special || each.end > each.start)),
      [`${prefix}is_special`]: flags(some.map(({ is_special }) => is_special)),
      [`${prefix}is_first_word`]: flags(some.map(({ word }) => word !== null && word === first)),
      [`${prefix}words`]: wordsOf(some),
    };
  }
  return {
    ...factsOf('', tokens, [tokens.map(({ id }) => id)]),
    ...(wish.target && factsOf('target_', target, beam)),
    asked: flags(analyses.map((id) => names.some((name) => name.startsWith(`analyses.${id}.`)))),
    in_text: flags(texts.map((text) => words.has(text.trim()))),
    heads: ['float32', heads, [nRows, attentions.length, nHeads]],
    networks: ['float32', scales, [nRows, networks.length]],
    experts: ['float32', experts, [networks.length, nExperts]],
    factors: ['float32', factors, [attentions.length]],
    set_at: integers(rows.length > 0 ? places : [-1, -1, -1], [nSet, 3]),
    set_to: ['float32', setTo, [nSet, longest]],
    ...{ position: integers([position], [1]), token: integers([token], [1]) },
    against: integers([against], [1]),
  };
}
