import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict';
import { test } from 'node:test';
import {
  isForOverview,
  advice,
  askWhenRefused,
  inTokens,
  isWorthRetrying,
  keepKey,
  keyIn,
  mayHurry,
  NO_MODELS,
  pauseBefore,
  Problem,
  problemOf,
  readKey,
  refusalOf,
  retryAfterOf,
  withKey,
} from '../../../static/js/api/calls.js';
import { fetchModels } from '../../../static/js/api/answers.js';
import { streamGeneration } from '../../../static/js/api/generation.js';

test('a problem keeps what the server said', async () => {
  const body = {
    title: 'Too many tokens',
    detail: '300 tokens, and at most 256',
    status: 422,
    limit: 256,
    actual: 300,
  };
  const problem = await problemOf(new Response(JSON.stringify(body), { status: 422 }));
  equal(problem.message, 'Too many tokens');
  equal(problem.detail, body.detail);
  deepEqual([problem.limit, problem.actual], [256, 300]);
  equal(advice(problem), 'Edit the text and it is read again.');
});

test('a response that is not a problem document still becomes a problem', async () => {
  const problem = await problemOf(
    new Response('<h1>bad gateway</h1>', { status: 502, statusText: 'Bad Gateway' }),
  );
  equal(problem.message, 'Bad Gateway');
  match(problem.detail, /502/);
});

test('a text refused for its weights, or for more letters than tokens can be, has an overview', () => {
  const refused = (kind, actual) => ({ type: `urn:headlight:problem:${kind}`, limit: 1, actual });
  const [learned, rotary] = [1024, 131072].map((longest_text) => ({
    max_tokens: 1024,
    longest_text,
  }));
  ok(isForOverview(refused('too-many-cells', 1e9), learned));
  ok(isForOverview(refused('too-many-characters', 4096), learned));
  ok(!isForOverview(refused('too-many-characters', 5000), learned));
  ok(!isForOverview(refused('too-many-tokens', 1025), learned));
  ok(isForOverview(refused('too-many-tokens', 1025), rotary));
  ok(isForOverview(refused('too-many-characters', 600000), rotary));
  ok(!isForOverview(refused('server-busy'), rotary));
});

test('too many characters are told in the tokens of a model that reads no longer text', () => {
  const told = (actual, card) =>
    inTokens(
      new Problem({ title: 'x', detail: 'as sent', type: 'urn:x:too-many-characters', actual }),
      card,
    ).detail;
  const learned = { max_tokens: 128, longest_text: 128 };
  ok(told(116000, learned).startsWith('116,000 characters are more than the 128 tokens'));
  equal(told(500, learned), 'as sent');
  equal(told(116000, { max_tokens: 256, longest_text: 1e6 }), 'as sent');
});

test('a retry is offered if it can help', () => {
  const of = (status) => new Problem({ title: 'x', status });
  deepEqual(
    [0, 429, 503, 500, 422, 404].map((status) => isWorthRetrying(of(status))),
    [true, true, true, true, false, false],
  );
  for (const status of [0, 404, 413, 422, 429, 500, 503])
    ok(advice(of(status)).endsWith('.'), String(status));
});

test('the Retry-After of a busy server is part of the problem', async () => {
  const busy = new Response('{"title":"Busy"}', { status: 503, headers: { 'Retry-After': '4' } });
  equal((await problemOf(busy)).retryAfter, 4);
  equal((await problemOf(new Response('{}', { status: 503 }))).retryAfter, undefined);
});

test('a connection lost before or during the response is reported as no response', async (t) => {
  const broken = () => Promise.reject(new TypeError('network error'));
  t.mock.method(globalThis, 'fetch', broken);
  await rejects(fetchModels(), { name: 'Problem', status: 0 });
  t.mock.method(globalThis, 'fetch', async () => ({ ok: true, json: broken }));
  await rejects(fetchModels(), { name: 'Problem', status: 0 });
});

async function streamed(t, text, status = 200) {
  t.mock.method(globalThis, 'fetch', async () => new Response(text, { status }));
  const events = [];
  try {
    for await (const event of streamGeneration({ text: 'a' }, new AbortController().signal))
      events.push(event);
  } catch (problem) {
    return { events, problem };
  }
  return { events };
}

test('a text written on comes event by event', async (t) => {
  const { events, problem } = await streamed(
    t,
    'event: start\ndata: {}\n\nevent: token\ndata: {"id":3}\n\nevent: end\ndata: {"reason":"length"}\n\n',
  );
  equal(problem, undefined);
  deepEqual(
    events.map(({ event }) => event),
    ['start', 'token', 'end'],
  );
  deepEqual(events[1].data, { id: 3 });
});

test('an error event in a stream, or a stream cut short, becomes a problem', async (t) => {
  const told = await streamed(
    t,
    'event: token\ndata: {}\n\nevent: error\ndata: {"title":"Queue full","status":503,"type":"urn:x"}\n\n',
  );
  equal(told.events.length, 1);
  deepEqual(
    [told.problem.title, told.problem.status, told.problem.type],
    ['Queue full', 503, 'urn:x'],
  );
  const broken = await streamed(t, 'event: token\ndata: {}\n\nevent: tok');
  equal(broken.events.length, 1);
  deepEqual([broken.problem.name, broken.problem.status], ['Problem', 0]);
  const refused = await streamed(t, '{"title":"No generation","status":422}', 422);
  equal(refused.problem.title, 'No generation');
});

function keeping(t, kept = {}) {
  const store = {
    getItem: (name) => kept[name] ?? null,
    setItem: (name, value) => {
      kept[name] = value;
    },
  };
  globalThis.sessionStorage = store;
  t.after(() => {
    delete globalThis.sessionStorage;
  });
  return kept;
}

test('a key is kept with the tab', (t) => {
  keeping(t);
  equal(readKey(), '');
  equal(keepKey('sesame'), true);
  equal(readKey(), 'sesame');
});

test('a browser without storage does not fail', () => {
  equal(readKey(), '');
  equal(keepKey('sesame'), false);
});

test('a key goes with a call as a bearer token, and without one nothing does', () => {
  deepEqual(withKey({ Accept: 'a/b' }, 'sesame'), {
    Accept: 'a/b',
    Authorization: 'Bearer sesame',
  });
  deepEqual(withKey({ Accept: 'a/b' }, ''), { Accept: 'a/b' });
});

test('a pasted key is accepted only if a header can carry it', () => {
  equal(keyIn('  sesame-1\n'), 'sesame-1');
  for (const typed of ['', '   ', 'two words', 'ключ', 'a\nb', '🗝']) equal(keyIn(typed), '');
});

test('a call sends the key, and a 401 reports whether there was one', async (t) => {
  const kept = keeping(t);
  const shown = [];
  t.mock.method(globalThis, 'fetch', async (_, { headers }) => {
    shown.push(headers.Authorization);
    return new Response('{"title":"Key missing"}', { status: 401 });
  });
  const told = [];
  askWhenRefused((hadKey) => told.push(hadKey));
  await rejects(fetchModels(), { status: 401 });
  kept['headlight.key'] = 'sesame';
  await rejects(fetchModels(), { status: 401 });
  deepEqual(shown, [undefined, 'Bearer sesame']);
  deepEqual(told, [false, true]);
});

const attempts = (problem, count = 50) =>
  Array.from({ length: count }, (_, attempt) => pauseBefore(problem, attempt));

test('an unreachable server is retried at growing intervals of at most 15 s', () => {
  const pauses = attempts({ status: 0 });
  deepEqual(pauses.slice(0, 4), [1000, 2000, 4000, 8000]);
  ok(pauses.every((pause, at) => at === 0 || pause >= pauses[at - 1]));
  equal(Math.max(...pauses), 15_000);
});

test('a rejected request is never retried automatically', () => {
  for (const status of [400, 404, 408, 413, 422, 429, 500]) {
    ok(
      attempts({ status, retryAfter: 1 }).every((pause) => pause === null),
      String(status),
    );
  }
});

test('a busy server is retried after its Retry-After, a few times only', () => {
  equal(pauseBefore({ status: 503, retryAfter: 7 }, 0), 7000);
  equal(attempts({ status: 503, retryAfter: 1 }).filter((pause) => pause !== null).length, 5);
  equal(pauseBefore({ status: 503, retryAfter: 3600 }, 0), null);
  equal(pauseBefore({ status: 503 }, 0), null, 'it did not ask for it');
});

test('Retry-After is a number of seconds or a date', () => {
  equal(retryAfterOf('12'), 12);
  equal(retryAfterOf('Sat, 21 Nov 2026 10:00:30 GMT', Date.UTC(2026, 10, 21, 10, 0, 0)), 30);
  equal(retryAfterOf('Sat, 21 Nov 2026 10:00:30 GMT', Date.UTC(2026, 10, 21, 11, 0, 0)), 0);
  for (const nothing of [null, '', 'soon']) equal(retryAfterOf(nothing), undefined);
});

test('a retry is hurried only if the server set no Retry-After', () => {
  ok(mayHurry({ status: 0 }));
  ok(!mayHurry({ status: 503 }));
});

const CATALOGUE = {
  default: 'stories',
  models: [{ id: 'fill' }, { id: 'stories' }],
  unavailable: [{ id: 'broken', reason: 'its config is no JSON' }],
};

test('the default model is offered instead, if there is one', () => {
  const { offer } = refusalOf({ ...CATALOGUE, models: [{ id: 'stories', title: 'Stories' }] }, 'x');
  deepEqual([offer.label, offer.patch.model, offer.patch.layer], ['Use Stories', '', null]);
  equal(refusalOf(NO_MODELS, 'x').offer, undefined);
});
