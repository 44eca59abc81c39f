/** All heads as small maps, and the block that they are chosen from. */

import { deepEqual, equal, ok } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import {
  all,
  blank,
  find,
  labelled,
  layOut,
  match as matchMedia,
  painted,
  press,
  recorder,
  saved,
  send,
  settled,
  texts,
} from '../browser.js';
import { createHeads } from '../../../static/js/ui/heads.js';
import { createHeadsBlock } from '../../../static/js/ui/heads_block.js';
import { FRAME, headLabels, PALETTE, sampleTrace } from '../sample.js';

const WEIGHTS = (layer) => `decoder.layers.${layer}.self_attention`;
const CARD = { kind: 'decoder', n_layers: 2, n_heads: 2, positional: 'sinusoidal' };

/** A trace whose heads have labels. */
function labelledTrace() {
  const trace = sampleTrace();
  const head_labels = headLabels({
    [WEIGHTS(0)]: [
      { label: 'previous', scores: { previous: 0.8 } },
      { label: 'sink', scores: { sink: 0.7 } },
    ],
    [WEIGHTS(1)]: [{ label: 'previous', scores: { previous: 0.9 } }, { label: 'mixed' }],
  });
  return { ...trace, card: CARD, analyses: { ...trace.analyses, head_labels } };
}

const { calls, take } = recorder();
const STATE = { where: '', layer: 1, head: 0, range: 'one', width: 600, palette: PALETTE };
const cells = () => all('.heads-cell');
let heads;

beforeEach(() => {
  blank();
  take();
  heads = createHeads({ onChoose: (...given) => calls.push(['onChoose', ...given]) });
  document.body.append(heads.element);
});

const selected = () => cells().map((cell) => cell.getAttribute('aria-selected') === 'true');
const stops = () => cells().map(({ tabIndex }) => tabIndex);

test('rows are layers and columns are heads', () => {
  heads.show(labelledTrace(), STATE);
  equal(cells().length, 4);
  deepEqual(texts('.is-head'), ['0', '1']);
  equal(all('.is-layer').length, 2);
  ok(
    cells().every((cell, at) =>
      new RegExp(`^Layer ${at >> 1}, head ${at % 2}(: .* in this text)?$`).test(
        cell.getAttribute('aria-label'),
      ),
    ),
  );
  deepEqual(selected(), [false, false, true, false]);
  deepEqual(stops(), [-1, -1, 0, -1]);
  deepEqual(
    all('.is-current').map(({ textContent }) => textContent),
    ['0', texts('.is-layer')[1]],
  );
  ok(
    !find('.heads-grid').classList.contains('is-many') &&
      !find('.heads-grid').classList.contains('is-grouped'),
  );
  heads.show(labelledTrace(), { ...STATE, isChosen: ({ layer }) => layer === 0 });
  deepEqual(selected(), [true, true, false, false]);
  ok(find('.heads-grid').classList.contains('is-many'));
});

test('a head is chosen by pressing its map', () => {
  heads.show(labelledTrace(), STATE);
  cells()[1].click();
  find('.heads-grid').click();
  deepEqual(calls, [['onChoose', 0, 1]]);
});

test('keys walk through the maps', () => {
  const trace = labelledTrace();
  heads.show(trace, STATE);
  cells()[2].focus();
  equal(press(cells()[2], 'ArrowUp'), false);
  equal(document.activeElement, cells()[0]);
  deepEqual(stops(), [0, -1, -1, -1]);
  press(cells()[0], 'End');
  equal(document.activeElement, cells()[1]);
  press(cells()[1], 'End', { ctrlKey: true });
  equal(document.activeElement, cells()[3]);
  press(cells()[3], 'Home', { metaKey: true });
  equal(document.activeElement, cells()[0]);
  equal(press(cells()[0], 'x'), true);
  equal(press(find('.heads-grid'), 'End'), true);
  heads.show(trace, { ...STATE, head: 1 });
  deepEqual(stops(), [0, -1, -1, -1]);
});

/** The card of a model of which each head's labels over many sentences are known. */
const PROFILED = {
  ...CARD,
  head_labels: {
    [WEIGHTS(0)]: [{ previous: 0.8 }, { sink: 0.7 }],
    [WEIGHTS(1)]: [{ previous: 0.9 }, {}],
  },
};

test('the maps are as large as there is room, and have words if those fit', () => {
  const size = () => find('.heads').style.getPropertyValue('--size');
  const trace = { ...labelledTrace(), card: PROFILED };
  const show = (width) => heads.show(trace, { ...STATE, width });
  show(600);
  equal(size(), '96px');
  const words = texts('.heads-name');
  deepEqual([words[0] === words[2], words[0] === words[1], words[3]], [true, false, '']);
  show(44 + 2 * 6 + 2 * 58);
  equal(size(), '58px');
  equal(all('.heads-name').length, 4);
  show(44 + 2 * 6 + 2 * 57);
  equal(size(), '57px');
  equal(all('.heads-name').length, 0);
  show(10);
  equal(size(), '6px');
  deepEqual(
    ['--gap', '--margin', '--heads'].map((name) => find('.heads').style.getPropertyValue(name)),
    ['1px', '26px', '2'],
  );
});

test('layers whose weights are not here are told to be awaited, and then small maps stand for them', () => {
  const { tensors, ...trace } = { ...labelledTrace(), isLayered: true };
  const site = `${WEIGHTS(0)}.weights`;
  const shown = { ...trace, tensors: { ...tensors, [site]: { ...tensors[site], data: [] } } };
  const caption = () => find('.heads-caption').textContent;
  heads.show(shown, STATE);
  ok(caption().includes('are being read'));
  send(cells()[0], 'focusin');
  ok(caption().endsWith('not read yet'));
  const map = { ...tensors[site], shape: [2, 1, 1], data: new Float32Array([0.25, 1]), scale: 1 };
  const maps = { trace: { tensors: { [`${WEIGHTS(0)}.max_map`]: map } } };
  heads.show(shown, { ...STATE, answers: { maps } });
  ok(!caption().includes('are being read'));
  send(cells()[0], 'focusin');
  ok(caption().endsWith('strongest weight 0.250'), caption());
});

test('maps of a large model leave the first token out where most weight rests on it', () => {
  const card = { ...CARD, n_layers: 30, n_heads: 9 };
  heads.show({ ...labelledTrace(), card }, { ...STATE, attention_hide: 'auto' });
  ok(/\d of 4 maps leave out the first token/.test(find('.heads-caption').textContent));
  heads.show({ ...labelledTrace(), card }, { ...STATE, attention_hide: 'nothing' });
  ok(!find('.heads-caption').textContent.includes('leave out'));
});

test('the caption says how to choose, and what is pointed at', () => {
  heads.show(labelledTrace(), STATE);
  const caption = () => find('.heads-caption').textContent;
  const rest = caption();
  send(cells()[3], 'pointerover');
  ok(caption().startsWith('Layer 1, head 1'));
  ok(!caption().includes('('));
  send(cells()[0], 'focusin');
  ok(caption().includes('Layer 0, head 0') && caption().includes('('));
  ok(caption().includes('1'));
  send(find('.heads-grid'), 'pointerleave');
  equal(caption(), rest);
  matchMedia('(hover: none)', true);
  send(find('.heads-grid'), 'focusout');
  ok(caption() !== rest);
  matchMedia('(hover: none)', false);
});

/** Lays the maps out, 20 pixels wide and high, beside each other. */
function place() {
  layOut(find('.heads'), { left: 10, top: 10, width: 120, height: 60 });
  cells().forEach((cell, at) =>
    layOut(cell, { left: 30 + 30 * (at % 2), top: 20 + 25 * (at >> 1), width: 20, height: 20 }),
  );
}
const canvas = () => find('.heads canvas');
const paintings = () => painted.get(canvas()) ?? [];

test('all maps are painted at once, where they are, and only if they changed', () => {
  const trace = labelledTrace();
  window.devicePixelRatio = 2;
  const state = { ...STATE, width: 44 + 12 + 2 * 20 };
  heads.show(trace, state);
  place();
  heads.show(trace, { ...state, palette: { ...PALETTE, beam: 'red' } });
  deepEqual([canvas().width, canvas().height], [240, 120]);
  deepEqual([canvas().style.width, canvas().style.height], ['120px', '60px']);
  const [, image] = paintings().at(-1);
  const inkAt = (x, y) => image.data[4 * (y * 240 + x) + 3];
  deepEqual([inkAt(0, 0), inkAt(42, 22), inkAt(39, 22)], [0, 255, 0]);
  ok(inkAt(102, 22) === 255 && inkAt(102, 72) === 255);
  const count = paintings().length;
  heads.show(trace, { ...state, palette: { ...PALETTE, beam: 'red' } });
  equal(paintings().length, count);
  const pixel = () =>
    [
      ...paintings()
        .filter(([name]) => name === 'putImageData')
        .at(-1)[1].data,
    ].join();
  const one = pixel();
  heads.show(trace, { ...state, range: 'head' });
  ok(one.length > 0 && pixel().length > 0);
  window.devicePixelRatio = 1;
});

test('the chosen pair is framed on every map', () => {
  const trace = labelledTrace();
  const state = { ...STATE, width: 44 + 12 + 2 * 20 };
  heads.show(trace, state);
  place();
  const before = paintings().length;
  heads.show(trace, { ...state, pair: { query: 2, key: 1 } });
  const frames = paintings()
    .slice(before)
    .filter(([name]) => name === 'strokeRect');
  equal(frames.length, 8);
  deepEqual(frames[0].slice(1), [20 + 1.5 * 4 - 3.5, 10 + 2.5 * 4 - 3.5, 7, 7]);
  const widths = paintings()
    .slice(before)
    .filter(([name]) => name === 'lineWidth')
    .map(([, width]) => width);
  deepEqual(widths.slice(0, 2), [3, 1.5]);
  const colours = paintings()
    .slice(before)
    .filter(([name]) => name === 'strokeStyle')
    .map(([, colour]) => colour);
  deepEqual(colours.slice(0, 2), ['#fff', PALETTE.beam]);
});

test('profiles of heads are told beside the labels of this text', () => {
  const trace = labelledTrace();
  heads.show({ ...trace, card: { ...CARD, head_profiles: undefined } }, STATE);
  equal(all('.is-profile').length, 0);
});

let block;
const announced = [];
async function withBlock(state = {}, trace = labelledTrace()) {
  blank();
  block = createHeadsBlock({
    onState: (patch) => calls.push(['onState', patch]),
    onSight: () => calls.push(['onSight']),
    announce: (message) => announced.push(message),
  });
  document.body.append(block.element);
  show(state, trace);
  return trace;
}
const WHOLE = { ...FRAME, attention_which: 'head', attention_what: 'weights' };
const show = (state, trace) => block.show(trace, { ...WHOLE, ...state });

test('the block says what its maps are', async () => {
  const trace = await withBlock();
  const heading = find('.heads-title h2').textContent;
  equal(all('input', block.element).length, 0, 'its switches are those of the drawing');
  for (const state of [{ attention_what: 'scores' }, { attention_which: 'rollout' }]) {
    show(state, trace);
    ok(find('.heads-title h2').textContent !== heading);
  }
});

test('a map that is pressed is brought into sight', async () => {
  await withBlock();
  cells()[1].click();
  deepEqual(
    calls.map(([name]) => name),
    ['onState', 'onSight'],
  );
  deepEqual([calls[0][1].layer, calls[0][1].head], [0, 1]);
});

test('the door leads to all heads as points, ranked by the pair if one is chosen', async () => {
  const trace = await withBlock({ key: null });
  const door = find('.heads-head > .link');
  door.click();
  deepEqual(calls.at(-1)[1], { view: 'sky' });
  show({ key: 2 }, trace);
  door.click();
  deepEqual(calls.at(-1)[1], { view: 'sky', sky_y: 'pair' });
});

test('the maps are saved as a picture, with the words of each', async () => {
  await withBlock({}, { ...labelledTrace(), card: PROFILED });
  layOut(find('.heads'), { width: 100, height: 50 });
  layOut(block.element, { width: 600 });
  show({}, { ...labelledTrace(), card: PROFILED });
  const names = texts('.heads-name').filter(Boolean);
  ok(names.length > 0);
  labelled('PNG').click();
  await settled(5);
  equal(saved.at(-1).name, 'headlight-all-heads.png');
  equal(announced.length, 1);
});
