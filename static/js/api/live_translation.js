/**
 * The translation of a text by a model whose graph runs in the browser: the beam search of
 * `headlight.model.generation.translation`. The beam are rows of one pass for each token.
 */

/** @import { Model } from './live_worker.js' */

/**
 * Return the target that the model writes for a source.
 * @param {Model} model
 * @param {Token[]} source
 */
export async function translationOf({ manifest, run }, source) {
  const { start_id: start, end_id: end, max_tokens: most, beam, texts } = manifest;
  const { width, length_penalty: penalty } = /** @type {NonNullable<typeof beam>} */ (beam);
  const limit = Math.min(2 * source.length + 10, most - 1);
  let open = [{ ids: [start], score: 0 }];
  let best = { ids: [start], score: -Infinity };
  for (let [length, nFinished] = [1, 0]; length <= limit && nFinished < width; length += 1) {
    // No token sees what comes after it: a graph takes no length below 3.
    const rows = open.map(({ ids }) => [...ids, end, end].slice(0, Math.max(length, 3)));
    const target = rows[0].map((id) => ({ ...source[0], id }));
    const found = await run(source, CHOICES, { target, rows, position: length - 1 });
    const [scores, tokens] = CHOICES.map((name) => Array.from(found[name].data));
    const extended = tokens.map((token, at) => {
      const { ids, score } = open[Math.floor(at / (2 * width))];
      return { ids: [...ids, token], score: score + scores[at] };
    });
    extended.sort((a, b) => b.score - a.score);
    for (const { ids, score } of extended.slice(0, width)) {
      if (ids[length] !== end && length < limit) continue;
      nFinished += 1;
      const mean = score / length ** penalty;
      if (mean > best.score) best = { ids: ids.filter((id) => id !== end), score: mean };
    }
    open = extended.filter(({ ids }) => ids[length] !== end).slice(0, width);
    if (open[0].score / limit ** penalty <= best.score) break;
  }
  return textOf(best.ids.slice(1).map((id) => texts[id]));
}

const CHOICES = ['analyses.search.scores', 'analyses.search.ids'];

/** Return the text of named tokens, as `headlight.model.token_names` writes bytes. @param {string[]} names */
function textOf(names) {
  const utf8 = new TextEncoder();
  const bytesOf = (/** @type {string} */ name) =>
    name
      .split(/\\x([0-9a-f]{2})/)
      .flatMap((part, at) => (at % 2 ? [Number.parseInt(part, 16)] : [...utf8.encode(part)]));
  return new TextDecoder().decode(Uint8Array.from(names.flatMap(bytesOf)));
}
