/** When an experiment runs again as it is opened, and what it says before anything arrived. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { blank, find, settled, type } from '../../browser.js';
import { createExperiment } from '../../../../static/js/ui/experiment/experiment.js';

const DESCRIPTION = {
  id: 'e',
  title: 'An experiment',
  is_streamed: true,
  see: 'what to see',
  field: 'research',
  sources: [],
  parameters: {
    properties: {
      n: { type: 'integer', default: 4, minimum: 0, maximum: 9, description: '' },
      steps: { type: 'integer', default: 2, minimum: 0, maximum: 9, description: '' },
    },
  },
  arrays: {},
  growing: ['step'],
};
const VIEW = {
  id: 'e',
  main: ['n'],
  finding: ({ values, at }) => `n ${values.n}, frame ${at}`,
  steps: ({ step }) => step?.data ?? [],
  pictures: () => [],
};
const LONG = { preview: { steps: 0 } };

let asked, answer, experiment, warned;
globalThis.fetch = async (_, { signal }) => {
  asked += 1;
  const { status = 200, frames = [1, 2], isHeld = false } = answer;
  if (status !== 200)
    return new Response(JSON.stringify({ title: 'Refused', detail: 'no', status, errors: [] }), {
      status,
      headers: { 'content-type': 'application/problem+json' },
    });
  const events = frames.map((step) => [
    'frame',
    { arrays: { step: { axes: ['step'], shape: [1], dtype: 'int64', data: [step] } } },
  ]);
  return new Response(
    new ReadableStream({
      start(controller) {
        signal.addEventListener('abort', () =>
          controller.error(new DOMException('gone', 'AbortError')),
        );
        for (const [event, data] of [...events, ...(isHeld ? [] : [['end', {}]])])
          controller.enqueue(
            new TextEncoder().encode(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`),
          );
        if (!isHeld) controller.close();
      },
    }),
    { headers: { 'content-type': 'text/event-stream' } },
  );
};
console.warn = (error) => warned.push(error);

function make(view = {}) {
  experiment?.leave();
  blank();
  experiment = createExperiment(
    DESCRIPTION,
    { ...VIEW, ...view },
    { onLink: () => {}, announce: () => {} },
  );
  document.body.append(experiment.element);
}
beforeEach(() => {
  [asked, answer, warned] = [0, {}, []];
});
const finding = () => find('.finding');
async function open() {
  experiment.open();
  await settled(60);
}

test('before anything arrived an experiment computes, and nothing has failed', async () => {
  answer = { isHeld: true, frames: [] };
  make();
  await open();
  deepEqual(warned, []);
  const waiting = finding().textContent;
  ok(waiting !== '' && !/failed/.test(waiting) && !finding().hidden);
  equal(find('.view').getAttribute('aria-busy'), 'true');
  experiment.leave();
  answer = { status: 500 };
  await open();
  deepEqual(warned, []);
  ok(finding().hidden, 'the notice says it');
});

test('a run that failed is run again when the experiment is opened again', async () => {
  answer = { status: 500 };
  make();
  await open();
  experiment.leave();
  equal(asked, 1);
  answer = {};
  await open();
  equal(asked, 2);
  match(finding().textContent, /n 4, frame 1/);
});

test('a run that was left before its end is run again, a finished one is not', async () => {
  answer = { isHeld: true, frames: [1] };
  make();
  await open();
  experiment.leave();
  answer = {};
  await open();
  equal(asked, 2);
  experiment.leave();
  await open();
  equal(asked, 2);
});

test('of a long run that was left, what arrived is shown, and without a frame it runs again', async () => {
  answer = { isHeld: true, frames: [1] };
  make(LONG);
  await open();
  experiment.leave();
  await open();
  equal(asked, 1);
  match(finding().textContent, /frame 0/);
  answer = { isHeld: true, frames: [] };
  make(LONG);
  await open();
  experiment.leave();
  await open();
  equal(asked, 3);
});

test('a value set while nothing is open waits for no answer', async () => {
  make();
  await open();
  experiment.leave();
  experiment.restore(new URLSearchParams('n=7'));
  await settled(20);
  equal(asked, 1);
  await open();
  type(find('#e-n'), '8');
  await settled(180);
  match(finding().textContent, /n 8/);
});
