/**
 * Two lists side by side: what they share, in the same order.
 */

/**
 * The longest common subsequence (Wagner and Fischer 1974); of several the one that pairs earliest.
 * @param {string[]} a
 * @param {string[]} b
 * @returns {[number, number][]} indices into both, ascending
 */
export function commonPairs(a, b) {
  const start = sharedStart(a, b);
  const end = Math.min(
    sharedStart([...a].reverse(), [...b].reverse()),
    Math.min(a.length, b.length) - start,
  );
  const middle = pairsWithin(a.slice(start, a.length - end), b.slice(start, b.length - end));
  return [
    ...Array.from({ length: start }, (_, at) => [at, at]),
    ...middle.map(([i, j]) => [start + i, start + j]),
    ...Array.from({ length: end }, (_, at) => [a.length - end + at, b.length - end + at]),
  ];
}

/** Sentences that are compared mostly start and end alike. */
function sharedStart(a, b) {
  let length = 0;
  while (length < Math.min(a.length, b.length) && a[length] === b[length]) length += 1;
  return length;
}

function pairsWithin(a, b) {
  const width = b.length + 1;
  const longest = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      longest[i * width + j] =
        a[i] === b[j]
          ? longest[(i + 1) * width + j + 1] + 1
          : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
    }
  }
  const pairs = [];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) pairs.push([i++, j++]);
    else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1]) i += 1;
    else j += 1;
  }
  return pairs;
}
