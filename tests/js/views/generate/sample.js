/**
 * A decoder of a few tokens, as the API would tell of it: what it writes depends on the seed and on
 * nothing else, so that a path can be told by heart.
 */

import { TEXT, TOKENS } from '../../sample.js';

const LAYERS = [0, 1];
const HEADS = [0, 1];
const VOCABULARY = [' ran', ' <b>', '\n', ' it', '</s>', '\\xf0\\x9f'];

/** Attention that leans on the first token, over `count` of them. */
function row(count) {
  return count === 1 ? [1] : [0.6, ...Array.from({ length: count - 1 }, () => 0.4 / (count - 1))];
}

/**
 * @param {number} index
 * @param {number} id
 * @param {{temperature?: number, isDense?: boolean}} [options]
 * @returns {import('../../../../static/js/api/generation.js').Step}
 */
export function stepOf(index, id, { temperature = 1, isDense = false } = {}) {
  const own = [0.4, 0.3, 0.2, 0.06];
  const total = own.reduce((sum, probability) => sum + probability ** (1 / temperature), 0);
  const alternatives = own.map((probability, at) => ({
    id: at,
    text: VOCABULARY[at],
    probability: temperature === 1 ? probability : probability ** (1 / temperature) / total,
    model_probability: probability,
  }));
  const position = TOKENS.length + index;
  const chosen = alternatives.find((alternative) => alternative.id === id) ?? {
    id,
    text: VOCABULARY[id],
    probability: 0.01,
    model_probability: 0.02,
  };
  return {
    index,
    position,
    ...chosen,
    is_special: id === 4,
    rank: id < 4 ? id + 1 : 9,
    is_forced: false,
    alternatives,
    attention: {
      axes: ['layer', 'head', 'key'],
      layers: LAYERS,
      heads: HEADS,
      data: LAYERS.map(() => HEADS.map(() => row(position))),
    },
    experts: isDense
      ? null
      : [{ layer: 1, experts: [2, 0], weights: [0.7, 0.3], probabilities: [0.25, 0.1, 0.6, 0.05] }],
  };
}

export function stepsOf(path, options) {
  return path.map((id, index) => stepOf(index, id, options));
}

/** The token that the fake server samples. */
export function written(index, seed) {
  return (index + seed) % 4;
}

/**
 * A server that answers when it is let to: `served.asked` holds every body, `served.next()` lets one
 * more event go, `served.flow()` all of them.
 */
export function fakeServer({ mostTokens = 256, fail } = {}) {
  const asked = [];
  const waiting = [];
  let isFlowing = false;
  const turn = (signal) =>
    new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(new DOMException('gone', 'AbortError')));
      if (isFlowing) setImmediate(resolve);
      else waiting.push(resolve);
    });
  return {
    asked,
    flow() {
      isFlowing = true;
      waiting.splice(0).forEach((resolve) => resolve());
    },
    async next() {
      waiting.shift()?.();
      for (let tick = 0; tick < 8; tick += 1) await new Promise(setImmediate);
    },
    async *stream(body, signal) {
      asked.push({ body, signal });
      await turn(signal);
      const problem = fail?.(body, mostTokens);
      if (problem) throw problem;
      yield { event: 'start', data: { model: body.model, tokens: TOKENS } };
      for (let index = body.skip; index < body.n_tokens; index += 1) {
        const id = body.forced[index] ?? written(index, body.seed);
        yield { event: 'token', data: stepOf(index, id, { temperature: body.temperature }) };
        if (id === 4) {
          yield { event: 'end', data: { reason: 'end_of_text' } };
          return;
        }
        await turn(signal);
      }
      yield { event: 'end', data: { reason: 'length' } };
    },
  };
}

export const SUBJECT = { model: 'tiny', text: TEXT, sampling: { temperature: 1, seed: 0 } };

/** The events of a server that writes a text, each as it is sent. */
export function eventsOf({ forced, skip, count }) {
  const events = [['start', { model: 'tiny', tokens: TOKENS, most_tokens: 256 }]];
  for (let index = skip; index < count; index += 1)
    events.push(['token', stepOf(index, forced[index] ?? index % 4)]);
  events.push(['end', { reason: 'length' }]);
  return events.map(([event, data]) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}

/** The answer of a server that fails. */
export function broken() {
  return new Response(JSON.stringify({ title: 'Broken', detail: 'no more', status: 500 }), {
    status: 500,
    headers: { 'content-type': 'application/problem+json' },
  });
}
