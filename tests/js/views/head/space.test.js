/** The vectors of a head as points. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { head } from '../../../../static/js/views/head/head.js';
import { FRAME, sampleTrace } from '../../sample.js';
import { assertContract } from '../view_contract.js';

const point = (word, tag, x, y, more = {}) => ({
  ...{ sentence: 0, token: 2, side: 'key', word, tag, x, y, read: '', score: 0, mean_score: 0 },
  ...more,
});
const SPACE = {
  ...{ sentences: ['He said “boys”.'], targets: [''], n_vectors: 1234 },
  ...{ shares: [0.4, 0.2], controls: [0.1, 0.05], by_tag: 0.3, by_tag_control: 0.01 },
  points: [
    ...[3, 3.01].map((x) => point(' boys', 'NOUN', x, 2)),
    point('“', 'PUNCT', -2, -1),
    point(' he', 'PRON', 0, 0.5, {
      side: 'query',
      token: 3,
      read: ' boys',
      score: 5,
      mean_score: 1,
      ...{ distance: 2.5, mean_distance: 4 },
    }),
  ],
};
const stateOf = (changes) => ({
  ...{ ...FRAME, layer: 0, head: 1, chart: 'space', head_space: 'reads' },
  answers: { space: { trace: { atlas: SPACE } } },
  ...changes,
});

test('a space is asked for once it is chosen', () => {
  const { space } = head.asks({ ...sampleTrace(), card: { analyses: [] } }, stateOf({}));
  const attention = 'decoder.layers.0.self_attention';
  deepEqual(space.atlas.query, { attention, head: 1, kind: 'reads' });
  const ids = (state) => head.panels(sampleTrace(), state).map(({ id }) => id);
  deepEqual(ids(stateOf({ head_space: '' })), ids(stateOf({})).slice(1));
});

test('tokens are points with their words, kinds and controls, and open their sentence', () => {
  const figure = head.figure(sampleTrace(), stateOf({}));
  assertContract([figure], FRAME.width);
  const [dots, words] = figure.data;
  deepEqual(dots.x, [3, 3.01, -2, 0]);
  equal(new Set(dots.marker.color).size, 3);
  deepEqual(dots.marker.symbol, ['square', 'square', 'square', 'circle']);
  deepEqual([...words.text].sort(), ['boys', 'he', '“']);
  match(Object.fromEntries(figure.facts)['Variance across'], /40.%.*shuffled 10/);
  match(
    figure.grid.describe(3, 0),
    /“.he.”, pronoun, query: scores “.boys.” highest, 5\.0, 2\.5 away.*is 1\.0, 4\.0 away\. He said “boys”/u,
  );
  const opened = figure.grid.choose(3, 0);
  deepEqual([opened.text, opened.query, opened.view], ['He said “boys”.', 3, 'attention']);
  equal(figure.grid.choose(0, 0).key, 2);
  const values = head.figure(sampleTrace(), stateOf({ head_space: 'values' }));
  ok(new Set(values.data[0].marker.symbol).size > 2);
});
