/**
 * Copying, also where the browser keeps its clipboard from a page that came over plain HTTP.
 */

import { element } from './element.js';

/**
 * @param {string} text
 * @throws {Error} which says what to do
 */
export async function copy(text) {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return;
    } catch {
      // The older way may still be open.
    }
  }
  if (!copyBySelection(text))
    throw new Error(
      'the browser does not let this page copy; open it over HTTPS or at localhost, or save a file instead',
    );
}

function copyBySelection(text) {
  const focused = document.activeElement;
  const box = element('textarea', { class: 'unseen', 'aria-hidden': 'true', readonly: true });
  box.value = text;
  document.body.append(box);
  box.select();
  const isDone = document.execCommand('copy');
  box.remove();
  focused?.focus();
  return isDone;
}
