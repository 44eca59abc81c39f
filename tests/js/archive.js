/** Archives of saved pages, as the server writes them. */

export const WEIGHTS = 'decoder.layers.0.self_attention.weights';

/** A safetensors file of a trace with float32 arrays. */
export function fileOf(arrays, members = {}) {
  const header = {
    __metadata__: Object.fromEntries(
      Object.entries({
        model: 'tiny',
        text: 'a b',
        tokens: [],
        target: null,
        target_tokens: null,
        analyses: {},
        axes: Object.fromEntries(Object.entries(arrays).map(([name, { axes }]) => [name, axes])),
        ...members,
      }).map(([name, value]) => [name, JSON.stringify(value)]),
    ),
  };
  let end = 0;
  for (const [name, { shape, data }] of Object.entries(arrays)) {
    header[name] = { dtype: 'F32', shape, data_offsets: [end, end + 4 * data.length] };
    end += 4 * data.length;
  }
  const json = new TextEncoder().encode(JSON.stringify(header));
  const bytes = new Uint8Array(8 + json.length + end);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(json.length), true);
  bytes.set(json, 8);
  let at = 8 + json.length;
  for (const { data } of Object.values(arrays)) {
    bytes.set(new Uint8Array(Float32Array.from(data).buffer), at);
    at += 4 * data.length;
  }
  return bytes;
}

/** The archive of a page: a card, a whole trace, and answers behind their requests. */
export function archiveOf(card, whole, further) {
  const files = [whole, ...further.map(([, file]) => file)];
  let end = 0;
  const entries = files.map(({ length }) => ({ start: end, end: (end += length) }));
  const header = new TextEncoder().encode(
    JSON.stringify({
      card,
      whole: entries[0],
      further: further.map(([ask], index) => ({ ask, ...entries[index + 1] })),
    }),
  );
  const count = Math.ceil(end / 4);
  const bytes = new Uint8Array(4 + header.length + 4 * count);
  new DataView(bytes.buffer).setUint32(0, header.length, true);
  bytes.set(header, 4);
  const contents = files.flatMap((file) => [...file]);
  contents.forEach((byte, at) => {
    bytes[4 + header.length + (at % 4) * count + Math.floor(at / 4)] = byte;
  });
  return bytes.buffer;
}

export const CARD = {
  id: 'tiny',
  n_heads: 2,
  analyses: ['rollout'],
  sites: [{ name: WEIGHTS }, { name: 'decoder.layers.0.self_attention.scores' }],
};
