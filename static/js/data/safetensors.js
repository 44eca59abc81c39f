/**
 * Reads a safetensors file: eight bytes of header length, a JSON header, then the raw arrays.
 * Arrays come out as typed arrays that share the answer's memory wherever alignment allows.
 * Format: https://huggingface.co/docs/safetensors/index#format
 */

/** @typedef {{dtype: string, shape: number[], data: ArrayLike<number> & ArrayBufferView}} RawArray */
/** @typedef {{metadata: Record<string, string>, arrays: Record<string, RawArray>}} SafetensorsFile */

const LENGTH_BYTES = 8;

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
  const header = readHeader(buffer, start);
  const { __metadata__: metadata = {}, ...entries } = header;
  const arrays = {};
  for (const [name, entry] of Object.entries(entries)) {
    arrays[name] = readArray(buffer, start, name, entry);
  }
  return { metadata, arrays };
}

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

function readHeader(buffer, end) {
  const bytes = new Uint8Array(buffer, LENGTH_BYTES, end - LENGTH_BYTES);
  return JSON.parse(new TextDecoder().decode(bytes));
}

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

/** Typed arrays must start at a multiple of their element's size; where the file does not, copy. */
function view(buffer, ArrayType, offset, length) {
  if (offset % ArrayType.BYTES_PER_ELEMENT === 0) return new ArrayType(buffer, offset, length);
  return new ArrayType(buffer.slice(offset, offset + length * ArrayType.BYTES_PER_ELEMENT));
}
