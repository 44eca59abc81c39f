/**
 * One drawing with a cursor of cells over it, for the pointer and for the keyboard.
 * The renderer draws; what is pointed at is worked out from the plot area and its cells.
 */

import { boxOf, cellAt, createRenderer, hasMouse, isZoomable } from '../plot/renderer.js';
import { element, palette } from './dom.js';
import { cellsOf, unionOf } from './plot_cells.js';

/**
 * @import { DrawnFigure } from '../plot/figure.js'
 * @import { Box, Cell, Grid, Highlight } from '../plot/grid.js'
 * @import { Area, Pixels } from '../plot/renderer.js'
 * @import { Patch } from '../state/state.js'
 */

/** Pixels a press may stray and still be a click: a fingertip rolls. */
/** @type {Record<string, number>} */
const SLOP = { mouse: 4, pen: 6, touch: 12 };
/**
 * The cells of each drawing on the page: where one is, which is at the pointer or at the keyboard's
 * cursor, what one says, and which tokens and labels it has. Bars are boxes with their labels.
 * @type {WeakMap<Element, {at: (event: {clientX: number, clientY: number}) => Cell|null, current: () => Cell|null, box: (cell: Cell) => Pixels|null, describe: (cell: Cell) => string, meaning: (cell: Cell) => CellMeaning|null, boxOfTokens: (tokens: {query: number|null, key: number|null}) => Pixels|null}>}
 */
export const CELLS = new WeakMap();
/** @typedef {{query?: number|number[], key?: number|number[], labels: string[]}} CellMeaning its tokens, and the labels of its row and column */

const MARKS = ['chosen', 'picked', 'row', 'column', 'cell'];

let count = 0;

/**
 * @param {Object} handlers
 * @param {(cell: Cell|null, grid: Grid, isKeyboard: boolean) => void} handlers.onCell the cell under the cursor, or none
 * @param {(cell: Cell, grid: Grid) => void} handlers.onChoose
 * @param {(patch: Patch) => void} [handlers.onGoingOn] a key or the wheel moves what is shown
 */
export function createPlot({ onCell, onChoose, onGoingOn }) {
  count += 1;
  const hint = element('p', { class: 'plot-hint', id: `plot-hint-${count}` });
  const note = element('p', { class: 'plot-note' });
  /** @type {PlotlyElement} */
  const drawing = element(
    'div',
    { class: 'plot-drawing' },
    element('p', { class: 'plot-waiting' }, 'Drawing…'),
  );
  const marks = Object.fromEntries(
    MARKS.map((name) => [name, element('div', { class: `plot-mark is-${name}` })]),
  );
  const highlight = createHighlight();
  const tip = element('div', { class: 'tip', 'aria-hidden': 'true' });
  const plot = element(
    'div',
    { class: 'plot', role: 'application', tabindex: 0, 'aria-describedby': hint.id },
    drawing,
    highlight.element,
    ...Object.values(marks),
    tip,
  );
  /** @type {DrawnFigure|null} */
  let figure = null;
  /** @type {Cell|null} */
  let cell = null;
  /** @type {{clientX: number, clientY: number}|null} */
  let pressed = null;
  /** @type {ReturnType<typeof import('./pan_zoom.js').createPanZoom>|null} */
  let panZoom = null;

  /** @type {ReturnType<typeof import('./pan_zoom.js').createZoom>|null} */
  let zoom = null;
  const renderer = createRenderer(drawing, {
    onMoved: showMarks,
    onZoom: (box) =>
      figure && zoom?.show({ across: figure.grid.columns, down: figure.grid.rows }, box),
  });

  /** @param {Grid} grid */
  async function letMove(grid) {
    const isLarge = isZoomable(grid);
    if (!grid.pan && !panZoom && !isLarge && !zoom) return;
    const { createPanZoom, createZoom } = await import('./pan_zoom.js');
    const whole = { across: grid.columns, down: grid.rows };
    /** @param {Box|null} box */
    const onBox = async (box) => {
      await renderer.show(box);
      showMarks();
      zoom?.show(whole, box);
    };
    if (isLarge) zoom ??= createZoom(plot, { area: renderer.area, onBox });
    zoom?.show(isLarge ? whole : null, renderer.shown());
    if (!grid.pan && !panZoom) return;
    panZoom ??= createPanZoom(plot, {
      area: renderer.area,
      onMoved: (patch) => onGoingOn?.(patch),
    });
    panZoom.show(figure?.grid.pan);
  }

  /** @param {{clientX: number, clientY: number}} event @param {Grid} grid */
  function cellUnder(event, grid) {
    const area = renderer.area();
    if (!area) return null;
    const box = drawing.getBoundingClientRect();
    const zoom = box.width / drawing.offsetWidth || 1;
    const x = ((event.clientX - box.left) / zoom - area.left) / area.width;
    const y = ((event.clientY - box.top) / zoom - area.top) / area.height;
    return cellAt(x, y, area, grid);
  }

  /** @param {Cell|null} to */
  function point(to, isKeyboard = false) {
    if (sameCell(cell, to)) return;
    cell = to;
    showMarks();
    if (figure) onCell(cell, figure.grid, isKeyboard);
  }

  function showMarks() {
    const area = renderer.area();
    if (!figure || !area) return;
    const { grid } = figure;
    /** @param {number|undefined} rows @param {number|undefined} columns */
    const at = (rows, columns) => boxOf(rows, columns, area, grid);
    const hasSides = grid.columns > 1 && Boolean(!grid.geometry || grid.geometry.highlight);
    highlight.show(cell && grid.geometry?.highlight?.(cell), area);
    place(marks.chosen, grid.chosen && at(grid.chosen.row, grid.chosen.column));
    place(marks.picked, grid.picked && at(grid.picked.row, grid.picked.column));
    place(marks.row, cell && hasSides ? at(cell.row, undefined) : null);
    place(marks.column, cell && hasSides ? at(undefined, cell.column) : null);
    place(marks.cell, cell && at(cell.row, cell.column));
    showTip(tip, cell && grid.tip(cell.row, cell.column), cell && at(cell.row, cell.column), plot);
  }

  function choose() {
    if (cell && figure?.grid.choose) onChoose(cell, figure.grid);
  }

  CELLS.set(plot, {
    at: (event) => figure && cellUnder(event, figure.grid),
    current: () => cell,
    box(of) {
      const area = renderer.area();
      const box = figure && area && boxOf(of.row, of.column, area, figure.grid);
      const isBar = figure && figure.grid.columns < 2 && !figure.grid.geometry;
      return box && isBar ? { ...box, left: 0, width: plot.clientWidth } : box;
    },
    describe: (of) => figure?.grid.describe(of.row, of.column) ?? '',
    meaning: ({ row, column }) =>
      figure && {
        ...figure.grid.tokens(row, column),
        labels: [figure.grid.rowLabels[row] ?? '', figure.grid.columnLabels[column] ?? ''],
      },
    boxOfTokens(wanted) {
      const area = renderer.area();
      if (!figure || !area) return null;
      const { grid } = figure;
      return unionOf(cellsOf(grid, wanted).map((at) => boxOf(at.row, at.column, area, grid)));
    },
  });
  plot.addEventListener('pointermove', (event) => {
    if (figure && event.pointerType !== 'touch') point(cellUnder(event, figure.grid));
  });
  plot.addEventListener('pointerleave', (event) => {
    if (figure && event.pointerType !== 'touch') point(null);
  });
  plot.addEventListener('pointerdown', (event) => {
    pressed = event.isPrimary ? { clientX: event.clientX, clientY: event.clientY } : null;
  });
  plot.addEventListener('pointercancel', () => {
    pressed = null;
  });
  const gone = new AbortController(); // the window outlives the drawing
  window.addEventListener(
    'pointerup',
    (event) => {
      const isClick =
        pressed &&
        Math.hypot(event.clientX - pressed.clientX, event.clientY - pressed.clientY) <
          (SLOP[event.pointerType] ?? SLOP.mouse);
      const at = pressed;
      pressed = null;
      if (!at || !isClick || !figure) return;
      point(cellUnder(at, figure.grid));
      choose();
    },
    { signal: gone.signal },
  );
  plot.addEventListener('focus', () => {
    if (figure && plot.matches(':focus-visible'))
      point(figure.grid.start ?? { row: 0, column: 0 }, true);
  });
  plot.addEventListener('blur', () => {
    if (figure) point(null);
  });
  /** @param {string} key */
  function move(key) {
    const patch = figure?.grid.move?.(key, cell);
    if (patch) onGoingOn?.(patch);
    return Boolean(patch);
  }

  plot.addEventListener('keydown', (event) => {
    if (!figure || event.altKey) return;
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      choose();
      return;
    }
    if (event.key === 'Escape') {
      point(null);
      return;
    }
    if (move(event.shiftKey && event.key.startsWith('Arrow') ? `Shift+${event.key}` : event.key)) {
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    const from = cell ?? figure.grid.start ?? { row: 0, column: 0 };
    const to = walk(from, event.key, figure.grid, event.ctrlKey || event.metaKey);
    if (!to) return;
    event.preventDefault();
    point(to, true);
  });

  return {
    element: element('div', {}, plot, element('div', { class: 'plot-words' }, hint, note)),

    /** @param {DrawnFigure} wanted @returns {Promise<void>} */
    async draw(wanted) {
      plot.setAttribute('aria-label', wanted.summary ?? '');
      plot.setAttribute(
        'aria-roledescription',
        wanted.grid.kind ?? (wanted.grid.columns > 1 ? 'heatmap' : 'bar chart'),
      );
      hint.textContent = hintFor(wanted.grid);
      note.textContent = [noteFor(wanted.grid), wanted.labelled].filter(Boolean).join(' ');
      // Until it is drawn, a drawing has the room it will take.
      if (!figure) drawing.style.minHeight = `${wanted.layout.height ?? 0}px`;
      await renderer.draw(wanted);
      drawing.style.minHeight = '';
      drawing.querySelector('.plot-waiting')?.remove();
      const before = figure?.grid;
      figure = wanted;
      if (cell && !isSameKind(before, figure.grid, cell)) cell = null;
      showMarks();
      await letMove(figure.grid);
      if (cell) onCell(cell, figure.grid, false);
    },

    /**
     * @param {'png'|'svg'} format
     * @param {string} caption
     */
    image: (format, caption) => renderer.image(format, caption, palette()),

    destroy() {
      gone.abort();
      panZoom?.destroy();
      renderer.destroy();
    },
  };
}

/**
 * Return true if the cell still means the same. Resized, a drawing may lie on its other side.
 * @param {Grid|undefined} before
 * @param {Grid} grid
 * @param {Cell} cell
 */
function isSameKind(before, { rows, columns, rowTitle }, cell) {
  return before?.rowTitle === rowTitle && cell.row < rows && cell.column < columns;
}

/** @param {Cell|null} a @param {Cell|null} b */
function sameCell(a, b) {
  return (
    a === b ||
    (a !== null && b !== null && a.row === b.row && a.column === b.column && a.of === b.of)
  );
}

/** @param {Grid} grid */
function hintFor(grid) {
  const move = 'Arrow keys move from cell to cell, Home and End to the ends of a row';
  return grid.choose
    ? `${move}; ${grid.chooseHint ?? 'Enter chooses the cell’s token'}.`
    : `${move}.`;
}

/** @param {Grid} grid */
function noteFor(grid) {
  if (grid.note !== undefined || !isZoomable(grid)) return grid.note ?? '';
  return hasMouse()
    ? 'Drag to zoom in, double-click to zoom out.'
    : 'Two fingers zoom and move the map.';
}

/** @param {HTMLElement} mark @param {Pixels|null|undefined} box */
function place(mark, box) {
  mark.classList.toggle('is-shown', Boolean(box));
  if (!box) return;
  mark.style.transform = `translate(${box.left}px, ${box.top}px)`;
  mark.style.width = `${box.width}px`;
  mark.style.height = `${box.height}px`;
}

/**
 * @param {HTMLDivElement} tip
 * @param {string[]|null} lines
 * @param {Pixels|null} box
 * @param {HTMLDivElement} plot
 */
function showTip(tip, lines, box, plot) {
  tip.classList.toggle('is-shown', Boolean(lines && box));
  if (!lines || !box) return;
  const [what, much] = lines;
  tip.replaceChildren(what, element('strong', {}, much));
  const gap = 10;
  const fitsRight = box.left + box.width + gap + tip.offsetWidth < plot.clientWidth;
  const left = fitsRight
    ? box.left + box.width + gap
    : Math.max(0, box.left - gap - tip.offsetWidth);
  const top = Math.max(
    0,
    Math.min(plot.clientHeight - tip.offsetHeight, box.top - tip.offsetHeight - 2),
  );
  tip.style.transform = `translate(${left}px, ${top}px)`;
}

const PAGE = 8;

/** @type {Record<string, [number, number]>} */
const STEPS = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  PageUp: [-PAGE, 0],
  PageDown: [PAGE, 0],
};

/**
 * Return the cell that a key leads to. Movement stops at the edge.
 * @param {Cell} cell
 * @param {string} key as in KeyboardEvent.key
 * @param {{rows: number, columns: number}} grid
 * @param {boolean} [far] Ctrl or Cmd held: Home and End reach for the corners
 * @returns {Cell|null} null for any other key
 */
export function walk({ row, column }, key, { rows, columns }, far = false) {
  if (key === 'Home') return { row: far ? 0 : row, column: 0 };
  if (key === 'End') return { row: far ? rows - 1 : row, column: columns - 1 };
  if (!(key in STEPS)) return null;
  const [down, right] = STEPS[key];
  return { row: limit(row + down, rows), column: limit(column + right, columns) };
}

/** @param {number} index @param {number} count */
function limit(index, count) {
  return Math.max(0, Math.min(count - 1, index));
}

const SVG = 'http://www.w3.org/2000/svg';

function createHighlight() {
  const svg = node('svg', { class: 'plot-highlight', 'aria-hidden': 'true' });

  return {
    element: svg,

    /**
     * @param {Highlight|null|undefined} highlight
     * @param {Area} area of the plot, with the ends of its axes
     */
    show(highlight, area) {
      svg.classList.toggle('is-shown', Boolean(highlight));
      if (!highlight) {
        svg.replaceChildren();
        return;
      }
      const {
        left,
        top,
        width,
        height,
        axes: { x, y },
      } = area;
      svg.style.transform = `translate(${left}px, ${top}px)`;
      for (const [name, value] of Object.entries({ width, height }))
        svg.setAttribute(name, String(value));
      svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
      const across = (/** @type {number} */ value) => ((value - x[0]) / (x[1] - x[0])) * width;
      const down = (/** @type {number} */ value) => ((value - y[0]) / (y[1] - y[0])) * height;
      svg.replaceChildren(...partsOf(highlight, across, down));
    },
  };
}

/**
 * @param {Highlight} highlight
 * @param {(value: number) => number} across
 * @param {(value: number) => number} down
 */
function partsOf({ veil, lines, numbers }, across, down) {
  return [
    node('rect', {
      class: 'veil',
      x: across(veil.x0),
      y: down(veil.y0),
      width: across(veil.x1) - across(veil.x0),
      height: down(veil.y1) - down(veil.y0),
    }),
    ...lines.map((line) =>
      node('line', {
        x1: across(line.x0),
        x2: across(line.x1),
        y1: down(line.y0),
        y2: down(line.y1),
        stroke: line.colour,
        'stroke-width': line.width,
      }),
    ),
    ...numbers.map(({ x, y, text, isStrong }) => {
      const number = node('text', { x: across(x), y: down(y), class: isStrong ? 'is-strong' : '' });
      number.textContent = text;
      return number;
    }),
  ];
}

/** @param {string} name @param {Record<string, string|number>} attributes */
function node(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  return made;
}
