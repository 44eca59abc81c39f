/** The page of a long text as one file, made of the answers at hand. */

import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { blank } from '../browser.js';
import { openText } from '../../../static/js/api/archive.js';
import { archiveOf, longPageOf } from '../../../static/js/ui/long_page.js';

const SITE = 'decoder.layers.0.self_attention';
const CARD = { id: 'tiny', kind: 'decoder', analyses: ['next_token', 'rollout'], sites: [] };

/** A safetensors file of one array of a trace, of a length that is no multiple of four. */
function fileOf(name, values, members = {}) {
  const facts = { model: 'tiny', text: 'a <b>', tokens: [], target: null, target_tokens: null };
  const all = { ...facts, analyses: {}, axes: { [name]: ['query'] }, ...members };
  const metadata = Object.entries(all).map(([key, value]) => [key, JSON.stringify(value)]);
  const json = new TextEncoder().encode(
    JSON.stringify({
      __metadata__: Object.fromEntries(metadata),
      [name]: { dtype: 'F32', shape: [values.length], data_offsets: [0, 4 * values.length] },
    }),
  );
  const bytes = new Uint8Array(8 + json.length + 4 * values.length);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(json.length), true);
  bytes.set(json, 8);
  bytes.set(new Uint8Array(Float32Array.from(values).buffer), 8 + json.length);
  return bytes.buffer;
}

const traceOf = (file, more = {}) => ({
  model: 'tiny',
  text: 'a <b>',
  analyses: {},
  file,
  ...more,
});
const MAPS = traceOf(fileOf(`${SITE}.mean_map`, [0.5], { resolution: 8 }));
const ASK = { capture: [`${SITE}.entropy`], queries: [0], analyses: ['next_token'] };
const CURVES = traceOf(fileOf(`${SITE}.entropy`, [1, 2, 3]), { analyses: { next_token: {} } });

test('the file answers what the page was answered, and nothing else', async () => {
  const { buffer } = archiveOf(CARD, MAPS, [{ ask: ASK, trace: CURVES }]);
  const page = openText(buffer);
  ok(page.isOverview);
  deepEqual(page.catalogue.models[0].analyses, ['next_token']);
  const whole = await page.answer({ model: 'tiny', text: 'a <b>', resolution: 8 });
  deepEqual([...whole.tensors[`${SITE}.mean_map`].data], [0.5]);
  const curves = await page.answer({ model: 'tiny', text: 'a <b>', ...ASK });
  deepEqual([...curves.tensors[`${SITE}.entropy`].data], [1, 2, 3]);
  equal(page.holds({ ...ASK, queries: [1] }), false);
});

test('without the curves there are only the maps', () => {
  const page = openText(archiveOf(CARD, MAPS, []).buffer);
  ok(page.holds({ resolution: 8 }));
  equal(page.holds(ASK), false);
});

test('answers whose bytes are gone are not saved', () => {
  rejects(async () => archiveOf(CARD, { ...MAPS, file: undefined }, []), /read it again/);
});

test('the answers take their place in the page of the server, under the title of the text', async () => {
  blank();
  const shell = '<title>x</title><script id="answers">[answers]</script></body>';
  globalThis.fetch = async (path) =>
    path === '/api/v1/page' ? new Response(shell) : Response.json(CARD);
  const page = await longPageOf(MAPS, []);
  match(
    page,
    /^<title>a &lt;b&gt; · Headlight<\/title><script id="answers">[\w+/=]+<\/script><\/body>$/,
  );
  const bytes = gunzipSync(Buffer.from(page.match(/answers">([^<]+)/)[1], 'base64'));
  deepEqual(new Uint8Array(bytes), archiveOf(CARD, MAPS, []));
});
