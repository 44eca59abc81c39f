/** The measurement of a model's heads from the page. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { blank, find, labelled, recorder, settled } from '../browser.js';
import { createProfile } from '../../../static/js/ui/profile.js';

let offer;
let events;
let asked;
let measured;

beforeEach(() => {
  blank();
  offer = { reason: '' };
  events = () => [];
  asked = [];
  measured = 0;
  globalThis.fetch = async (url, { body, signal } = {}) => {
    asked.push([url, body && JSON.parse(body)]);
    return body ? stream(await events(), signal) : Response.json(offer);
  };
});

/** Answers with events; `null` waits until the request is cancelled. */
function stream(listed, signal) {
  const content = new ReadableStream({
    start(controller) {
      for (const each of listed.filter(Boolean)) {
        const [event, data] = each;
        const line = `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
        controller.enqueue(new TextEncoder().encode(line));
      }
      if (listed.includes(null))
        signal.addEventListener('abort', () => controller.error(signal.reason));
      else controller.close();
    },
  });
  return new Response(content, { headers: { 'content-type': 'text/event-stream' } });
}

async function show(card = { id: 'mine', heads: null }) {
  const { handlers, calls } = recorder('announce');
  const part = createProfile(handlers, () => (measured += 1));
  document.body.append(part.element);
  part.show({}, { answers: { card: { trace: { card } } } });
  await settled(5);
  return { part, calls };
}
const section = () => find('.profile');
const said = () => find('[role="status"]', section()).textContent;

test('a model without a profile offers to measure one', async () => {
  await show();
  ok(!section().hidden && !labelled('Measure its heads').hidden);
  deepEqual(asked, [['/api/v1/models/mine/profile', undefined]]);
});

test('a model with a profile, or whose card is not there yet, offers nothing', async () => {
  await show({ id: 'mine', heads: {} });
  ok(section().hidden);
  blank();
  await show(null);
  ok(section().hidden);
  deepEqual(asked, []);
});

test('a server that measures nothing says why', async () => {
  offer = { reason: 'The folder of mine is read-only.' };
  await show();
  match(section().textContent, /read-only/);
  ok(labelled('Measure its heads').hidden);
});

test('a saved page says that it cannot', async () => {
  document.body.className = 'is-saved';
  await show();
  match(section().textContent, /saved page/);
  deepEqual(asked, []);
});

test('the progress is shown, and at the end the page is shown again', async () => {
  events = () => [['progress', { share: 0 }], ['progress', { share: 0.37 }], null];
  const { calls } = await show();
  labelled('Measure its heads').click();
  await settled(5);
  equal(find('progress').value, 0.37);
  match(said(), /30 %/);
  ok(labelled('Measure its heads').disabled);
  equal(document.activeElement, labelled('Cancel'));
  equal(calls.length, 1);
  labelled('Cancel').click();
  await settled(5);
  deepEqual([said(), measured], ['Cancelled.', 0]);
  equal(document.activeElement, labelled('Measure its heads'));
  events = () => [
    ['progress', { share: 1 }],
    ['end', { sentences: 300 }],
  ];
  labelled('Measure its heads').click();
  await settled(5);
  equal(measured, 1);
});

test('an error is a sentence, and the button is there again', async () => {
  events = () => [['error', { title: 'No profile', detail: 'the disk is full' }]];
  await show();
  labelled('Measure its heads').click();
  await settled(5);
  match(said(), /^The disk is full\.$/);
  ok(!labelled('Measure its heads').disabled);
  equal(measured, 0);
});
