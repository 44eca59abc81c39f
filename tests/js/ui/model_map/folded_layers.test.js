/** The heads of a folded layer, as stripes of its part on the map. */

import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { blank, find, layOut, match as matchMedia } from '../../browser.js';
import { createModelMap } from '../../../../static/js/ui/model_map/model_map.js';
import { FRAME, sampleTrace, tensor } from '../../sample.js';

const CARD = {
  id: 'tiny',
  kind: 'decoder',
  n_layers: 40,
  n_heads: 2,
  positional: 'none',
  moe: null,
};

/** The colours of the stripes of layer 5, and where each begins and ends. */
function stripesOf(written) {
  blank('<div id="map"></div><p id="caption"></p>');
  matchMedia('(max-width: 60rem)', false);
  const map = createModelMap(find('#map'), find('#caption'), { onChoose: () => {} });
  layOut(find('.map-body'), { width: 260 });
  const trace = { ...sampleTrace(), card: CARD };
  if (written)
    trace.analyses.head_norms = {
      'decoder.layers.5.self_attention': tensor(
        ['head', 'query'],
        [2, 5],
        (at) => written[at < 5 ? 0 : 1],
      ),
    };
  map.show(trace, CARD, {
    state: { ...FRAME, layer: 0 },
    kind: 'head',
    query: 2,
    effects: null,
    viewsOf: (part) => [part.kind],
  });
  const bars = find('[data-part="layer decoder 5"]').style.getPropertyValue('--bars');
  return [...bars.matchAll(/(rgb\([^)]*\)) ([\d.]+)% ([\d.]+)%/g)].map(([, ...each]) => each);
}

test('a head that writes more has a stronger stripe, each as wide as the others', () => {
  const [first, second] = stripesOf([4, 1]);
  deepEqual(
    [first.slice(1), second.slice(1)],
    [
      ['0', '50'],
      ['50', '100'],
    ],
  );
  ok(first[0] !== second[0]);
  const [weak, strong] = stripesOf([1, 4]);
  deepEqual([weak[0], strong[0]], [second[0], first[0]]);
});

test('heads that nothing is known of have the palest stripes', () => {
  const [first, second] = stripesOf(null);
  equal(first[0], second[0]);
  const [none, most] = stripesOf([0, 4]);
  equal(none[0], first[0]);
  ok(most[0] !== first[0]);
});
