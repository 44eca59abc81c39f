/**
 * A trace as the page holds it: tokens, and the named arrays of one forward pass, read from a
 * safetensors file. https://huggingface.co/docs/safetensors/index#format
 */

import { splitCharacters } from '../words/tokens.js';

/**
 * @import { Part } from '../words/tokens.js'
 * @import { Given, Merged, PositionalAnswer, TokenAnswer, TraceRequest } from '../api/schemas'
 */

/** @typedef {TokenAnswer & {part?: Part|null}} Token with `part`, if it is a piece of a character */

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
 * @property {string} [precision] `float32` or `bfloat16`
 * @property {string} text
 * @property {Token[]} tokens
 * @property {string|null} target what the decoder of an encoder–decoder read
 * @property {Token[]|null} target_tokens
 * @property {Record<string, NamedArray>} tensors by site name
 * @property {Record<string, any>} analyses
 * @property {Record<string, number>} timings milliseconds
 * @property {Card} [card] of the model that made it
 * @property {number} [resolution] the greatest number of bins a side of its maps, if it has only maps
 * @property {boolean} [isLayered] it holds the weights of the layers that were looked at
 * @property {string[]} [tiles] paths of the attentions of which the server computes tiles
 * @property {Record<string, string>} [tile] the query of the one tile that a saved page holds
 * @property {Pick<Ask, "model"|"text"|"messages"|"text_pair"|"read_special_tokens"|"target">} [asked] what it was asked for with
 * @property {number} [within] computed in this browser: the most that a number differed from the server’s
 * @property {ArrayBuffer} [file] of a long text, as it came: a saved page holds it
 */

/** @typedef {{kind: string, where?: string} & Omit<Merged<NonNullable<TraceRequest['edits']>[number]>, 'kind'|'where'>} Edit of a pass */

/** @typedef {{scheme?: string, model?: string, length: number, width?: number, heads?: number}} PositionalAsk what is asked of `GET /api/v1/positional` */

/**
 * A request for anything but a trace.
 * @typedef {Object} OtherAsk
 * @property {PositionalAsk} [positional]
 * @property {string} [card]
 * @property {import('./atlas.js').AtlasAsk} [atlas]
 * @property {Record<string, unknown>} [circuit] the body for `POST /api/v1/models/{id}/circuit`, and its `model`
 * @property {boolean|string} [tasks] the tasks of circuits, and whether the model of this id can do them
 * @property {Record<string, string|number>} [tile] the query of `GET /api/v1/traces/{id}/tile`, and its `id`
 */

/** @typedef {Given<Omit<TraceRequest, 'target'|'dtype'|'edits'>> & {target?: string|null, dtype?: string|null, edits?: Edit[]} & OtherAsk} Ask a request for a trace, or for something else */

/** @typedef {Pick<PositionalAnswer, 'scheme'|'model'|'length'> & {tensors: Record<string, NamedArray>}} Encoding of positions, without a text */

const ANALYSIS_PREFIX = 'analyses.';

/** @param {ArrayBuffer} buffer a Trace as one safetensors file @returns {Trace} */
export function traceFromSafetensors(buffer) {
  const { facts, arrays } = read(buffer);
  const target = facts.target_tokens && withParts(facts.target_tokens, facts.target);
  return {
    ...facts,
    tokens: withParts(facts.tokens, facts.text),
    target_tokens: target ?? null,
    timings: facts.timings ?? {},
    ...placeArrays(arrays, facts.analyses),
  };
}

/**
 * Return arrays as those of sites and of analyses.
 * @param {Record<string, NamedArray>} arrays by name
 * @param {Record<string, any>} [metadata] of analyses
 */
export function placeArrays(arrays, metadata = {}) {
  /** @type {Record<string, any>} */
  const analyses = { ...metadata };
  /** @type {Record<string, NamedArray>} */
  const tensors = {};
  for (const [name, named] of Object.entries(arrays)) {
    if (!name.startsWith(ANALYSIS_PREFIX)) tensors[name] = named;
    else {
      const [, id, ...field] = name.split('.');
      analyses[id] = { ...analyses[id], [field.join('.')]: named };
    }
  }
  return { tensors, analyses };
}

/**
 * @param {ArrayBuffer} buffer an encoding of positions as one safetensors file
 * @returns {Encoding}
 */
export function encodingFromSafetensors(buffer) {
  const { facts, arrays } = read(buffer);
  return { ...facts, tensors: arrays };
}

/** @param {ArrayBuffer} buffer @returns {{facts: any, arrays: Record<string, NamedArray>}} */
function read(buffer) {
  const { metadata, arrays } = parseSafetensors(buffer);
  const facts = Object.fromEntries(
    Object.entries(metadata).map(([key, json]) => [key, JSON.parse(json)]),
  );
  const { axes = {}, scale = {} } = facts; // weights in 16 bits come with a scale
  /** @type {Record<string, NamedArray>} */
  const named = {};
  for (const [name, { shape, data }] of Object.entries(arrays)) {
    const names = axes[name] ?? shape.map((_, axis) => `axis ${axis}`);
    named[name] = { axes: names, shape, data, scale: scale[name] ?? 1 };
  }
  return { facts, arrays: named };
}

/** @param {Token[]} tokens @param {string} text @returns {Token[]} */
export function withParts(tokens, text) {
  const parts = splitCharacters(tokens, text);
  return tokens.map((token, index) => ({ ...token, part: parts[index] }));
}

/**
 * Return the last two axes of an array as a matrix of plain numbers.
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

/** @param {number} count @returns {number[]} 0, 1, 2 … */
export function range(count) {
  return [...Array(count).keys()];
}

/**
 * @param {number} rows
 * @param {number} columns
 * @param {(row: number, column: number) => number} value
 * @returns {Matrix}
 */
export function buildMatrix(rows, columns, value) {
  const data = new Float64Array(rows * columns);
  for (let at = 0; at < data.length; at += 1)
    data[at] = value(Math.floor(at / columns), at % columns);
  return { rows, columns, data };
}

/**
 * Return the numbers of a matrix by row and column.
 * @param {Matrix} matrix
 * @returns {(row: number, column: number) => number}
 */
export function valueIn({ columns, data }) {
  return (row, column) => data[row * columns + column];
}

/** @param {Matrix} matrix @param {number} row @returns {Float64Array} a view of one row */
export function rowOf({ columns, data }, row) {
  return data.subarray(row * columns, (row + 1) * columns);
}

/** @param {Matrix} matrix @param {number} column @returns {Float64Array} a copy of one column */
export function columnOf({ rows, columns, data }, column) {
  return Float64Array.from({ length: rows }, (_, row) => data[row * columns + column]);
}

/**
 * @param {{data: Float64Array}} matrix
 * @returns {number} the largest of its absolute values; 0 if it is empty
 */
export function extent({ data }) {
  let most = 0;
  for (const value of data) if (Math.abs(value) > most) most = Math.abs(value);
  return most;
}

/**
 * @param {ArrayLike<number>} values NaN: none
 * @returns {number} index of the highest, the first of several; 0 if there is none
 */
export function highestIn(values) {
  let best = 0;
  for (let at = 1; at < values.length; at += 1)
    if (values[at] > values[best] || (Number.isNaN(values[best]) && !Number.isNaN(values[at])))
      best = at;
  return best;
}

/** @typedef {{dtype: string, shape: number[], data: ArrayLike<number> & ArrayBufferView}} RawArray */
/** @typedef {{dtype: string, shape: number[], data_offsets: [number, number]}} HeaderEntry of one array: where it is among the data */
/** @typedef {{metadata: Record<string, string>, arrays: Record<string, RawArray>}} SafetensorsFile */

const LENGTH_BYTES = 8;

/** @typedef {Float64ArrayConstructor|Float32ArrayConstructor|Int32ArrayConstructor|Uint32ArrayConstructor|Int16ArrayConstructor|Uint16ArrayConstructor|Int8ArrayConstructor|Uint8ArrayConstructor} ArrayType */

/** @type {Record<string, ArrayType>} */
const ARRAY_TYPES = {
  F64: Float64Array,
  F32: Float32Array,
  I32: Int32Array,
  U32: Uint32Array,
  I16: Int16Array,
  U16: Uint16Array,
  I8: Int8Array,
  U8: Uint8Array,
  BOOL: Uint8Array,
};

/**
 * @param {ArrayBuffer} buffer the whole file
 * @returns {SafetensorsFile}
 * @throws {RangeError} when the file is cut short or its header contradicts itself
 */
export function parseSafetensors(buffer) {
  const start = dataStart(buffer);
  const bytes = new Uint8Array(buffer, LENGTH_BYTES, start - LENGTH_BYTES);
  /** @type {{__metadata__?: Record<string, string>} & Record<string, HeaderEntry>} */
  const header = JSON.parse(new TextDecoder().decode(bytes));
  const { __metadata__: metadata = {}, ...entries } = header;
  /** @type {Record<string, RawArray>} */
  const arrays = {};
  for (const [name, entry] of Object.entries(entries)) {
    arrays[name] = readArray(buffer, start, name, entry);
  }
  return { metadata, arrays };
}

/** @param {ArrayBuffer} buffer */
function dataStart(buffer) {
  if (buffer.byteLength < LENGTH_BYTES) {
    throw new RangeError(
      `a safetensors file has at least ${LENGTH_BYTES} bytes, this one ${buffer.byteLength}`,
    );
  }
  const length = new DataView(buffer).getBigUint64(0, true);
  if (length > BigInt(buffer.byteLength - LENGTH_BYTES)) {
    throw new RangeError(
      `the header claims ${length} bytes, the file has ${buffer.byteLength - LENGTH_BYTES} after it`,
    );
  }
  return LENGTH_BYTES + Number(length);
}

/**
 * @param {ArrayBuffer} buffer
 * @param {number} start of the data
 * @param {string} name
 * @param {HeaderEntry} entry
 * @returns {RawArray}
 */
function readArray(buffer, start, name, { dtype, shape, data_offsets: [from, to] }) {
  const ArrayType = ARRAY_TYPES[dtype];
  if (!ArrayType) {
    throw new RangeError(
      `${name} has dtype ${dtype}; readable are ${Object.keys(ARRAY_TYPES).join(', ')}`,
    );
  }
  const length = shape.reduce((product, extent) => product * extent, 1);
  const expected = length * ArrayType.BYTES_PER_ELEMENT;
  if (to - from !== expected || from < 0 || start + to > buffer.byteLength) {
    throw new RangeError(
      `${name} needs ${expected} bytes for shape [${shape}], the file gives it ${from} to ${to}`,
    );
  }
  return { dtype, shape, data: view(buffer, ArrayType, start + from, length) };
}

/**
 * View bytes as a typed array. It must start at a multiple of its element's size; otherwise copy.
 * @param {ArrayBuffer} buffer
 * @param {ArrayType} ArrayType
 * @param {number} offset
 * @param {number} length
 */
function view(buffer, ArrayType, offset, length) {
  if (offset % ArrayType.BYTES_PER_ELEMENT === 0) return new ArrayType(buffer, offset, length);
  return new ArrayType(buffer.slice(offset, offset + length * ArrayType.BYTES_PER_ELEMENT));
}

/**
 * Return the layers of a trace that hold a site, in order.
 * @param {Record<string, unknown>} tensors
 * @param {string} ending `self_attention.weights`
 * @param {string} [stack] `encoder` or `decoder`; of both if left out
 * @returns {{layer: number, site: string}[]}
 */
export function layersWith(tensors, ending, stack = '') {
  return Object.keys(tensors)
    .filter((site) => site.endsWith(`.${ending}`) && site.startsWith(stack))
    .map((site) => ({ layer: Number(site.match(/\.layers\.(\d+)\./)?.[1]), site }))
    .filter(({ layer }) => Number.isInteger(layer))
    .sort((a, b) => a.layer - b.layer);
}

/**
 * Return true if this attention hides the future. A decoder's self-attention sees only what came
 * before.
 * @param {string} site
 */
export function isCausal(site) {
  return site.startsWith('decoder.') && site.includes('.self_attention.');
}

/**
 * Return a matrix of one head with the future that is hidden from it as NaN.
 * @param {Matrix} matrix is changed
 * @param {string} site
 * @returns {Matrix} the same one
 */
export function withoutFuture(matrix, site) {
  const { rows, columns, data } = matrix;
  for (let row = 0; row < rows && isCausal(site); row += 1)
    data.fill(NaN, row * columns + row + 1, (row + 1) * columns);
  return matrix;
}

/** @param {(number|null)[][]} lines @returns {Matrix} what is no number is NaN */
export function matrixFrom(lines) {
  const data = Float64Array.from(lines.flat(), (value) => value ?? NaN);
  return { rows: lines.length, columns: lines[0]?.length ?? 0, data };
}

/** @param {Matrix} matrix @returns {Matrix} rows as columns */
export function transposed({ rows, columns, data }) {
  const turned = new Float64Array(data.length);
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1)
      turned[column * rows + row] = data[row * columns + column];
  }
  return { rows: columns, columns: rows, data: turned };
}

/**
 * Return a body without the members that say nothing.
 * @param {Record<string, any>} body
 * @returns {Record<string, any>}
 */
export function withoutNulls(body) {
  return Object.fromEntries(
    Object.entries(body).filter(([, value]) => value !== null && value !== undefined),
  );
}
