/**
 * A formula set by the browser, which knows MathML.
 */

import { spoken } from '../data/formula.js';
import { element } from './element.js';

const MATHML = 'http://www.w3.org/1998/Math/MathML';

/**
 * @param {import('../data/formula.js').Term[]} lines
 * @returns {HTMLElement[]}
 */
export function formulaLines(lines) {
  return lines.map((line) => {
    const math = node({ tag: 'math', parts: [line] });
    math.setAttribute('display', 'block');
    math.setAttribute('aria-label', spoken(line));
    return element('p', { class: 'formula' }, math);
  });
}

function node({ tag, text, parts = [], role }) {
  const made = document.createElementNS(MATHML, tag);
  if (role) made.setAttribute('class', `is-${role}`);
  made.append(...(text === undefined ? parts.map(node) : [text]));
  return made;
}
