/**
 * Words as a reader of the text sees them, and names for its tokens: a token that is a whole word is
 * named by the word, any other as a piece of its word, and one of several equal ones by its number.
 */

import { isFilling, tokensOf } from './attention.js';
import { alone, isMask, isUnspaced } from './words.js';
import { visible } from '../words/text.js';
import { inQuotes, tokenName, writeByteRange } from '../words/tokens.js';

/** @import { Side } from './attention.js' */

/** @typedef {{place: number, count: number}} Nth of one among those that are called like it, from 1 */
/** @typedef {Nth & {name: string, start: number, end: number, first: number, last: number, isNumber: boolean}} ReadWord characters `start` to `end`, which tokens `first` to `last` spell */
/** @typedef {{tokens: Token[], words: ReadWord[], at: (number|null)[], signs: Map<number, Nth>}} Reading `at`: the word of each token; null: it is in none, or in several, and `signs` has its number */

/** An apostrophe joins letters, a comma or a point digits. */
const WORD =
  /[\p{L}\p{N}][\p{L}\p{M}\p{N}]*(?:(?:(?<=\p{L})['’](?=\p{L})|(?<=\p{N})[.,](?=\p{N}))[\p{L}\p{M}\p{N}]+)*/gu;
const NUMBER = /^[\p{N}.,]+$/u;
const APOSTROPHE = /'(?=\p{L})/gu;

/** @type {WeakMap<Token[], Reading>} */
const known = new WeakMap();

/**
 * Return the words of a text, and the word of each token.
 * @param {Token[]} tokens offsets count code points
 * @param {string} text they were cut from
 * @returns {Reading}
 */
export function readWords(tokens, text) {
  const kept = known.get(tokens);
  if (kept) return kept;
  const words = [...wordsIn(text)];
  let next = 0;
  const at = tokens.map((token, index) => {
    while (next < words.length && words[next].end <= token.start) next += 1;
    const isInSeveral = words[next + 1]?.start < token.end;
    if (token.is_special || isInSeveral || !(words[next]?.start < token.end)) return null;
    if (words[next].first < 0) words[next].first = index;
    words[next].last = index;
    return next;
  });
  const numbers = numbered(words.map(({ name }) => name));
  words.forEach((word, index) => Object.assign(word, numbers[index]));
  const alone = tokens.flatMap((token, index) =>
    at[index] === null && (!token.is_special || isMask(token)) ? [index] : [],
  );
  const names = numberedPieces(alone.map((index) => tokens[index]));
  const signs = new Map(alone.map((index, order) => [index, names[order]]));
  const reading = { tokens, words, at, signs };
  known.set(tokens, reading);
  return reading;
}

/** Return the number of each name among equal ones. @param {string[]} names @returns {Nth[]} */
function numbered(names) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  const places = names.map((name) => {
    counts.set(name, (counts.get(name) ?? 0) + 1);
    return counts.get(name) ?? 1;
  });
  return names.map((name, index) => ({ place: places[index], count: counts.get(name) ?? 1 }));
}

/**
 * Return the number of each token among equal ones; of bytes, the number of their character.
 * @param {Token[]} tokens
 * @returns {Nth[]}
 */
function numberedPieces(tokens) {
  const starts = tokens.filter(({ part }) => (part?.from ?? 1) === 1);
  const numbers = numbered(starts.map(wholeName));
  let next = 0;
  return tokens.map(({ part }) => {
    next += (part?.from ?? 1) === 1 ? 1 : 0;
    return numbers[next - 1] ?? { place: 1, count: 1 };
  });
}

/** @param {string} text @returns {Generator<ReadWord>} */
function* wordsIn(text) {
  let [unit, start] = [0, 0];
  for (const { 0: run, index } of text.matchAll(WORD)) {
    start += [...text.slice(unit, index)].length;
    unit = index;
    for (const part of spacedParts(run)) {
      const end = start + [...part].length;
      const name = part.replace(APOSTROPHE, '’');
      const isNumber = NUMBER.test(part);
      if (!isUnspaced(part))
        yield { name, start, end, first: -1, last: -1, isNumber, place: 1, count: 1 };
      start = end;
      unit += part.length;
    }
  }
}

/** Split a run where a script without spaces begins or ends. @param {string} run */
function spacedParts(run) {
  if (!isUnspaced(run)) return [run];
  /** @type {string[]} */
  const parts = [];
  for (const character of run) {
    const last = parts.at(-1);
    if (last !== undefined && isUnspaced(last) === isUnspaced(character))
      parts[parts.length - 1] += character;
    else parts.push(character);
  }
  return parts;
}

/**
 * Return the word of which a token is all.
 * @param {Reading} reading
 * @param {number} index
 * @returns {ReadWord|null} null: the token is a piece of a word, a sign or special
 */
export function wholeWord({ words, at }, index) {
  const word = words[at[index] ?? -1];
  return word && word.first === word.last ? word : null;
}

/** @param {number} place from 1 */
function ordinal(place) {
  const FIRST = ['first', 'second', 'third', 'fourth', 'fifth', 'sixth'];
  const ending = [11, 12, 13].includes(place % 100)
    ? 'th'
    : (['th', 'st', 'nd', 'rd'][place % 10] ?? 'th');
  return FIRST[place - 1] ?? `${place}${ending}`;
}

/** @param {string} name @param {Nth|undefined} number */
function withNumber(name, number) {
  return number && number.count > 1 ? `the ${ordinal(number.place)} ${name}` : name;
}

/**
 * Return a word in a sentence: `“keys”`, `the second “keys”`.
 * @param {Reading} reading
 * @param {number} index of the word
 */
export function nameWord({ words }, index) {
  return withNumber(inQuotes(words[index].name), words[index]);
}

/**
 * Return a token in a sentence: `“in”`, `the “s” of the second “keys”`, `the first “,”`, `“<s>”`.
 * @param {Reading} reading
 * @param {number} index
 * @param {string} [of] the word of a piece, if not by its name
 */
export function nameToken(reading, index, of = undefined) {
  const { tokens, words, at, signs } = reading;
  const word = at[index];
  if (word !== null && wholeWord(reading, index)) return nameWord(reading, word);
  if (word === null) return pieceName(tokens[index], signs.get(index));
  const { first, last } = words[word];
  const numbers = numberedPieces(tokens.slice(first, last + 1));
  const piece = pieceName(tokens[index], numbers[index - first]);
  const isNamed = tokens[index].part || piece.startsWith('the ');
  return `${isNamed ? piece : `the ${piece}`} of ${of ?? nameWord(reading, word)}`;
}

/**
 * Return the place of a prediction in a sentence: the word that ends there, or the token.
 * @param {Trace} trace
 * @param {Side} side
 * @param {number} index
 */
export function placeInWords(trace, side, index) {
  const reading = readSide(trace, side);
  const word = reading.at[index];
  const { last, isNumber } = reading.words[word ?? -1] ?? {};
  const isEnd = word !== null && last === index && !isNumber && !isFilling(trace);
  return isEnd ? nameWord(reading, word) : nameToken(reading, index);
}

/** Return the words of one side. @param {Trace} trace @param {Side} side */
export function readSide(trace, side) {
  return readWords(tokensOf(trace, side), (side === 'target' ? trace.target : trace.text) ?? '');
}

/**
 * Return the words of one side as units, a contraction whole; signs, digits and characters of a
 * script without spaces stay apart.
 * @param {Trace} trace
 * @param {Side} side
 * @returns {Unit[]}
 */
export function wordUnits(trace, side) {
  const { tokens, words, at } = readSide(trace, side);
  const isRest = tokens.map(({ part }) => (part?.from ?? 1) > 1);
  return alone(tokens).flatMap((unit, index) => {
    const word = words[at[index] ?? -1];
    if (word && !word.isNumber && word.first < word.last) {
      const { name: text, end, last } = word;
      return index === word.first ? [{ ...unit, text, end, last, part: null }] : [];
    }
    const last = index + [...isRest.slice(index + 1), false].indexOf(false);
    const whole = unit.part && { ...unit, text: unit.part.whole, last, part: null };
    return isRest[index] ? [] : [whole ?? unit];
  });
}

/** @param {Token} token */
const wholeName = (token) => inQuotes(token.part ? visible(token.part.whole) : tokenName(token));

/** Return `the second “,”`, or `byte 1 of 4 of the second “🎉”`. @param {Token} token @param {Nth|undefined} number */
function pieceName(token, number) {
  const name = withNumber(wholeName(token), number);
  return token.part ? `${writeByteRange(token.part)} of ${name}` : name;
}

/** @param {Token|undefined} token @returns {token is Token} */
export function isWord(token) {
  return token !== undefined && !token.is_special && /[\p{L}\p{N}]/u.test(token.text);
}

/**
 * Return the end of a contraction, such as the `'t` of “didn’t”, which has no space before it.
 * @param {Token} token
 */
export function isEnding({ text, start }) {
  return start > 0 && /^['’]\p{L}/u.test(text);
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
