import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSseParser, eventsOf } from '../../../static/js/api/sse.js';

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

test('an event has a name and data', () => {
  assert.deepEqual(parsed(TWO), PARSED);
});

test('it does not matter where the text is cut', () => {
  assert.deepEqual(parsed(...TWO), PARSED);
  for (let cut = 0; cut <= TWO.length; cut += 1)
    assert.deepEqual(parsed(TWO.slice(0, cut), TWO.slice(cut)), PARSED);
});

test('lines end in any of three ways, which may be cut in two', () => {
  for (const end of ['\r', '\r\n']) {
    const text = TWO.replaceAll('\n', end);
    assert.deepEqual(parsed(text), PARSED);
    assert.deepEqual(parsed(...text), PARSED);
  }
});

test('several lines of data are one text', () => {
  assert.deepEqual(parsed('data: a\ndata\ndata:  b\n\n'), [{ event: 'message', data: 'a\n\n b' }]);
});

test('comments, other fields and events without data are passed over', () => {
  assert.deepEqual(parsed(': hello\nid: 7\nretry: 100\nnonsense\n\nevent: lonely\n\ndata:x\n\n'), [
    { event: 'message', data: 'x' },
  ]);
});

test('what is unfinished at the end is no event', () => {
  assert.deepEqual(parsed('data: a\n\ndata: b\n'), [{ event: 'message', data: 'a' }]);
  assert.deepEqual(parsed('', 'data: a'), []);
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
  assert.deepEqual(await collected(eventsOf(bodyOf(chunks))), [
    { event: 'message', data: 'né 😀' },
  ]);
});

test('who stops reading cancels the answer', async () => {
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
    assert.equal(event, 'token');
    break;
  }
  assert.ok(isCancelled);
});
