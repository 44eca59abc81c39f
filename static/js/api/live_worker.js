/**
 * The worker of a site that computes: it loads the graph of a model and its runtime, and answers
 * requests for a trace and for a token. All derived numbers are outputs of the graph, which
 * `headlight.model.export` traces from the code of the server.
 */

import { stepOf, traceOf } from './live_answers.js';
import { createEncoder, inputsOf } from './live_text.js';

/** @import { Wish } from './live_text.js' */

/** @typedef {{id: string, revision: string, precision: string, max_tokens: number, axes: Record<string, string[]>, attentions: string[], networks: string[], parts: {site: string, layer: number, head: number|null}[], analyses: string[], sizes: {n_heads: number, d_head: number, n_experts: number}, metadata: Record<string, any>, tokenizer: any, texts: string[], lowers_capitals: boolean, start_id: number, end_id: number, mask_id: number|null, beam: {width: number, length_penalty: number}|null}} Manifest of `headlight.model.export` */
/** @typedef {{file: string, bytes: number}} File compressed by gzip */
/** @typedef {(tokens: Token[], names: string[], wish: Wish) => Promise<Record<string, NamedArray>>} Run returns outputs of a graph */
/** @typedef {{manifest: Manifest, encode: (text: string) => Token[], run: Run}} Model */

/** A graph takes a shorter length for a fixed number. */
const SHORTEST = 3;
/** Tokens of passes without a part each, which are rows of one: 2,000 take half a gigabyte. */
const MOST_TAKEN = 2000;

/** Answer the messages of a page in turn. @param {any} port @param {{ort: any, Tokenizer: any}} by */
export function serve(port, { ort, Tokenizer }) {
  /** @type {Map<string, Promise<Model>>} */
  const models = new Map();
  const cancelled = new Set();
  let queue = Promise.resolve();

  /** @param {{model: File & {revision: string}, runtime: File}} job @returns {Promise<Model>} */
  async function load({ model, runtime }) {
    const files = ort.env.wasm.wasmBinary ? [model] : [model, runtime];
    const of = files.reduce((sum, { bytes }) => sum + bytes, 0);
    let loaded = 0;
    const onBytes = (/** @type {number} */ n) => port.postMessage({ loaded: (loaded += n), of });
    const [packed, binary] = await Promise.all(files.map(({ file }) => read(file, onBytes)));
    ort.env.wasm.numThreads = 1;
    ort.env.wasm.wasmBinary ??= binary;
    const size = new DataView(packed).getUint32(0, true);
    /** @type {Manifest} */
    const manifest = JSON.parse(new TextDecoder().decode(new Uint8Array(packed, 4, size)));
    if (manifest.revision !== model.revision)
      throw refusal('The model changed since this page was opened', 'Reload the page');
    const session = await ort.InferenceSession.create(new Uint8Array(packed, 4 + size));
    return {
      manifest,
      encode: createEncoder(manifest, Tokenizer),
      run: by(ort, session, manifest),
    };
  }

  port.onmessage = (/** @type {any} */ { data: job }) => {
    const { id, body, cancel, model: { file = '' } = {} } = job;
    if (cancel) cancelled.add(cancel);
    else queue = queue.then(work);

    async function work() {
      if (cancelled.delete(id)) return;
      try {
        if (!models.has(file)) models.set(file, load(job));
        const model = /** @type {Model} */ (await models.get(file));
        port.postMessage({ id, answer: await (body.added ? stepOf : traceOf)(model, body) });
      } catch (error) {
        const {
          title = 'This browser could not compute the sentence',
          message,
          ...rest
        } = /** @type {any} */ (error);
        port.postMessage({ id, problem: { title, detail: message, ...rest } });
        await models.get(file)?.catch(() => models.delete(file));
      }
    }
  };
}

/** @param {string} title @param {string} message */
function refusal(title, message) {
  return Object.assign(new Error(message), { title });
}

/** @param {string} file @param {(bytes: number) => void} onBytes @returns {Promise<ArrayBuffer>} */
async function read(file, onBytes) {
  try {
    const { ok, body } = await fetch(`../${file}`);
    if (!ok || !body) throw new Error(file);
    /** @param {any} chunk @param {TransformStreamDefaultController} to */
    const transform = (chunk, to) => {
      onBytes(chunk.length);
      to.enqueue(chunk);
    };
    const counted = body.pipeThrough(new TransformStream({ transform }));
    const whole = counted.pipeThrough(new DecompressionStream('gzip'));
    return await new Response(whole).arrayBuffer();
  } catch {
    throw refusal('The model did not arrive whole', `${file} is incomplete; reload the page`);
  }
}

/** @param {any} ort @param {any} session @param {Manifest} manifest @returns {Run} */
function by(ort, session, manifest) {
  const { max_tokens: limit, axes } = manifest;
  return async (tokens, names, wish) => {
    const length = Math.max(tokens.length, wish.target?.length ?? 0);
    const least = Math.min(tokens.length, wish.target?.length ?? SHORTEST);
    const much = `${length} tokens are more than the ${limit} that the model reads`;
    if (length > limit) throw refusal('This text is too long to be computed here', much);
    if (least < SHORTEST) throw refusal('This text is too short to be computed here', 'Write more');
    if (wish.isTakingAway && length * manifest.parts.length > MOST_TAKEN)
      throw refusal('The reasons of so long a text are not computed here', 'Write less');
    const feeds = Object.entries(inputsOf(manifest, tokens, { ...wish, names }))
      .filter(([name]) => session.inputNames.includes(name))
      .map(([name, input]) => [name, new ort.Tensor(...input)]);
    const outputs = names.length > 0 ? await session.run(Object.fromEntries(feeds), names) : {};
    const named = names.map((name) => {
      const { data, dims: shape } = outputs[name];
      const plain = data instanceof BigInt64Array ? Int32Array.from(data, Number) : data;
      return [name, { axes: axes[name], shape, data: plain, scale: 1 }];
    });
    return Object.fromEntries(named);
  };
}
