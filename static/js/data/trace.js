/**
 * The Trace as the page holds it: tokens, and the named arrays of one forward pass.
 */

import { partsOf } from './pieces.js';
import { parseSafetensors } from './safetensors.js';

/**
 * @typedef {Object} Token
 * @property {number} id
 * @property {string} text the decoded piece, its leading space kept
 * @property {number} start character offset into the text
 * @property {number} end
 * @property {number|null} word index of the word the piece belongs to
 * @property {boolean} is_special
 * @property {import('./pieces.js').Part|null} [part] where it is a piece of a character
 */

/**
 * @typedef {Object} NamedArray
 * @property {string[]} axes
 * @property {number[]} shape
 * @property {ArrayLike<number>} data row-major
 * @property {number} scale what an element is multiplied by to give its value
 */

/** @typedef {{rows: number, columns: number, data: Float64Array}} Matrix */

/**
 * @typedef {Object} Trace
 * @property {string} id
 * @property {string} model
 * @property {string} revision
 * @property {string} text
 * @property {Token[]} tokens
 * @property {string|null} target what the decoder of an encoder–decoder read
 * @property {Token[]|null} target_tokens
 * @property {Record<string, NamedArray>} tensors by site name
 * @property {Record<string, any>} analyses
 * @property {Record<string, number>} timings milliseconds
 * @property {Object} [card] the card of the model that made it
 * @property {{model: string, text: string, target?: string}} [asked] what it was asked for with
 */

/** @typedef {{scheme: string, model: string|null, length: number, tensors: Record<string, NamedArray>}} Encoding of positions, without a text */

const ANALYSIS_PREFIX = 'analyses.';

/**
 * @param {ArrayBuffer} buffer a Trace as one safetensors file
 * @returns {Trace}
 */
export function traceFromSafetensors(buffer) {
  const { facts, arrays } = read(buffer);
  const analyses = { ...facts.analyses };
  const tensors = {};
  for (const [name, named] of Object.entries(arrays)) {
    if (name.startsWith(ANALYSIS_PREFIX)) placeAnalysis(analyses, name, named);
    else tensors[name] = named;
  }
  const target = facts.target_tokens && withParts(facts.target_tokens, facts.target);
  return {
    ...facts,
    tokens: withParts(facts.tokens, facts.text),
    target_tokens: target ?? null,
    timings: facts.timings ?? {},
    analyses,
    tensors,
  };
}

/**
 * @param {ArrayBuffer} buffer an encoding of positions as one safetensors file
 * @returns {Encoding}
 */
export function encodingFromSafetensors(buffer) {
  const { facts, arrays } = read(buffer);
  return { ...facts, tensors: arrays };
}

function read(buffer) {
  const { metadata, arrays } = parseSafetensors(buffer);
  const facts = Object.fromEntries(
    Object.entries(metadata).map(([key, json]) => [key, JSON.parse(json)]),
  );
  return {
    facts,
    arrays: Object.fromEntries(
      Object.entries(arrays).map(([name, array]) => [name, nameAxes(name, array, facts)]),
    ),
  };
}

function withParts(tokens, text) {
  const parts = partsOf(tokens, text);
  return tokens.map((token, index) => ({ ...token, part: parts[index] }));
}

/** Weights that were asked for in 16 bits come with the scale that gives their values. */
function nameAxes(name, { shape, data }, { axes = {}, scale = {} }) {
  return {
    axes: axes[name] ?? shape.map((_, axis) => `axis ${axis}`),
    shape,
    data,
    scale: scale[name] ?? 1,
  };
}

function placeAnalysis(analyses, name, array) {
  const [, id, ...field] = name.split('.');
  analyses[id] = { ...analyses[id], [field.join('.')]: array };
}

/**
 * The last two axes of an array as a matrix of plain numbers.
 * @param {NamedArray} array
 * @param {...number} leading an index for each axis before the last two
 * @returns {Matrix}
 */
export function matrixAt({ shape, data, scale }, ...leading) {
  const [rows, columns] = shape.slice(-2);
  const offset =
    leading.reduce((flat, index, axis) => flat * shape[axis] + index, 0) * rows * columns;
  const values = new Float64Array(rows * columns);
  for (let i = 0; i < values.length; i += 1) values[i] = data[offset + i] * scale;
  return { rows, columns, data: values };
}

/**
 * @param {Matrix} matrix
 * @param {number} row
 * @returns {Float64Array} a view of one row
 */
export function rowOf({ columns, data }, row) {
  return data.subarray(row * columns, (row + 1) * columns);
}

/**
 * @param {Matrix} matrix
 * @param {number} column
 * @returns {Float64Array} a copy of one column
 */
export function columnOf({ rows, columns, data }, column) {
  return Float64Array.from({ length: rows }, (_, row) => data[row * columns + column]);
}
