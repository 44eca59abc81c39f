import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { bodyOf, createRequestCache, noticeOf } from '../../../static/js/api/answers.js';
import { Problem } from '../../../static/js/api/calls.js';

const TRACE = { tensors: { logits: { data: [1, 2, 3] } } };

/** Answers by hand: each call waits until it is let go on. */
function byHand() {
  const calls = [];
  let arrivals = 0;
  const answers = createRequestCache({
    fetch: (body, signal) =>
      new Promise((resolve, reject) => {
        signal.addEventListener('abort', () => reject(new DOMException('stopped', 'AbortError')));
        calls.push({ body, signal, resolve, reject });
      }),
    onArrival: () => {
      arrivals += 1;
    },
  });
  return { answers, calls, arrivals: () => arrivals };
}

const settled = () =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });

test('the same request is sent once, and its answer cached', async () => {
  const { answers, calls, arrivals } = byHand();
  deepEqual(answers.want({ lens: { text: 'a' } }), { lens: { isWaiting: true } });
  answers.want({ other: { text: 'a' } });
  equal(calls.length, 1);
  calls[0].resolve(TRACE);
  await settled();
  equal(arrivals(), 1);
  equal(answers.want({ lens: { text: 'a' } }).lens.trace, TRACE);
  answers.want({});
  equal(answers.want({ lens: { text: 'a' } }).lens.trace, TRACE, 'kept while nobody looks');
  equal(calls.length, 1);
});

test('prefetching cancels nothing and is reused later', async () => {
  const { answers, calls } = byHand();
  answers.want({ lens: { text: 'a' } });
  ok(answers.find({ card: 'tiny' }).isWaiting);
  ok(!calls[0].signal.aborted);
  calls[1].resolve({ card: { id: 'tiny' } });
  await settled();
  equal(answers.find({ card: 'tiny' }).trace.card.id, 'tiny');
  deepEqual(answers.want({ card: { card: 'tiny' } }).card, answers.find({ card: 'tiny' }));
  equal(calls.length, 2);
});

test('an abandoned request is cancelled silently', async () => {
  const { answers, calls, arrivals } = byHand();
  answers.want({ lens: { text: 'a' } });
  answers.want({ lens: { text: 'b' } });
  ok(calls[0].signal.aborted);
  calls[0].resolve(TRACE);
  await settled();
  equal(arrivals(), 0);
  deepEqual(answers.want({ lens: { text: 'b' } }), { lens: { isWaiting: true } });
});

test('a rejected request stays cached until it is retried', async () => {
  const { answers, calls } = byHand();
  answers.want({ lens: { text: 'a' } });
  calls[0].reject(new Problem({ title: 'Too much', detail: 'Ask for less.', status: 422 }));
  await settled();
  equal(noticeOf(answers.want({ lens: { text: 'a' } }).lens), 'Too much. Ask for less.');
  equal(calls.length, 1);
  answers.retry();
  answers.want({ lens: { text: 'a' } });
  equal(calls.length, 2);
});

test('the cache is bounded and keeps the displayed answers', async () => {
  await dropsTheOlder({ tensors: { logits: { data: new Uint8Array(20e6) } } });
});

/** Of two answers as big as this one only the younger is kept. */
async function dropsTheOlder(big) {
  const { answers, calls } = byHand();
  for (const text of ['a', 'b']) {
    answers.want({ lens: { text } });
    calls.at(-1).resolve(big);
    await settled();
  }
  ok(answers.want({ lens: { text: 'b' } }).lens.trace);
  answers.want({ lens: { text: 'a' } });
  equal(calls.length, 3, 'the older of two that are too much was dropped');
}

test('a request uses the page’s texts and model unless it names others', () => {
  const trace = { asked: { model: 'translate', text: 'A cat', target: null }, target: 'Un chat' };
  const own = { model: 'translate', text: 'A cat', capture: [] };
  const alignment = { analyses: ['alignment'] };
  deepEqual(bodyOf(alignment, trace), { ...own, target: 'Un chat', ...alignment });
  const other = { model: 'stories', capture: ['logits'] };
  deepEqual(bodyOf(other, trace), { text: 'A cat', ...other });
  deepEqual(bodyOf({ text: 'A dog' }, trace), { ...own, text: 'A dog' });
  equal('target' in bodyOf({}, { ...trace, target: ' ' }), false, 'a blank one cannot be sent');
});

test('a cancelled request is reported, and repeated after its view was left', async () => {
  const { answers, calls, arrivals } = byHand();
  answers.want({ lens: { text: 'a' } });
  answers.cancel();
  ok(calls[0].signal.aborted);
  equal(arrivals(), 1);
  const { lens } = answers.want({ lens: { text: 'a' } });
  match(noticeOf(lens), /^Cancelled\. ./);
  await settled();
  equal(calls.length, 1);
  answers.want({});
  deepEqual(answers.want({ lens: { text: 'a' } }), { lens: { isWaiting: true } });
});
