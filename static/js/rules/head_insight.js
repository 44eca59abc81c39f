/**
 * The parts of a text worth a look: the head and the row that the page opens by itself, and a
 * sentence on the chosen row of a head. In calculations, also the roles of heads.
 */

import { percent } from '../words/numbers.js';
import { visible } from '../words/text.js';
import { writeByteRange, tokenName } from '../words/tokens.js';
import {
  labelledHeads,
  looksUpWritten,
  choosePlace,
  strongestHeads,
  tokensOf,
  weightsAt,
} from '../trace/attention.js';
import { highestIn, matrixAt, rowOf } from '../trace/trace.js';
import { isMask, isReadInPieces } from '../trace/words.js';

/**
 * @import { Place, Side } from '../trace/attention.js'
 * @import { Card } from '../trace/card.js'
 * @import { Matrix, Token, Trace } from '../trace/trace.js'
 * @import { ViewState } from '../plot/figure.js'
 */

/** @typedef {{layer: number, head: number, query: number|null}} HeadToOpen */

/** Labels that are looked for before anything else. */
const FIRST = ['induction', 'monotonic'];
/** And those that every text has, if no head links two words in its own way. */
const COMMON = ['same_token', 'previous', 'next', 'current', 'sink'];
/** Weight from which two words count as linked. */
const LINKED = 0.25;
/** The worth of a short word, or of one two tokens away, against a longer one farther off. */
const LESS = 0.3;
/** Letters from which a word counts in full. */
const LONG = 4;

/**
 * Return the head and the row to open; a head that was chosen is kept. Of a text with a mask, the
 * head is one that links the mask.
 * @param {Trace} trace
 * @param {Place|null} place
 * @param {{layer: number|null, head: number|null}} [chosen]
 * @returns {HeadToOpen}
 */
export function headToOpen(
  trace,
  place,
  { layer = null, head = null } = { layer: null, head: null },
) {
  if (!place) return { layer: layer ?? 0, head: head ?? 0, query: null };
  if (layer !== null && head !== null) return inHead(trace, place, layer, head);
  const patterns = strongestHeads(trace, place).filter(
    (pattern) =>
      (layer ?? pattern.layer) === pattern.layer && (head ?? pattern.head) === pattern.head,
  );
  /** @param {string[]} ids */
  const labelled = (ids) =>
    ids.map((id) => patterns.find((candidate) => candidate.id === id)).find(Boolean);
  const mask = tokensOf(trace, place.rows).findIndex(isMask);
  const pattern = labelled(FIRST);
  const link =
    (pattern &&
      mask < 0 &&
      strongestLink(trace, place, { layer: pattern.layer, head: pattern.head })) ||
    strongestLink(trace, place, { layer, head, query: mask < 0 ? null : mask });
  if (link) return link;
  if (pattern && mask < 0) return inHead(trace, place, pattern.layer, pattern.head);
  const common = labelled(COMMON);
  return inHead(trace, place, common?.layer ?? layer ?? 0, common?.head ?? head ?? 0);
}

/**
 * Return the row of a head that shows most: a word that looks at another, the more the better.
 * @param {Trace} trace
 * @param {Place} place
 * @param {number} layer
 * @param {number} head
 * @returns {HeadToOpen}
 */
function inHead(trace, place, layer, head) {
  const weights = matrixOf(trace, place, layer, head);
  if (!weights) return { layer, head, query: null };
  const link = strongestLink(trace, place, { layer, head });
  if (link) return link;
  const rows = tokensOf(trace, place.rows);
  const columns = tokensOf(trace, place.columns);
  let best = lastWord(rows);
  let most = 0;
  for (let query = 0; query < weights.rows; query += 1) {
    if (!isWord(rows[query])) continue;
    for (let key = 0; key < weights.columns; key += 1) {
      const isItself = place.rows === place.columns && key === query;
      if (isItself || !isWord(columns[key])) continue;
      // A later one of two equal rows is read after more of the text.
      const weight = weights.data[query * weights.columns + key] + query * 1e-9;
      if (weight > most) [best, most] = [query, weight];
    }
  }
  return { layer, head, query: most > 0.1 ? best : lastWord(rows) };
}

/**
 * Return the strongest link between two different words that are not neighbours, of the links that
 * are the strongest of their row.
 * @param {Trace} trace
 * @param {Place} place
 * @param {{layer: number|null, head: number|null, query?: number|null}} chosen
 * @returns {HeadToOpen|null}
 */
function strongestLink(trace, place, chosen) {
  const rows = tokensOf(trace, place.rows);
  const columns = tokensOf(trace, place.columns);
  const isOneText = place.rows === place.columns;
  /** @type {HeadToOpen|null} */
  let best = null;
  let most = 0;
  const [names, others] = [rows, columns].map((tokens) => wordNames(tokens));
  const worths = columns.map((_, index) => worthOf(columns, index));
  for (const { layer, site } of weightsAt(place, trace)) {
    if ((chosen.layer ?? layer) !== layer) continue;
    const { shape } = trace.tensors[site];
    for (let head = 0; head < shape[0]; head += 1) {
      if ((chosen.head ?? head) !== head) continue;
      const weights = matrixAt(trace.tensors[site], head);
      const usual = meanWeights(weights);
      for (let query = 0; query < weights.rows; query += 1) {
        if ((chosen.query ?? query) !== query) continue;
        if (!isWord(rows[query]) && !isMask(rows[query])) continue;
        const key = highestIn(rowOf(weights, query));
        const weight = weights.data[query * weights.columns + key];
        const apart = isOneText ? Math.abs(query - key) : Infinity;
        if (weight <= LINKED || apart < 2 || !isWord(columns[key])) continue;
        const isRepeated = isOneText && key < query && columns[key - 1]?.id === rows[query].id;
        if (isOneText && names[query] === others[key] && !isRepeated) continue;
        const worth = isRepeated ? wholeness(columns, key) : worths[key] * (apart > 2 ? 1 : LESS);
        const told = (weight - usual[key]) * worth;
        if (told > most) [best, most] = [{ layer, head, query }, told];
      }
    }
  }
  return best;
}

/**
 * Return the mean weight of each key over all queries: a head that looks at one word from
 * everywhere links it to none.
 * @param {Matrix} weights of a head
 */
function meanWeights({ rows, columns, data }) {
  const means = new Float64Array(columns);
  for (let at = 0; at < rows * columns; at += 1) means[at % columns] += data[at] / rows;
  return means;
}

/**
 * Return how much a word says as what is looked at: a long one most, a short one, or a short one
 * that the text begins with, little.
 * @param {Token[]} tokens
 * @param {number} index
 */
function worthOf(tokens, index) {
  const letters = tokens[index].text.match(/[\p{L}\p{N}]/gu)?.length ?? 0;
  const isFirst = tokens.findIndex(isWord) === index;
  if (!isWord(tokens[index])) return 0;
  const whole = wholeness(tokens, index);
  if (letters >= LONG) return whole;
  return whole * (letters < 3 || isFirst ? LESS : 0.8);
}

/** The worth of the rest of a word against a word. @param {Token[]} tokens @param {number} index */
function wholeness(tokens, index) {
  const { word } = tokens[index];
  return word !== null && word === tokens[index - 1]?.word ? LESS : 1;
}

/** @param {Token|undefined} token @returns {token is Token} */
export function isWord(token) {
  return token !== undefined && !token.is_special && /[\p{L}\p{N}]/u.test(token.text);
}

/**
 * Return the end of a contraction, such as the `'t` of “didn't”, which has no space before it.
 * @param {Token} token
 */
function isEnding({ text, start }) {
  return start > 0 && /^['’]\p{L}/u.test(text);
}

/** @param {Token[]} tokens @returns {number|null} */
function lastWord(tokens) {
  const index = tokens.findLastIndex(isWord);
  return index < 0 ? null : index;
}

/** @param {Trace} trace @param {Place} place @param {number} layer @param {number} head */
function matrixOf(trace, place, layer, head) {
  const site = weightsAt(place, trace).find((row) => row.layer === layer)?.site;
  if (!site || head >= trace.tensors[site].shape[0]) return null;
  return matrixAt(trace.tensors[site], head);
}

/** Names of heads whose chosen row does what their label says. @type {Record<string, string>} */
const KINDS = {
  induction: 'an induction head',
  previous: 'a previous-token head',
  next: 'a next-token head',
  same_token: 'a head that finds repeated words',
  current: 'a current-token head',
  monotonic: 'a head that aligns the two languages',
  sink: 'an attention sink',
};

/**
 * Return one sentence on what the row of a head shows, and what it is good for.
 * @param {Trace} trace
 * @param {{where?: string, layer: number, head: number}} state
 * @param {number} query the chosen row
 * @returns {string} empty if there are no weights
 */
export function explainRow(trace, state, query) {
  const place = choosePlace(state, trace);
  const weights = place && matrixOf(trace, place, state.layer, state.head);
  if (!place || !weights || query < 0 || query >= weights.rows) return '';
  const rows = tokensOf(trace, place.rows);
  const columns = tokensOf(trace, place.columns);
  const key = highestIn(rowOf(weights, query));
  const much = percent(weights.data[query * weights.columns + key], 0);
  const relation = relationOf(trace, place, state, query, key);
  const label = labelledHeads(trace, place)[state.layer]?.heads[state.head]?.label?.id;
  const kind = label === relation || label === 'monotonic' ? KINDS[label] : undefined;
  /** @param {Side} side */
  const textOf = (side) => (side === 'target' ? trace.target : trace.text) ?? '';
  const words = [
    wordAt(rows, wordNames(rows, textOf(place.rows)), relation === 'written' ? query + 1 : query),
    wordAt(columns, wordNames(columns, textOf(place.columns)), key),
  ];
  const areOne = words[0].name === words[1].name && !['same_token', 'current'].includes(relation);
  // Pieces repeat where their words do not, such as the “day” of two weekdays.
  const isOfPieces = ['induction', 'same_token'].includes(relation) && words[0].ordinal === '';
  const [from, to] = areOne || isOfPieces ? [pieceAt(rows, query), pieceAt(columns, key)] : words;
  const second = relation === 'other' ? secondOf(weights, columns, query, key) : null;
  const also =
    second === null
      ? ''
      : ` and ${nth(wordAt(columns, wordNames(columns, textOf(place.columns)), second))} (${percent(weights.data[query * weights.columns + second], 0)})`;
  const said = SAID[relation](from, to, {
    distance: Math.abs(query - key),
    isBefore: key < query,
    head: 'this head',
  });
  const like = relation === 'induction' ? ', as an induction head does' : '';
  return `${said} (${much})${also}${kind ? `: ${kind}` : like}.`;
}

/** The share of the largest weight of a row from which the second is told too. */
const NEARLY = 0.5;

/**
 * Return the key with the second weight of a row, where it is another word and nearly as strong as
 * the first.
 * @param {Matrix} weights
 * @param {Token[]} columns
 * @param {number} query
 * @param {number} first
 */
function secondOf(weights, columns, query, first) {
  const row = rowOf(weights, query);
  const [most] = [row[first]];
  row[first] = 0;
  const second = highestIn(row);
  const isOther = columns[second].word !== columns[first].word;
  return isOther && isWord(columns[second]) && row[second] >= NEARLY * most ? second : null;
}

/** @param {Word} word */
const nth = ({ ordinal, name }) => (ordinal ? `the ${ordinal}${name}` : name);

/** @type {Record<string, (query: Word, key: Word, of: {distance: number, isBefore: boolean, head: string}) => string>} */
const SAID = {
  induction: (query, key, { head }) =>
    `At ${nth(query)}, ${head} looks back to ${key.name}, which followed ${query.noun === 'byte' ? 'the same byte' : 'it'} before`,
  previous: (query, key, { head }) =>
    `At ${query.name}, ${head} looks at the token before, ${key.name}`,
  next: (query, key, { head }) => `At ${query.name}, ${head} looks at the token after, ${key.name}`,
  same_token: (query, _, { head }) =>
    `At ${nth(query)}, ${head} looks at the same ${query.noun} elsewhere`,
  current: (query, _, { head }) => `At ${query.name}, ${head} looks at the token itself`,
  sink: (query, key, { head }) =>
    `At ${query.name}, ${head} looks at ${key.name}, the start of the text`,
  written: (query, key, { head }) => `To write ${query.name}, ${head} reads ${key.name}`,
  aligned: (query, key, { head }) =>
    `Having written ${query.name}, ${head} looks up ${key.name}, its word in the other language`,
  cross: (query, key, { head }) => `To write what follows ${query.name}, ${head} reads ${key.name}`,
  other: (query, key, { distance, isBefore, head }) =>
    `At ${query.name}, ${head} mostly reads ${key.name}, ${distance} tokens ${isBefore ? 'back' : 'ahead'}`,
};

/**
 * Return the relation of the key to the query.
 * @param {Trace} trace
 * @param {Place} place
 * @param {{layer: number, head: number}} of the head
 * @param {number} query
 * @param {number} key
 */
function relationOf(trace, place, of, query, key) {
  if (place.rows !== place.columns) {
    if (looksUpWritten(trace, of)) return 'aligned';
    return query + 1 < tokensOf(trace, place.rows).length ? 'written' : 'cross';
  }
  const tokens = tokensOf(trace, place.rows);
  if (key === query) return 'current';
  if (key === 0) return 'sink';
  if (key === query - 1) return 'previous';
  if (key === query + 1) return 'next';
  if (key < query && tokens[key - 1].id === tokens[query].id) return 'induction';
  return tokens[key].id === tokens[query].id ? 'same_token' : 'other';
}

/** @typedef {{name: string, ordinal: string, noun: string}} Word in quotation marks; `second `, if it occurs more than once */

const ORDINALS = ['first ', 'second ', 'third ', 'fourth ', 'fifth '];

const NUMBER = /^\p{N}+$/u;

/**
 * Return the word that a token belongs to, and which of its occurrences this is. The drawing
 * separates digits and tokens of scripts without spaces, so for these it is the digit or the token.
 * @param {Token[]} tokens
 * @param {string[]} names of the words
 * @param {number} index
 * @returns {Word}
 */
function wordAt(tokens, names, index) {
  const name = `“${names[index]}”`;
  const { part } = tokens[index];
  const piece = `“${part ? visible(part.whole) : tokenName(tokens[index])}”`;
  if (piece !== name && NUMBER.test(names[index]))
    return { name: `${piece} of ${name}`, ordinal: '', noun: 'digit' };
  if (isReadInPieces(names[index])) return { name: piece, ordinal: '', noun: 'letters' };
  /** @param {number} at */
  const wordAt = (at) => tokens[at].word ?? `at ${at}`;
  const places = new Set(names.flatMap((name, at) => (name === names[index] ? [wordAt(at)] : [])));
  const before = [...places].indexOf(wordAt(index));
  return { name, ordinal: places.size > 1 ? (ORDINALS[before] ?? 'last ') : '', noun: 'word' };
}

/**
 * Return a single token of a word.
 * @param {Token[]} tokens
 * @param {number} index
 * @returns {Word}
 */
function pieceAt(tokens, index) {
  const { part } = tokens[index];
  if (part)
    return {
      name: `${writeByteRange(part)} of “${visible(part.whole)}”`,
      ordinal: '',
      noun: 'byte',
    };
  const name = tokenName(tokens[index]);
  return { name: `“${name}”`, ordinal: '', noun: NUMBER.test(name) ? 'digit' : 'letters' };
}

/**
 * Return the word of each token, a contraction whole.
 * @param {Token[]} tokens
 * @param {string} [text] the tokens' own, for letters of which a token has only some bytes
 * @returns {string[]}
 */
export function wordNames(tokens, text = '') {
  /** @type {string[]} */
  const names = [];
  while (names.length < tokens.length) {
    const first = tokens[names.length];
    const rest = tokens.slice(names.length + 1);
    const end = rest.findIndex(({ word }) => word === null || word !== first.word);
    const isAlone = first.is_special || isMask(first);
    const more = isAlone ? [] : rest.slice(0, end < 0 ? rest.length : end);
    const after = rest[more.length];
    const name = nameOfWord([first, ...more, ...(after && isEnding(after) ? [after] : [])], text);
    names.push(name, ...more.map(() => name));
  }
  return names;
}

/** @param {Token[]} pieces of a word @param {string} text */
function nameOfWord(pieces, text) {
  const [first] = pieces;
  if (first.is_special) return first.text;
  const isOfBytes = text !== '' && pieces.some(({ part }) => part);
  const joined = isOfBytes
    ? [...text].slice(first.start, pieces.at(-1)?.end).join('')
    : pieces.map((piece) => piece.text).join('');
  const whole = joined.trim().replace(/'(?=\p{L})/gu, '’');
  if (!/[\p{L}\p{N}]/u.test(whole)) return visible(whole || first.text);
  const bare = whole.replace(/^[^\p{L}\p{N}[]+|[^\p{L}\p{N}\]]+$/gu, '');
  return isEnding(first) ? `’${bare}` : bare;
}

const CALCULATION = /^\d+\*\d+=/u;
/** @type {Record<string, string>} */
const ROLES = {
  multiplicand: 'reads the first factor while a partial product is written',
  multiplier: 'reads the multiplier’s digit while its partial product is written',
  column: 'reads the digits of the same column while the sum is written',
  carry: 'reads the column one place lower, for the carry',
};

/**
 * Return the full card, for a text that is a calculation.
 * @param {Trace} trace
 * @returns {Record<string, {card: string}>}
 */
export function asksRoles({ text, model }) {
  return CALCULATION.test(text) ? { roles: { card: model } } : {};
}

/**
 * Return the roles in which the chosen head has more weight on its digits than any other head.
 * @param {ViewState} state
 * @returns {[string, string][]}
 */
export function findRoles({ answers, layer, head }) {
  /** @type {Card|undefined} */
  const card = answers?.roles?.trace?.card;
  /** @type {Record<string, {layer: number, head: number, weight: number, evenly: number}>} */
  const measured = card?.metrics?.sample?.heads ?? {};
  return Object.entries(measured)
    .filter(([role, of]) => ROLES[role] && of.layer === layer && of.head === head)
    .map(([role, { weight, evenly }]) => [
      'Role',
      `${ROLES[role]}: ${percent(weight)} of its weight; ${percent(evenly)} if it were even`,
    ]);
}
