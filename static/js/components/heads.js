/**
 * Every head of every layer as a small map. The maps are pixels on one canvas; over each lies a
 * button, so that mouse, touch, keyboard and screen reader all reach it.
 */

import { sequential } from '../core/colour.js';
import { share } from '../core/number.js';
import { peak, rasterise } from '../core/raster.js';
import { placeOf, weightsAt } from '../core/places.js';
import { isCausal } from '../core/sites.js';
import { walk } from '../core/cells.js';
import { element } from './element.js';

const MARGIN = 44;
const GAP = 6;
const LARGEST = 72;
const SMALLEST = 12;

/**
 * @param {{onChoose: (layer: number, head: number) => void}} handlers
 */
export function createHeads({ onChoose }) {
  const canvas = element('canvas', { 'aria-hidden': 'true' });
  const grid = element('div', { class: 'heads-grid', role: 'grid', 'aria-label': 'Heads: rows are layers, columns are heads' });
  const caption = element('p', { class: 'heads-caption' });
  const frame = element('div', { class: 'heads' }, canvas, grid);
  const block = element('div', {}, frame, caption);
  let layers = [];
  let cells = [];
  let shape = '';
  let chosen = { row: 0, column: 0 };
  let painted = {};

  const say = (cell) => {
    caption.textContent = cell ? captionOf(layers[cell.row], cell.column) : 'Rows are layers, columns are heads, counted from 0. Point at a map, choose one to see it large.';
  };
  grid.addEventListener('click', ({ target }) => {
    const cell = cellOf(cells, target);
    if (cell) onChoose(layers[cell.row].layer, cell.column);
  });
  grid.addEventListener('keydown', (event) => {
    const from = cellOf(cells, event.target);
    const to = from && walk(from, event.key, { rows: cells.length, columns: cells[0].length }, event.ctrlKey || event.metaKey);
    if (!to) return;
    event.preventDefault();
    rove(cells, to);
    cells[to.row][to.column].focus();
  });
  for (const type of ['pointerover', 'focusin']) grid.addEventListener(type, ({ target }) => say(cellOf(cells, target)));
  for (const type of ['pointerleave', 'focusout']) grid.addEventListener(type, () => say(null));
  say(null);

  return {
    element: block,

    /**
     * @param {import('../core/trace.js').Trace} trace
     * @param {{where: string, layer: number, head: number, range: 'one'|'head', width: number, palette: {theme: 'light'|'dark'}}} state
     */
    show(trace, state) {
      const place = placeOf(state, trace);
      if (trace !== painted.trace || place?.id !== painted.place) layers = picturesOf(trace, place);
      const nHeads = layers[0]?.pictures.length ?? 0;
      const wanted = `${layers.map(({ layer }) => layer)} × ${nHeads}`;
      if (wanted !== shape) {
        cells = build(grid, layers, nHeads);
        shape = wanted;
      }
      chosen = { row: layers.findIndex(({ layer }) => layer === state.layer), column: state.head };
      select(grid, cells, layers, chosen);
      const wish = { trace, place: place?.id, range: state.range, width: state.width, theme: state.palette.theme, ratio: window.devicePixelRatio };
      if (isSame(wish, painted)) return;
      paint(canvas, frame, layers, sizeFor(state.width, nHeads), state);
      painted = wish;
    },
  };
}

function isSame(a, b) {
  return Object.keys(a).every((name) => a[name] === b[name]);
}

function picturesOf(trace, place) {
  return weightsAt(place, trace).map(({ layer, site }) => {
    const { shape: [nHeads, rows, columns], data, scale } = trace.tensors[site];
    const pictures = Array.from({ length: nHeads }, (_, head) => {
      const picture = { data, offset: head * rows * columns, rows, columns, scale, isCausal: isCausal(site) };
      return { ...picture, ceiling: peak(picture) };
    });
    return { layer, pictures };
  });
}

function build(grid, layers, nHeads) {
  const cells = layers.map(({ layer, pictures }) =>
    pictures.map((_, head) =>
      element('button', { type: 'button', class: 'heads-cell', role: 'gridcell', tabindex: -1, 'aria-label': `Layer ${layer}, head ${head}` }),
    ),
  );
  const corner = element('span', { class: 'heads-label is-corner', role: 'presentation' }, '');
  const top = element('div', { class: 'heads-row', role: 'row' }, corner, ...Array.from({ length: nHeads }, (_, head) =>
    element('span', { class: 'heads-label is-head', role: 'columnheader', 'aria-label': `head ${head}` }, String(head)),
  ));
  const rows = cells.map((row, index) =>
    element('div', { class: 'heads-row', role: 'row' },
      element('span', { class: 'heads-label is-layer', role: 'rowheader', 'aria-label': `layer ${layers[index].layer}` }, String(layers[index].layer)),
      ...row,
    ),
  );
  grid.replaceChildren(top, ...rows);
  return cells;
}

function select(grid, cells, layers, { row, column }) {
  cells.forEach((line, r) => line.forEach((cell, c) => cell.setAttribute('aria-selected', String(r === row && c === column))));
  grid.querySelectorAll('.is-layer').forEach((label, r) => label.classList.toggle('is-current', r === row));
  grid.querySelectorAll('.is-head').forEach((label, c) => label.classList.toggle('is-current', c === column));
  if (!grid.contains(document.activeElement)) rove(cells, { row: Math.max(row, 0), column });
}

function rove(cells, { row, column }) {
  cells.forEach((line, r) => line.forEach((cell, c) => { cell.tabIndex = r === row && c === column ? 0 : -1; }));
}

function cellOf(cells, target) {
  for (let row = 0; row < cells.length; row += 1) {
    const column = cells[row].indexOf(target);
    if (column >= 0) return { row, column };
  }
  return null;
}

function captionOf({ layer, pictures }, head) {
  return `Layer ${layer}, head ${head}: strongest weight ${share(pictures[head].ceiling)}`;
}

function sizeFor(width, nHeads) {
  const room = (width - MARGIN - nHeads * GAP) / Math.max(nHeads, 1);
  return Math.max(SMALLEST, Math.min(LARGEST, Math.floor(room)));
}

function paint(canvas, frame, layers, size, { range, palette }) {
  const ratio = window.devicePixelRatio || 1;
  const nHeads = layers[0]?.pictures.length ?? 0;
  for (const [name, value] of [['--size', size], ['--gap', GAP], ['--margin', MARGIN]]) frame.style.setProperty(name, `${value}px`);
  frame.style.setProperty('--heads', nHeads);
  const box = frame.getBoundingClientRect();
  canvas.width = Math.round(box.width * ratio);
  canvas.height = Math.round(box.height * ratio);
  canvas.style.width = `${canvas.width / ratio}px`;
  canvas.style.height = `${canvas.height / ratio}px`;
  const context = canvas.getContext('2d');
  const colours = sequential(palette.theme);
  const pixels = Math.round(size * ratio);
  frame.querySelectorAll('.heads-cell').forEach((button, index) => {
    const { pictures } = layers[Math.floor(index / nHeads)];
    const picture = pictures[index % nHeads];
    const ceiling = range === 'head' ? picture.ceiling : 1;
    const image = new ImageData(rasterise({ ...picture, ceiling }, pixels, colours), pixels, pixels);
    const place = button.getBoundingClientRect();
    context.putImageData(image, Math.round((place.left - box.left) * ratio), Math.round((place.top - box.top) * ratio));
  });
}
