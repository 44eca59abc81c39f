/** Counts, lists and sentences in words. */

import { grouped } from './numbers.js';

/** @param {number} count @param {string} noun @returns {string} `1 token`, `24 tokens` */
export function counted(count, noun) {
  return `${grouped(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/** @param {(string|number)[]} parts at least one @returns {string} `a`, `a and b`, `a, b and c` */
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
