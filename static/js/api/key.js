/**
 * The key that a server may ask for. It stays with this tab and goes with it.
 */

const NAME = 'headlight.key';

/** @returns {string} empty where there is none */
export function readKey() {
  try {
    return sessionStorage.getItem(NAME) ?? '';
  } catch {
    return ''; // a browser may keep nothing for a page
  }
}

/**
 * @param {string} key
 * @returns {boolean} could it be kept?
 */
export function keepKey(key) {
  try {
    sessionStorage.setItem(NAME, key);
    return true;
  } catch {
    return false;
  }
}

/**
 * @param {Record<string, string>} headers of a call
 * @param {string} key
 */
export function withKey(headers, key) {
  return key === '' ? headers : { ...headers, Authorization: `Bearer ${key}` };
}

/**
 * What a person typed, as a key that a header can carry; empty where it can be none.
 * @param {string} typed
 */
export function keyIn(typed) {
  const key = typed.trim();
  return /^[!-~]+$/.test(key) ? key : '';
}
