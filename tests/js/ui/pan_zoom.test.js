/** Maps that are zoomed by buttons and pinched. */

import { equal, ok } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { all, blank, find, labelled, layOut, send, settled } from '../browser.js';
import { boxAfter, createZoom } from '../../../static/js/ui/pan_zoom.js';

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
let plot;
beforeEach(() => {
  blank('<div id="around"><div id="plot"></div></div>');
  plot = find('#plot');
  layOut(plot, { left: 100, top: 200, width: 220, height: 140 });
});
/** A place as a share of the map, in the window. */
const place = (x, y) => ({ clientX: 110 + 200 * x, clientY: 220 + 100 * y });

let zoom, boxes;
function withZoom() {
  boxes = [];
  zoom = createZoom(plot, { area: () => AREA, onBox: (box) => boxes.push(box) });
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
