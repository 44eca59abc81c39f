/** Maps that are dragged, pinched and wheeled. */

import { deepEqual, equal, ok } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { all, blank, find, labelled, layOut, painted, send, settled } from '../browser.js';
import { boxAfter, createPanZoom, createZoom } from '../../../static/js/ui/pan_zoom.js';

const LIMITS = { most: { across: 100, down: 50 }, least: 10 };
const BOX = { x0: 20, x1: 40, y0: 10, y1: 30 };
const at = (x, y) => ({ x, y });
const near = (box, wanted) =>
  Object.keys(wanted).forEach((side) =>
    ok(Math.abs(box[side] - wanted[side]) < 1e-9, `${side}: ${box[side]}`),
  );

test('one finger moves the box, and keeps its cell', () => {
  near(boxAfter(LIMITS, BOX, [at(0.5, 0.5)], [at(0.25, 0.75)]), { x0: 25, x1: 45, y0: 5, y1: 25 });
});

test('two fingers change its size, between the least and the whole', () => {
  const two = (gap) => [at(0.5 - gap, 0.5), at(0.5 + gap, 0.5)];
  near(boxAfter(LIMITS, BOX, two(0.2), two(0.25)), { x0: 22, x1: 38, y0: 12, y1: 28 });
  near(boxAfter(LIMITS, BOX, two(0.1), two(0.4)), { x0: 25, x1: 35, y0: 15, y1: 25 });
  near(boxAfter(LIMITS, BOX, two(0.4), two(0.001)), { x0: 0, x1: 100, y0: 0, y1: 50 });
  const small = { most: { across: 100, down: 4 }, least: 10 };
  near(boxAfter(small, { ...BOX, y0: 0, y1: 4 }, two(0.2), two(0.4)), {
    x0: 25,
    x1: 35,
    y0: 0,
    y1: 4,
  });
  near(boxAfter(LIMITS, BOX, [at(0.5, 0.5), at(0.5, 0.9)], [at(0.5, 0.5), at(0.5, 1)]), {
    x0: 22,
    x1: 38,
  });
});

test('the box stays inside the text', () => {
  near(boxAfter(LIMITS, BOX, [at(0, 0)], [at(9, 9)]), { x0: 0, x1: 20, y0: 0, y1: 20 });
  near(boxAfter(LIMITS, BOX, [at(9, 9)], [at(0, 0)]), { x0: 80, x1: 100, y0: 30, y1: 50 });
});

const AREA = { left: 10, top: 20, width: 200, height: 100 };
const PAN = {
  ...LIMITS,
  box: BOX,
  layers: [
    {
      matrix: { rows: 2, columns: 4, data: new Float64Array(8).fill(1) },
      box: { x0: 0, x1: 100, y0: 0, y1: 50 },
    },
  ],
  colours: new Uint8Array(768),
  top: 1,
  patch: (box) => ({ box }),
};
let plot, moved, panZoom, area;
beforeEach(() => {
  blank('<div id="around"><div id="plot"></div></div>');
  plot = find('#plot');
  layOut(plot, { left: 100, top: 200, width: 220, height: 140 });
  moved = [];
  area = AREA;
  panZoom?.destroy();
  panZoom = createPanZoom(plot, { area: () => area, onMoved: ({ box }) => moved.push(box) });
  panZoom.show(PAN);
});
/** A place as a share of the map, in the window. */
const place = (x, y) => ({ clientX: 110 + 200 * x, clientY: 220 + 100 * y });
const down = (x, y, more = {}) =>
  send(plot, 'pointerdown', {
    ...place(x, y),
    pointerId: 1,
    button: 0,
    pointerType: 'mouse',
    ...more,
  });
const move = (x, y, more = {}) =>
  send(window, 'pointermove', { ...place(x, y), pointerId: 1, pointerType: 'mouse', ...more });
const up = (more = {}) => send(window, 'pointerup', { pointerId: 1, ...more });

test('a drag moves the map, and its end is requested', async () => {
  ok(plot.classList.contains('is-movable'));
  down(0.5, 0.5);
  move(0.25, 0.5);
  ok(plot.classList.contains('is-panning'));
  equal(moved.length, 0);
  move(0, 0.5);
  up();
  deepEqual(moved, [{ x0: 30, x1: 50, y0: 10, y1: 30 }]);
  up();
  equal(moved.length, 1);
  move(0.9, 0.9);
  up();
  equal(moved.length, 1);
  panZoom.show({ ...PAN, box: moved[0] });
  ok(!plot.classList.contains('is-panning'));
  down(0.5, 0.5);
  move(0.75, 0.5);
  up();
  near(moved[1], { x0: 25, x1: 45 });
});

test('a press that hardly moves, another button or no map move nothing', () => {
  down(0.5, 0.5);
  move(0.5 + 3.9 / 200, 0.5);
  up();
  down(0.5, 0.5);
  move(0.5, 0.5 + 3.9 / 100);
  up();
  down(0.5, 0.5, { button: 2 });
  move(0.9, 0.5);
  up();
  equal(moved.length, 0);
  down(0.5, 0.5);
  move(0.5 + 4.1 / 200, 0.5);
  up();
  equal(moved.length, 1);
  panZoom.show(undefined);
  ok(!plot.classList.contains('is-movable'));
  down(0.5, 0.5);
  move(0.9, 0.5);
  up();
  equal(moved.length, 1);
});

test('one finger scrolls the page, two move and zoom the map', () => {
  const touch = { pointerType: 'touch' };
  down(0.4, 0.5, touch);
  move(0.1, 0.5, touch);
  down(0.6, 0.5, { ...touch, pointerId: 2 });
  ok(!plot.classList.contains('is-panning'));
  move(0.65, 0.5, { ...touch, pointerId: 2 });
  move(0.35, 0.5, touch);
  up({ pointerId: 2 });
  equal(moved.length, 0);
  up();
  equal(moved.length, 1);
  near(moved[0], { x0: 30 - 20 / 3, x1: 30 + 20 / 3 });
  down(0.5, 0.5, touch);
  send(window, 'pointercancel', { pointerId: 1 });
  move(0.9, 0.9, touch);
  equal(moved.length, 2);
});

test('a figure that arrives under the fingers does not take them the map', () => {
  down(0.5, 0.5);
  move(0.25, 0.5);
  panZoom.show({ ...PAN, box: { ...BOX, x0: 0, x1: 20 } });
  ok(plot.classList.contains('is-panning'));
  up();
  near(moved[0], { x0: 25, x1: 45 });
});

test('the wheel with Ctrl zooms, and its end is requested after a pause', async () => {
  const wheel = (deltaY, more) => send(plot, 'wheel', { ...place(0.5, 0.5), deltaY, ...more });
  equal(wheel(50, {}), true);
  equal(wheel(50, { ctrlKey: true }), false);
  equal(wheel(500, { metaKey: true }), false);
  equal(moved.length, 0);
  await settled(220);
  const half = 10 * Math.exp(110 * 0.008);
  near(moved[0], { x0: 30 - half, x1: 30 + half });
  equal(moved.length, 1);
  panZoom.show(undefined);
  equal(wheel(50, { ctrlKey: true }), true);
  panZoom.show(PAN);
  area = null;
  wheel(-20, { ctrlKey: true });
  await settled(220);
  ok(moved[1].x1 - moved[1].x0 < 20);
  near(moved[1], { x0: 60 - moved[1].x1 });
});

test('pinching does not zoom the page', () => {
  const touches = (count) => ({ touches: Array(count).fill(place(0, 0)) });
  deepEqual(
    [
      send(plot, 'touchstart', touches(1)),
      send(plot, 'touchstart', touches(2)),
      send(plot, 'touchmove', touches(2)),
    ],
    [true, false, false],
  );
  equal(send(plot, 'touchmove', { ...touches(2), cancelable: false }), true);
  panZoom.show(undefined);
  equal(send(plot, 'touchmove', touches(2)), true);
});

test('while it moves, a canvas shows the part that is at hand', async () => {
  const canvas = find('.plot-pan');
  down(0.5, 0.5);
  move(0.5, 0.25);
  await settled(40);
  deepEqual(
    [canvas.width, canvas.height, canvas.style.transform],
    [200, 100, 'translate(10px, 20px)'],
  );
  const draws = () => painted.get(canvas).filter(([name]) => name === 'drawImage');
  const [[, image, ...numbers]] = draws();
  deepEqual([image.width, image.height], [4, 2]);
  const wanted = [20 * 0.04, 15 * 0.04, 20 * 0.04, 20 * 0.04, 0, 0, 200, 100];
  numbers.forEach((number, place) =>
    ok(Math.abs(number - wanted[place]) < 1e-9, `${place}: ${number}`),
  );
  ok(
    painted
      .get(canvas)
      .some(([name, value]) => name === 'imageSmoothingEnabled' && value === false),
  );
  ok(painted.get(canvas).filter(([name]) => name === 'clearRect').length >= 2);
  const count = draws().length;
  area = null;
  move(0.5, 0.2);
  await settled(40);
  equal(draws().length, count);
  area = AREA;
  up();
  panZoom.show({
    ...PAN,
    layers: [
      { ...PAN.layers[0], box: { x0: 90, x1: 100, y0: 0, y1: 50 } },
      { ...PAN.layers[0], box: { x0: 25, x1: 35, y0: 15, y1: 25 } },
    ],
  });
  down(0.5, 0.5);
  move(0.5, 0.45);
  await settled(40);
  const later = draws().slice(count);
  equal(later.length, 1);
  const [, , sx, sy, sw, sh, dx, , dw, dh] = later[0];
  [sx, sw, dx, dw, dh].forEach((number, index) =>
    ok(Math.abs(number - [0, 4, 50, 100, 50][index]) < 1e-9, `${index}: ${number}`),
  );
  ok(Math.abs(sy) < 1e-9 && Math.abs(sh - 2) < 1e-9);
});

test('a map that is gone is not moved', async () => {
  down(0.5, 0.5);
  panZoom.destroy();
  move(0.1, 0.5);
  up();
  equal(moved.length, 0);
});

let zoom, boxes;
function withZoom() {
  boxes = [];
  zoom = createZoom(plot, { area: () => area, onBox: (box) => boxes.push(box) });
  zoom.show({ across: 100, down: 50 }, BOX);
}
const buttons = () => find('.plot-zoom');
async function pressed(label) {
  labelled(label, buttons()).click();
  await settled(40);
  return boxes.at(-1);
}

test('buttons zoom in, out and to the whole', async () => {
  withZoom();
  equal(buttons().parentElement.id, 'around');
  near(await pressed('+'), { x0: 30 - 6.25, x1: 30 + 6.25, y0: 20 - 6.25, y1: 20 + 6.25 });
  near(await pressed('−'), BOX);
  near(await pressed('−'), { x0: 14, x1: 46, y0: 4, y1: 36 });
  equal(await pressed('Whole map'), null);
  zoom.show({ across: 100, down: 50 }, null);
  near(await pressed('+'), { x0: 50 - 31.25, x1: 50 + 31.25 });
  zoom.show(null, null);
  ok(buttons().hidden);
  zoom.show({ across: 20, down: 9 }, { x0: 6, x1: 14, y0: 0, y1: 8 });
  ok(!buttons().hidden);
  near(await pressed('+'), { x0: 6, x1: 14 });
  ok(all('button', buttons()).every((node) => node.title && node.getAttribute('aria-label')));
});

test('two fingers zoom a map that is drawn whole', async () => {
  withZoom();
  const touch = (type, ...places) =>
    send(plot, type, { touches: places.map(([x, y]) => place(x, y)) });
  equal(touch('touchstart', [0.5, 0.5]), true);
  equal(touch('touchmove', [0.1, 0.5]), true);
  await settled(40);
  equal(boxes.length, 0);
  equal(touch('touchstart', [0.3, 0.5], [0.7, 0.5]), false);
  equal(touch('touchmove', [0.25, 0.5], [0.75, 0.5]), false);
  zoom.show({ across: 100, down: 50 }, { x0: 0, x1: 9, y0: 0, y1: 9 });
  touch('touchmove', [0.2, 0.5], [0.8, 0.5]);
  await settled(40);
  equal(boxes.length, 1);
  near(boxes[0], { x0: 30 - 20 / 3, x1: 30 + 20 / 3 });
  touch('touchstart', [0.3, 0.5]);
  touch('touchmove', [0.3, 0.5], [0.7, 0.5]);
  await settled(40);
  equal(boxes.length, 1);
  zoom.show(null, null);
});

test('two fingers on a map that is drawn whole do not zoom the page, where that can be prevented', () => {
  const parts = document.body.appendChild(document.createElement('div'));
  const map = parts.appendChild(document.createElement('div'));
  layOut(map, AREA);
  createZoom(map, { area: () => AREA, onBox: () => {} }).show({ across: 100, down: 50 }, BOX);
  let prevented = 0;
  const touch = (type, count, cancelable) =>
    send(map, type, {
      touches: Array(count).fill(place(0.5, 0.5)),
      cancelable,
      preventDefault: () => (prevented += 1),
    });
  for (const type of ['touchstart', 'touchmove']) touch(type, 1, true);
  equal(prevented, 0);
  for (const type of ['touchstart', 'touchmove']) touch(type, 2, true);
  equal(prevented, 2);
  for (const type of ['touchstart', 'touchmove']) touch(type, 2, false);
  equal(prevented, 2);
});

test('a map that is taken off the page while the wheel turns asks for nothing', async () => {
  send(plot, 'wheel', { ...place(0.5, 0.5), deltaY: 50, ctrlKey: true });
  panZoom.destroy();
  await settled(220);
  equal(moved.length, 0);
});
