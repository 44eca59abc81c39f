/** What is read, and when: over a server that answers by hand, without a page. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { Problem } from '../../../static/js/api/calls.js';
import { Reader } from '../../../static/js/api/reader.js';
import { fieldsOf } from '../../../static/js/state/state.js';
import { Store } from '../../../static/js/state/store.js';
import { sampleTrace } from '../sample.js';

const EXAMPLE = { title: 'One', text: 'an example', opens: {} };
const CARD = {
  id: 'tiny',
  title: 'Tiny',
  kind: 'decoder',
  state: 'loaded',
  max_tokens: 8,
  n_layers: 4,
  examples: [EXAMPLE],
  sites: [],
};
const FOREIGN = {
  ...CARD,
  id: 'foreign',
  architecture: 'Other',
  state: 'not_loaded',
  sites: undefined,
};
const PAIR = { ...CARD, id: 'pair', kind: 'encoder-decoder' };
const CATALOGUE = { default: 'tiny', models: [CARD, FOREIGN, PAIR] };
const FIELDS = fieldsOf([]);
const VIEWS = ['attention', 'long'];

const GONE = () => new Problem({ title: 'The server did not respond' });
const WRONG = () => new Problem({ title: 'Wrong', status: 422 });
const tooLong = (kind, actual) =>
  Object.assign(
    new Problem({ title: 'Too long', detail: 'Too long; cut it', status: 422, actual }),
    { type: `urn:headlight:problem:${kind}`, limit: 8 },
  );

const settled = () =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });

/** A reader over a state, the calls that wait for their answers, and what the page was told. */
function open(initial = {}) {
  const calls = [];
  const told = [];
  const steps = [];
  /** Waits for an answer, unless there is one for all of a kind. */
  const always = { fetchModels: async () => CATALOGUE, readyModel: async (card) => card };
  const from = Object.fromEntries(
    Object.entries({ fetchModels: 0, readyModel: 1, fetchAnswer: 2, fittingText: 2 }).map(
      ([name, at]) => [
        name,
        (...given) => {
          if (always[name]) return always[name](...given);
          const signal = given[at];
          const [, body = given[0]] = given;
          return new Promise((resolve, reject) => {
            const abort = () => reject(new DOMException('stopped', 'AbortError'));
            if (signal.aborted) abort();
            signal.addEventListener('abort', abort);
            calls.push({ name, body, signal, resolve, reject, given });
          });
        },
      ],
    ),
  );
  const retrier = {
    attempts: [],
    after(problem) {
      retrier.attempts.push(problem);
      return problem.status === 0;
    },
    stop: () => steps.push('stop'),
  };
  const store = new Store({
    fields: FIELDS,
    views: VIEWS,
    address: {
      read: () => ({
        text: 'a',
        target: null,
        words: '',
        model: '',
        view: 'attention',
        ...initial,
      }),
      write() {},
      rewrite() {},
    },
    traceNow: () => reader.trace,
    onChange: ({ isOtherText }) => isOtherText && reader.read(),
  });
  const reader = new Reader({
    store,
    retrier,
    asks: {
      whole: () => ({ capture: ['weights'] }),
      overview: () => ({ capture: [], resolution: 64 }),
    },
    told: Object.fromEntries(
      [
        ...['onStart', 'onCatalogue', 'onModel', 'onReading', 'onLoading', 'onProgress', 'onTrace'],
        ...['onEmpty', 'onDrop', 'onProblem', 'onBeginning', 'onAnswer'],
      ].map((name) => [name, (...given) => told.push([name, ...given])]),
    ),
    from,
  });
  return {
    always,
    calls,
    reader,
    retrier,
    steps,
    store,
    /** What the page was told under a name. */
    told: (name) => told.filter(([each]) => each === name).map(([, ...given]) => given),
    /** The requests of whole traces. */
    traces: () => calls.filter(({ body }) => body.text !== undefined),
    /** Answers the latest request of a trace. */
    async answer(make = sampleTrace) {
      await settled();
      const call = calls.findLast(({ name, body }) => name === 'fetchAnswer' && body.text);
      const answer = make();
      if (answer instanceof Error) call.reject(answer);
      else call.resolve({ ...answer, text: call.body.text });
      await settled();
    },
  };
}

/** A page whose first text was read. */
async function opened(initial) {
  const page = open(initial);
  page.reader.start();
  await page.answer();
  return page;
}

test('the models are fetched, then the trace of the text', async () => {
  const { reader, steps, store, told, traces, answer } = open({ view: 'nowhere' });
  reader.start();
  deepEqual(told('onReading'), [[true]]);
  await answer();
  deepEqual(told('onCatalogue'), [[CATALOGUE]]);
  deepEqual(
    traces().map(({ body }) => body),
    [{ model: 'tiny', text: 'a', capture: ['weights'] }],
  );
  equal(reader.trace.text, 'a');
  deepEqual(reader.trace.asked, { model: 'tiny', text: 'a' });
  deepEqual(told('onTrace'), [[reader.trace]]);
  deepEqual(told('onReading').at(-1), [false]);
  deepEqual([reader.isBehind, reader.card], [false, CARD]);
  deepEqual(told('onModel').at(-1), [CARD, true]);
  equal(told('onStart').length, 2, 'for the models, and for the text');
  deepEqual(steps, ['stop'], 'no further attempt is due');
  equal(store.state.view, 'attention', 'the state fits the trace');
});

test('a page without a text reads the first example', async () => {
  const { traces } = await opened({ text: null });
  equal(traces()[0].body.text, 'an example');
});

test('a target is asked for where there is one', async () => {
  const own = await opened({ model: 'pair', target: 'b' });
  deepEqual([own.traces()[0].body.target, own.reader.trace.asked.target], ['b', 'b']);
  const none = await opened({ target: 'b' });
  ok(!('target' in none.traces()[0].body), 'a decoder has none');
});

test('another text cancels the request before, whose answer comes too late', async () => {
  const { answer, reader, store, told, traces } = open();
  reader.start();
  await settled();
  store.change({ text: 'b' });
  await settled();
  const [first, second] = traces();
  ok(first.signal.aborted && !second.signal.aborted);
  first.resolve(sampleTrace());
  await settled();
  equal(reader.trace, null);
  equal(told('onProblem').length, 0, 'a cancelled request is no problem');
  await answer();
  equal(reader.trace.text, 'b');
  equal(told('onTrace').length, 1);
});

test('an answer that comes after its request was cancelled is stale', async () => {
  for (const name of ['fetchAnswer', 'readyModel', 'fetchModels']) {
    const { always, reader, told } = open();
    const waiting = [];
    always[name] = () =>
      new Promise((resolve, reject) => {
        waiting.push({ resolve, reject });
      });
    reader.start();
    await settled();
    reader.abandon();
    waiting[0].resolve(
      { fetchAnswer: sampleTrace(), readyModel: FOREIGN, fetchModels: CATALOGUE }[name],
    );
    await settled();
    deepEqual([reader.trace, told('onTrace')], [null, []], name);
    ok(reader.card !== FOREIGN, 'a stale card is not in use');
    if (name === 'fetchModels') equal(told('onCatalogue').length, 0);
    const failing = open();
    failing.always[name] = always[name];
    failing.reader.start();
    await settled();
    failing.reader.abandon();
    waiting[1].reject(GONE());
    await settled();
    equal(failing.told('onProblem').length, 0, name);
  }
});

test('typing cancels the request and stops the next attempt', async () => {
  const { reader, retrier, steps, traces } = open();
  reader.start();
  await settled();
  reader.abandon();
  ok(traces()[0].signal.aborted);
  deepEqual(steps, ['stop']);
  equal(retrier.attempts.length, 0);
});

test('after a failed connection the trace of the earlier text stays, and is behind', async () => {
  const { answer, reader, retrier, store, told } = await opened();
  store.change({ text: 'b' });
  await answer(GONE);
  const [[problem, goesOn, isBehind]] = told('onProblem');
  match(problem.title, /respond/);
  deepEqual([goesOn, isBehind], [true, true]);
  deepEqual([reader.trace.text, reader.isBehind], ['a', true]);
  equal(told('onDrop').length, 0);
  deepEqual(told('onReading').at(-1), [false]);
  equal(retrier.attempts.length, 1);
  reader.start(); // the retrier's next attempt
  await answer();
  deepEqual([reader.trace.text, reader.isBehind], ['b', false]);
});

test('a text that is refused has no trace', async () => {
  const { answer, calls, reader, store, told } = await opened();
  reader.answersTo({ lens: { analyses: ['logit_lens'] } });
  const asked = calls.findLast(({ body }) => body.analyses);
  store.change({ text: 'b' });
  await answer(WRONG);
  ok(asked.signal.aborted, 'nor have the views answers');
  deepEqual(told('onReading').at(-1), [false]);
  const [[, goesOn, isBehind]] = told('onProblem');
  deepEqual([goesOn, isBehind], [false, false]);
  deepEqual([reader.trace, reader.isBehind], [null, true]);
  equal(told('onDrop').length, 1);
});

test('a first request that fails drops nothing that was shown, and is repeated', async () => {
  const { always, reader, told, answer } = open();
  always.fetchModels = async () => {
    throw GONE();
  };
  reader.start();
  await settled();
  const [[, goesOn, isBehind]] = told('onProblem');
  deepEqual([goesOn, isBehind], [true, false]);
  always.fetchModels = async () => CATALOGUE;
  reader.read(); // without models it starts from there
  await answer();
  equal(reader.trace.text, 'a');
});

test('a text is read once, unless its reading was stopped or failed', async () => {
  const { answer, reader, store, traces } = await opened();
  reader.readIfStopped();
  await settled();
  equal(traces().length, 1);
  reader.abandon();
  reader.readIfStopped();
  await answer();
  equal(traces().length, 2);
  store.change({ text: 'b' });
  await answer(GONE);
  reader.readIfStopped();
  await settled();
  equal(traces().length, 4);
});

test('a cancelled reading leaves the trace before, and is told from cancelled answers', async () => {
  const { reader, store, told, traces } = await opened();
  store.change({ text: 'b' });
  await settled();
  equal(reader.cancel(), true);
  ok(traces()[1].signal.aborted);
  deepEqual(told('onReading').at(-1), [false]);
  equal(reader.trace.text, 'a');
  reader.answersTo({ lens: { analyses: ['logit_lens'] } });
  equal(reader.cancel(), false);
  match(reader.answersTo({ lens: { analyses: ['logit_lens'] } }).lens.problem.title, /Cancelled/);
});

test('an unknown model is a problem whose way out is the default model', async () => {
  const { reader, told, traces } = open({ model: 'nothing' });
  reader.start();
  await settled();
  const [[problem]] = told('onProblem');
  match(problem.detail, /nothing/);
  equal(problem.offer.patch.model, '');
  deepEqual(told('onModel'), [[CARD, false]]);
  equal(traces().length, 0);
});

test('a server without models is a problem', async () => {
  const { always, reader, told } = open();
  always.fetchModels = async () => ({ default: '', models: [] });
  reader.start();
  await settled();
  equal(told('onProblem').length, 1);
});

test('an empty text is nothing to read, and cancels what was read', async () => {
  const { reader, steps, store, told, traces } = await opened();
  steps.length = 0;
  store.change({ text: '  ' });
  await settled();
  deepEqual([told('onEmpty').length, told('onDrop').length, reader.trace], [1, 1, null]);
  equal(traces().length, 1);
  deepEqual(steps, ['stop']);
});

test('white space is a text of a foreign model', async () => {
  const { reader, answer, told } = open({ model: 'foreign', text: ' ' });
  reader.start();
  await answer();
  deepEqual([told('onEmpty').length, told('onTrace').length], [0, 1]);
});

test('a foreign model is loaded before it reads, and the models are fetched once more', async () => {
  const { always, answer, reader, told } = open({ model: 'foreign' });
  const full = { ...FOREIGN, sites: [], state: 'loaded' };
  always.readyModel = async (card, _, onProgress) => {
    onProgress(card);
    return full;
  };
  reader.start();
  await answer();
  deepEqual(told('onLoading'), [[FOREIGN]]);
  equal(told('onCatalogue').length, 2);
  deepEqual(
    told('onModel').map(([card]) => card),
    [FOREIGN, full],
  );
  equal(reader.fullCard(), full);
});

test('a foreign model that is loaded already is not looked up again', async () => {
  const { always, answer, reader, told } = open({ model: 'foreign' });
  const models = CATALOGUE.models.map((card) => ({ ...card, state: 'loaded' }));
  always.fetchModels = async () => ({ ...CATALOGUE, models });
  always.readyModel = async (card) => ({ ...card, sites: [] });
  reader.start();
  await answer();
  equal(told('onCatalogue').length, 1);
});

test('the full card of a model whose card is short is fetched once it is wanted', async () => {
  const { calls, reader, told } = await opened({ model: 'foreign' });
  equal(reader.fullCard(), reader.card);
  const full = { ...FOREIGN, sites: [] };
  ok(
    !calls.some(({ body }) => body?.card === 'foreign'),
    'it is not asked for before it is wanted',
  );
  reader.wantCard();
  calls.find(({ body }) => body.card === 'foreign').resolve({ card: full });
  await settled();
  ok(told('onAnswer').length > 0);
  equal(reader.fullCard(), full);
});

test('a text that is too long for the other views has an overview', async () => {
  const long = { ...CARD, longest_text: 1000 };
  const { always, answer, calls, reader, store, told } = open();
  always.fetchModels = async () => ({ default: 'tiny', models: [long] });
  reader.start();
  await answer(() => tooLong('too-many-tokens', 20));
  const [[problem]] = told('onProblem');
  deepEqual(problem.further.patch, { view: 'long' });
  store.change({ view: 'long' });
  reader.read();
  await answer(() => tooLong('too-many-tokens', 20));
  deepEqual(calls.at(-1).body, { model: 'tiny', text: 'a', capture: [], resolution: 64 });
  await answer();
  equal(reader.trace.text, 'a');
});

test('a file that is too long for the other views opens the overview', async () => {
  const { always, answer, reader, store } = open();
  always.fetchModels = async () => ({ default: 'tiny', models: [{ ...CARD, longest_text: 1000 }] });
  reader.expectFile('a');
  reader.start();
  await answer(() => tooLong('too-many-tokens', 20));
  equal(store.state.view, 'long');
  await answer();
  equal(reader.trace.text, 'a');
});

test('what fits of a text that is too long is offered, and the earlier trace stays', async () => {
  const { answer, calls, store, told } = await opened();
  store.change({ text: 'a long text' });
  await answer(() => tooLong('too-many-tokens', 20));
  equal(told('onProblem')[0][2], true);
  const fitting = calls.find(({ name }) => name === 'fittingText');
  deepEqual(fitting.given[0], { card: CARD, text: 'a long text' });
  fitting.resolve({ text: 'a long', words: 'the first 2 tokens' });
  await settled();
  deepEqual(told('onBeginning'), [[6]]);
  const [problem, goesOn] = told('onProblem').at(-1);
  deepEqual([problem.offer.label, problem.offer.patch.text], ['Read the first 2 tokens', 'a long']);
  equal(problem.offer.patch.query, null);
  equal(goesOn, false);
});

test('what fits of a text that was left is not offered', async () => {
  const { answer, calls, store, told } = await opened();
  store.change({ text: 'a long text' });
  await answer(() => tooLong('too-many-tokens', 20));
  store.change({ text: 'b' });
  calls.find(({ name }) => name === 'fittingText').resolve({ text: 'a', words: '' });
  await settled();
  equal(told('onBeginning').length, 0);
});

test('a problem with a translation of the reader names both texts', async () => {
  const { answer, store, told } = await opened({ model: 'pair', target: 'b' });
  store.change({ target: 'c' });
  await answer(WRONG);
  match(told('onProblem')[0][0].texts, /translation/);
});

test('an answer to a view is of the trace that is shown, and arrives later', async () => {
  const { calls, reader, store, told } = await opened();
  deepEqual(reader.answersTo({ lens: { analyses: ['logit_lens'] } }), {
    lens: { isWaiting: true },
  });
  const asked = calls.findLast(({ body }) => body.analyses);
  deepEqual(asked.body, { model: 'tiny', text: 'a', capture: [], analyses: ['logit_lens'] });
  store.change({ text: 'b' });
  asked.resolve(sampleTrace());
  await settled();
  equal(told('onAnswer').length, 1, 'until the other text arrives, it is that of the shown trace');
  ok(reader.answersTo({ lens: { analyses: ['logit_lens'] } }).lens.trace);
});

test('what a view was refused is requested again once the network is back', async () => {
  const { calls, reader, told } = await opened();
  reader.answersTo({ more: { analyses: ['more'] } });
  const isMore = ({ body }) => body.analyses?.includes('more');
  calls.find(isMore).reject(GONE());
  await settled();
  const before = told('onAnswer').length;
  reader.answersTo({ more: { analyses: ['more'] } });
  equal(calls.filter(isMore).length, 1);
  reader.retry();
  equal(told('onAnswer').length, before + 1);
  reader.answersTo({ more: { analyses: ['more'] } });
  equal(calls.filter(isMore).length, 2);
});

test('a new trace asks again for what was refused', async () => {
  const { answer, calls, reader, store } = await opened();
  const wanted = { lens: { text: 'other', analyses: ['logit_lens'] } };
  reader.answersTo(wanted);
  calls.findLast(({ body }) => body.analyses).reject(WRONG());
  await settled();
  ok(reader.answersTo(wanted).lens.problem);
  store.change({ text: 'b' });
  await answer();
  ok(reader.answersTo(wanted).lens.isWaiting);
});

test('of a text with too many weights one layer is read, and another when it is wanted', async () => {
  const { reader, calls } = open({ text: 'long', layer: 1, head: 0 });
  const site = (layer) => `decoder.layers.${layer}.self_attention.weights`;
  const answer = (layer) => ({
    ...sampleTrace('sentence'),
    card: CARD,
    tensors: { [site(layer)]: { axes: [], shape: [1, 1, 1], data: [1], scale: 1 } },
  });
  reader.start();
  await settled();
  calls.at(-1).reject(tooLong('too-many-cells', 9e6));
  await settled();
  equal(calls.at(-1).body.capture[0], site(1));
  calls.at(-1).resolve(answer(1));
  await settled();
  equal(reader.trace.tensors[site(3)].data.length, 0);
  equal(reader.wantLayer(3).isWaiting, true);
  deepEqual(calls.at(-1).body.capture, [site(3)]);
  calls.at(-1).resolve(answer(3));
  await settled();
  deepEqual(
    [1, 3].map((layer) => reader.trace.tensors[site(layer)].data.length),
    [1, 1],
  );
});
