/**
 * The atlas of a model: what its heads attend to over a corpus, as the server answers it, and the
 * words of a search.
 */

/** @typedef {{sentence: number, token: number, side: 'query'|'key', word: string, tag: string, x: number, y: number, read: string, score: number, mean_score: number, distance: number, mean_distance: number}} SpacePoint `read`: the key that a query scores highest, `distance` away */
/** @typedef {{sentences: string[], targets: string[], n_vectors: number, shares: number[], controls: number[], by_tag: number, by_tag_control: number, points: SpacePoint[]}} HeadSpace of `…/atlas/space` */

/** @typedef {{model: string, part?: 'head'|'search'|'spread'|'like'|'space'|'matches', query?: Record<string, string|number|boolean>}} AtlasAsk a path of `GET /api/v1/models/{id}/atlas` */

/** The names of parts of speech that a search takes in place of a word. */
export const KINDS = [
  ...['noun', 'name', 'pronoun', 'verb', 'auxiliary', 'adjective', 'adverb', 'determiner'],
  ...['preposition', 'conjunction', 'number', 'punctuation'],
];

/** @type {Record<string, string>} */
const IN_WORDS = {
  ADJ: 'adjective',
  ADP: 'preposition',
  ADV: 'adverb',
  AUX: 'auxiliary',
  CCONJ: 'conjunction',
  DET: 'determiner',
  INTJ: 'interjection',
  NOUN: 'noun',
  NUM: 'number',
  PART: 'particle',
  PRON: 'pronoun',
  PROPN: 'name',
  PUNCT: 'punctuation',
  SCONJ: 'subordinator',
  VERB: 'verb',
  X: 'other',
};

/** Return a part of speech in words. @param {string} tag */
export function tagInWords(tag) {
  return IN_WORDS[tag] ?? tag.toLowerCase();
}

/**
 * Return the query of a search. Each side is a part of speech, or else a word, which quotes mark as
 * one: `"verb"` is the word.
 * @param {{from: string, to: string, isSame: boolean}} asked
 * @returns {Record<string, string|number|boolean>}
 */
export function searchQuery({ from, to, isSame }) {
  return {
    ...sideOf('from', from),
    ...sideOf('to', to),
    ...(isSame && { same_word: true }),
    n_sentences: 15,
  };
}

/** @param {'from'|'to'} side @param {string} written */
function sideOf(side, written) {
  const word = written.trim();
  if (word === '') return {};
  if (KINDS.includes(word.toLowerCase())) return { [`${side}_tag`]: word.toLowerCase() };
  const isQuoted = word.length > 2 && /^["“].*["”]$/.test(word);
  return { [`${side}_word`]: isQuoted ? word.slice(1, -1) : word };
}

/**
 * Return the parts of a sentence around the words of a pair, in order.
 * @param {string} text
 * @param {{span: number[], role: 'query'|'key'}[]} spans
 * @returns {{text: string, role?: 'query'|'key'}[]}
 */
export function partsOf(text, spans) {
  const letters = [...text]; // the server counts code points
  /** @type {{text: string, role?: 'query'|'key'}[]} */
  const parts = [];
  let at = 0;
  for (const { span, role } of [...spans].sort((a, b) => a.span[0] - b.span[0])) {
    const start = Math.max(at, span[0]);
    if (start > at) parts.push({ text: letters.slice(at, start).join('') });
    if (span[1] > start) parts.push({ text: letters.slice(start, span[1]).join(''), role });
    at = Math.max(at, span[1]);
  }
  if (at < letters.length) parts.push({ text: letters.slice(at).join('') });
  return parts;
}

/** Return the layer of an attention's path. @param {string} path */
export function layerOf(path) {
  return Number(path.split('.')[2]);
}
