/** Names of tokens: on an axis, in a sentence, and of pieces of a character by their character. */

import { readDirection, ISOLATE, visible } from './text.js';

/**
 * Return a token's name on an axis: `it`; a token of only spaces is named by them, a piece
 * of a character by the character: `é 1/2`.
 * @param {Pick<Token, 'text'|'part'>} token
 * @returns {string}
 */
export function tokenName({ text, part }) {
  if (!part && /^ ?[!-[\]-~]+$/.test(text)) return text.trim(); // nothing to show or to escape
  if (part) {
    const [before, after] = aroundBytes(text).map((side) => visible(asTyped(side.trim())));
    return `${before}${upright(visible(part.whole))} ${shortByteRangeOf(part)}${after}`;
  }
  return bytesInWords(text) ?? visible(asTyped(text.trim() || text));
}

/** @typedef {(token: any, index: number) => number} PlaceOf which token of its text it is, if not the one of its index */

/** @type {PlaceOf} */
const byIndex = (_, index) => index;

/**
 * Return tokens with their positions: `8 dog`.
 * @param {Token[]} tokens
 * @param {PlaceOf} [placeOf]
 */
export function positionLabels(tokens, placeOf = byIndex) {
  return tokens.map((token, index) => `${placeOf(token, index)} ${tokenName(token)}`);
}

const NAMED_ALONE = 40;

/**
 * Return the tokens’ names, as an axis lists them. Of a long text it labels a few, so there they
 * are numbered.
 * @param {Token[]} tokens
 * @param {PlaceOf} [placeOf]
 */
export function tokenLabels(tokens, placeOf = byIndex) {
  return tokens.length > NAMED_ALONE ? positionLabels(tokens, placeOf) : tokens.map(tokenName);
}

/**
 * A letter that reads right to left would draw the numbers next to it on its other side.
 * @param {string} letter
 */
function upright(letter) {
  return readDirection(letter) === 'rtl' ? ISOLATE.join(letter) : letter;
}

/**
 * Return the name in a sentence, in quotation marks that keep it from turning the sentence right to
 * left.
 * @param {Token} token
 */
export function quoted(token) {
  const { part } = token;
  return part
    ? `${inQuotes(visible(part.whole))} (${writeByteRange(part)})`
    : inQuotes(tokenName(token));
}

/** Return a name in quotation marks that it does not turn right to left. @param {string} name */
export function inQuotes(name) {
  return `“${ISOLATE[0]}${name}${ISOLATE[1]}”`;
}

/**
 * Name one token of a sentence by its name in quotation marks, and by its place where the name is
 * not enough.
 * @param {(Token & {isTwin?: boolean})[]} tokens `isTwin`: another that is left out has its name
 * @param {number} index
 * @param {PlaceOf} [placeOf]
 */
export function named(tokens, index, placeOf = byIndex) {
  const token = tokens[index];
  const name = tokenName(token);
  const hasTwin = token.isTwin || tokens.some((of, at) => at !== index && tokenName(of) === name);
  return hasTwin ? `${quoted(token)} at ${placeOf(token, index)}` : quoted(token);
}

// A byte is written `\xe7`, and a backslash before letters that only look like one `\x5c`.
const BYTE = /\\x(?!5cx[0-9a-f]{2})[0-9a-f]{2}/g;

/** Return the characters of a text that holds no byte. @param {string} text */
export const asTyped = (text) => text.replace(/\\x5c(?=x[0-9a-f]{2})/g, '\\');

/** Return what a token has before and behind the bytes of a character. @param {string} text */
function aroundBytes(text) {
  const parts = text.split(BYTE);
  return [parts[0], parts.length > 1 ? (parts.at(-1) ?? '') : ''];
}

/**
 * Write bytes as their digits, apart from letters next to them: `·f09f`, `の+e9`.
 * @param {string} text of a token with bytes
 */
export function withDigits(text) {
  const [before, after] = aroundBytes(text);
  const bytes = text.slice(before.length, text.length - after.length).replace(/\\x/g, '');
  return `${asTyped(before)}${before.trim() && '+'}${bytes}${after && '+'}${asTyped(after)}`;
}

/**
 * The place of a token among the bytes of a character.
 * @typedef {Object} Part
 * @property {string} whole the character
 * @property {number} from its first byte here, counted from 1
 * @property {number} to its last byte here
 * @property {number} of how many bytes the character has
 */

/**
 * @param {Token[]} tokens offsets count code points
 * @param {string} text the whole text
 * @returns {(Part|null)[]} for each token; null if it is not a piece of a character
 */
export function splitCharacters(tokens, text) {
  const characters = [...text];
  const parts = new Array(tokens.length).fill(null);
  for (const { first, last, start, end } of groupsOf(tokens, characters)) {
    const counts = tokens.slice(first, last + 1).map(bytesOf);
    const of = counts.reduce((sum, count) => sum + count, 0);
    const spelled = characters.slice(start, end).join('');
    const before = asTyped(aroundBytes(tokens[first].text)[0]);
    const after = asTyped(aroundBytes(tokens[last].text)[1]);
    const begin = spelled.startsWith(before) ? before.length : 0;
    const stop = spelled.endsWith(after) ? spelled.length - after.length : spelled.length;
    const whole = spelled.slice(begin, stop) || spelled;
    let to = 0;
    counts.forEach((count, index) => {
      parts[first + index] = { whole, from: to + 1, to: to + count, of };
      to += count;
    });
  }
  return parts;
}

/**
 * Group neighbouring pieces whose offsets overlap: they spell the same character.
 * @param {Token[]} tokens
 * @param {string[]} characters
 */
function groupsOf(tokens, characters) {
  /** @type {{first: number, last: number, start: number, end: number}[]} */
  const groups = [];
  tokens.forEach((token, index) => {
    if (!isPiece(token, characters)) return;
    const group = groups.at(-1);
    if (group?.last === index - 1 && token.start < group.end) {
      group.last = index;
      group.end = Math.max(group.end, token.end);
    } else groups.push({ first: index, last: index, start: token.start, end: token.end });
  });
  return groups;
}

/** @param {Token} token @param {string[]} characters */
function isPiece({ text, start, end, is_special: isSpecial }, characters) {
  return !isSpecial && bytesOf({ text }) > 0 && characters.slice(start, end).join('') !== text;
}

/** @param {{text: string}} of */
function bytesOf({ text }) {
  return text.match(BYTE)?.length ?? 0;
}

/**
 * Return a token that has bytes of a character not complete yet.
 * @param {string} text of the token
 * @returns {string|null} `byte e7`, `bytes f0 9f`, `の + byte e9`; null for any other token
 */
export function bytesInWords(text) {
  const digits = (text.match(BYTE) ?? []).map((byte) => byte.slice(2));
  if (digits.length === 0) return null;
  const [before, after] = aroundBytes(text).map((side) => visible(asTyped(side.trim())));
  const bytes = `${digits.length === 1 ? 'byte' : 'bytes'} ${digits.join(' ')}`;
  return [before, bytes, after].filter(Boolean).join(' + ');
}

/** @param {Part} part @returns {string} `byte 2 of 3`, `bytes 1–2 of 3` */
export function writeByteRange({ from, to, of }) {
  return from === to ? `byte ${from} of ${of}` : `bytes ${from}–${to} of ${of}`;
}

/** @param {Part} part @returns {string} `2/3`, `1–2/3` */
function shortByteRangeOf({ from, to, of }) {
  return from === to ? `${from}/${of}` : `${from}–${to}/${of}`;
}

/**
 * @param {string} text
 * @returns {string} the token with its spaces shown, or the bytes that it is
 */
export function nameOfGuess(text) {
  return bytesInWords(text) ?? visible(asTyped(text));
}

/** Return a token of the vocabulary as a sentence names it: `it`, `‹space›`. @param {string} text */
export function guessInWords(text) {
  return tokenName({ text, part: null });
}
