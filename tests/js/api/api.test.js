import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  advice,
  asProblem,
  fetchModels,
  isWorthRetrying,
  Problem,
  problemOf,
  streamGeneration,
} from '../../../static/js/api/api.js';

test('a problem keeps what the server said', async () => {
  const body = {
    title: 'Too many tokens',
    detail: '300 tokens, and at most 256',
    status: 422,
    limit: 256,
    actual: 300,
  };
  const problem = await problemOf(new Response(JSON.stringify(body), { status: 422 }));
  assert.equal(problem.message, 'Too many tokens');
  assert.equal(problem.detail, body.detail);
  assert.deepEqual([problem.limit, problem.actual], [256, 300]);
  assert.equal(advice(problem), 'Change the text, and it is read again.');
});

test('an answer that is no problem document still becomes one', async () => {
  const problem = await problemOf(
    new Response('<h1>bad gateway</h1>', { status: 502, statusText: 'Bad Gateway' }),
  );
  assert.equal(problem.message, 'Bad Gateway');
  assert.match(problem.detail, /502/);
});

test('trying again is offered where it can help', () => {
  const of = (status) => new Problem({ title: 'x', status });
  assert.deepEqual(
    [0, 429, 503, 500, 422, 404].map((status) => isWorthRetrying(of(status))),
    [true, true, true, true, false, false],
  );
  for (const status of [0, 404, 413, 422, 429, 500, 503])
    assert.ok(advice(of(status)).endsWith('.'), String(status));
});

test('who wrote both texts is told that either may be at fault', () => {
  const problem = new Problem({ title: 'x', status: 422 });
  problem.texts = 'the text or your translation';
  assert.equal(advice(problem), 'Change the text or your translation, and it is read again.');
});

test('how long a busy server wants to be left alone comes with the problem', async () => {
  const busy = new Response('{"title":"Busy"}', { status: 503, headers: { 'Retry-After': '4' } });
  assert.equal((await problemOf(busy)).retryAfter, 4);
  assert.equal((await problemOf(new Response('{}', { status: 503 }))).retryAfter, undefined);
});

test('where the page goes on trying it says so, and does not send anybody to a button', () => {
  for (const status of [0, 503]) {
    const problem = new Problem({ title: 'x', status, limit: 64, actual: 65 });
    assert.doesNotMatch(advice(problem, true), /text/, 'a full queue is not the fault of the text');
    assert.match(advice(problem, true), /goes on trying by itself\.$/);
    assert.doesNotMatch(advice(problem, true), /try again/);
    assert.match(advice(problem), /try again\.$/);
  }
});

test('a connection that breaks before or within the answer is a server that did not answer', async (t) => {
  const broken = () => Promise.reject(new TypeError('network error'));
  t.mock.method(globalThis, 'fetch', broken);
  await assert.rejects(fetchModels(), { name: 'Problem', status: 0 });
  t.mock.method(globalThis, 'fetch', async () => ({ ok: true, json: broken }));
  await assert.rejects(fetchModels(), { name: 'Problem', status: 0 });
});

test('whatever else is thrown becomes a problem that is told', () => {
  assert.equal(asProblem(new RangeError('too short')).detail, 'too short');
  const problem = new Problem({ title: 'x', status: 422 });
  assert.equal(asProblem(problem), problem);
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
  assert.equal(problem, undefined);
  assert.deepEqual(
    events.map(({ event }) => event),
    ['start', 'token', 'end'],
  );
  assert.deepEqual(events[1].data, { id: 3 });
});

test('what goes wrong in the middle of a stream is a problem, and so is a stream that breaks off', async (t) => {
  const told = await streamed(
    t,
    'event: token\ndata: {}\n\nevent: error\ndata: {"title":"Queue full","status":503,"type":"urn:x"}\n\n',
  );
  assert.equal(told.events.length, 1);
  assert.deepEqual(
    [told.problem.title, told.problem.status, told.problem.type],
    ['Queue full', 503, 'urn:x'],
  );
  const broken = await streamed(t, 'event: token\ndata: {}\n\nevent: tok');
  assert.equal(broken.events.length, 1);
  assert.deepEqual([broken.problem.name, broken.problem.status], ['Problem', 0]);
  const refused = await streamed(t, '{"title":"No generation","status":422}', 422);
  assert.equal(refused.problem.title, 'No generation');
});
