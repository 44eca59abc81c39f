import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict';
import { test } from 'node:test';

import { createCalls, openFolder, openText } from '../../../static/js/api/archive.js';
import { tileElement, tileIn } from '../../../static/js/rules/presentation.js';
import { archiveOf, CARD, fileOf, WEIGHTS } from '../archive.js';

const WHOLE = fileOf(
  {
    [WEIGHTS]: { axes: ['head', 'query', 'key'], shape: [2, 1, 2], data: [0, 1, 2, 3] },
    'analyses.rollout.decoder': { axes: ['layer'], shape: [1], data: [7] },
  },
  { analyses: { rollout: {} } },
);
const ASK = { analyses: ['logit_attribution'], logit_difference: { position: 1 } };
const EXPLAINED = fileOf({
  'analyses.logit_attribution.parts': { axes: ['part'], shape: [1], data: [5] },
});
const ARCHIVE = openText(archiveOf(CARD, WHOLE, [[ASK, EXPLAINED]]));

test('the text of the file is the example that its page opens', () => {
  const { models, default: standard } = ARCHIVE.catalogue;
  equal(standard, 'tiny');
  deepEqual(models[0].examples, [{ title: '', text: 'a b', claim: null, opens: {} }]);
});

test('a request is answered from the whole trace, of the heads it asks for', async () => {
  const trace = await ARCHIVE.answer({
    model: 'tiny',
    text: 'a b',
    capture: ['*.self_attention.weights'],
    analyses: ['rollout'],
    layers: [0],
    heads: [1],
  });
  deepEqual([...trace.tensors[WEIGHTS].data], [2, 3]);
  deepEqual(trace.tensors[WEIGHTS].shape, [1, 1, 2]);
  deepEqual([...trace.analyses.rollout.decoder.data], [7]);
  deepEqual(trace.asked, { model: 'tiny', text: 'a b' });
});

test('a recorded request has its own answer', async () => {
  const trace = await ARCHIVE.answer({ model: 'tiny', text: 'a b', capture: [], ...ASK });
  deepEqual([...trace.analyses.logit_attribution.parts.data], [5]);
});

test('whatever the file lacks is refused, by its name', async () => {
  for (const body of [
    { text: 'another' },
    { model: 'other' },
    { capture: ['*.scores'] },
    { capture: ['*.self_attention.*'] },
    { analyses: ['logit_lens'] },
    { edits: [{ kind: 'no_scaling' }] },
    { ...ASK, logit_difference: { position: 0 } },
    { card: 'other' },
  ]) {
    ok(!ARCHIVE.holds(body), JSON.stringify(body));
    await rejects(ARCHIVE.answer(body), { title: 'Not in this file' });
  }
});

test('the maps of a long text answer for the whole and for rows, and for no part of it', async () => {
  const MAP = WEIGHTS.replace('weights', 'mean_map');
  const map = { axes: ['head', 'query_bin', 'key_bin'], shape: [1, 1, 1], data: [0.5] };
  const ENTROPY = WEIGHTS.replace('weights', 'entropy');
  const entropy = { axes: ['head', 'query'], shape: [1, 2], data: [0, 0.7] };
  const analyses = { next_token: {} };
  const whole = fileOf(
    { [MAP]: map, [ENTROPY]: entropy },
    { resolution: 1, tiles: [WEIGHTS], analyses },
  );
  const { isOverview, holds, answer } = openText(archiveOf(CARD, whole, []));
  ok(isOverview);
  const found = await answer({ capture: [], analyses: [], resolution: 1 });
  equal(found.tensors[MAP].data[0], 0.5);
  deepEqual(found.tiles, []);
  const rows = { capture: [ENTROPY], layers: [0], queries: [0] };
  ok(holds(rows));
  ok(holds({ ...rows, analyses: ['next_token'], predictions: { top: 1, following: true } }));
  const parts = [{ tile: {} }, { queries: [0] }, { text: 'another' }];
  for (const part of [...parts, { ...rows, capture: ['*.logsumexp'] }]) ok(!holds(part));
});

test('the part of a map that was looked at is in the file, and no other part', async () => {
  const MAP = WEIGHTS.replace('weights', 'mean_map');
  const map = { axes: ['head', 'query_bin', 'key_bin'], shape: [1, 1, 1], data: [0.5] };
  const part = { axes: ['query_bin', 'key_bin'], shape: [1, 1], data: [0.25] };
  const path = '/api/v1/traces/a1/tile?attention=x&head=0&queries=0:1&keys=1:2&resolution=256';
  const written = tileElement(path, fileOf({ mean_map: part })).replace(/<.*?>/g, '');
  const tile = tileIn({ getElementById: () => ({ textContent: written }) });
  const { holds, answer } = openText(
    archiveOf(CARD, fileOf({ [MAP]: map }, { resolution: 1, tiles: [] }), []),
    tile,
  );
  const place = { attention: 'x', head: 0, queries: '0:1', keys: '1:2' };
  const wanted = { id: 'b2', ...place, resolution: 256 };
  ok(holds({ tile: wanted }));
  ok(!holds({ tile: { ...wanted, head: 1 } }));
  equal((await answer({ tile: wanted })).tensors.mean_map.data[0], 0.25);
  await rejects(answer({ tile: { ...wanted, keys: '0:1' } }), /Not in this file/);
});

const HASH = '#text=a';
globalThis.location ??= { hash: HASH };

const texts = [
  { model: 'tiny', text: 'a cat', target: null, file: 'first' },
  { model: 'tiny', text: 'a dog', target: null, file: 'second' },
];
const catalogue = { default: 'tiny', models: [{ ...CARD, id: 'tiny', examples: ['all of them'] }] };
const index = {
  catalogue,
  texts,
  chapters: { chapters: [{ id: 'mine' }], unavailable: {} },
  files: { '/api/v1/chapters/mine': 'chapter', '/api/v1/experiments/scaling': 'scaling' },
  server: '',
};
const chapter = {
  chapter: { id: 'mine', steps: [] },
  outcomes: [{ opens: { layer: 1 }, answer: { of: 'weight' }, outcome: { right: 3 } }],
};
const scaling = {
  description: { id: 'scaling', parameters: { properties: { width: { default: 1024 } } } },
  runs: [
    { values: {}, start: { experiment: 'scaling' }, frames: [{ a: 1 }, { a: 2 }] },
    { values: { width: 512 }, start: {}, frames: [] },
  ],
};

const WEIGHTS_OF_TEXT = { axes: ['head', 'query', 'key'], shape: [2, 1, 2], data: [0, 1, 2, 3] };
const textFile = (text) => archiveOf(CARD, fileOf({ [WEIGHTS]: WEIGHTS_OF_TEXT }, { text }), []);

/** Return the files of a site, and the names of those that were loaded. */
function filesOf() {
  const asked = [];
  const contents = {
    first: () => textFile('a cat'),
    second: () => textFile('a dog'),
    chapter: () => JSON.stringify(chapter),
    scaling: () => JSON.stringify(scaling),
  };
  const load = async (name) => {
    asked.push(name);
    return new Response(contents[name]());
  };
  return { load, asked };
}

test('a text is answered from its own file, which is loaded once', async () => {
  const { load, asked } = filesOf();
  const folder = openFolder(index, load);
  deepEqual(asked, []);
  const ask = (text) => folder.answer({ model: 'tiny', text, capture: [] });
  equal((await ask('a dog')).text, 'a dog');
  equal((await ask('a cat')).text, 'a cat');
  const { card } = await ask('a dog');
  deepEqual(asked, ['second', 'first']);
  deepEqual(card.examples, ['all of them']);
});

test('a text, a pass or a model that is not there is told with the command and the server', async () => {
  const { load } = filesOf();
  const folder = openFolder({ ...index, server: 'https://example.org/lit' }, load);
  await rejects(folder.answer({ model: 'tiny', text: 'a bird' }), (problem) => {
    match(problem.title, /sentence is not on this site/);
    match(problem.detail, /headlight serve/);
    equal(problem.elsewhere.href, `https://example.org/lit/${HASH}`);
    return true;
  });
  const edits = [{ kind: 'heads_off', layer: 0, heads: [0] }];
  await rejects(folder.answer({ model: 'tiny', text: 'a cat', edits }), /pass is not on this site/);
  await rejects(folder.answer({ model: 'other', text: 'a cat' }), /sentence is not on this site/);
});

test('texts that are asked for at one time do not disturb each other', async () => {
  const { load } = filesOf();
  const folder = openFolder(index, load);
  const ask = (text) => folder.answer({ model: 'tiny', text, capture: [WEIGHTS] });
  const [first, second] = await Promise.all([ask('a cat'), ask('a dog')]);
  deepEqual([first.text, second.text], ['a cat', 'a dog']);
});

test('cards and the names of held analyses need no file', async () => {
  const { load, asked } = filesOf();
  const folder = openFolder(index, load);
  equal((await folder.answer({ card: 'tiny' })).card.id, 'tiny');
  equal(folder.holds({ card: 'none' }), false);
  equal(folder.holds({ capture: [] }), false);
  deepEqual(asked, []);
});

test('chapters and what is right are those of the files', async () => {
  const { load } = filesOf();
  const call = createCalls(index, load);
  const json = async (path, body) => (await call(path, body)).json();
  deepEqual(await json('/api/v1/chapters'), index.chapters);
  deepEqual(await json('/api/v1/chapters/mine'), chapter.chapter);
  const { opens, answer } = chapter.outcomes[0];
  deepEqual(await json('/api/v1/chapters/answer', { opens, answer }), { right: 3 });
  const other = { opens, answer: { of: 'other' } };
  await rejects(call('/api/v1/chapters/answer', other), /not on this site/);
  await rejects(call('/api/v1/chapters/read', { text: '' }), /not on this site/);
});

test('a run of an experiment is sent as the events of a server', async () => {
  const { load } = filesOf();
  const call = createCalls(index, load);
  const path = '/api/v1/experiments/scaling';
  deepEqual(await (await call(path)).json(), scaling.description);
  const events = (await (await call(path, {})).text()).trim().split('\n\n');
  deepEqual(
    events.map((event) => event.split('\n')[0]),
    ['event: start', 'event: frame', 'event: frame', 'event: end'],
  );
  deepEqual(JSON.parse(events[2].split('data: ')[1]), { index: 1, arrays: { a: 2 } });
  await rejects(call(path, { width: 3 }), /which holds 1024 and 512 for width/);
});
