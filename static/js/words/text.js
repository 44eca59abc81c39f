/**
 * Text as the page shows it: nothing in it is invisible or read as markup, and a long one is cut to
 * columns of type.
 */

/** White space, by its sign inside a token and by its name in one that is nothing else. */
const BLANKS = new Map([
  [' ', ['·', 'space']],
  ['\n', ['↵', 'line break']],
  ['\t', ['⇥', 'tab']],
  ['\u00a0', ['⍽', 'no-break space']],
  ['\u3000', ['□', 'wide space']],
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

export const ISOLATE = ['\u2068', '\u2069'];

/**
 * Return a token’s text with everything invisible shown but a space between words: ` it\n` →
 * `·it↵`, and by name where it is
 * only white space: `\n\n` → `‹2 line breaks›`.
 * @param {string} text
 * @returns {string}
 */
export function visible(text) {
  if (text.trim() === '') return text.replace(/(.)\1*/gsu, blankInWords);
  return text
    .split(/(?<=\S) (?=\S)/u)
    .map(withSigns)
    .join(' ');
}

/** @param {string} run of one character @param {string} character */
function blankInWords(run, character) {
  const name = BLANKS.get(character)?.[1];
  return name ? `‹${run.length > 1 ? `${run.length} ${name}s` : name}›` : withSigns(run);
}

/** Return a text with a sign for every character that shows nothing. @param {string} text */
export function withSigns(text) {
  const characters = [...text];
  const isInvisible = characters.every((character) => INVISIBLE.has(character));
  const shown = characters.map((character) => visibleCharacter(character, isInvisible)).join('');
  return /^\p{M}/u.test(shown) ? `◌${shown}` : shown;
}

/** @param {string} character @param {boolean} isInvisible the whole token is */
function visibleCharacter(character, isInvisible) {
  if (BLANKS.has(character)) return BLANKS.get(character)?.[0];
  if (INVISIBLE.has(character))
    return JOINERS.test(character) && !isInvisible ? character : `‹${INVISIBLE.get(character)}›`;
  const code = character.codePointAt(0) ?? 0;
  if (/[\p{Cc}\p{Zs}]/u.test(character))
    return `‹U+${code.toString(16).toUpperCase().padStart(4, '0')}›`;
  return character;
}

/** Return a text on one line, with nothing unseen but its spaces. @param {string} text */
export function visibleLine(text) {
  return text
    .split(' ')
    .map((part) => (part === '' ? '' : withSigns(part)))
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
export function countColumns(text) {
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
  if (countColumns(text) <= columns) return text;
  let kept = '';
  for (const character of text) {
    if (countColumns(kept + character) > columns - 1) break;
    kept += character;
  }
  return `${kept}…`;
}

/**
 * Return the direction the text reads in, by its first letter that has one.
 * @param {string} text
 * @returns {'ltr'|'rtl'}
 */
export function readDirection(text) {
  const letter = text.match(/\p{L}/u)?.[0] ?? '';
  return /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]|[\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u.test(
    letter,
  )
    ? 'rtl'
    : 'ltr';
}
