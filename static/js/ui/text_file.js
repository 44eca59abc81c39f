/** The text of a file. Loaded when one is chosen or dropped. */

import { inBytes } from '../words/numbers.js';

/** More than any server of this kind reads by default, in bytes. */
const LARGEST_FILE = 4e6;

/**
 * @param {Pick<File, 'name'|'size'|'arrayBuffer'>} file
 * @returns {Promise<string>}
 * @throws {Error} a sentence: it is too large, empty, or not text
 */
export async function readTextFile(file) {
  const { name, size } = file;
  if (size > LARGEST_FILE)
    throw new Error(`${name} has ${inBytes(size)}; a file may have ${inBytes(LARGEST_FILE)}.`);
  const text = textIn(await file.arrayBuffer());
  if (text === null) throw new Error(`${name} is not text in UTF-8.`);
  if (text.trim() === '') throw new Error(`${name} is empty.`);
  return text;
}

/** @param {ArrayBuffer} bytes @returns {string|null} null: they are not text in UTF-8 */
function textIn(bytes) {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return text.includes('\0') ? null : text.replace(/\r\n?/g, '\n');
  } catch {
    return null;
  }
}
