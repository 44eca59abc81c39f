/** The small maps of a long text. */

import { deepEqual, equal, ok } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import {
  all,
  blank,
  find,
  labelled,
  layOut,
  painted,
  press,
  recorder,
  saved,
  send,
  settled,
} from '../browser.js';
import { createMapHeads, shrunk } from '../../../static/js/ui/map_heads.js';
import { PALETTE } from '../sample.js';

const MAP = {
  data: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
  offset: 0,
  rows: 4,
  columns: 4,
  scale: 1,
  isCausal: false,
};

test('a map shrinks to the means of what each cell covers', () => {
  deepEqual([...shrunk(MAP, 2)], [3.5, 5.5, 11.5, 13.5]);
  deepEqual([...shrunk({ ...MAP, scale: 2 }, 1)], [17]);
  deepEqual([...shrunk({ ...MAP, offset: 4, rows: 2, columns: 2 }, 2)], [5, 6, 7, 8]);
  deepEqual([...shrunk({ ...MAP, isCausal: true }, 2)], [3.5, NaN, 11.5, 13.5]);
  deepEqual(
    [...shrunk({ ...MAP, rows: 1, columns: 2 }, 4)],
    [1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 2, 2],
  );
  deepEqual([...shrunk({ ...MAP, rows: 3, columns: 3 }, 2)], [1, 2.5, 5.5, 7]);
});

const layersOf = (count, heads = 2) =>
  Array.from({ length: count }, (_, layer) => ({ layer, maps: Array(heads).fill(MAP) }));
const { calls, handlers, take } = recorder('onState', 'onSight', 'announce');
const STATE = { layer: 1, head: 0, palette: PALETTE };
const TRACE = {};
let block, maps;

beforeEach(() => {
  blank();
  take();
  maps = { layers: layersOf(2), name: 'weights' };
  block = createMapHeads(handlers, () => maps);
  document.body.append(block.element);
  layOut(block.element, { width: 400 });
});
const cells = () => all('.map-heads-cell');
const show = (state = {}, trace = TRACE) => block.show(trace, { ...STATE, ...state });

test('nothing is shown before the maps are there', () => {
  maps = null;
  show();
  ok(block.element.hidden);
  maps = { layers: layersOf(1), name: 'weights' };
  show();
  ok(!block.element.hidden);
});

test('each head is a button, and the chosen one is pressed', () => {
  show();
  deepEqual(
    cells().map((cell) => cell.getAttribute('aria-pressed')),
    ['false', 'false', 'true', 'false'],
  );
  deepEqual(
    cells().map(({ tabIndex }) => tabIndex),
    [-1, -1, 0, -1],
  );
  equal(all('details').length, 0);
  ok(find('.heads-caption').textContent.includes('weights'));
  cells()[1].click();
  find('.map-heads-body').click();
  deepEqual(calls, [['onState', { layer: 0, head: 1 }], ['onSight']]);
  find('canvas', cells()[3]).dispatchEvent(new window.MouseEvent('click', { bubbles: true }));
  deepEqual(calls[2], ['onState', { layer: 1, head: 1 }]);
});

test('keys walk through the maps', () => {
  show();
  cells()[2].focus();
  equal(press(cells()[2], 'ArrowUp'), false);
  equal(document.activeElement, cells()[0]);
  deepEqual(
    cells().map(({ tabIndex }) => tabIndex),
    [0, -1, -1, -1],
  );
  press(cells()[0], 'End', { ctrlKey: true });
  equal(document.activeElement, cells()[3]);
  press(cells()[3], 'Home', { metaKey: true });
  equal(document.activeElement, cells()[0]);
  press(cells()[0], 'ArrowRight');
  equal(document.activeElement, cells()[1]);
  equal(press(cells()[0], 'x'), true);
  equal(press(find('.map-heads-body'), 'End'), true);
  show({ layer: 1, head: 1 });
  deepEqual(
    cells().map(({ tabIndex }) => tabIndex),
    [-1, 0, -1, -1],
  );
  send(find('.map-heads-body'), 'focusin');
});

test('the maps are as large as there is room', () => {
  show();
  equal(find('canvas').width, 84);
  for (const [width, side] of [
    [40 + 2 * 54, 50],
    [60, 24],
  ]) {
    layOut(block.element, { width });
    show();
    deepEqual([find('canvas').width, find('canvas').height], [side, side]);
  }
});

test('the maps are built again only if they are others', () => {
  show();
  const [first] = cells();
  show({ layer: 0 });
  equal(cells()[0], first);
  ok(painted.get(find('canvas')).length === 1);
  const others = [
    () => show({}, {}),
    () => show({ palette: { ...PALETTE, theme: 'dark' } }),
    () => {
      maps = { ...maps, name: 'scores' };
      show();
    },
    () => {
      layOut(block.element, { width: 300 });
      show();
    },
    () => {
      maps = { ...maps, layers: layersOf(3) };
      show();
    },
    () => {
      maps = { ...maps, layers: layersOf(3, 3) };
      show();
    },
  ];
  for (const change of others) {
    const [before] = cells();
    change();
    ok(cells()[0] !== before, String(change));
  }
});

test('many layers fold, and are painted when they open', () => {
  maps = { layers: layersOf(12), name: 'weights' };
  show();
  equal(all('details').length, 0);
  maps = { layers: layersOf(13), name: 'weights' };
  show({ layer: 9 });
  const groups = all('details');
  deepEqual(
    groups.map(({ open }) => open),
    [false, true],
  );
  deepEqual(
    groups.map((group) => all('.map-heads-row', group).length),
    [8, 5],
  );
  deepEqual(
    all('summary').map(({ textContent }) => textContent.match(/\d+/g)),
    [
      ['0', '7'],
      ['8', '12'],
    ],
  );
  const isPainted = (group) => painted.has(find('canvas', group));
  deepEqual(groups.map(isPainted), [false, true]);
  groups[0].open = true;
  send(groups[0], 'toggle');
  ok(isPainted(groups[0]));
  send(groups[0], 'toggle');
  equal(painted.get(find('canvas', groups[0])).length, 1);
  groups[0].open = false;
  const [last] = all('button', groups[1]);
  last.focus();
  press(last, 'ArrowUp');
  equal(document.activeElement, last);
});

test('the maps are saved as a picture', async () => {
  show();
  layOut(find('.map-heads-body'), { width: 100, height: 50 });
  labelled('PNG').click();
  await settled(5);
  equal(saved.at(-1).name, 'headlight-all-heads.png');
  equal(calls.at(-1)[0], 'announce');
});
