/** The map of the model while another layer or model comes to it. */

import { deepEqual, equal, ok } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { all, blank, find, layOut, match as matchMedia, press } from '../../browser.js';
import { createModelMap } from '../../../../static/js/ui/model_map/model_map.js';
import { FRAME, pairTrace, sampleTrace } from '../../sample.js';

const CARD = {
  id: 'tiny',
  kind: 'decoder',
  n_layers: 40,
  n_heads: 2,
  positional: 'sinusoidal',
  moe: null,
};
const PAIR_CARD = { ...CARD, kind: 'encoder-decoder', n_layers: 2 };
let map;

beforeEach(() => {
  blank('<div id="map"></div><p id="caption"></p>');
  matchMedia('(max-width: 60rem)', false);
  map = createModelMap(find('#map'), find('#caption'), { onChoose: () => {} });
  layOut(find('.map-body'), { width: 260 });
});
const show = (state = {}, { trace = sampleTrace(), card = CARD, kind = 'head' } = {}) =>
  map.show({ ...trace, card }, card, {
    state: { ...FRAME, layer: 0, ...state },
    kind,
    query: 2,
    effects: null,
    viewsOf: (part) => (part.kind === 'stream' ? [] : [part.kind]),
  });
const part = (id) => find(`[data-part="${id}"]`);
const current = () => all('.map-part[aria-current="true"]').map((node) => node.dataset.part);
const stops = () =>
  all('.map-part')
    .filter(({ tabIndex }) => tabIndex === 0)
    .map((node) => node.dataset.part);

test('a part that stays keeps the focus while another layer opens', () => {
  show();
  const before = part('logits');
  press(find('.map-part[tabindex="0"]'), 'End');
  const last = document.activeElement.dataset.part;
  before.focus();
  press(before, 'End');
  show({ layer: 3 });
  ok(part('logits') !== before, 'the parts are other nodes');
  equal(document.activeElement, part(last));
  deepEqual(stops(), [last]);
});

test('a layer that opens hands the focus on to the head that is shown', () => {
  show();
  const layer = part('layer decoder 3');
  layer.click();
  layer.focus();
  show({ layer: 3, head: 1 });
  equal(part('layer decoder 3'), null);
  equal(document.activeElement, part('head decoder 3 1'));
  deepEqual(stops(), ['head decoder 3 1']);
});

test('without the focus on the map, none is put there', () => {
  show();
  show({ layer: 3 });
  equal(document.activeElement, document.body);
});

test('Tab leads to the first part where none is shown', () => {
  show({ head: 9 });
  deepEqual(current(), []);
  deepEqual(stops(), [find('button.map-part').dataset.part]);
});

test('all heads of a pass are lit in a stack of its own, one in the attention between two', () => {
  const pass = { attention_which: 'rollout' };
  const of = { trace: pairTrace(), card: PAIR_CARD };
  show({ ...pass, where: 'cross', layer: 1, head: 1 }, of);
  equal(current().length, 1);
  show({ ...pass, where: 'encoder', layer: 1 }, of);
  equal(current().length, 4);
  ok(current().every((id) => id.startsWith('head encoder')));
  show({ ...pass, where: 'encoder', layer: 0 }, of);
  equal(current().length, 2);
});

test('the map is as high as the window leaves room for, within limits', () => {
  const card = { ...CARD, n_layers: 24 };
  const heightIn = (innerHeight) => {
    window.innerHeight = globalThis.innerHeight = innerHeight;
    show({}, { card });
    return parseFloat(find('.map-body').style.height);
  };
  const [low, middle, high, higher] = [700, 800, 930, 2000].map(heightIn);
  ok(low <= 490 && middle <= 590 && high <= 700, `${low}, ${middle}, ${high}`);
  ok(low < middle && middle < high);
  equal(higher, high);
  equal(heightIn(300), heightIn(590));
  heightIn(800);
});
