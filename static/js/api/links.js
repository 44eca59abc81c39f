/**
 * Short links: the state of a page that the server keeps under an address, and its QR code.
 */

import { asProblem, BASE, call, fetchJson } from './calls.js';
import { atRoot, belowRoot, serverAddress } from './root.js';
import { asSentence } from '../words/lists.js';

/** The path of a page that opens a link. */
const PATH = /^\/s\/([^/.]+)$/;
/** The statuses of a link that no later attempt can open. */
const GONE = [404, 422];

/** @typedef {{address: string, path: string, id: string, expires: Date}} Link */
/** @typedef {{days: number, bytes: number}} LinkLimits how long links are kept, 0: not at all; the longest state */

/**
 * Put the state of the link that the page was opened at into its address.
 * @param {{location: {pathname: string, search?: string, hash?: string}, history: Pick<History, 'replaceState'>}} [browser]
 * @returns {Promise<string>} a sentence that says why there is no state; empty: there is one, or no link
 */
export async function followLink({ location, history } = globalThis) {
  const id = PATH.exec(belowRoot(location.pathname))?.[1];
  if (id === undefined) {
    // Of a query only the model is taken: a text in it would be in the server's log.
    const model = new URLSearchParams(location.search).get('model');
    if (model && !location.hash)
      history.replaceState(null, '', `${location.pathname}#model=${encodeURIComponent(model)}`);
    return '';
  }
  try {
    const { state } = await fetchJson(`${BASE}/links/${id}`);
    keepAddresses();
    history.replaceState(null, '', atRoot(`/#${state}`));
    return '';
  } catch (error) {
    return whyLost(error, () => {
      keepAddresses();
      history.replaceState(null, '', atRoot('/'));
    });
  }
}

/** Make the page's relative addresses whole, as they are relative to the address that it leaves. */
function keepAddresses() {
  const relative = globalThis.document?.querySelectorAll?.('a[href^=".."], #plotly') ?? [];
  for (const each of /** @type {Iterable<HTMLAnchorElement>} */ (relative))
    each.href = `${each.href}`;
}

/**
 * Say why a link did not open; the address of one that may open later stays.
 * @param {unknown} error
 * @param {() => void} drop called if the link is gone
 */
function whyLost(error, drop) {
  const { status, type = '', title, detail } = asProblem(error);
  if (status === 401) return ''; // the page asks for a key, and is then loaded again
  if (type.endsWith(':links-off')) {
    drop();
    return 'This server keeps no links, so the one you followed cannot be opened.';
  }
  if (GONE.includes(status)) {
    drop();
    return 'The link you followed is unknown or has expired. Ask its sender for a new one.';
  }
  return `The link could not be opened: ${title}. ${asSentence(detail)} Reload the page to try again.`;
}

/** @returns {Promise<LinkLimits>} */
export async function linkLimits() {
  const limits = await fetchJson(`${BASE}/limits`);
  return { days: limits.link_days?.value ?? 0, bytes: limits.max_link_bytes?.value ?? 0 };
}

/**
 * Let the server keep a state.
 * @param {string} state the fragment of an address, without `#`
 * @returns {Promise<Link>}
 */
export async function createLink(state) {
  const { id, path, expires } = await fetchJson(`${BASE}/links`, { body: { state } });
  return { id, path, address: serverAddress() + path, expires: new Date(expires) };
}

/** Return the QR code of a link as a picture. @param {string} id @returns {Promise<Blob>} */
export async function fetchQrCode(id) {
  const answer = await call(`${BASE}/links/${id}/qr.svg`, { accept: 'image/svg+xml' });
  return answer.blob();
}

/** Return true if a host name reaches only the machine that it is used on. @param {string} host */
export function isLoopback(host) {
  return /^(127(\.\d+){3}|\[::1\]|(.*\.)?localhost)$/.test(host);
}
