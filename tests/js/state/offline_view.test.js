import { deepEqual, ok } from 'node:assert/strict';
import test from 'node:test';

import { holds, offlineView } from '../../../static/js/state/offline_view.js';

const TRACE = { tensors: { 'a.weights': {} }, analyses: { rollout: { decoder: {} }, empty: {} } };
const VIEW = {
  id: 'any',
  asks: (_, { what, which }) => ({
    ...(what === 'scores' && { numbers: { capture: ['a.scores'] } }),
    ...(which === 'rollout' && { more: { analyses: ['rollout'] } }),
  }),
  controls: (_, { what }) => [
    { kind: 'choice', name: 'what', options: [{ id: 'weights' }, { id: 'scores' }], value: what },
    { kind: 'choice', name: 'which', options: [{ id: 'head' }, { id: 'rollout' }] },
    { kind: 'flag', name: 'words' },
  ],
  figure: () => ({ title: 'A', actions: [{ label: 'Why?', patch: {} }] }),
};

test('a trace holds what was captured and what was computed from it', () => {
  ok(holds({}, TRACE));
  ok(holds({ capture: ['a.weights'], analyses: ['rollout'] }, TRACE));
  ok(!holds({ capture: ['a.weights', 'a.scores'] }, TRACE));
  ok(!holds({ analyses: ['value_weighted'] }, TRACE));
  ok(!holds({ analyses: ['empty'] }, TRACE));
});

test('switches that need a server are not offered offline', () => {
  const [what, which, words] = offlineView(VIEW, TRACE).controls(TRACE, {
    what: 'weights',
    which: 'head',
  });
  deepEqual(what.options, [{ id: 'weights' }]);
  deepEqual(which.options, [{ id: 'head' }, { id: 'rollout' }]);
  deepEqual(words, { kind: 'flag', name: 'words' });
});

test('actions that lead to other views are removed', () => {
  deepEqual(offlineView(VIEW, TRACE).figure(TRACE, {}), { title: 'A', actions: [] });
});
