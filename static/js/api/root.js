/** Addresses of the server, below the path that a proxy may have it under. */

const told = globalThis.document?.documentElement?.dataset?.root;

/** The address of the server's root; a page that is a file has none. */
const ROOT = told ? new URL(told, location.href).href : '/';

/** Return the address of a path of the server. @param {string} path `/api/v1/limits`; any other is as it is */
export function atRoot(path) {
  return path.startsWith('/') ? ROOT + path.slice(1) : path;
}

/** Return the address that paths of the server are appended to. */
export function serverAddress() {
  return told ? ROOT.slice(0, -1) : location.origin;
}

/** Return the path of an address below the root of the server. @param {string} pathname */
export function belowRoot(pathname) {
  const root = new URL(ROOT, 'http://localhost').pathname;
  return pathname.startsWith(root) ? `/${pathname.slice(root.length)}` : pathname;
}
