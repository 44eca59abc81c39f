/** One drawing under the pointer and the keyboard. */

import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import {
  all,
  blank,
  drawn,
  find,
  layOut,
  match as matchMedia,
  press,
  recorder,
  send,
  settled,
  texts,
} from '../browser.js';
import { CELLS, createPlot, reaction } from '../../../static/js/ui/plot.js';

const MARGIN = { l: 50, r: 10, t: 20, b: 30 };
const { calls, handlers, take } = recorder('onCell', 'onChoose', 'onGoingOn');

/** A figure of 4 rows and 5 columns, each cell 20 pixels wide and 10 high. */
function figureOf(grid = {}, layout = {}) {
  return {
    title: 'A map',
    summary: 'what is drawn',
    data: [{ type: 'heatmap' }],
    layout: {
      width: 160,
      height: 90,
      margin: MARGIN,
      xaxis: { range: [-0.5, 4.5] },
      yaxis: { range: [3.5, -0.5] },
      ...layout,
    },
    grid: {
      rows: 4,
      columns: 5,
      rowTitle: 'query',
      columnTitle: 'key',
      rowLabels: ['a', 'b', 'c', 'd'],
      columnLabels: ['v', 'w', 'x', 'y', 'z'],
      quantity: 'weight',
      value: (row, column) => row + column,
      format: String,
      describe: (row, column) => `cell ${row} ${column}`,
      tip: (row, column) => [`tip ${row}`, `${column}`],
      tokens: () => ({}),
      choose: (row, column) => ({ row, column }),
      ...grid,
    },
  };
}

let plot, part, drawing;

async function draw(figure = figureOf()) {
  await plot.draw(figure);
  await settled();
}

beforeEach(async () => {
  blank();
  plot?.destroy();
  drawn.length = 0;
  plot = createPlot(handlers);
  document.body.append(plot.element);
  part = find('.plot');
  drawing = find('.plot-drawing');
  layOut(drawing, { left: 100, top: 200, width: 160, height: 90 });
  layOut(part, { left: 100, top: 200, width: 160, height: 90 });
  calls.length = 0;
});

/** The middle of a cell in the window. */
const middle = (row, column) => ({ clientX: 160 + 20 * column, clientY: 225 + 10 * row });
const cellsOf = (name) => calls.filter(([each]) => each === name).map(([, cell]) => cell);
const shown = (name) => find(`.is-${name}`).classList.contains('is-shown');
const styleOf = (name) => {
  const { transform, width, height } = find(`.is-${name}`).style;
  return [transform, width, height];
};

test('a drawing has its words, and Plotly the figure', async () => {
  match(drawing.textContent, /./);
  const drawingIt = plot.draw(figureOf());
  equal(drawing.style.minHeight, '90px');
  await drawingIt;
  equal(drawing.style.minHeight, '');
  equal(find('.plot-waiting'), null);
  equal(part.getAttribute('aria-label'), 'what is drawn');
  equal(part.getAttribute('aria-roledescription'), 'heatmap');
  equal(part.getAttribute('aria-describedby'), find('.plot-hint').id);
  const [[, at, data, layout, config]] = drawn;
  equal(at, drawing);
  equal(data[0].type, 'heatmap');
  deepEqual(
    [layout.xaxis.fixedrange, layout.yaxis.fixedrange, layout.dragmode],
    [true, true, false],
  );
  deepEqual(
    [config.displayModeBar, config.responsive, config.showTips, config.typesetMath],
    [false, false, false, false],
  );
});

test('bars and drawings of a kind of their own say so', async () => {
  await draw(figureOf({ columns: 1 }));
  equal(part.getAttribute('aria-roledescription'), 'bar chart');
  await draw(figureOf({ kind: 'line chart' }));
  equal(part.getAttribute('aria-roledescription'), 'line chart');
});

test('the hint names what Enter does only where there is something to choose', async () => {
  await draw();
  const withChoice = find('.plot-hint').textContent;
  await draw(figureOf({ chooseHint: 'Enter does this' }));
  match(find('.plot-hint').textContent, /Enter does this/);
  await draw(figureOf({ choose: undefined }));
  ok(find('.plot-hint').textContent.length < withChoice.length);
});

test('the note and what the labels name are below the drawing', async () => {
  await draw(figureOf({ note: 'a note' }));
  equal(find('.plot-note').textContent, 'a note');
  await draw({ ...figureOf({ note: 'a note' }), labelled: 'labels' });
  equal(find('.plot-note').textContent, 'a note labels');
  await draw();
  equal(find('.plot-note').textContent, '');
});

test('an unchanged drawing is not drawn again', async () => {
  await draw();
  await draw();
  equal(drawn.length, 1);
  await draw(figureOf({}, { width: 170 }));
  equal(drawn.length, 2);
});

test('a drawing that failed is drawn again', async () => {
  const { react } = window.Plotly;
  window.Plotly.react = () => Promise.reject(new Error('no'));
  await rejects(plot.draw(figureOf()), /no/);
  window.Plotly.react = react;
  await draw();
  equal(drawn.length, 1);
});

test('a colour bar on its other side begins afresh', async () => {
  const barred = (orientation) => ({ ...figureOf(), data: [{ colorbar: { orientation } }] });
  await draw(barred('v'));
  await draw(barred('h'));
  deepEqual(
    drawn.map(([name]) => name),
    ['react', 'purge', 'react'],
  );
});

test('the pointer finds the cell below it', async () => {
  send(part, 'pointermove', { ...middle(1, 2), pointerType: 'mouse' });
  equal(calls.length, 0);
  await draw();
  send(part, 'pointermove', { ...middle(1, 2), pointerType: 'mouse' });
  send(part, 'pointermove', { ...middle(1, 2), pointerType: 'mouse' });
  deepEqual(cellsOf('onCell'), [{ row: 1, column: 2 }]);
  deepEqual(CELLS.get(part).current(), { row: 1, column: 2 });
  deepEqual(CELLS.get(part).at(middle(3, 4)), { row: 3, column: 4 });
  equal(CELLS.get(part).describe({ row: 1, column: 2 }), 'cell 1 2');
  deepEqual(calls[0][3], false);
  send(part, 'pointermove', { clientX: 120, clientY: 225, pointerType: 'mouse' });
  deepEqual(cellsOf('onCell').at(-1), null);
  send(part, 'pointermove', { ...middle(0, 1), pointerType: 'touch' });
  equal(cellsOf('onCell').length, 2);
});

test('a page that is zoomed is undone before the cell is looked for', async () => {
  await draw();
  layOut(drawing, { left: 0, top: 0, width: 320, height: 180 });
  Object.defineProperty(drawing, 'offsetWidth', { value: 160, configurable: true });
  deepEqual(CELLS.get(part).at({ clientX: 2 * 60, clientY: 2 * 25 }), { row: 0, column: 0 });
  deepEqual(CELLS.get(part).at({ clientX: 2 * 100, clientY: 2 * 45 }), { row: 2, column: 2 });
});

test('the cell, its row and its column are marked', async () => {
  await draw(figureOf({ chosen: { row: 3 }, picked: { row: 0, column: 0 } }));
  deepEqual(['chosen', 'picked', 'row', 'column', 'cell'].map(shown), [
    true,
    true,
    false,
    false,
    false,
  ]);
  deepEqual(styleOf('chosen'), ['translate(50px, 50px)', '100px', '10px']);
  deepEqual(styleOf('picked'), ['translate(50px, 20px)', '20px', '10px']);
  send(part, 'pointermove', { ...middle(1, 2), pointerType: 'mouse' });
  deepEqual(styleOf('row'), ['translate(50px, 30px)', '100px', '10px']);
  deepEqual(styleOf('column'), ['translate(90px, 20px)', '20px', '40px']);
  deepEqual(styleOf('cell'), ['translate(90px, 30px)', '20px', '10px']);
  send(part, 'pointerleave', { pointerType: 'touch' });
  ok(shown('cell'));
  send(part, 'pointerleave', { pointerType: 'mouse' });
  ok(!shown('cell') && !shown('row'));
  await draw();
  ok(!shown('chosen') && !shown('picked'));
});

test('bars have no columns to mark, and a geometry only with a highlight', async () => {
  await draw(figureOf({ columns: 1 }));
  send(part, 'pointermove', { ...middle(1, 2), pointerType: 'mouse' });
  ok(shown('cell') && !shown('row'));
  const { box } = CELLS.get(part);
  deepEqual(box({ row: 1, column: 0 }), { left: 0, top: 30, width: 160, height: 10 });
  const geometry = {
    box: () => ({ x0: 0, x1: 1, y0: 0, y1: 1 }),
    at: () => ({ row: 0, column: 0 }),
  };
  await draw(figureOf({ geometry }));
  send(part, 'pointermove', { ...middle(2, 2), pointerType: 'mouse' });
  ok(shown('cell') && !shown('row'));
  deepEqual(box({ row: 0, column: 0 }), { left: 60, top: 25, width: 20, height: 10 });
});

test('a highlight is drawn in the coordinates of the axes', async () => {
  const highlight = () => ({
    veil: { x0: -0.5, x1: 4.5, y0: -0.5, y1: 3.5 },
    lines: [{ x0: 0.5, x1: 1.5, y0: 0.5, y1: 2.5, colour: 'red', width: 2 }],
    numbers: [
      { x: 2, y: 1.5, text: '7', isStrong: true },
      { x: 2, y: 1.5, text: '8', isStrong: false },
    ],
  });
  const geometry = {
    box: () => ({ x0: 0, x1: 1, y0: 0, y1: 1 }),
    at: (x) => (x < 2 ? { row: 0, column: 0 } : null),
    highlight,
  };
  await draw(figureOf({ geometry }));
  send(part, 'pointermove', { ...middle(0, 0), pointerType: 'mouse' });
  const svg = find('.plot-highlight');
  ok(svg.classList.contains('is-shown') && shown('row'));
  equal(svg.getAttribute('viewBox'), '0 0 100 40');
  deepEqual([svg.getAttribute('width'), svg.getAttribute('height')], ['100', '40']);
  equal(svg.style.transform, 'translate(50px, 20px)');
  const read = (node, ...names) => names.map((name) => Number(node.getAttribute(name)));
  deepEqual(read(find('line', svg), 'x1', 'x2', 'y1', 'y2'), [20, 40, 10, 30]);
  deepEqual(read(find('.veil'), 'x', 'y', 'width', 'height'), [0, 0, 100, 40]);
  deepEqual(texts('text', svg), ['7', '8']);
  deepEqual(
    all('text', svg).map((node) => node.getAttribute('class')),
    ['is-strong', ''],
  );
  send(part, 'pointermove', { ...middle(0, 4), pointerType: 'mouse' });
  ok(!svg.classList.contains('is-shown'));
  equal(svg.childElementCount, 0);
});

test('the tip is beside the cell and inside the plot', async () => {
  await draw();
  const tip = find('.tip');
  layOut(tip, { width: 30, height: 12 });
  ok(!tip.classList.contains('is-shown'));
  send(part, 'pointermove', { ...middle(2, 1), pointerType: 'mouse' });
  ok(tip.classList.contains('is-shown'));
  deepEqual([tip.textContent, find('strong', tip).textContent], ['tip 21', '1']);
  equal(tip.style.transform, 'translate(100px, 26px)');
  send(part, 'pointermove', { ...middle(0, 4), pointerType: 'mouse' });
  equal(tip.style.transform, 'translate(90px, 6px)');
  layOut(tip, { width: 200, height: 40 });
  send(part, 'pointermove', { ...middle(0, 0), pointerType: 'mouse' });
  equal(tip.style.transform, 'translate(0px)');
  layOut(tip, { width: 20, height: 2 });
  layOut(part, { left: 100, top: 200, width: 160, height: 30 });
  send(part, 'pointermove', { ...middle(3, 0), pointerType: 'mouse' });
  equal(tip.style.transform, 'translate(80px, 28px)');
  send(part, 'pointerleave', { pointerType: 'mouse' });
  ok(!tip.classList.contains('is-shown'));
});

/** Presses a cell and lets go some pixels further right. */
function click(row, column, { by = 0, pointerType = 'mouse', isPrimary = true } = {}) {
  const at = middle(row, column);
  send(part, 'pointerdown', { ...at, pointerType, isPrimary });
  send(window, 'pointerup', { ...at, clientX: at.clientX + by, pointerType });
}

test('a press that strays further than a hand shakes is no click', async () => {
  click(1, 1);
  equal(calls.length, 0);
  await draw();
  for (const [pointerType, most] of Object.entries({ mouse: 4, pen: 6, touch: 12, other: 4 })) {
    click(1, 1, { pointerType, by: most - 1 });
    deepEqual(cellsOf('onChoose'), [{ row: 1, column: 1 }], pointerType);
    take();
    click(1, 1, { pointerType, by: most });
    click(1, 1, { pointerType, by: -400 });
    deepEqual(cellsOf('onChoose'), [], pointerType);
  }
  click(2, 2, { isPrimary: false });
  send(part, 'pointerdown', { ...middle(2, 2), isPrimary: true, pointerType: 'mouse' });
  send(part, 'pointercancel');
  send(window, 'pointerup', { ...middle(2, 2), pointerType: 'mouse' });
  equal(cellsOf('onChoose').length, 0);
  click(2, 3);
  send(window, 'pointerup', { ...middle(2, 3), pointerType: 'mouse' });
  deepEqual(cellsOf('onChoose'), [{ row: 2, column: 3 }]);
  plot.destroy();
  click(2, 3);
  equal(cellsOf('onChoose').length, 1);
});

test('nothing is chosen where nothing can be', async () => {
  await draw(figureOf({ choose: undefined }));
  click(1, 1);
  press(part, 'Enter');
  equal(cellsOf('onChoose').length, 0);
});

test('keys walk from cell to cell and choose', async () => {
  equal(press(part, 'ArrowDown'), true);
  await draw(figureOf({ start: { row: 1, column: 1 } }));
  equal(press(part, 'ArrowDown'), false);
  deepEqual(calls.at(-1), ['onCell', { row: 2, column: 1 }, calls.at(-1)[2], true]);
  press(part, 'End');
  press(part, 'Home', { ctrlKey: true });
  deepEqual(cellsOf('onCell').slice(1), [
    { row: 2, column: 4 },
    { row: 0, column: 0 },
  ]);
  press(part, 'End', { metaKey: true });
  deepEqual(cellsOf('onCell').at(-1), { row: 3, column: 4 });
  equal(press(part, 'Enter'), false);
  equal(press(part, ' '), false);
  deepEqual(cellsOf('onChoose'), [
    { row: 3, column: 4 },
    { row: 3, column: 4 },
  ]);
  equal(press(part, 'x'), true);
  equal(press(part, 'ArrowUp', { altKey: true }), true);
  press(part, 'Escape');
  equal(cellsOf('onCell').at(-1), null);
  await draw();
  press(part, 'ArrowRight');
  deepEqual(cellsOf('onCell').at(-1), { row: 0, column: 1 });
});

test('a key chooses, leaves, moves the map or the cursor, or does nothing', () => {
  const grid = { rows: 4, columns: 5, move: (key) => (key === '+' ? { zoom: 1 } : null) };
  const act = (key, more) => reaction({ key, ...more }, grid, { row: 1, column: 1 });
  deepEqual(act('Enter'), { does: 'choose' });
  deepEqual(act('Escape'), { does: 'leave', cell: null });
  deepEqual(act('+'), { does: 'move', patch: { zoom: 1 } });
  deepEqual(act('ArrowDown'), { does: 'point', cell: { row: 2, column: 1 } });
  deepEqual([act('x'), act('Enter', { altKey: true })], [null, null]);
});

test('keys that move the map do not move the cursor', async () => {
  const keys = [];
  const move = (key, cell) => {
    keys.push([key, cell]);
    return key === 'Shift+ArrowUp' || key === '+' ? { key } : null;
  };
  await draw(figureOf({ move }));
  let passed = 0;
  part.parentElement.addEventListener('keydown', () => (passed += 1));
  equal(press(part, '+'), false);
  equal(press(part, 'ArrowUp', { shiftKey: true }), false);
  equal(passed, 0);
  deepEqual(calls, [
    ['onGoingOn', { key: '+' }],
    ['onGoingOn', { key: 'Shift+ArrowUp' }],
  ]);
  press(part, 'ArrowDown');
  equal(passed, 1);
  deepEqual(keys.at(-1), ['ArrowDown', null]);
  press(part, 'A', { shiftKey: true });
  equal(keys.at(-1)[0], 'A');
  deepEqual(keys.at(-1)[1], { row: 1, column: 0 });
});

test('the cursor enters with the focus and leaves with it', async () => {
  const isVisible = part.matches;
  part.matches = (selector) => selector === ':focus-visible' || isVisible.call(part, selector);
  send(part, 'focus');
  await draw(figureOf({ start: { row: 2, column: 2 } }));
  send(part, 'focus');
  deepEqual(
    calls.map(([name, cell, , isKey]) => [name, cell, isKey]),
    [['onCell', { row: 2, column: 2 }, true]],
  );
  send(part, 'blur');
  equal(cellsOf('onCell').at(-1), null);
  part.matches = () => false;
  send(part, 'focus');
  equal(calls.length, 2);
  part.matches = () => true;
  await draw();
  send(part, 'focus');
  deepEqual(cellsOf('onCell').at(-1), { row: 0, column: 0 });
});

test('a cell stays under the cursor if it still means the same', async () => {
  await draw();
  press(part, 'End', { ctrlKey: true });
  take();
  await draw(figureOf({}, { width: 170 }));
  deepEqual(
    calls.map(([name, cell, , isKey]) => [name, cell, isKey]),
    [['onCell', { row: 3, column: 4 }, false]],
  );
  for (const other of [{ rows: 3 }, { columns: 4 }, { rowTitle: 'layer' }]) {
    await draw();
    press(part, 'End', { ctrlKey: true });
    await draw(figureOf(other));
    equal(CELLS.get(part).current(), null, JSON.stringify(other));
  }
});

const LETTERING = { space: 20, most: 10 };
const LARGE = {
  rows: 50,
  columns: 50,
  rowLabels: Array.from({ length: 50 }, (_, row) => `r${row}`),
  columnLabels: Array.from({ length: 50 }, (_, column) => `c${column}`),
  thinned: { rows: LETTERING, columns: LETTERING },
};
const WHOLE = { xaxis: { range: [-0.5, 49.5] }, yaxis: { range: [49.5, -0.5] } };
const large = (grid = {}) => figureOf({ ...LARGE, ...grid }, WHOLE);

test('a large map can be zoomed into, a small one not', async () => {
  await draw(figureOf({ thinned: LARGE.thinned }));
  equal(find('.plot-zoom'), null);
  await draw(large());
  const [, , , layout] = drawn.at(-1);
  deepEqual([layout.dragmode, layout.xaxis.fixedrange], ['zoom', false]);
  ok(find('.plot-note').textContent);
  ok(!find('.plot-zoom').hidden);
  deepEqual(layout.xaxis.range, [24.5, 49.5]);
  deepEqual(layout.yaxis.range, [9.5, -0.5]);
  ok(layout.xaxis.tickvals.every((at) => at >= 25 && at < 50) && layout.xaxis.tickvals.length > 1);
  ok(layout.yaxis.tickvals.every((at) => at >= 0 && at < 10) && layout.yaxis.tickvals.length > 0);
  equal(layout.xaxis.ticktext.length, layout.xaxis.tickvals.length);
  const mouse = find('.plot-note').textContent;
  matchMedia('(hover: hover)', false);
  await draw(large({ quantity: 'other' }));
  equal(drawn.at(-1)[3].dragmode, false);
  ok(find('.plot-note').textContent !== mouse);
  matchMedia('(hover: hover)', true);
  await draw();
  ok(find('.plot-zoom').hidden);
  equal(drawn.at(-1)[3].xaxis.tickvals, undefined);
});

test('the buttons of zoom change what is drawn', async () => {
  await draw(large());
  const before = drawn.length;
  find('.plot-zoom button:last-child').click();
  await settled(30);
  ok(drawn.length > before);
  equal(drawn.at(-1)[3].xaxis.tickvals, undefined);
});

test('after zooming there are as many labels as there is room for', async () => {
  await draw(large());
  drawing.layout = {
    ...drawing.layout,
    xaxis: { range: [9.5, 14.5] },
    yaxis: { range: [14.5, 9.5] },
  };
  drawing.relaid({ 'xaxis.range[0]': 9.5 });
  const [name, at, update] = drawn.at(-1);
  deepEqual([name, at], ['relayout', drawing]);
  deepEqual(update['xaxis.tickvals'], [10, 11, 12, 13, 14]);
  deepEqual(update['xaxis.ticktext'].length, 5);
  ok(
    update['yaxis.tickvals'].length > 0 &&
      update['yaxis.tickvals'].every((tick) => tick >= 10 && tick <= 14),
  );
  const count = drawn.length;
  drawing.relaid({ width: 7 });
  equal(drawn.length, count);
  await draw(large({ note: 'again' }));
  deepEqual(drawn.at(-1)[3].xaxis.range, [9.5, 14.5]);
  drawing.relaid({ 'xaxis.autorange': true });
  await draw(large({ note: 'once more' }));
  equal(drawn.at(-1)[3].xaxis.tickvals, undefined);
});

test('an image has the caption below, and twice the pixels as PNG', async () => {
  await rejects(plot.image('png', ''), /no drawing/);
  await draw();
  match(await plot.image('png', 'a caption'), /^data:/);
  const [, { layout }, options] = drawn.at(-1);
  deepEqual(options, { format: 'png', width: layout.width, height: layout.height, scale: 2 });
  ok(layout.title.text.includes('a caption'));
  await plot.image('svg', '');
  equal(drawn.at(-1)[2].scale, 1);
});

test('a drawing that goes is cleared', async () => {
  plot.destroy();
  equal(drawn.length, 0);
  await draw();
  plot.destroy();
  deepEqual(drawn.at(-1), ['purge', drawing]);
});
