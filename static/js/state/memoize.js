/**
 * The last result of something costly, given again while nothing it is made of has changed. What is
 * drawn from it stays the same object then, and Plotly leaves it alone.
 */

/**
 * @template T
 * @returns {(parts: unknown[], make: () => T) => T}
 */
export function createMemo() {
  let known = null;
  return (parts, make) => {
    const isSame =
      known &&
      parts.length === known.parts.length &&
      parts.every((part, index) => part === known.parts[index]);
    if (!isSame) known = { parts, result: make() };
    return known.result;
  };
}
