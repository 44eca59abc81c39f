/**
 * Formulas: plain data in the elements of MathML, the same in words, and as DOM.
 */

import { element } from './dom.js';

/**
 * @typedef {Object} Term
 * @property {'mi'|'mn'|'mo'|'mtext'|'mrow'|'msub'|'msup'|'mfrac'|'munder'} tag
 * @property {string} [text] of a term without parts
 * @property {Term[]} [parts]
 * @property {'query'|'key'|'result'|'radicand'} [role] what it stands for, as the page sets it
 */

/** @param {Term['tag']} tag @returns {(text: string|number, role?: Term['role']) => Term} */
const leaf = (tag) => (text, role) => ({ tag, text: String(text), ...(role && { role }) });
/** @param {Term['tag']} tag @returns {(...parts: (Term|string)[]) => Term} */
const branch =
  (tag) =>
  (...parts) => ({ tag, parts: parts.map(termOf) });

/** Plain text is an operator. @param {Term|string} part */
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
/**
 * MathML's own root needs a font made for mathematics; this one does with any.
 * @param {...(Term|string)} parts
 * @returns {Term}
 */
export const root = (...parts) => row(op('√'), { ...row(...parts), role: 'radicand' });
export const under = branch('munder');

/** @type {Record<string, string>} */
const SPOKEN = {
  '=': 'equals',
  '·': 'times',
  '×': 'times',
  '÷': 'divided by',
  '+': 'plus',
  '−': 'minus',
  '∑': 'the sum of',
  '√': 'the square root of',
  '‖': '',
  '(': '',
  ')': '',
};

/** @type {Record<string, (parts: string[]) => string>} */
const READ = {
  msub: ([base, index]) => `${base} ${index}`,
  msup: ([base, exponent]) => `${base} to the power of ${exponent}`,
  mfrac: ([above, below]) => `${above} over ${below}`,
  munder: ([base, below]) => `${base} over ${below}`,
  mrow: (parts) => parts.join(' '),
};

/** @param {Term} term @returns {string} for screen readers */
export function spoken({ tag, text = '', parts }) {
  const said = parts ? READ[tag](parts.map(spoken)) : (SPOKEN[text] ?? text);
  return said
    .replace(/−(?=[\d∞])/g, 'minus ')
    .replace('∞', 'infinity')
    .replace(/\s+/g, ' ')
    .trim();
}

const POWER = /(\S)\^\{([^}]*)\}/;

/**
 * Return a text whose powers, written `e^{0.5}`, are mathematics.
 * @param {string} text
 * @returns {(string|HTMLElement)[]}
 */
export function withPowers(text) {
  const [before, base, exponent] = text.split(POWER);
  if (base === undefined) return [before];
  const term = power(name(base), number(exponent));
  const math = node({ tag: 'math', parts: [term] });
  math.setAttribute('aria-label', spoken(term));
  const rest = text.slice(before.length + base.length + exponent.length + '^{}'.length);
  return [before, element('span.formula', math), ...withPowers(rest)];
}

/** @param {string} text @returns {string} with its powers in words */
export function spokenPowers(text) {
  return text.replaceAll(new RegExp(POWER, 'g'), (_, base, exponent) =>
    spoken(power(name(base), number(exponent))),
  );
}

const MATHML = 'http://www.w3.org/1998/Math/MathML';

/** @param {Term[]} lines @returns {HTMLElement[]} */
export function formulaLines(lines) {
  return lines.map((line) => {
    const math = node({ tag: 'math', parts: [line] });
    math.setAttribute('display', 'block');
    math.setAttribute('aria-label', spoken(line));
    return element('p.formula', math);
  });
}

/** @param {Omit<Term, 'tag'> & {tag: Term['tag']|'math'}} term a term, or the whole formula */
function node({ tag, text, parts = [], role }) {
  const made = document.createElementNS(MATHML, tag);
  if (role) made.setAttribute('class', `is-${role}`);
  made.append(...(text === undefined ? parts.map(node) : [text]));
  return made;
}
