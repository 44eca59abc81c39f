/**
 * The page of a long text as one file, made of the answers that the page has: the server adds the
 * code, and reads nothing again. The form of the archive is that of `saved_page.py`, which
 * `api/archive.js` reads.
 */

import { BASE, call, cardPath, fetchJson } from '../api/calls.js';
import { escapeForPlotly } from '../words/text.js';

/** @typedef {{ask: Ask, trace: Trace}} Held an answer, and the request of a view that it answers */

/**
 * @param {Trace} trace the maps of the text
 * @param {Held[]} held the other answers of the view
 * @returns {Promise<string>} HTML
 */
export async function longPageOf(trace, held) {
  const [shell, card] = await Promise.all([
    call(`${BASE}/page`, { accept: 'text/html' }).then((answer) => answer.text()),
    fetchJson(cardPath(trace.model)),
  ]);
  const title = escapeForPlotly(trace.text.slice(0, TITLE));
  const [start, end] = shell.split(ANSWERS);
  return [
    start.replace(/<title>[^<]*<\/title>/, () => `<title>${title} · Headlight</title>`),
    await packed(archiveOf(card, trace, held)),
    end,
  ].join('');
}

const TITLE = 80;
/** The place of the answers in the page of the server. */
const ANSWERS = '[answers]';

/**
 * Return the length of a JSON header (4 bytes, little-endian), the header, and the answers in four
 * planes, the first bytes of all numbers first.
 * @param {Card} card
 * @param {Trace} trace
 * @param {Held[]} held
 */
export function archiveOf(card, trace, held) {
  const files = [trace, ...held.map((each) => each.trace)].map(({ file }) => fileOf(file));
  let at = 0;
  const [whole, ...places] = files.map(({ length }) => ({ start: at, end: (at += length) }));
  const kept = [trace, ...held.map((each) => each.trace)].flatMap(({ analyses }) =>
    Object.keys(analyses),
  );
  const analyses = (card.analyses ?? []).filter((name) => kept.includes(name));
  const further = held.map(({ ask }, index) => ({ ask, ...places[index] }));
  const header = new TextEncoder().encode(
    JSON.stringify({ card: { ...card, analyses }, whole, further }),
  );
  const count = Math.ceil(at / 4);
  const archive = new Uint8Array(4 + header.length + 4 * count);
  new DataView(archive.buffer).setUint32(0, header.length, true);
  archive.set(header, 4);
  const planes = archive.subarray(4 + header.length);
  let place = 0;
  for (const file of files) {
    for (let byte = 0; byte < file.length; byte += 1, place += 1)
      planes[(place % 4) * count + (place >> 2)] = file[byte];
  }
  return archive;
}

/** @param {ArrayBuffer|undefined} file */
function fileOf(file) {
  if (!file) throw new Error('the answers of this text are not kept; read it again');
  return new Uint8Array(file);
}

/** A multiple of three bytes, which base64 writes as four letters: the parts can be joined. */
const PART = 3 * 8192;

/** Compress bytes by gzip and encode them in base64. @param {Uint8Array<ArrayBuffer>} bytes */
async function packed(bytes) {
  const body = /** @type {ReadableStream<Uint8Array<ArrayBuffer>>} */ (new Response(bytes).body);
  const zipped = body.pipeThrough(new CompressionStream('gzip'));
  const content = new Uint8Array(await new Response(zipped).arrayBuffer());
  let text = '';
  for (let at = 0; at < content.length; at += PART)
    text += btoa(String.fromCharCode(...content.subarray(at, at + PART)));
  return text;
}
