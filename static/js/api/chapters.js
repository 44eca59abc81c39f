/** Chapters: the list, one of them, a dropped file, and what is right at a step. */

import { BASE, call, fetchJson } from './calls.js';

/** @import { Step } from './schemas' */

/** @returns {Promise<ChaptersAnswer>} */
export function fetchChapters() {
  return fetchJson(`${BASE}/chapters`);
}

/** @param {string} id @param {string|null} model of a chapter for any; null: the default one @returns {Promise<Chapter>} */
export function fetchChapter(id, model) {
  const of = model ? `?${new URLSearchParams({ model })}` : '';
  return fetchJson(`${BASE}/chapters/${encodeURIComponent(id)}${of}`);
}

/** Read the text of a file. @param {string} text @param {string|null} model as above @returns {Promise<Chapter>} */
export async function readChapter(text, model) {
  const body = { text, ...(model && { model }) };
  return (await call(`${BASE}/chapters/read`, { body })).json();
}

/**
 * Compute what is right at a step that has a question.
 * @param {Step} step
 * @param {AbortSignal} [signal]
 * @returns {Promise<Outcome>}
 */
export async function fetchOutcome({ opens, question }, signal) {
  const body = { opens: given(opens), answer: given(question?.answer ?? {}) };
  return (await call(`${BASE}/chapters/answer`, { body, signal })).json();
}

/** Leave out what is null: in a request it would be a value. @param {any} value @returns {any} */
function given(value) {
  if (Array.isArray(value) || typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, each]) => each !== null);
  return Object.fromEntries(entries.map(([name, each]) => [name, given(each)]));
}
