/**
 * The whole maps of all heads, small, over a text of any length; choosing one shows it large. Rows
 * are layers; of many layers, groups fold and are painted when they open.
 */

import { findCeiling } from '../trace/arithmetic.js';
import { sequential } from '../plot/colour.js';
import { walk } from './plot.js';
import { button, element, palette, paintValues } from './dom.js';

/**
 * @import { Trace } from '../trace/trace.js'
 * @import { ViewState } from '../plot/figure.js'
 * @import { Handlers } from './view_section.js'
 */

/** @typedef {{data: ArrayLike<number>, offset: number, rows: number, columns: number, scale: number, isCausal: boolean}} SmallMap */
/** @typedef {{layer: number, maps: SmallMap[]}} MapLayer */

/** More layers than this fold, in groups. */
const MOST_OPEN = 12;
const GROUP = 8;
const SIDE = { least: 24, most: 84 };
const GAP = 4;
const LABEL = 40;
/** The share of a map's values that the colours tell apart. */
const COLOURED = 0.98;

/**
 * Return a map shrunk to some cells a side: the mean of the cells that each covers.
 * @param {SmallMap} map
 * @param {number} side
 * @returns {Float64Array} NaN: after the query
 */
export function shrunk({ data, offset, rows, columns, scale, isCausal }, side) {
  const small = new Float64Array(side * side).fill(NaN);
  /** @param {number} at @param {number} count */
  const span = (at, count) => {
    const first = Math.floor((at * count) / side);
    return [first, Math.max(first + 1, Math.floor(((at + 1) * count) / side))];
  };
  for (let y = 0; y < side; y += 1) {
    const [top, bottom] = span(y, rows);
    for (let x = 0; x < side; x += 1) {
      const [left, right] = span(x, columns);
      if (isCausal && left >= bottom) continue;
      let sum = 0;
      for (let row = top; row < bottom; row += 1)
        for (let column = left; column < right; column += 1)
          sum += data[offset + row * columns + column];
      small[y * side + x] = (sum * scale) / ((bottom - top) * (right - left));
    }
  }
  return small;
}

/**
 * @param {Handlers} handlers
 * @param {(trace: Trace, state: ViewState) => {layers: MapLayer[], name: string}|null} mapsOf null: they are not there yet, or not shown
 */
export function createMapHeads({ onState, onSight, announce }, mapsOf) {
  const body = element('div.map-heads-body');
  const caption = element('p.heads-caption');
  const savePng = async () =>
    (await import('./picture.js')).savePicture(
      body,
      '.map-heads-layer',
      'headlight-all-heads.png',
      announce,
    );
  const png = button('PNG', savePng, {
    class: 'heads-png',
    title: 'Save the maps of all heads as an image',
  });
  const block = element(
    'section.map-heads',
    { 'aria-label': 'All heads', hidden: true },
    element('h2', 'All heads'),
    body,
    element('div.heads-foot', caption, png),
  );
  /** @type {{groups: Group[], key: string}} */
  let drawn = { groups: [], key: '' };
  /** @type {{trace: Trace|null, name: string, theme: string}} */
  let seen = { trace: null, name: '', theme: '' };

  body.addEventListener('click', ({ target }) => {
    const cell = target instanceof Element ? target.closest('button') : null;
    if (!cell) return;
    onState({ layer: Number(cell.dataset.layer), head: Number(cell.dataset.head) });
    onSight?.();
  });
  body.addEventListener('keydown', (event) => {
    const cells = [...body.querySelectorAll('.map-heads-row')]
      .filter((line) => line.closest('details')?.open !== false)
      .map((line) => [...line.querySelectorAll('button')]);
    const row = cells.findIndex((line) => line.some((cell) => cell === event.target));
    if (row < 0) return;
    const column = cells[row].findIndex((cell) => cell === event.target);
    const size = { rows: cells.length, columns: cells[row].length };
    const to = walk({ row, column }, event.key, size, event.ctrlKey || event.metaKey);
    if (!to) return;
    event.preventDefault();
    cells[to.row][to.column].focus();
  });
  body.addEventListener('focusin', ({ target }) => {
    if (!(target instanceof HTMLButtonElement)) return;
    for (const cell of body.querySelectorAll('button')) cell.tabIndex = cell === target ? 0 : -1;
  });

  /** @param {Group} group */
  function paint({ node, layers }) {
    if (node instanceof HTMLDetailsElement && !node.open) return;
    const colours = sequential(palette().theme);
    for (const cell of layers.flatMap(({ cells }) => cells)) {
      if (!cell.isDone) paintMap(cell.canvas, cell.map, colours);
      cell.isDone = true;
    }
  }

  return {
    element: block,

    /** @param {Trace} trace @param {ViewState} state */
    show(trace, state) {
      const maps = mapsOf(trace, state);
      block.hidden = !maps;
      if (!maps) return;
      const { layers, name } = maps;
      const width = block.clientWidth;
      const { theme } = state.palette;
      const isOther = trace !== seen.trace || name !== seen.name || theme !== seen.theme;
      const key = `${layers.length} ${layers[0]?.maps.length} ${width}`;
      if (isOther || key !== drawn.key) {
        drawn = { groups: build(layers, width, state.layer, paint), key };
        seen = { trace, name, theme };
        body.replaceChildren(...drawn.groups.map(({ node }) => node));
        drawn.groups.forEach(paint);
        caption.textContent = `The ${name} of every head, each in its own colours. Choose one to see it large.`;
      }
      for (const cell of body.querySelectorAll('button')) {
        const isChosen =
          Number(cell.dataset.layer) === state.layer && Number(cell.dataset.head) === state.head;
        cell.setAttribute('aria-pressed', String(isChosen));
        if (!body.contains(document.activeElement)) cell.tabIndex = isChosen ? 0 : -1;
      }
    },
  };
}

/**
 * @param {MapLayer[]} layers
 * @param {number} width
 * @param {number} chosen layer
 * @param {(group: Group) => void} paint a group that was opened
 * @returns {Group[]}
 */
function build(layers, width, chosen, paint) {
  const heads = layers[0]?.maps.length ?? 1;
  const room = Math.floor((width - LABEL) / heads) - GAP;
  const side = Math.max(SIDE.least, Math.min(SIDE.most, room));
  const folds = layers.length > MOST_OPEN;
  const groups = [];
  for (let first = 0; first < layers.length; first += folds ? GROUP : layers.length) {
    const members = layers.slice(first, folds ? first + GROUP : layers.length);
    const rows = members.map((layer) => rowOf(layer, side));
    const node = folds
      ? element(
          'details',
          { open: members.some(({ layer }) => layer === chosen) },
          element('summary', `Layers ${members[0].layer} to ${members[members.length - 1].layer}`),
          rows.map(({ line }) => line),
        )
      : element(
          'div',
          rows.map(({ line }) => line),
        );
    const group = { node, layers: rows };
    node.addEventListener('toggle', () => paint(group));
    groups.push(group);
  }
  return groups;
}

/** @typedef {{canvas: HTMLCanvasElement, map: SmallMap, isDone: boolean}} MapCell */
/** @typedef {{line: HTMLElement, cells: MapCell[]}} MapRow */
/** @typedef {{node: HTMLElement, layers: MapRow[]}} Group */

/**
 * @param {MapLayer} layer
 * @param {number} side pixels
 * @returns {MapRow}
 */
function rowOf({ layer, maps }, side) {
  const cells = maps.map((map) => {
    const canvas = element('canvas', { width: side, height: side, 'aria-hidden': 'true' });
    return { canvas, map, isDone: false };
  });
  const line = element(
    'div.map-heads-row',
    { role: 'group', 'aria-label': `Layer ${layer}` },
    element('span.map-heads-layer', { 'aria-hidden': 'true' }, String(layer)),
    cells.map(({ canvas }, head) =>
      element(
        'button.map-heads-cell',
        {
          type: 'button',
          'data-layer': layer,
          'data-head': head,
          'aria-label': `Layer ${layer}, head ${head}`,
          title: `Layer ${layer}, head ${head}`,
          tabindex: -1,
        },
        canvas,
      ),
    ),
  );
  return { line, cells };
}

/** @param {HTMLCanvasElement} canvas @param {SmallMap} map @param {Uint8Array} colours */
function paintMap(canvas, map, colours) {
  const values = shrunk(map, canvas.width);
  paintValues(canvas, values, colours, findCeiling(values, COLOURED));
}
