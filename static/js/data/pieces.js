/**
 * Characters that a tokenizer spelled in bytes: which tokens belong to one character.
 */

const BYTE = /\\x[0-9a-f]{2}/gi;

/**
 * The place of a token among the bytes of a character.
 * @typedef {Object} Part
 * @property {string} whole the character
 * @property {number} from its first byte here, counted from 1
 * @property {number} to its last byte here
 * @property {number} of how many bytes the character has
 */

/**
 * @param {import('./trace.js').Token[]} tokens offsets count code points
 * @param {string} text the whole text
 * @returns {(Part|null)[]} for each token; null where it is no piece of a character
 */
export function partsOf(tokens, text) {
  const characters = [...text];
  const parts = new Array(tokens.length).fill(null);
  for (const { first, last, start, end } of groupsOf(tokens, characters)) {
    const counts = tokens.slice(first, last + 1).map(bytesOf);
    const of = counts.reduce((sum, count) => sum + count, 0);
    const spelled = characters.slice(start, end).join('');
    const whole = spelled.replace(/^ (?=.)/u, '');
    let to = 0;
    counts.forEach((count, index) => {
      parts[first + index] = { whole, from: to + 1, to: to + count, of };
      to += count;
    });
  }
  return parts;
}

/** Pieces next to each other whose offsets overlap spell the same character. */
function groupsOf(tokens, characters) {
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

/** A byte is written `\xe7`; somebody may as well have typed that. */
function isPiece({ text, start, end, is_special: isSpecial }, characters) {
  return !isSpecial && bytesOf({ text }) > 0 && characters.slice(start, end).join('') !== text;
}

function bytesOf({ text }) {
  return text.match(BYTE)?.length ?? 0;
}

/**
 * A token that is nothing but bytes, of a character that nobody knows yet.
 * @param {string} text of the token
 * @returns {string|null} `byte e7`, `bytes f0 9f`; null for any other token
 */
export function bytesInWords(text) {
  if (!/^ ?(\\x[0-9a-f]{2})+$/i.test(text)) return null;
  const digits = text.match(BYTE).map((byte) => byte.slice(2));
  return `${digits.length === 1 ? 'byte' : 'bytes'} ${digits.join(' ')}`;
}

/**
 * @param {Part} part
 * @returns {string} `byte 2 of 3`, `bytes 1–2 of 3`
 */
export function placeOf({ from, to, of }) {
  return from === to ? `byte ${from} of ${of}` : `bytes ${from}–${to} of ${of}`;
}

/**
 * @param {Part} part
 * @returns {string} `2/3`, `1–2/3`
 */
export function shortPlaceOf({ from, to, of }) {
  return from === to ? `${from}/${of}` : `${from}–${to}/${of}`;
}
