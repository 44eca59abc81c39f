/**
 * Words put out of sight: a typed `[MASK]` is one token to a model that fills in. The words that
 * were there are kept, one for each mask in order, so that a click brings them back.
 */

export const MASK = '[MASK]';
const TYPED = /\[MASK\]/g;

/** @param {import('./trace.js').Token} token */
export function isMask({ is_special: isSpecial, text }) {
  return Boolean(isSpecial) && text === MASK;
}

/**
 * @param {string} words the state's: separated by spaces, nothing for a mask that was typed
 * @returns {string[]}
 */
export function wordList(words) {
  return words.split(' ');
}

function joined(words) {
  return words.join(' ').trimEnd();
}

/**
 * The word that a mask hides, where it is known.
 * @param {import('./trace.js').Token[]} tokens
 * @param {number} index of the mask
 * @param {string} words
 * @returns {string} '' where nobody knows
 */
export function wordBehind(tokens, index, words) {
  return wordList(words)[masksBefore(tokens, index)] ?? '';
}

function masksBefore(tokens, index) {
  return tokens.slice(0, index).filter(isMask).length;
}

/**
 * The text with a word put behind a mask, or with the mask's word brought back.
 * @param {{text: string, tokens: import('./trace.js').Token[]}} trace
 * @param {number} index of a token of the word, or of the mask
 * @param {string} words
 * @returns {{text: string, words: string, query: number}|null} null where there is no word
 */
export function toggled(trace, index, words) {
  const token = trace.tokens[index];
  if (isMask(token)) {
    const word = wordBehind(trace.tokens, index, words);
    return word === '' ? null : filled(trace, index, spaceBefore(trace.text, token) + word, words);
  }
  return token.is_special ? null : masked(trace, index, words);
}

function masked({ text, tokens }, index, words) {
  const { word } = tokens[index];
  const pieces = tokens.filter((token) => token.word === word && !token.is_special);
  const characters = [...text];
  const [start, end] = [
    Math.min(...pieces.map((piece) => piece.start)),
    Math.max(...pieces.map((piece) => piece.end)),
  ];
  const spelled = characters.slice(start, end).join('');
  if (spelled.trim() === '' || /\s/.test(spelled.trim())) return null;
  const list = wordList(words);
  const before = masksBefore(tokens, index);
  while (list.length < before) list.push('');
  list.splice(before, 0, spelled.trim());
  return {
    text: replaced(
      characters,
      start,
      end,
      spelled.replace(spelled.trim(), () => MASK),
    ),
    words: joined(list),
    query: tokens.indexOf(pieces[0]),
  };
}

/**
 * The text with a mask replaced by a piece of text.
 * @param {{text: string, tokens: import('./trace.js').Token[]}} trace
 * @param {number} index of the mask
 * @param {string} piece with the space before it, if it has one
 * @param {string} words
 * @returns {{text: string, words: string, query: number}}
 */
export function filled({ text, tokens }, index, piece, words) {
  const { start, end } = tokens[index];
  const list = wordList(words);
  list.splice(masksBefore(tokens, index), 1);
  return {
    text: replaced([...text], start, end, start === 0 ? piece.trimStart() : piece),
    words: joined(list),
    query: index,
  };
}

/** A mask takes in the space before it. */
function spaceBefore(text, { start }) {
  return [...text][start] === ' ' ? ' ' : '';
}

function replaced(characters, start, end, piece) {
  return characters.slice(0, start).join('') + piece + characters.slice(end).join('');
}

/**
 * Which words are behind the masks of a text after it was edited: those left alone keep theirs.
 * @param {string} before
 * @param {string} after
 * @param {string} words
 * @returns {string}
 */
export function wordsAfter(before, after, words) {
  const known = new Map(
    [...before.matchAll(TYPED)].map(({ index }, mask) => [index, wordList(words)[mask] ?? '']),
  );
  const start = sharedLength(before, after);
  const end = sharedLength([...before.slice(start)].reverse(), [...after.slice(start)].reverse());
  return joined(
    [...after.matchAll(TYPED)].map(({ index }) => {
      if (index + MASK.length <= start) return known.get(index) ?? '';
      if (index >= after.length - end) return known.get(index - after.length + before.length) ?? '';
      return '';
    }),
  );
}

function sharedLength(a, b) {
  let length = 0;
  while (length < Math.min(a.length, b.length) && a[length] === b[length]) length += 1;
  return length;
}
