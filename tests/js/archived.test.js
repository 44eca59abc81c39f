import { deepEqual, ok } from 'node:assert/strict';
import { test } from 'node:test';

import { offlineView } from '../../static/js/archived.js';
import { nextToken } from '../../static/js/views/next_token/next_token.js';
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
