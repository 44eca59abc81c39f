/** Maps that are zoomed by buttons. */

import { equal, ok } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { all, blank, find, labelled, settled } from '../browser.js';
import { boxAfter, createZoom } from '../../../static/js/ui/pan_zoom.js';

const LIMITS = { most: { across: 100, down: 50 }, least: 10 };
const BOX = { x0: 20, x1: 40, y0: 10, y1: 30 };
const near = (box, wanted) =>
  Object.keys(wanted).forEach((side) =>
    ok(Math.abs(box[side] - wanted[side]) < 1e-9, `${side}: ${box[side]}`),
  );

test('a box changes its size between the least and the whole, about its middle, inside the text', () => {
  near(boxAfter(LIMITS, BOX, 0.8), { x0: 22, x1: 38, y0: 12, y1: 28 });
  near(boxAfter(LIMITS, BOX, 0.25), { x0: 25, x1: 35, y0: 15, y1: 25 });
  near(boxAfter(LIMITS, BOX, 9), { x0: 0, x1: 100, y0: 0, y1: 50 });
  const edge = { x0: 0, x1: 20, y0: 30, y1: 50 };
  near(boxAfter(LIMITS, edge, 1.5), { x0: 0, x1: 30, y0: 20, y1: 50 });
  const small = { most: { across: 100, down: 4 }, least: 10 };
  near(boxAfter(small, { ...BOX, y0: 0, y1: 4 }, 0.5), { x0: 25, x1: 35, y0: 0, y1: 4 });
});

let plot;
beforeEach(() => {
  blank('<div id="around"><div id="plot"></div></div>');
  plot = find('#plot');
});

let zoom, boxes;
function withZoom() {
  boxes = [];
  zoom = createZoom(plot, (box) => boxes.push(box));
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
