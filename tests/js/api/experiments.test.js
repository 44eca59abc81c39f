import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { Problem } from '../../../static/js/api/calls.js';
import { createRun } from '../../../static/js/api/experiments.js';

const frame = (...steps) => ({
  event: 'frame',
  data: {
    arrays: { step: { axes: ['step'], shape: [steps.length], dtype: 'int64', data: steps } },
  },
});
const START = { event: 'start', data: { parameters: { width: 2 } } };

/** A run whose events come from a list; a function in it is called, as a pause or to throw. */
function running(events) {
  const seen = [];
  const run = createRun({
    growing: ['step'],
    onChange: () => seen.push(run.state().status),
    async *stream(_, signal) {
      for (const each of events) {
        if (signal.aborted) return;
        if (typeof each === 'function') await each();
        else yield each;
      }
    },
  });
  return { run, seen };
}

test('frames are joined as they arrive', async () => {
  const { run, seen } = running([START, frame(1), frame(2, 3), { event: 'end', data: {} }]);
  await run.start({});
  deepEqual(run.state().arrays.step.data, [1, 2, 3]);
  deepEqual(run.state().values, { width: 2 });
  deepEqual(seen, ['waiting', 'running', 'running', 'done']);
});

test('a run that waits says how many are ahead, and no more once it begins', async () => {
  const ahead = [];
  const look = () => ahead.push(run.state().ahead);
  const waits = (count) => ({ event: 'waiting', data: { ahead: count } });
  const { run } = running([waits(2), look, waits(1), look, START, look, frame(1)]);
  await run.start({});
  deepEqual(ahead, [2, 1, 0]);
  equal(run.state().status, 'done');
});

test('a stream that breaks off keeps what arrived', async () => {
  const fails = () => {
    throw new Problem({ title: 'gone' });
  };
  const { run } = running([START, frame(1), fails]);
  await run.start({});
  const { status, isBroken, problem, arrays } = run.state();
  ok(status === 'failed' && isBroken && problem.message === 'gone');
  deepEqual(arrays.step.data, [1]);
});

test('a run that is refused is not broken off', async () => {
  const { run } = running([
    () => {
      throw new Problem({ title: 'busy', status: 503 });
    },
  ]);
  await run.start({});
  ok(run.state().status === 'failed' && !run.state().isBroken);
});

test('a second run replaces the arrays of the first', async () => {
  const { run } = running([START, frame(7), { event: 'end', data: {} }]);
  await run.start({});
  await run.start({});
  deepEqual(run.state().arrays.step.data, [7]);
});

test('a stopped run changes nothing any more', async () => {
  let go = () => {};
  const waits = () =>
    new Promise((resolve) => {
      go = resolve;
    });
  const { run } = running([START, frame(1), waits, frame(2)]);
  const ended = run.start({});
  await new Promise((resolve) => {
    setTimeout(resolve);
  });
  run.stop();
  go();
  await ended;
  equal(run.state().status, 'stopped');
  deepEqual(run.state().arrays.step.data, [1]);
});
