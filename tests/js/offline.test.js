import { deepEqual, equal, ok, rejects } from 'node:assert/strict';
import { test } from 'node:test';

import { tileElement, tileIn } from '../../static/js/rules/presentation.js';
import { offlineView, openArchive } from '../../static/js/offline.js';
import { nextToken } from '../../static/js/views/next_token/next_token.js';
import { archiveOf, CARD, fileOf, WEIGHTS } from './archive.js';
import { fillTrace, FRAME, sampleTrace } from './sample.js';

const HELD = ['rollout', 'plain'];
const PAGE = {
  holds: ({ analyses }) => analyses.every((name) => HELD.includes(name)),
  leadsTo: (view) => view === 'any',
};
const VIEW = {
  id: 'any',
  fields: { typed: { standard: '' } },
  asks: (_, { what, which, isOther, degree, share, typed }) => ({
    ...(what === 'scores' && { numbers: { analyses: ['scores'] } }),
    ...(which === 'rollout' && { more: { analyses: ['rollout'] } }),
    ...(isOther && { other: { analyses: ['other'] } }),
    ...(degree !== undefined && degree !== 1 && { other: { analyses: ['other'] } }),
    ...(share < 1 && { other: { analyses: ['other'] } }),
    ...(what === 'patching' && typed !== '' && { other: { analyses: ['patching'] } }),
  }),
  controls: (_, { what }) => [
    {
      kind: 'choice',
      name: 'what',
      options: [{ id: 'weights' }, { id: 'scores' }, { id: 'patching' }],
      value: what,
    },
    { kind: 'choice', name: 'which', options: [{ id: 'head' }, { id: 'rollout' }] },
    { kind: 'flag', name: 'words' },
    { kind: 'flag', name: 'isOther' },
    { kind: 'number', name: 'degree', least: 0, most: 5 },
    { kind: 'number', name: 'share', least: 0, most: 1 },
    { kind: 'text', name: 'typed' },
  ],
  figure: () => ({
    title: 'A',
    actions: [
      { label: 'Here', patch: { layer: 1 } },
      { label: 'Why?', patch: { view: 'why' } },
    ],
  }),
};

test('switches that need a server are not offered offline', () => {
  const offered = offlineView(VIEW, PAGE).controls({}, { what: 'weights', which: 'head' });
  deepEqual(
    offered.map(({ name, options }) => [name, options?.map(({ id }) => id)]),
    [
      ['what', ['weights']],
      ['which', ['head', 'rollout']],
      ['words', undefined],
    ],
  );
});

test('only actions that lead to views of the page stay', () => {
  deepEqual(offlineView(VIEW, PAGE).figure({}, {}).actions, [
    { label: 'Here', patch: { layer: 1 } },
  ]);
});

test('a bar of the next tokens does not change the text of a saved page', () => {
  for (const trace of [sampleTrace(), fillTrace()]) {
    const { grid } = offlineView(nextToken, PAGE).figure(trace, FRAME);
    deepEqual([grid.choose, grid.chooseHint, grid.note], [undefined, undefined, undefined]);
    ok(grid.describe(0, 0));
  }
});

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
const ARCHIVE = openArchive(archiveOf(CARD, WHOLE, [[ASK, EXPLAINED]]));

test('the text of the file is the example that its page opens', () => {
  const { models, default: standard } = ARCHIVE.catalogue;
  equal(standard, 'tiny');
  deepEqual(models[0].examples, [{ title: '', text: 'a b', opens: {} }]);
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
  const { isOverview, holds, answer } = openArchive(archiveOf(CARD, whole, []));
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
  const { holds, answer } = openArchive(
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
