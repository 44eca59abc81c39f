/** The generated text on the page: its buttons, chips and status, over a stream of tokens. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { all, blank, find, labelled, recorder, settled, texts } from '../browser.js';
import {
  chosenStep,
  createGeneration,
  followedSteps,
  isNatural,
  isWritable,
  rowOfStep,
  samplingOf,
  subjectOf,
  tokensWith,
  whyOver,
  writtenInWords,
} from '../../../static/js/ui/generation.js';
import { css, sequential } from '../../../static/js/plot/colour.js';
import { fillTrace, FRAME, pairTrace, sampleTrace, TOKENS } from '../sample.js';
import { broken, eventsOf, stepOf, stepsOf } from '../views/generate/sample.js';

const CARD = { kind: 'decoder', max_tokens: 12, positional: 'sinusoidal' };
const trace = () => ({ ...sampleTrace(), card: CARD });

test('a model writes on unless it fills, rates or translates', () => {
  deepEqual([trace(), fillTrace(), pairTrace()].map(isWritable), [true, false, false]);
});

test('what is asked for leaves the server’s own choices out', () => {
  deepEqual(samplingOf(0.5, 0, 1), { temperature: 0.5 });
  deepEqual(samplingOf(1, 2.7, 0.9), { temperature: 1, top_k: 2, top_p: 0.9 });
  const state = {
    generate_temperature: 1,
    generate_top_k: 0,
    generate_top_p: 1,
    generate_seed: 3.6,
  };
  const subject = subjectOf(trace(), state);
  deepEqual([subject.model, subject.sampling], ['tiny', { temperature: 1, seed: 3 }]);
  ok(isNatural(subject));
  for (const sampling of [
    { temperature: 0.5 },
    { temperature: 1, top_k: 1 },
    { temperature: 1, top_p: 0.5 },
  ])
    ok(!isNatural({ sampling }), JSON.stringify(sampling));
});

test('a search is asked for as it is set, and the best of several by a model that can rate them', () => {
  const state = { generate_temperature: 1, generate_top_k: 0, generate_top_p: 1, generate_seed: 0 };
  const card = { ...CARD, vocab_size: 7 };
  const of = (more) => subjectOf({ ...trace(), card }, { ...state, generate_width: 4, ...more });
  deepEqual(of({}).search, {});
  deepEqual(of({ generate_stop: '.', generate_search: 'beams' }).search, { stop: ['.'], beams: 4 });
  const cards = [2, 7].map((vocab_size) => ({
    id: `rater-${vocab_size}`,
    analyses: ['reward'],
    vocab_size,
  }));
  deepEqual(of({ generate_search: 'best', cards }).search, { best_of: 4, reward: 'rater-7' });
  deepEqual(of({ generate_search: 'best', cards: cards.slice(0, 1) }).search, {});
  deepEqual(of({ generate_penalty: 1.2 }).sampling.repetition_penalty, 1.2);
  ok(!isNatural(of({ generate_penalty: 1.2 })));
  ok(isNatural(of({ generate_penalty: 1 })));
});

test('steps follow the tokens of the text', () => {
  const steps = stepsOf([1, 4]);
  const tokens = tokensWith(trace(), steps);
  equal(tokens.length, TOKENS.length + 2);
  deepEqual(
    tokens.slice(-2).map(({ id, is_special, part }) => [id, is_special, part]),
    [
      [1, false, null],
      [4, true, null],
    ],
  );
  deepEqual(
    [
      chosenStep({ generate_step: 0 }, steps),
      chosenStep({ generate_step: 2 }, steps),
      chosenStep({ generate_step: 1 }, steps),
      chosenStep({ generate_step: null }, []),
      chosenStep({ generate_step: null }, steps),
    ],
    [0, 1, 1, -1, 1],
  );
  equal(rowOfStep(steps[0], 1, 1).length, 5);
  equal(rowOfStep(steps[0], 7, 0), null);
  equal(rowOfStep(steps[0], 0, 7), null);
  deepEqual(followedSteps({ steps, isWriting: true }, { generate_path: [1] }), steps.slice(0, 1));
  equal(followedSteps({ steps, isWriting: false }, { generate_path: [1] }), steps);
});

test('a text is over at its end token, at the model’s limit or at the server’s', () => {
  match(whyOver(trace(), stepsOf([4]), 9), /end token/);
  match(whyOver(trace(), stepsOf(Array(7).fill(0)), 99), /12 tokens/);
  equal(whyOver(trace(), stepsOf(Array(6).fill(0)), 99), '');
  match(whyOver(trace(), stepsOf([0, 0]), 2), /2 tokens/);
  equal(whyOver(trace(), stepsOf([0, 0]), 3), '');
  const sentence = stepsOf([0, 3]).map((step, at) => ({ ...step, text: ['so', 'it.'][at] }));
  match(whyOver(trace(), sentence, 99, 'oit'), /“oit” is written/);
  equal(whyOver(trace(), sentence, 99, '!'), '');
  equal(whyOver({ ...trace(), card: undefined }, stepsOf(Array(20).fill(0)), 99), '');
  const special = { ...stepOf(0, 4), text: '<s>' };
  equal(whyOver(trace(), [special], 9), '');
  equal(whyOver(trace(), [{ ...special, text: '</s>', is_special: false }], 9), '');
});

/** Answers of the server: each request waits until its events are let go. */
const asked = [];
/** The request that is being answered: its signal, and a way to let an event come. */
let running;
let isBroken = false;
let isHeld = false;
globalThis.fetch = async (_, { body, signal }) => {
  const { forced, skip, n_tokens: count } = JSON.parse(body);
  asked.push({ forced, skip, count });
  if (isBroken) return broken();
  const text = eventsOf({ forced, skip, count });
  const stream = new ReadableStream({
    async start(controller) {
      running = {
        signal,
        send: (event, data) =>
          controller.enqueue(
            new TextEncoder().encode(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`),
          ),
      };
      signal.addEventListener('abort', () =>
        controller.error(new DOMException('gone', 'AbortError')),
      );
      for (const part of isHeld ? text.slice(0, 2) : text)
        controller.enqueue(new TextEncoder().encode(part));
      if (!isHeld) controller.close();
    },
  });
  return new Response(stream, { headers: { 'content-type': 'text/event-stream' } });
};

const { calls, handlers, take } = recorder('announce');
let state, generation;
const redraw = () => generation.show(trace(), state);
beforeEach(() => {
  blank();
  take();
  asked.length = 0;
  isBroken = isHeld = false;
  const set = (name) => (patch) => {
    calls.push([name, patch]);
    state = { ...state, ...patch };
    redraw();
  };
  state = {
    ...FRAME,
    generate_temperature: 1,
    generate_top_k: 0,
    generate_top_p: 1,
    generate_seed: 0,
    generate_path: [],
    generate_step: null,
  };
  generation?.leave();
  generation = createGeneration({
    ...handlers,
    onState: set('onState'),
    onGoingOn: set('onGoingOn'),
    onRedraw: () => {
      calls.push(['onRedraw']);
      redraw();
    },
  });
  document.body.append(generation.element);
  redraw();
});
const isOn = (label) => labelled(label).getAttribute('aria-disabled') === 'false';
const status = () => find('.generation-status').textContent;
const arrived = () => settled(700);
/** Milliseconds between two tokens, at least. */
const PACE = 80;

test('before anything is written, only writing is offered', () => {
  deepEqual(['Run', 'Step', 'Step back', 'Start over'].map(isOn), [true, true, false, false]);
  equal(all('.chip').length, TOKENS.length);
  equal(all('.is-written').length, 0);
  equal(status(), '');
  ok(find('.generation-problem').hidden);
  labelled('Start over').click();
  equal(calls.length, 0);
  generation.show(fillTrace(), state);
  ok(generation.element.hidden);
});

test('a step writes one token, which is announced and can be taken back', async () => {
  labelled('Step').click();
  await arrived();
  deepEqual(asked, [{ forced: [], skip: 0, count: 1 }]);
  deepEqual(state.generate_path, [0]);
  equal(all('.is-written').length, 1);
  ok(status().includes('1'));
  match(calls.filter(([name]) => name === 'announce').at(-1)[1], /ran.*probability.*rank 1/);
  deepEqual(['Run', 'Step', 'Step back', 'Start over'].map(isOn), [true, true, true, true]);
  equal(all('[aria-selected="true"]').length, 1);
  equal(all('.chip').at(-1).getAttribute('aria-selected'), 'true');
  ok(all('.chip')[0].hasAttribute('data-tinted') && all('.is-query').length === 1);
  labelled('Step').click();
  await arrived();
  deepEqual(state.generate_path, [0, 1]);
  all('.chip')[0].click();
  all('.chip')[5].click();
  deepEqual(calls.at(-1), ['onState', { generate_step: 0 }]);
  equal(all('.chip')[5].getAttribute('aria-selected'), 'true');
  deepEqual(generation.state().generation.steps.length, 2);
  labelled('Step back').click();
  deepEqual([state.generate_path, state.generate_step], [[0], null]);
  labelled('Start over').click();
  deepEqual(state.generate_path, []);
  await arrived();
  equal(all('.is-written').length, 0);
});

test('a run writes up to the end, and its first token is a step of the history', async () => {
  labelled('Run').click();
  equal(labelled('Stop').textContent, 'Stop');
  ok(!isOn('Step'));
  await arrived();
  await settled(1800);
  equal(state.generate_path.length, 12);
  equal(calls.filter(([name]) => name === 'onState').length, 1);
  ok(calls.some(([name]) => name === 'onGoingOn'));
  equal(calls.filter(([name]) => name === 'announce').length, 1);
  match(calls.findLast(([name]) => name === 'announce')[1], /^12 tokens.*End of text/);
  deepEqual(['Run', 'Step', 'Step back'].map(isOn), [false, false, true]);
  labelled('Run').click();
  equal(asked.length, 1);
});

test('a run that is stopped keeps what it wrote', async () => {
  isHeld = true;
  labelled('Run').click();
  await settled(100);
  labelled('Stop').click();
  await arrived();
  deepEqual(state.generate_path, [0]);
  ok(labelled('Run') && isOn('Step'));
});

test('the range of colours ends at the greatest weight, if that is asked for', async () => {
  labelled('Step').click();
  await arrived();
  const tint = () => all('.chip')[0].style.getPropertyValue('--tint');
  const strongest = css(sequential('light'), 255);
  ok(tint() !== strongest);
  state = { ...state, range: 'head' };
  redraw();
  equal(tint(), strongest);
});

test('a link is replayed', async () => {
  state = { ...state, generate_path: [2, 3], generate_step: 0 };
  redraw();
  match(status(), /2/);
  await arrived();
  deepEqual(
    asked.map(({ forced }) => forced),
    [[2, 3]],
  );
  equal(all('.is-written').length, 2);
  equal(calls.filter(([name]) => name === 'announce').length, 0);
  equal(all('.chip')[5].getAttribute('aria-selected'), 'true');
});

test('a problem is told, and asked again by a button', async () => {
  isBroken = true;
  labelled('Step').click();
  await arrived();
  ok(!find('.generation-problem').hidden);
  match(find('.generation-problem').textContent, /Broken.*[Nn]o more/);
  const again = labelled('Try again');
  const words = find('.generation-problem p');
  redraw();
  equal(find('.generation-problem p'), words, 'an alert that is made again is read out again');
  equal(labelled('Try again'), again);
  isBroken = false;
  again.click();
  await arrived();
  deepEqual(state.generate_path, [0]);
  ok(find('.generation-problem').hidden);
  equal(labelled('Try again'), undefined);
  deepEqual(texts('.generation-problem p'), []);
});

test('a link whose replay failed is replayed by the button, not written on', async () => {
  isBroken = true;
  state = { ...state, generate_path: [2, 3] };
  redraw();
  await settled(150);
  ok(!find('.generation-problem').hidden);
  isBroken = false;
  asked.length = 0;
  labelled('Try again').click();
  const { isReading, isWriting } = generation.state().generation;
  deepEqual([isReading, isWriting], [true, false]);
  await settled(150);
  deepEqual(asked, [{ forced: [2, 3], skip: 0, count: 2 }]);
  deepEqual([state.generate_path, all('.is-written').length], [[2, 3], 2]);
  const told = calls.map(([name]) => name);
  ok(!told.includes('announce') && !told.includes('onState'), 'a replay is no step of the history');
  ok(find('.generation-problem').hidden);
});

test('what was written is told with its number, and nothing if nothing was', () => {
  const writing = { steps: stepsOf([0, 1]), most: 9 };
  match(writtenInWords(trace(), {}, writing, 1), /written, probability .*, rank /);
  match(writtenInWords(trace(), {}, { ...writing, most: 2 }, 0), /^2 tokens written. End of text/);
  equal(writtenInWords(trace(), {}, writing, 2), '');
});

test('what is written while the view is left is given up', async () => {
  isHeld = true;
  labelled('Run').click();
  await settled(50);
  equal(running.signal.aborted, false);
  generation.leave();
  equal(running.signal.aborted, true);
  take();
  await settled(50);
  deepEqual(take(), []);
});

test('a model that does not write gives up what was being written', async () => {
  isHeld = true;
  labelled('Run').click();
  await settled(50);
  generation.show(fillTrace(), state);
  equal(running.signal.aborted, true);
});

test('the page follows a run at a pace that its own drawings can keep', async (context) => {
  let [now, took] = [0, 0];
  context.mock.timers.enable({ apis: ['setTimeout'] });
  context.mock.method(performance, 'now', () => (now += took));
  const flushed = async () => {
    for (let turn = 0; turn < 8; turn += 1) await new Promise(setImmediate);
  };
  const follows = () =>
    take()
      .map(([name]) => name)
      .filter((name) => name.startsWith('on'));
  isHeld = true;
  labelled('Run').click();
  await flushed();
  /** Lets a token come, and says after how long the page follows; it draws for so many milliseconds. */
  let index = 0;
  const paceOf = async (milliseconds) => {
    context.mock.timers.tick(PACE);
    await flushed();
    took = milliseconds;
    index += 1;
    running.send('token', stepOf(index, index % 4));
    await flushed();
    let waited = 0;
    for (; calls.length === 0 && waited < 5000; waited += 50) context.mock.timers.tick(50);
    deepEqual(follows(), ['onGoingOn']);
    equal(state.generate_path.length, index + 1);
    return waited;
  };
  context.mock.timers.tick(1);
  deepEqual(follows(), ['onState']);
  const paces = [];
  for (const milliseconds of [200, 5000, 0]) paces.push(await paceOf(milliseconds));
  deepEqual(paces, [500, 800, 2000]);
  generation.leave();
});
