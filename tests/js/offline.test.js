import { deepEqual } from 'node:assert/strict';
import test from 'node:test';

import { offlineView } from '../../static/js/offline.js';

const HELD = ['rollout', 'plain'];
const PAGE = {
  holds: ({ analyses }) => analyses.every((name) => HELD.includes(name)),
  leadsTo: (view) => view === 'any',
};
const VIEW = {
  id: 'any',
  fields: { typed: { standard: '' } },
  asks: (_, { what, which, isOther, degree, typed }) => ({
    ...(what === 'scores' && { numbers: { analyses: ['scores'] } }),
    ...(which === 'rollout' && { more: { analyses: ['rollout'] } }),
    ...(isOther && { other: { analyses: ['other'] } }),
    ...(degree !== undefined && degree !== 1 && { other: { analyses: ['other'] } }),
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
    { kind: 'number', name: 'degree', most: 5 },
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
