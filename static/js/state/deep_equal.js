/**
 * Comparing plain data: numbers, words, lists and objects of them.
 */

/**
 * Are these the same all the way down? Where they differ early, that is known early.
 * @param {unknown} a
 * @param {unknown} b
 * @returns {boolean}
 */
export function deepEqual(a, b) {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (a.constructor !== b.constructor) return false;
  if (Array.isArray(a) || ArrayBuffer.isView(a)) return a.length === b.length && isSameList(a, b);
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => name in b && deepEqual(a[name], b[name]))
  );
}

function isSameList(a, b) {
  for (let index = 0; index < a.length; index += 1) {
    if (!deepEqual(a[index], b[index])) return false;
  }
  return true;
}
