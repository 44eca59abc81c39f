import { deepEqual, rejects } from 'node:assert/strict';
import { test } from 'node:test';
import { fetchAnswer } from '../../../static/js/api/answers.js';
import { NO_MODELS } from '../../../static/js/api/calls.js';

/** The shares that are told, and the forms that are asked for, while a text is read. */
async function watched(t, body, last) {
  const metadata = {
    text: '""',
    tokens: '[]',
    target: 'null',
    target_tokens: 'null',
    analyses: '{}',
    axes: '{}',
  };
  const header = new TextEncoder().encode(JSON.stringify({ __metadata__: metadata }));
  const file = new Uint8Array(8 + header.length);
  new DataView(file.buffer).setBigUint64(0, BigInt(header.length), true);
  file.set(header, 8);
  const events = `event: progress\ndata: {"share":0.5}\n\n${last}`;
  const asked = [];
  t.mock.method(globalThis, 'fetch', async (_, { headers }) => {
    const accept = new Headers(headers).get('accept');
    asked.push(accept);
    return new Response(accept === 'text/event-stream' ? events : file);
  });
  const shares = [];
  const { signal } = new AbortController();
  await fetchAnswer(NO_MODELS, body, signal, ({ share }) => shares.push(share));
  return { shares, asked };
}

test('a long text is watched while the server reads it, once more if it keeps no trace', async (t) => {
  const text = 'a book '.repeat(1000);
  const both = ['text/event-stream', 'application/x-safetensors'];
  const end = 'event: end\ndata: {}\n\n';
  const notKept = 'event: error\ndata: {"title":"x","type":"urn:headlight:trace-not-kept"}\n\n';
  for (const last of [end, notKept])
    deepEqual(await watched(t, { text, resolution: 8 }, last), { shares: [0.5], asked: both });
  deepEqual((await watched(t, { text: 'a', resolution: 8 }, end)).asked, both.slice(1));
  const full = 'event: error\ndata: {"title":"x","type":"urn:headlight:too-slow"}\n\n';
  await rejects(watched(t, { text, queries: [0] }, full));
});
