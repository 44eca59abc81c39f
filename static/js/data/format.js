/**
 * Numbers and tokens as the page writes them. An exact 0 is `0`, a tiny number `<0.001`, and nearly all
 * of it `>0.999`, so that the numbers of a row never seem to add up to more than the row holds. Tokens
 * show what is invisible, hold no markup, and name pieces of a character by their character.
 */

/** @import { Rotation } from './card.js'
 * @import { Token } from './trace.js' */

const MINUS = '−';

/**
 * @param {number} value 0 or more
 * @param {number} digits
 * @param {number} [whole] what nothing goes beyond
 */
function bounded(value, digits, whole = Infinity) {
  const least = 10 ** -digits;
  const text = value.toFixed(digits);
  if (value === 0) return '0';
  if (Number(text) === 0) return `<${least.toFixed(digits)}`;
  if (value < whole && Number(text) === whole) return `>${(whole - least).toFixed(digits)}`;
  return text;
}

/**
 * Return a share of one: `0.312`.
 * @param {number} value between 0 and 1
 * @param {number} [digits]
 */
export function share(value, digits = 3) {
  return bounded(value, digits, 1);
}

/** Return a share for narrow spaces: `.31`. @param {number} value between 0 and 1 */
export function shortShare(value) {
  return share(value, 2).replace(/^([<>]?)0\./, '$1.');
}

/** @param {number} value @param {number} [digits] @returns {string} with a true minus sign */
export function signed(value, digits = 3) {
  const text = bounded(Math.abs(value), digits);
  if (value >= 0) return text;
  return text.startsWith('<') ? `>${MINUS}${text.slice(1)}` : MINUS + text;
}

/**
 * Return an amount of any size.
 * @param {number} value
 * @param {number} [figures] how many digits count
 * @returns {string} `123`, `−4.57`, `0.00183`
 */
export function amount(value, figures = 3) {
  return String(Number(value.toPrecision(figures))).replace('-', MINUS);
}

/**
 * Return the end of a scale, or a tick on it: no more digits than it needs.
 * @param {number} value
 * @returns {string} `0.6`, `−1`
 */
export function tick(value) {
  return String(Number(value.toFixed(3))).replace('-', MINUS);
}

/**
 * Return a number of any size, either sign: `−1.355`, and `2.4·10⁻⁵` where the digits would show
 * nothing of it.
 * @param {number} value
 * @param {number} [digits]
 */
export function decimal(value, digits = 3) {
  if (!Number.isFinite(value)) return value < 0 ? `${MINUS}∞` : '∞';
  if (value === 0 || Math.abs(value) >= 10 ** -digits) return signed(value, digits);
  return (value < 0 ? MINUS : '') + small(Math.abs(value));
}

/**
 * @param {number} value between 0 and 1
 * @param {number} [digits]
 * @returns {string} `31.2 %`
 */
export function percent(value, digits = 1) {
  return `${bounded(value * 100, digits, 100)} %`;
}

/**
 * @param {number} count a whole number
 * @returns {string} `1,803`
 */
export function grouped(count) {
  return count.toLocaleString('en');
}

/** @param {number} count @param {string} noun @returns {string} `1 token`, `24 tokens` */
export function counted(count, noun) {
  return `${grouped(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/**
 * Return how far two numbers that should be the same are apart: `4.2·10⁻⁸`.
 * @param {number} difference 0 or more
 */
export function small(difference) {
  if (difference === 0 || difference >= 1e-3) return share(difference);
  const [digits, power] = difference.toExponential(1).split('e-');
  return `${digits}·10⁻${[...power].map((digit) => '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(digit)]).join('')}`;
}

/** Return a number of bytes in the unit that suits it. @param {number} bytes */
export function inBytes(bytes) {
  return bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

const NAMED = new Map([
  ['\n', '↵'],
  ['\t', '⇥'],
  ['\u00a0', '⍽'],
  ['\u3000', '□'],
]);

/** Characters that show nothing by themselves, by the name people know them by. */
const INVISIBLE = new Map([
  ['\u00ad', 'SHY'],
  ['\u034f', 'CGJ'],
  ['\u061c', 'ALM'],
  ['\u200b', 'ZWSP'],
  ['\u200c', 'ZWNJ'],
  ['\u200d', 'ZWJ'],
  ['\u200e', 'LRM'],
  ['\u200f', 'RLM'],
  ['\u2028', 'LS'],
  ['\u2029', 'PS'],
  ['\u202a', 'LRE'],
  ['\u202b', 'RLE'],
  ['\u202c', 'PDF'],
  ['\u202d', 'LRO'],
  ['\u202e', 'RLO'],
  ['\u2060', 'WJ'],
  ['\u2066', 'LRI'],
  ['\u2067', 'RLI'],
  ['\u2068', 'FSI'],
  ['\u2069', 'PDI'],
  ['\ufe0e', 'VS15'],
  ['\ufe0f', 'VS16'],
  ['\ufeff', 'BOM'],
]);

/** Joiners act on the letters or pictures next to them, so inside a longer token they stay. */
const JOINERS = /^[\u034f\u200c\u200d\ufe0e\ufe0f]$/;
const ISOLATE = ['\u2068', '\u2069'];

/**
 * Return text with every space, break and invisible character shown: ` it\n` → `·it↵`.
 * @param {string} text
 * @returns {string}
 */
export function visible(text) {
  const characters = [...text];
  const isInvisible = characters.every((character) => INVISIBLE.has(character));
  const shown = characters.map((character) => visibleCharacter(character, isInvisible)).join('');
  return /^\p{M}/u.test(shown) ? `◌${shown}` : shown;
}

/** @param {string} character @param {boolean} isInvisible the whole token is */
function visibleCharacter(character, isInvisible) {
  if (character === ' ') return '·';
  if (NAMED.has(character)) return NAMED.get(character);
  if (INVISIBLE.has(character))
    return JOINERS.test(character) && !isInvisible ? character : `‹${INVISIBLE.get(character)}›`;
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x20 || (code >= 0x7f && code < 0xa0))
    return `‹U+${code.toString(16).toUpperCase().padStart(4, '0')}›`;
  return character;
}

/**
 * Return a text on one line, with nothing in it that cannot be seen but its spaces.
 * @param {string} text
 */
export function visibleLine(text) {
  return text
    .split(' ')
    .map((part) => (part === '' ? '' : visible(part)))
    .join(' ');
}

/**
 * Return a text on one line in quotation marks; in single ones if it holds double ones itself.
 * @param {string} text
 */
export function quotedLine(text) {
  const line = visibleLine(text);
  return /["“”]/.test(line) ? `‘${line}’` : `“${line}”`;
}

/**
 * Return a token's name on an axis: `it`; a token of only spaces keeps them visible, a piece of a
 * character is told by the character: `é 1/2`.
 * @param {Pick<Token, 'text'|'part'>} token
 * @returns {string}
 */
export function nameOf({ text, part }) {
  if (part) return `${upright(visible(part.whole))} ${shortByteRangeOf(part)}`;
  const bare = text.trim();
  return visible(bare === '' ? text : bare);
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
  return tokens.map((token, index) => `${placeOf(token, index)} ${nameOf(token)}`);
}

const NAMED_ALONE = 40;

/**
 * Return the tokens’ names, as an axis lists them. Of a long text it labels a few, so there they
 * are numbered.
 * @param {Token[]} tokens
 * @param {PlaceOf} [placeOf]
 */
export function tokenLabels(tokens, placeOf = byIndex) {
  return tokens.length > NAMED_ALONE ? positionLabels(tokens, placeOf) : tokens.map(nameOf);
}

/**
 * A letter that reads right to left would draw the numbers next to it on its other side.
 * @param {string} letter
 */
function upright(letter) {
  return directionOf(letter) === 'rtl' ? ISOLATE.join(letter) : letter;
}

/**
 * Return the name in a sentence, in quotation marks that keep it from turning the sentence right to
 * left.
 * @param {Token} token
 */
export function quoted(token) {
  const { part } = token;
  return part ? `${inQuotes(visible(part.whole))} (${byteRangeOf(part)})` : inQuotes(nameOf(token));
}

/** @param {string} name */
function inQuotes(name) {
  return `“${ISOLATE[0]}${name}${ISOLATE[1]}”`;
}

/**
 * Name one token of a sentence by its name in quotation marks, and by its place where the name is
 * not enough.
 * @param {Token[]} tokens
 * @param {number} index
 * @param {PlaceOf} [placeOf]
 */
export function named(tokens, index, placeOf = byIndex) {
  const name = nameOf(tokens[index]);
  const isRepeated = tokens.some((token, at) => at !== index && nameOf(token) === name);
  return isRepeated
    ? `${quoted(tokens[index])} at ${placeOf(tokens[index], index)}`
    : quoted(tokens[index]);
}

/**
 * @param {(string|number)[]} parts at least one
 * @returns {string} `a`, `a and b`, `a, b and c`
 */
export function enumerated(parts) {
  return parts.length > 1
    ? `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`
    : String(parts[0]);
}

/** @param {string} text not empty */
export function capitalised(text) {
  return text[0].toUpperCase() + text.slice(1);
}

/**
 * Return a clause, such as a problem’s detail, as a sentence: capitalised unless it begins with a
 * name from code, and with a full stop.
 * @param {string} text
 */
export function asSentence(text) {
  const clause = text.trim();
  if (clause === '') return '';
  const begun = /^\p{Ll}\p{L}*[\s,;]/u.test(clause) ? capitalised(clause) : clause;
  return /[.!?…]$/.test(begun) ? begun : `${begun}.`;
}

/**
 * Escape a text for Plotly, which reads HTML in every label: a token must never become a tag.
 * @param {string} text
 */
export function escapeForPlotly(text) {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
}

/**
 * Return how many columns of type a text takes: an ideograph or an emoji takes two.
 * @param {string} text
 */
export function columnsOf(text) {
  let columns = 0;
  for (const character of text) columns += columnsOfCharacter(character);
  return columns;
}

/** @param {string} character */
function columnsOfCharacter(character) {
  if (/\p{M}|[\u200b-\u200f\u2060-\u2069\ufe0e\ufe0f]/u.test(character)) return 0;
  return /\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60]|[\u{20000}-\u{3ffff}]/u.test(
    character,
  )
    ? 2
    : 1;
}

/**
 * @param {string} text
 * @param {number} columns
 * @returns {string} the text, or as much of it as fits with an ellipsis
 */
export function shortened(text, columns) {
  if (columnsOf(text) <= columns) return text;
  let kept = '';
  for (const character of text) {
    if (columnsOf(kept + character) > columns - 1) break;
    kept += character;
  }
  return `${kept}…`;
}

/**
 * Return the direction the text reads in, by its first letter that has one.
 * @param {string} text
 * @returns {'ltr'|'rtl'}
 */
export function directionOf(text) {
  const letter = text.match(/\p{L}/u)?.[0] ?? '';
  return /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]|[\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u.test(
    letter,
  )
    ? 'rtl'
    : 'ltr';
}

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
 * @param {Token[]} tokens offsets count code points
 * @param {string} text the whole text
 * @returns {(Part|null)[]} for each token; null if it is not a piece of a character
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

/**
 * A byte is written `\xe7`; a text may contain that literally.
 * @param {Token} token
 * @param {string[]} characters
 */
function isPiece({ text, start, end, is_special: isSpecial }, characters) {
  return !isSpecial && bytesOf({ text }) > 0 && characters.slice(start, end).join('') !== text;
}

/** @param {{text: string}} of */
function bytesOf({ text }) {
  return text.match(BYTE)?.length ?? 0;
}

/**
 * Return a token that consists of bytes only, of a character not complete yet.
 * @param {string} text of the token
 * @returns {string|null} `byte e7`, `bytes f0 9f`; null for any other token
 */
export function bytesInWords(text) {
  if (!/^ ?(\\x[0-9a-f]{2})+$/i.test(text)) return null;
  const digits = (text.match(BYTE) ?? []).map((byte) => byte.slice(2));
  return `${digits.length === 1 ? 'byte' : 'bytes'} ${digits.join(' ')}`;
}

/** @param {Part} part @returns {string} `byte 2 of 3`, `bytes 1–2 of 3` */
export function byteRangeOf({ from, to, of }) {
  return from === to ? `byte ${from} of ${of}` : `bytes ${from}–${to} of ${of}`;
}

/** @param {Part} part @returns {string} `2/3`, `1–2/3` */
function shortByteRangeOf({ from, to, of }) {
  return from === to ? `${from}/${of}` : `${from}–${to}/${of}`;
}
