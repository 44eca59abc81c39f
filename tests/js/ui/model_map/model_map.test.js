/** The map of the model on the page, and the list of views below it. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import {
  all,
  blank,
  find,
  layOut,
  match as matchMedia,
  press,
  send,
  texts,
} from '../../browser.js';
import { createModelMap, createViewList } from '../../../../static/js/ui/model_map/model_map.js';
import { FRAME, pairTrace, sampleTrace, tensor } from '../../sample.js';

const CARD = {
  id: 'tiny',
  kind: 'decoder',
  n_layers: 2,
  n_heads: 2,
  positional: 'sinusoidal',
  moe: { n_experts: 4, top_k: 2, layers: [1] },
};
const TRACE = { ...sampleTrace(), card: CARD };
let map, chosen, views;
beforeEach(() => {
  blank('<div id="map"></div><p id="caption"></p>');
  matchMedia('(max-width: 60rem)', false);
  chosen = [];
  views = (part) => (part.kind === 'stream' ? [] : [part.kind]);
  map = createModelMap(find('#map'), find('#caption'), {
    onChoose: (part) => chosen.push(part.id),
  });
  layOut(find('.map-body'), { width: 220 });
});
const show = (looked = {}, state = {}, card = CARD, trace = TRACE) =>
  map.show({ ...trace, card }, card, {
    state: { ...FRAME, ...state },
    kind: 'head',
    query: 2,
    effects: null,
    viewsOf: (part) => views(part),
    ...looked,
  });
const parts = (kind) => all(`.map-part.is-${kind}`);
const current = () => all('.map-part[aria-current="true"]').map((node) => node.dataset.part);
const stops = () => all('.map-part').filter(({ tabIndex }) => tabIndex === 0);

test('without room there is no map yet', () => {
  layOut(find('.map-body'), { width: 0 });
  show();
  equal(all('.map-part').length, 0);
});

test('the parts that open a view are buttons, the others are drawn only', () => {
  show();
  ok(parts('head').length >= 2 && parts('head').every(({ tagName }) => tagName === 'BUTTON'));
  ok(parts('stream').every(({ tagName }) => tagName === 'SPAN'));
  ok(parts('head').every((node) => node.dataset.views === 'head'));
  ok(
    all('.map-part').every(
      (node) =>
        node.getAttribute('aria-label').endsWith(node.title.replace(/\. Press to .*$/, '')) &&
        node.style.width.endsWith('px'),
    ),
  );
  const [head] = parts('head');
  head.firstChild.dispatchEvent(new window.MouseEvent('click', { bubbles: true }));
  deepEqual(chosen, [head.dataset.part]);
  for (const node of parts('stream')) node.click();
  find('.map-parts').click();
  equal(chosen.length, 1);
});

test('the name of a part holds what is to be seen of it', () => {
  show();
  for (const node of all('.map-part')) {
    const seen = [...node.children]
      .map(({ textContent }) => textContent)
      .filter(Boolean)
      .join(' ');
    const name = node.getAttribute('aria-label').toLowerCase();
    ok(name.includes(seen.toLowerCase()), `${seen} is not in ${name}`);
  }
});

test('the part that is shown is marked and reached by Tab', () => {
  show();
  equal(current().length, 1);
  ok(current()[0].includes('1') && stops().length === 1);
  equal(stops()[0].dataset.part, current()[0]);
  ok(all('.map-part.is-open').length <= 1);
  const before = current()[0];
  show({}, { head: 1 });
  ok(current()[0] !== before);
  const [layer] = [all('.is-open').map((node) => node.dataset.part)];
  show({}, { layer: 0, head: 0 });
  ok(
    all('.is-open')
      .map((node) => node.dataset.part)
      .join() !== layer.join() || layer.length === 0,
  );
});

test('arrow keys walk from part to part, and keep the focus', () => {
  show();
  const [from] = stops();
  from.focus();
  for (const modifier of ['altKey', 'ctrlKey', 'metaKey'])
    equal(press(from, 'Home', { [modifier]: true }), true);
  equal(press(from, 'x'), true);
  equal(press(from, 'Home'), false);
  const first = document.activeElement;
  ok(first !== from && first.tabIndex === 0 && from.tabIndex === -1);
  press(first, 'End');
  ok(document.activeElement !== first);
  const last = document.activeElement;
  show();
  equal(document.activeElement, last);
  equal(stops()[0], last);
  equal(press(find('.map-parts'), 'Home'), true);
  last.blur();
  show();
  equal(stops()[0].dataset.part, current()[0]);
});

test('the caption says what is pointed at, and at rest what is shown', () => {
  show();
  const rest = find('#caption').textContent;
  const [, other] = parts('head').filter((node) => node.dataset.part !== current()[0]);
  send(other ?? parts('network')[0], 'pointerover');
  const said = find('#caption').textContent;
  ok(said !== rest && said !== '');
  equal(said.charAt(0), said.charAt(0).toUpperCase());
  ok(!said.includes(' %'));
  send(find('.map-parts'), 'pointerleave');
  equal(find('#caption').textContent, rest);
  send(parts('head')[0], 'focusin');
  ok(find('#caption').textContent !== '');
  send(find('.map-parts'), 'focusout');
  equal(find('#caption').textContent, rest);
});

test('the map is built again only if it is another', () => {
  show();
  const [first] = all('.map-part');
  show({}, { head: 1 });
  equal(all('.map-part')[0], first);
  layOut(find('.map-body'), { width: 260 });
  show();
  ok(all('.map-part')[0] !== first);
  const [second] = all('.map-part');
  show({}, {}, { ...CARD, n_layers: 2 });
  equal(all('.map-part')[0], second);
  show({}, { layer: 0 });
  ok(all('.map-part')[0] !== second);
});

test('on a phone the map is a strip', () => {
  show();
  ok(!find('#map').classList.contains('is-strip'));
  const rail = parseFloat(find('.map-body').style.height);
  matchMedia('(max-width: 60rem)', true);
  layOut(find('.map-body'), { width: 380 });
  show();
  ok(find('#map').classList.contains('is-strip'));
  ok(parseFloat(find('.map-body').style.height) < rail);
});

test('strength is a tint, and the stream is as wide as its norm', () => {
  show();
  const tinted = (kind) =>
    parts(kind).filter((node) => node.style.getPropertyValue('--tint') !== '');
  equal(tinted('logits').length + tinted('stream').length + tinted('embedding').length, 0);
  const svg = find('#map svg');
  ok(all('path', svg).length > 2);
  ok(all('path', svg).every((node) => !/NaN|undefined/.test(node.getAttribute('d'))));
  ok(Number(svg.getAttribute('width')) === 220 && Number(svg.getAttribute('height')) > 100);
  ok(all('.map-stream').length >= 2);
  ok(find('.map-ramp').style.getPropertyValue('--scale').includes('linear-gradient'));
});

test('a head that is switched off is shown so', () => {
  show();
  equal(all('.is-off').length, 0);
  const off = {
    view: 'compare',
    compare_with: 'edit',
    compare_edit: 'heads',
    compare_heads: [1],
    compare_layer: 1,
  };
  show({}, off);
  equal(all('.is-off').length, 1);
  show({}, { ...off, view: 'attention' });
  equal(all('.is-off').length, 0);
  show({}, { ...off, compare_edit: 'x' });
  equal(all('.is-off').length, 0);
  show({}, { ...off, compare_with: 'x' });
  equal(all('.is-off').length, 0);
});

test('a part without a view is not chosen, nor stopped at', () => {
  views = () => [];
  show();
  equal(all('button.map-part').length, 0);
  for (const node of all('.map-part')) node.click();
  equal(chosen.length, 0);
});

test('views of less use are behind a button, unless one is open', () => {
  blank('<div id="list"></div>');
  const views = [
    { id: 'a', title: 'A' },
    { id: 'b', title: 'B' },
    { id: 'c', title: 'C', isMore: true },
  ];
  const list = createViewList(find('#list'), { onChoose: () => {} });
  list.show(views, 'a');
  deepEqual(texts('button'), ['A', 'B', 'More']);
  all('button')[2].click();
  deepEqual(texts('button'), ['A', 'B', 'C']);
  const other = createViewList(find('#list'), { onChoose: () => {} });
  other.show(views, 'c');
  deepEqual(texts('button'), ['A', 'B', 'C']);
});

test('the views of a part are listed if there are several', () => {
  blank('<div id="list"></div>');
  const opened = [];
  const list = createViewList(find('#list'), { onChoose: (id) => opened.push(id) });
  const pair = [
    { id: 'a', title: 'A' },
    { id: 'b', title: 'B' },
  ];
  list.show([pair[0]], 'a');
  ok(find('#list').hidden);
  list.show(pair, 'b');
  ok(!find('#list').hidden);
  deepEqual(texts('button'), ['A', 'B']);
  deepEqual(
    all('button').map((node) => node.getAttribute('aria-current')),
    ['false', 'true'],
  );
  const [first] = all('button');
  list.show(structuredClone(pair), 'a');
  equal(all('button')[0], first);
  equal(first.getAttribute('aria-current'), 'true');
  all('button')[1].click();
  deepEqual(opened, ['b']);
  list.show([pair[0], { id: 'b', title: 'C' }], 'a');
  deepEqual(texts('button'), ['A', 'C']);
});

test('a text that is read lights the parts in their order, once, and none under reduced motion', (context) => {
  const delays = [];
  globalThis.HTMLElement.prototype.animate = (_, { delay }) => delays.push(delay);
  context.after(() => delete globalThis.HTMLElement.prototype.animate);
  show();
  show({}, { head: 1 });
  equal(delays.length, all('.map-part').length);
  ok(Math.min(...delays) === 0 && Math.max(...delays) <= 300);
  matchMedia('(prefers-reduced-motion: reduce)', true);
  show({}, {}, CARD, { ...TRACE, id: 'another' });
  matchMedia('(prefers-reduced-motion: reduce)', false);
  equal(delays.length, all('.map-part').length);
});

test('what is pointed at is told below the map; at rest the open part is', () => {
  const looked = { kind: 'logits', query: TRACE.tokens.length - 1 };
  show(looked);
  const [logits] = parts('logits');
  send(logits, 'pointerover');
  const words = logits.title.replaceAll(' %', '\u00a0%');
  equal(find('#caption').textContent.toLowerCase(), words.toLowerCase());
  show({ kind: 'head' });
  ok(find('#caption').textContent.startsWith('Layer'));
  matchMedia('(max-width: 60rem)', true);
  layOut(find('.map-body'), { width: 380 });
  show(looked);
  equal(find('#caption').textContent.toLowerCase(), words.toLowerCase());
});

const EFFECTS = {
  heads: new Map([
    ['decoder 0 0', 2],
    ['decoder 0 1', -2],
    ['decoder 1 0', 0],
  ]),
  networks: new Map([['decoder 0', 1]]),
  most: 2,
  token: ' are',
  against: ' is',
};
const tintOf = (id) => find(`[data-part="${id}"]`).style.getPropertyValue('--tint');

test('the key below the map says what its colours show, from least to most', () => {
  show();
  const words = () => find('.map-key').textContent;
  const ends = () => Object.values(find('.map-ramp').dataset);
  const scale = () => find('.map-ramp').style.getPropertyValue('--scale');
  ok(find('.map-key').previousElementSibling === find('#map'));
  const [plainWords, plainScale] = [words(), scale()];
  deepEqual([ends()[0], plainWords.includes('“')], ['0', false]);
  show({ effects: EFFECTS });
  ok(words().includes('“are”') && words().includes('“is”') && words().includes('ogits'));
  deepEqual(ends(), ['−2', '+2']);
  ok(scale() !== plainScale);
  show();
  equal(words(), plainWords);
});

test('while effects are awaited no other quantity takes their colours', () => {
  const card = { ...CARD, analyses: ['reasons', 'logit_attribution'] };
  const norms = tensor(['head', 'query'], [2, 5], 1);
  const head_norms = { 'decoder.layers.0.self_attention': norms };
  const trace = { ...TRACE, analyses: { ...TRACE.analyses, head_norms } };
  const tints = () => parts('head').filter((node) => node.style.getPropertyValue('--tint'));
  show({}, { answers: { next_why: { isWaiting: true } } }, card, trace);
  equal(tints().length, 0);
  match(find('.map-key').textContent, /^Logits added.*being computed$/);
  show({}, { answers: {} }, card, trace);
  equal(tints().length, 0, 'they are about to be asked for');
  for (const other of [
    [{ answers: {}, isSaved: true }, card],
    [{ answers: {} }, CARD],
    [{ answers: { next_why: { problem: { message: 'no' } } } }, card],
    [{ map: 'writes' }, card],
  ]) {
    show({}, ...other, trace);
    ok(tints().length > 0);
    match(find('.map-key').textContent, /^Share of what is written$/);
  }
});

test('while an edit is made the map says which pass its numbers are of', () => {
  const next_edited = { trace: { analyses: { next_token: TRACE.analyses.next_token } } };
  const state = { map: 'writes', answers: { next_edited } };
  show({}, state);
  match(find('.map-key').textContent, /, before the edit$/);
  match(parts('head')[0].getAttribute('aria-label'), /before the edit$/);
  match(parts('logits')[0].getAttribute('aria-label'), /with the edit$/);
  const heads = new Map([['decoder 0 0', 1]]);
  const effects = { heads, networks: new Map(), most: 1, token: ' a', against: ' b' };
  show({ effects: { ...effects, isEdited: true } }, state);
  match(find('.map-key').textContent, /with the edit$/);
  show({ effects }, { answers: {} });
  equal(/the edit/.test(find('.map-key').textContent), false);
});

test('with effects a part has the colour of its own, on a scale with two ends', () => {
  show({ effects: EFFECTS });
  const [strong, against, none] = ['0 0', '0 1', '1 0'].map((id) => tintOf(`head decoder ${id}`));
  equal(new Set([strong, against, none]).size, 3);
  ok([strong, against, none].every((tint) => tint.startsWith('rgb')));
  equal(tintOf('head decoder 1 1'), '', 'nothing is known of it');
  ok(tintOf('network decoder 0') !== '' && tintOf('expert decoder 1') === '');
  const said = find('[data-part="head decoder 0 1"]').title;
  ok(/−2(\.0+)? for “are” against “is”/.test(said), said);
  show();
  equal(tintOf('head decoder 0 0'), '');
});

test('the heads of a folded layer have the colours of their effects', () => {
  const deep = { ...CARD, id: 'deep', n_layers: 40, moe: null };
  const bars = () => find('[data-part="layer decoder 0"]').style.getPropertyValue('--bars');
  show({ effects: EFFECTS }, { layer: 20 }, deep);
  const [first, second] = bars().match(/rgb\([^)]*\)/g);
  ok(first !== second);
  show({}, { layer: 20 }, deep);
  equal(new Set(bars().match(/rgb\([^)]*\)/g)).size, 1);
});

test('a head that is pressed off is shown and read out so, in every view', () => {
  for (const view of ['attention', 'word', 'stream']) {
    show({}, { off: 'head decoder 1 0', view });
    const [off, ...others] = all('.is-off');
    deepEqual([off.dataset.part, others.length], ['head decoder 1 0', 0], view);
    ok(off.title.includes('switched off'));
  }
  show({}, { off: 'head decoder 9 9' });
  equal(all('.is-off').length, 0, 'a link may name a head of another model');
});

const profiles = (heads) => ({
  'decoder.layers.0.self_attention': heads,
  'decoder.layers.1.self_attention': heads,
});

test('heads have their role in words where the model is labelled and they are wide', () => {
  const roomy = () => all('.is-roomy').map((node) => node.dataset.part);
  const notes = () => parts('head').map((node) => node.lastChild.textContent);
  const labelled = { ...CARD, head_labels: profiles([{ previous: 0.9 }, {}]) };
  show();
  deepEqual([roomy(), notes().join('')], [[], ''], 'without profiles there is nothing to write');
  show({}, {}, { ...labelled, id: 'labelled' });
  layOut(find('.map-body'), { width: 221 });
  show({}, { layer: 0, head: 0 }, labelled);
  deepEqual(
    roomy(),
    parts('head').map((node) => node.dataset.part),
  );
  const [first, second] = notes();
  ok(first !== '' && second === '');
  ok(parts('head')[0].getAttribute('aria-label').includes('previous token'));
  const many = { ...labelled, n_heads: 14, head_labels: profiles(Array(14).fill({ sink: 0.9 })) };
  layOut(find('.map-body'), { width: 222 });
  show({}, {}, many);
  equal(parts('head').length, 28);
  deepEqual(roomy(), []);
});

const SELF = 'decoder.layers.0.self_attention';

test('a tint goes with the numbers it was made of', () => {
  const showNorms = (norms) =>
    map.show({ ...TRACE, analyses: { ...TRACE.analyses, head_norms: norms }, card: CARD }, CARD, {
      state: FRAME,
      kind: 'head',
      query: 2,
      effects: null,
      viewsOf: views,
    });
  const marks = () =>
    parts('head')
      .slice(0, 2)
      .flatMap(({ style }) => ['--tint', '--tint-ink'].map((name) => style.getPropertyValue(name)));
  showNorms({ [SELF]: tensor(['head', 'query'], [2, 5], (at) => (at < 5 ? 1 : 3)) });
  const [weak, ink, strong, otherInk] = marks();
  ok([weak, ink, strong, otherInk].every((mark) => mark !== '') && weak !== strong);
  const [first] = parts('head');
  showNorms({});
  equal(parts('head')[0], first);
  deepEqual(marks(), ['', '', '', '']);
});

test('the stream of each stack begins narrow and is as wide as its norm', () => {
  const card = { ...CARD, kind: 'encoder-decoder', moe: null };
  const norms = (first, second) =>
    tensor(['layer', 'query'], [2, 5], (at) => (at < 5 ? first : second));
  const trace = {
    ...pairTrace(),
    card,
    analyses: {
      residual_stream: {
        'encoder.residual_norm.after': norms(1, 4),
        'decoder.residual_norm.after': norms(2, 4),
      },
    },
  };
  const draw = (of) =>
    map.show(of, card, { state: FRAME, kind: 'head', query: 1, effects: null, viewsOf: views });
  draw(trace);
  /** How wide each reach is where it begins and where it ends. */
  const widths = () =>
    all('.map-stream').map((node) => {
      const xs = node
        .getAttribute('d')
        .match(/[\d.]+ /g)
        .map(Number);
      return [xs[1] - xs[0], xs[2] - xs[3]];
    });
  const found = widths();
  equal(found.length, 4);
  const [[start, quarter], [after, full], [again, half], [last, end]] = found;
  deepEqual([after, last], [quarter, half]);
  equal(start, again);
  equal(full, end);
  ok(start < quarter && quarter < half && half < full);
  draw({ ...trace, analyses: {} });
  ok(
    widths()
      .flat()
      .every((width) => width === start),
  );
});

const DEEP = { ...CARD, n_layers: 40, moe: null };

/** The colours of the stripes of layer 5, and where each begins and ends. */
function stripesOf(written) {
  const trace = { ...sampleTrace(), card: DEEP };
  if (written)
    trace.analyses.head_norms = {
      'decoder.layers.5.self_attention': tensor(
        ['head', 'query'],
        [2, 5],
        (at) => written[at < 5 ? 0 : 1],
      ),
    };
  show({ viewsOf: (part) => [part.kind] }, { layer: 0 }, DEEP, trace);
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

/** The map of a deep model, while another layer or model comes to it. */
const showDeep = (state = {}, { trace = sampleTrace(), card = DEEP, kind = 'head' } = {}) =>
  show({ kind }, { layer: 0, ...state }, card, trace);
const PAIR = { ...CARD, kind: 'encoder-decoder', n_layers: 2 };
const part = (id) => find(`[data-part="${id}"]`);
const stopIds = () => stops().map((node) => node.dataset.part);

test('a part that stays keeps the focus while another layer opens', () => {
  showDeep();
  const before = part('logits');
  press(find('.map-part[tabindex="0"]'), 'End');
  const last = document.activeElement.dataset.part;
  before.focus();
  press(before, 'End');
  showDeep({ layer: 3 });
  ok(part('logits') !== before, 'the parts are other nodes');
  equal(document.activeElement, part(last));
  deepEqual(stopIds(), [last]);
});

test('a layer that opens keeps its number, and the focus', () => {
  showDeep();
  const layer = part('layer decoder 3');
  layer.click();
  layer.focus();
  showDeep({ layer: 3, head: 1 });
  equal(document.activeElement, part('layer decoder 3'));
  deepEqual(stopIds(), ['layer decoder 3']);
});

test('without the focus on the map, none is put there', () => {
  showDeep();
  showDeep({ layer: 3 });
  equal(document.activeElement, document.body);
});

test('Tab leads to the first part where none is shown', () => {
  showDeep({ head: 9 });
  deepEqual(current(), []);
  deepEqual(stopIds(), [find('button.map-part').dataset.part]);
});

test('all heads of a pass are lit in a stack of its own, one in the attention between two', () => {
  const pass = { attention_which: 'rollout' };
  const of = { trace: pairTrace(), card: PAIR };
  showDeep({ ...pass, where: 'cross', layer: 1, head: 1 }, of);
  equal(current().length, 1);
  showDeep({ ...pass, where: 'encoder', layer: 1 }, of);
  equal(current().length, 4);
  ok(current().every((id) => id.startsWith('head encoder')));
  showDeep({ ...pass, where: 'encoder', layer: 0 }, of);
  equal(current().length, 2);
});

test('the map is as high as the window leaves room for, within limits', () => {
  const card = { ...CARD, n_layers: 24 };
  const heightIn = (innerHeight) => {
    window.innerHeight = globalThis.innerHeight = innerHeight;
    showDeep({}, { card });
    return parseFloat(find('.map-body').style.height);
  };
  const [low, middle, high, higher] = [700, 800, 930, 2000].map(heightIn);
  ok(low <= 490 && middle <= 590 && high <= 700, `${low}, ${middle}, ${high}`);
  ok(low < middle && middle <= high);
  equal(higher, high);
  equal(heightIn(300), heightIn(590));
  heightIn(800);
});

test('arrows lead from the heads that feed the open one', () => {
  const keys = [
    { name: '0.1', share: 0.6 },
    { name: 'cross.0.0', share: 0.2 },
  ];
  const feeders = { 'decoder.layers.1.self_attention': [{ queries: [], keys, values: [] }] };
  const card = { trace: { card: { heads: { feeders } } } };
  show({}, { layer: 1, head: 0, answers: { card } });
  equal(all('.map-feed').length, 2, 'a line and its end; the map has no cross-attention');
  show({}, { layer: 1, head: 0, answers: {} });
  equal(all('.map-feed').length, 0);
});
