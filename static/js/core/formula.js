/**
 * Formulas as plain data, in the elements of MathML, and the same in words.
 */

/**
 * @typedef {Object} Term
 * @property {'mi'|'mn'|'mo'|'mtext'|'mrow'|'msub'|'msup'|'mfrac'|'msqrt'|'munder'} tag
 * @property {string} [text] of a term without parts
 * @property {Term[]} [parts]
 * @property {'query'|'key'|'result'} [role] what it stands for, as the page colours it
 */

const leaf = (tag) => (text, role) => ({ tag, text: String(text), ...(role && { role }) });
const branch = (tag) => (...parts) => ({ tag, parts: parts.map(termOf) });

/** What is written as text is an operator. */
function termOf(part) {
  return typeof part === 'string' ? op(part) : part;
}

export const name = leaf('mi');
export const number = leaf('mn');
export const op = leaf('mo');
export const words = leaf('mtext');
export const row = branch('mrow');
export const sub = branch('msub');
export const power = branch('msup');
export const over = branch('mfrac');
export const root = branch('msqrt');
export const under = branch('munder');

const SPOKEN = {
  '=': 'equals', '·': 'times', '×': 'times', '÷': 'divided by', '+': 'plus', '−': 'minus', '∑': 'the sum of', '⟶': 'becomes',
  '‖': '', '(': '', ')': '',
};

const READ = {
  msub: ([base, index]) => `${base} ${index}`,
  msup: ([base, exponent]) => `${base} to the power of ${exponent}`,
  mfrac: ([above, below]) => `${above} over ${below}`,
  msqrt: (parts) => `the square root of ${parts.join(' ')}`,
  munder: ([base, below]) => `${base} over ${below}`,
  mrow: (parts) => parts.join(' '),
};

/**
 * @param {Term} term
 * @returns {string} for who hears the formula
 */
export function spoken({ tag, text, parts }) {
  const said = parts ? READ[tag](parts.map(spoken)) : (SPOKEN[text] ?? text);
  return said.replace(/−(?=[\d∞])/g, 'minus ').replace('∞', 'infinity').replace(/\s+/g, ' ').trim();
}
