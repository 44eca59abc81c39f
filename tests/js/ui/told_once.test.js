/** When generated text is announced. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { all, blank, find, labelled, settled } from '../browser.js';
import { createGeneration } from '../../../static/js/ui/generation.js';
import { FRAME, sampleTrace } from '../sample.js';
import { broken, eventsOf } from '../views/generate/sample.js';

const CARD = { kind: 'decoder', max_tokens: 12, positional: 'sinusoidal' };
const asked = [];
let isBroken = false;
globalThis.fetch = async (_, { body }) => {
  const { forced, skip, n_tokens: count } = JSON.parse(body);
  asked.push({ forced, skip, count });
  if (isBroken) return broken();
  const text = eventsOf({ forced, skip, count });
  return new Response(text.join(''), { headers: { 'content-type': 'text/event-stream' } });
};

/** The generated text on an empty page, and what it has said. */
function shown() {
  blank();
  const [said, chosen] = [[], []];
  let state = {
    ...FRAME,
    generate_temperature: 1,
    generate_top_k: 0,
    generate_top_p: 1,
    generate_seed: 0,
    generate_path: [],
    generate_step: null,
  };
  const show = (patch = {}) => {
    state = { ...state, ...patch };
    generation.show({ ...sampleTrace(), card: CARD }, state);
  };
  const generation = createGeneration({
    onState: (patch) => {
      chosen.push(patch);
      show(patch);
    },
    onGoingOn: show,
    onRedraw: () => show(),
    announce: (message) => said.push(message),
  });
  document.body.append(generation.element);
  show();
  return { generation, said, chosen, show, path: () => state.generate_path };
}

test('what was written is announced once, and a text that a link replays never', async () => {
  const { generation, said, show, path } = shown();
  labelled('Step').click();
  await settled(150);
  deepEqual(path(), [0]);
  equal(said.length, 1);
  show({ generate_path: [2, 3, 1] });
  await settled(150);
  equal(generation.state().generation.steps.length, 3);
  equal(said.length, 1);
  labelled('Step').click();
  await settled(150);
  equal(said.length, 2);
  match(said[1], /probability/);
  generation.leave();
});

test('a link whose replay failed is replayed by the button, not written on', async () => {
  const { generation, said, chosen, show, path } = shown();
  isBroken = true;
  show({ generate_path: [2, 3] });
  await settled(150);
  ok(!find('.generation-problem').hidden);
  isBroken = false;
  asked.length = 0;
  labelled('Try again').click();
  const { isReading, isWriting } = generation.state().generation;
  deepEqual([isReading, isWriting], [true, false]);
  await settled(150);
  deepEqual(asked, [{ forced: [2, 3], skip: 0, count: 2 }]);
  deepEqual([path(), all('.is-written').length, said.length], [[2, 3], 2, 0]);
  deepEqual(chosen, [], 'a replay is no step of the history');
  ok(find('.generation-problem').hidden);
  generation.leave();
});
