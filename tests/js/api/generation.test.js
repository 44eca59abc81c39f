import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { Problem } from '../../../static/js/api/calls.js';
import { createSseParser, Writer, eventsOf } from '../../../static/js/api/generation.js';
import { fakeServer, SUBJECT, written } from '../views/generate/sample.js';

const settled = async () => {
  for (let tick = 0; tick < 60; tick += 1) await new Promise(setImmediate);
};
const ids = ({ steps }) => steps.map(({ id }) => id);
const PATH = [3, 1, 2];

function writerOn(server) {
  const changes = [];
  const pauses = [];
  const writer = new Writer({
    stream: server.stream,
    onChange: (isOver) => changes.push(isOver),
    pause: async (milliseconds) => {
      pauses.push(milliseconds);
    },
  });
  return { writer, changes, pauses };
}

test('one token is asked for, and comes', async () => {
  const server = fakeServer();
  const { writer, changes } = writerOn(server);
  writer.want(SUBJECT, []);
  equal(server.asked.length, 0, 'of an empty path nothing is to be known');
  writer.write(1);
  ok(writer.state().isWriting);
  server.flow();
  await settled();
  deepEqual(server.asked[0].body, {
    model: 'tiny',
    text: SUBJECT.text,
    temperature: 1,
    seed: 0,
    forced: [],
    skip: 0,
    n_tokens: 1,
    n_alternatives: 10,
  });
  deepEqual(changes, [false, true]);
  deepEqual(writer.follow(), [written(0, 0)]);
  deepEqual(ids(writer.state()), [written(0, 0)]);
  equal(writer.state().isWriting, false);
  equal(writer.state().reason, 'length');
});

test('a search is asked for where tokens are written, and not where they are read again', async () => {
  const search = { stop: ['.'], beams: 3 };
  const server = fakeServer();
  const { writer } = writerOn(server);
  writer.want(SUBJECT, []);
  writer.want({ ...SUBJECT, search }, []);
  writer.write(2);
  server.flow();
  await settled();
  deepEqual([server.asked[0].body.stop, server.asked[0].body.beams], [['.'], 3]);
  const reader = fakeServer();
  const { writer: read } = writerOn(reader);
  read.want({ ...SUBJECT, search }, [0, 1]);
  reader.flow();
  await settled();
  deepEqual([reader.asked[0].body.stop, reader.asked[0].body.beams], [undefined, undefined]);
});

test('a run shows every token as it comes, at the pace of a reader, and its page may follow', async () => {
  const server = fakeServer();
  const { writer, pauses } = writerOn(server);
  writer.want(SUBJECT, []);
  writer.write(5);
  await server.next();
  deepEqual(ids(writer.state()), [0]);
  await server.next();
  deepEqual(ids(writer.state()), [0, 1]);
  writer.want(SUBJECT, writer.follow());
  equal(writer.state().replay, null, 'what is being written is not read again');
  ok(writer.state().isWriting, 'what the page follows goes on');
  await server.next();
  deepEqual(ids(writer.state()), [0, 1, 2]);
  ok(pauses.length === 3 && pauses.every((pause) => pause > 0 && pause < 500));
});

test('a stopped run keeps its tokens and closes the stream', async () => {
  const server = fakeServer();
  const { writer } = writerOn(server);
  writer.want(SUBJECT, []);
  writer.write(50);
  await server.next();
  await server.next();
  writer.stop();
  ok(server.asked[0].signal.aborted);
  deepEqual(writer.follow(), [0, 1]);
  server.flow();
  await settled();
  deepEqual(ids(writer.state()), [0, 1]);
  equal(writer.state().problem, null, 'to stop is no problem');
});

test('a path of a link is replayed exactly, and shown when it is complete', async () => {
  const server = fakeServer();
  const { writer, changes } = writerOn(server);
  writer.want(SUBJECT, PATH);
  writer.want(SUBJECT, PATH);
  equal(server.asked.length, 1, 'it is asked for once');
  ok(writer.state().isReading);
  await server.next();
  await server.next();
  deepEqual(ids(writer.state()), []);
  server.flow();
  await settled();
  deepEqual(server.asked[0].body.forced, PATH);
  equal(server.asked[0].body.n_tokens, 3);
  deepEqual(ids(writer.state()), PATH);
  deepEqual(changes, [true]);
});

test('a replay can be cancelled and resumed', async () => {
  const server = fakeServer();
  const { writer } = writerOn(server);
  writer.want(SUBJECT, PATH);
  writer.cancel();
  writer.want(SUBJECT, PATH);
  equal(server.asked.length, 1, 'it is not asked for again by itself');
  ok(server.asked[0].signal.aborted);
  deepEqual(
    [writer.state().isCancelled, writer.state().isReading, writer.state().problem],
    [true, false, null],
  );
  server.flow();
  await writer.retry();
  deepEqual(ids(writer.state()), PATH);
  equal(writer.state().isCancelled, false);
  writer.cancel();
  equal(writer.state().isCancelled, false, 'there was nothing to stop');
});

test('another token in the middle asks for that one step', async () => {
  const server = fakeServer();
  const { writer } = writerOn(server);
  server.flow();
  writer.want(SUBJECT, PATH);
  await settled();
  writer.want(SUBJECT, [3, 0]);
  await settled();
  const { body } = server.asked[1];
  deepEqual([body.forced, body.skip, body.n_tokens], [[3, 0], 1, 2]);
  deepEqual(ids(writer.state()), [3, 0]);
});

test('another text drops the path and cancels its requests', async () => {
  const server = fakeServer();
  const { writer } = writerOn(server);
  writer.want(SUBJECT, []);
  writer.write(9);
  await server.next();
  writer.want({ ...SUBJECT, text: 'other' }, []);
  ok(server.asked[0].signal.aborted);
  deepEqual(writer.state().steps, []);
});

test('a failure is reported and repeated on demand only', async () => {
  let isBusy = true;
  const server = fakeServer({
    fail: () => isBusy && new Problem({ title: 'Queue full', status: 503 }),
  });
  const { writer, changes } = writerOn(server);
  server.flow();
  writer.want(SUBJECT, PATH);
  await settled();
  equal(writer.state().problem.title, 'Queue full');
  writer.want(SUBJECT, PATH);
  equal(server.asked.length, 1);
  deepEqual(changes, [true]);
  isBusy = false;
  await writer.retry();
  equal(writer.state().problem, null);
  deepEqual(ids(writer.state()), PATH);
});

test('a path beyond the end of the text is a problem, and requested once', async () => {
  const server = fakeServer();
  const { writer } = writerOn(server);
  server.flow();
  const path = [3, 4, 1];
  writer.want(SUBJECT, path);
  await settled();
  match(writer.state().problem.detail, /before all tokens of the link/);
  writer.want(SUBJECT, path);
  await settled();
  equal(server.asked.length, 1);
  deepEqual(writer.state().steps, []);
});

test('a problem in the middle of a run keeps the received tokens', async () => {
  let count = 0;
  const server = fakeServer();
  const stream = async function* broken(body, signal) {
    for await (const event of server.stream(body, signal)) {
      count += 1;
      if (count === 4) throw new Problem({ title: 'The response was cut off' });
      yield event;
    }
  };
  const { writer } = writerOn({ stream });
  server.flow();
  writer.want(SUBJECT, []);
  await writer.write(9);
  deepEqual(writer.follow(), [0, 1]);
  deepEqual(ids(writer.state()), [0, 1]);
  equal(writer.state().problem.title, 'The response was cut off');
});

test('a server that generates fewer tokens is asked for at most its limit', async () => {
  const type = 'urn:headlight:problem:too-many-new-tokens';
  const refusal = new Problem({ type, title: 'Too many', status: 422, limit: 3, actual: 200 });
  const fail = (body, most) => body.n_tokens > most && refusal;
  const server = fakeServer({ mostTokens: 3, fail });
  const { writer } = writerOn(server);
  server.flow();
  writer.want(SUBJECT, []);
  await writer.write(200);
  await settled();
  const asked = server.asked.map(({ body }) => body.n_tokens);
  deepEqual(asked, [200, 3]);
  deepEqual(writer.follow(), [0, 1, 2]);
  deepEqual([writer.state().most, writer.state().problem], [3, null]);
});

function parsed(...pieces) {
  const events = [];
  const parser = createSseParser((event) => events.push(event));
  for (const piece of pieces) parser.push(piece);
  return events;
}

const TWO = 'event: token\ndata: {"a":1}\n\nevent: end\ndata: {}\n\n';
const PARSED = [
  { event: 'token', data: '{"a":1}' },
  { event: 'end', data: '{}' },
];

test('chunks may be cut anywhere', () => {
  deepEqual(parsed(...TWO), PARSED);
  for (let cut = 0; cut <= TWO.length; cut += 1)
    deepEqual(parsed(TWO.slice(0, cut), TWO.slice(cut)), PARSED);
});

test('lines end in any of three ways, which may be cut in two', () => {
  for (const end of ['\r', '\r\n']) {
    const text = TWO.replaceAll('\n', end);
    deepEqual(parsed(text), PARSED);
    deepEqual(parsed(...text), PARSED);
  }
});

test('comments, other fields and events without data are passed over', () => {
  deepEqual(parsed(': hello\nid: 7\nretry: 100\nnonsense\n\nevent: lonely\n\ndata:x\n\n'), [
    { event: 'message', data: 'x' },
  ]);
});

function bodyOf(chunks, { onCancel, isOpen = false } = {}) {
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      if (!isOpen) controller.close();
    },
    cancel: onCancel,
  });
}

async function collected(events) {
  const all = [];
  for await (const event of events) all.push(event);
  return all;
}

test('a letter that arrives in two parts is one letter', async () => {
  const bytes = new TextEncoder().encode('data: né 😀\n\n');
  const chunks = [...bytes].map((byte) => Uint8Array.of(byte));
  deepEqual(await collected(eventsOf(bodyOf(chunks))), [{ event: 'message', data: 'né 😀' }]);
});

test('cancelling the reader cancels the response', async () => {
  let isCancelled = false;
  const chunk = new TextEncoder().encode(TWO);
  for await (const { event } of eventsOf(
    bodyOf([chunk], {
      isOpen: true,
      onCancel: () => {
        isCancelled = true;
      },
    }),
  )) {
    equal(event, 'token');
    break;
  }
  ok(isCancelled);
});
