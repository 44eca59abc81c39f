/** Which parts of a map a moved map shows. */

import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';
import { blank, find, layOut, painted, send, settled } from '../browser.js';
import { createPanZoom } from '../../../static/js/ui/pan_zoom.js';

const BOX = { x0: 20, x1: 40, y0: 10, y1: 30 };
const layer = (x0, x1, y0, y1) => ({
  matrix: { rows: 2, columns: 2, data: new Float64Array(4).fill(1) },
  box: { x0, x1, y0, y1 },
});

/** The layers that are drawn while nothing drags the map: source and target boxes. */
async function drawnOf(...layers) {
  blank('<div id="plot"></div>');
  const plot = find('#plot');
  layOut(plot, { width: 200, height: 100 });
  const panZoom = createPanZoom(plot, {
    area: () => ({ left: 0, top: 0, width: 200, height: 100 }),
    onMoved: () => {},
  });
  panZoom.show({
    box: BOX,
    most: { across: 100, down: 50 },
    least: 10,
    layers,
    colours: new Uint8Array(768),
    top: 1,
    patch: (box) => ({ box }),
  });
  const at = { clientX: 100, clientY: 50, pointerId: 1, pointerType: 'mouse', button: 0 };
  send(plot, 'pointerdown', at);
  send(window, 'pointermove', { ...at, clientX: 110 });
  send(window, 'pointermove', at);
  await settled(40);
  const drawn = painted.get(find('.plot-pan')) ?? [];
  panZoom.destroy();
  return drawn
    .filter(([name]) => name === 'drawImage')
    .slice(-layers.length)
    .map(([, , ...numbers]) => numbers.map((number) => Math.round(number * 100) / 100));
}

test('a layer that only touches the part in sight is not drawn', async () => {
  for (const beyond of [
    layer(0, 20, 0, 50),
    layer(40, 100, 0, 50),
    layer(0, 100, 0, 10),
    layer(0, 100, 30, 50),
    layer(50, 100, 40, 50),
  ])
    equal((await drawnOf(beyond)).length, 0, JSON.stringify(beyond.box));
});

test('a layer that begins within sight is drawn where it lies', async () => {
  deepEqual(await drawnOf(layer(30, 50, 20, 40)), [[0, 0, 1, 1, 100, 50, 100, 50]]);
  deepEqual(await drawnOf(layer(10, 30, 0, 20)), [[1, 1, 1, 1, 0, 0, 100, 50]]);
});
