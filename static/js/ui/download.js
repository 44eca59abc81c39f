/**
 * Giving a file to who asked for it.
 */

import { element } from './element.js';

/**
 * @param {Blob} blob
 * @param {string} name
 * @returns {string} what to say about it
 */
export function save(blob, name) {
  const link = element('a', { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  return `Saved ${name}`;
}
