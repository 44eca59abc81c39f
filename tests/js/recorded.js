/**
 * Answers of a server of tiny models, recorded for tests that draw what the page draws.
 *
 * `fetch` is answered from recorded.json.gz. With HEADLIGHT_SERVER in the environment, what is not
 * recorded is asked there and kept; `python -m tests.record_answers` starts such a server.
 */

import { readFileSync, writeFileSync } from 'node:fs';
import { gunzipSync, gzipSync } from 'node:zlib';

const FILE = new URL('recorded.json.gz', import.meta.url);
const SERVER = process.env.HEADLIGHT_SERVER;

/** By path and body: status, media type, and the content in base64. @type {Map<string, [number, string, string]>} */
const known = new Map(SERVER ? [] : JSON.parse(gunzipSync(readFileSync(FILE)).toString()));

/** Answers `fetch` from the record. */
export function answerFromRecord() {
  globalThis.fetch = async (path, { body = '', headers = {} } = {}) => {
    const key = `${path} ${body}`;
    if (!known.has(key)) {
      if (!SERVER) throw new Error(`not recorded: ${key}`);
      known.set(key, await recorded(path, body, headers));
    }
    const [status, type, content] = known.get(key);
    return new Response(Buffer.from(content, 'base64'), {
      status,
      headers: { 'Content-Type': type },
    });
  };
}

const ask = globalThis.fetch;

/** @param {string} path @param {string} body @param {Record<string, string>} headers */
async function recorded(path, body, headers) {
  const answer = await ask(new URL(path, SERVER), {
    headers,
    ...(body && { method: 'POST', body }),
  });
  const type = answer.headers.get('Content-Type') ?? '';
  const content = Buffer.from(await answer.arrayBuffer());
  if (type.includes('safetensors')) coarsen(content);
  return [answer.status, type, content.toString('base64')];
}

/** Rounds the numbers of a safetensors file to four digits, which compress better. @param {Buffer} file */
function coarsen(file) {
  const length = Number(file.readBigUInt64LE(0));
  const { __metadata__, ...tensors } = JSON.parse(file.toString('utf8', 8, 8 + length));
  for (const { dtype, data_offsets: offsets } of Object.values(tensors)) {
    if (dtype !== 'F32') continue;
    const [first, end] = offsets.map((offset) => 8 + length + offset);
    for (let at = first; at < end; at += 4)
      file.writeUInt32LE((file.readUInt32LE(at) & 0xfffff800) >>> 0, at);
  }
}

/** Writes what was asked for, if a server was asked. */
export function keepRecord() {
  if (!SERVER) return;
  const sorted = [...known].sort(([a], [b]) => (a < b ? -1 : 1));
  writeFileSync(FILE, gzipSync(JSON.stringify(sorted), { level: 9 }));
}
