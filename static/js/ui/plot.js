/**
 * One drawing with a cursor of cells over it, for the pointer and for the keyboard.
 * The renderer draws; what is pointed at is worked out from the plot area and its cells.
 */

import { boxIn, boxOf, cellAt, createRenderer, hasMouse, isZoomable } from '../plot/renderer.js';
import { element, palette } from './dom.js';
import { boxOfTokens, createMarks } from './plot_marks.js';

/** @import { Box, Cell } from '../plot/grid.js' */

/** @typedef {{clientX: number, clientY: number}} At a place of the window */
/** @typedef {ReturnType<typeof createRenderer>} Renderer */

/** Pixels a press may stray and still be a click: a fingertip rolls. @type {Record<string, number>} */
const SLOP = { mouse: 4, pen: 6, touch: 12 };
/**
 * The cells of each drawing on the page: where one is, which is at the pointer or at the keyboard's
 * cursor, what one says, and which tokens and labels it has. Bars are boxes with their labels.
 * @type {WeakMap<Element, {at: (event: At) => Cell|null, current: () => Cell|null, box: (cell: Cell) => Pixels|null, describe: (cell: Cell) => string, meaning: (cell: Cell) => CellMeaning|null, boxOfTokens: (tokens: {query: number|null, key: number|null}) => Pixels|null}>}
 */
export const CELLS = new WeakMap();
/** @typedef {{query?: number|number[], key?: number|number[], labels: string[]}} CellMeaning its tokens, and the labels of its row and column */

let count = 0;

/**
 * @param {Object} handlers
 * @param {(cell: Cell|null, grid: Grid, isKeyboard: boolean) => void} handlers.onCell the cell under the cursor, or none
 * @param {(cell: Cell, grid: Grid) => void} handlers.onChoose
 * @param {(patch: Patch) => void} [handlers.onGoingOn] a key or the wheel moves what is shown
 */
export function createPlot({ onCell, onChoose, onGoingOn = () => {} }) {
  count += 1;
  const hint = element('p.plot-hint', { id: `plot-hint-${count}` });
  const note = element('p.plot-note');
  /** @type {PlotlyElement} */
  const drawing = element('div.plot-drawing', element('p.plot-waiting', 'Drawing…'));
  const marks = createMarks();
  const plot = element(
    'div.plot',
    { role: 'application', tabindex: 0, 'aria-describedby': hint.id },
    drawing,
    marks.elements,
  );
  /** @type {DrawnFigure|null} */
  let figure = null;
  /** @type {Cell|null} */
  let cell = null;
  const renderer = createRenderer(drawing, {
    onMoved: showMarks,
    onZoom: (box) => figure && zooming.zoomed(figure.grid, box),
  });
  const zooming = createZooming(plot, renderer, showMarks);

  function showMarks() {
    const area = renderer.area();
    if (figure && area) marks.show(figure.grid, cell, area);
  }

  /** @param {Cell|null} to */
  function point(to, isKeyboard = false) {
    if (sameCell(cell, to)) return;
    cell = to;
    showMarks();
    if (figure) onCell(cell, figure.grid, isKeyboard);
  }

  /** @param {At} event */
  function cellUnder(event) {
    const area = renderer.area();
    if (!figure || !area) return null;
    const { x, y } = placeIn(event, drawing, area);
    return cellAt(x, y, area, figure.grid);
  }

  function choose() {
    if (cell && figure?.grid.choose) onChoose(cell, figure.grid);
  }

  CELLS.set(
    plot,
    cellsOf(() => figure, { at: cellUnder, current: () => cell, plot, renderer }),
  );
  const gone = new AbortController(); // the window outlives the drawing
  listenToPointer(plot, gone.signal, {
    onPoint: (event) => figure && point(event && cellUnder(event)),
    onClick(event) {
      if (!figure) return;
      point(cellUnder(event));
      choose();
    },
    onDrag(from, to, isEnd) {
      const area = renderer.area();
      if (!figure?.grid.brush || !area) return;
      const box = boxBetween([from, to], drawing, area);
      marks.brush(isEnd ? null : boxIn(box, area));
      if (isEnd) onGoingOn(figure.grid.brush(box));
    },
  });
  plot.addEventListener('focus', () => {
    if (figure && plot.matches(':focus-visible')) point(startOf(figure.grid), true);
  });
  plot.addEventListener('blur', () => {
    if (figure) point(null);
  });
  plot.addEventListener('keydown', (event) => {
    const act = figure && reaction(event, figure.grid, cell);
    if (!act) return;
    if (act.does !== 'leave') event.preventDefault();
    if (act.does === 'choose') choose();
    else if (act.does !== 'move') point(act.cell, act.does === 'point');
    else {
      event.stopPropagation();
      onGoingOn(act.patch);
    }
  });

  return {
    element: element('div', plot, element('div.plot-words', hint, note)),

    /** @param {DrawnFigure} wanted @returns {Promise<void>} */
    async draw(wanted) {
      const { grid } = wanted;
      const kind = grid.kind ?? (grid.columns > 1 ? 'heatmap' : 'bar chart');
      plot.setAttribute('aria-label', wanted.summary ?? '');
      plot.setAttribute('aria-roledescription', kind);
      hint.textContent = hintFor(grid);
      note.textContent = [noteFor(grid), wanted.labelled].filter(Boolean).join(' ');
      // Until it is drawn, a drawing has the room it will take.
      if (!figure) drawing.style.minHeight = `${wanted.layout.height ?? 0}px`;
      await renderer.draw(wanted);
      drawing.style.minHeight = '';
      drawing.querySelector('.plot-waiting')?.remove();
      // Resized, a drawing may lie on its other side: the cell then means another.
      const isTurned = figure?.grid.rowTitle !== grid.rowTitle;
      if (cell && (isTurned || cell.row >= grid.rows || cell.column >= grid.columns)) cell = null;
      figure = wanted;
      showMarks();
      await zooming.let(grid);
      if (cell) onCell(cell, grid, false);
    },

    /** @param {'png'|'svg'} format @param {string} caption */
    image: (format, caption) => renderer.image(format, caption, palette()),

    destroy() {
      gone.abort();
      renderer.destroy();
    },
  };
}

/**
 * Create the zoom of a map; its code is loaded with the first map that has it.
 * @param {HTMLElement} plot
 * @param {Renderer} renderer
 * @param {() => void} onMoved
 */
function createZooming(plot, renderer, onMoved) {
  /** @type {ReturnType<typeof import('./pan_zoom.js').createZoom>|null} */
  let zoom = null;
  /** @param {Grid} grid */
  const sizeOf = ({ rows, columns }) => ({ across: columns, down: rows });

  return {
    /** @param {Grid} grid @param {Box|null} box */
    zoomed: (grid, box) => zoom?.show(sizeOf(grid), box),

    /** @param {Grid} grid that was just drawn */
    async let(grid) {
      const isLarge = isZoomable(grid);
      if (!isLarge && !zoom) return;
      const { createZoom } = await import('./pan_zoom.js');
      /** @param {Box|null} box */
      const onBox = async (box) => {
        await renderer.show(box);
        onMoved();
        zoom?.show(sizeOf(grid), box);
      };
      zoom ??= createZoom(plot, onBox);
      zoom.show(isLarge ? sizeOf(grid) : null, renderer.shown());
    },
  };
}

/** Return a place of the window as shares of the plot area. @param {At} event @param {HTMLElement} drawing @param {Area} area */
function placeIn({ clientX, clientY }, drawing, area) {
  const box = drawing.getBoundingClientRect();
  const zoom = box.width / drawing.offsetWidth || 1;
  return {
    x: ((clientX - box.left) / zoom - area.left) / area.width,
    y: ((clientY - box.top) / zoom - area.top) / area.height,
  };
}

/**
 * Return the box between two places of the window, within the plot, in the coordinates of its axes.
 * @param {At[]} ends
 * @param {HTMLElement} drawing
 * @param {Area} area
 * @returns {Box}
 */
function boxBetween(ends, drawing, area) {
  /** @param {'x'|'y'} name */
  const along = (name) => {
    const [from, to] = area.axes[name];
    return ends
      .map((end) => Math.max(0, Math.min(1, placeIn(end, drawing, area)[name])))
      .map((share) => from + share * (to - from))
      .sort((a, b) => a - b);
  };
  const [[x0, x1], [y0, y1]] = [along('x'), along('y')];
  return { x0, x1, y0, y1 };
}

/**
 * @param {() => DrawnFigure|null} figureNow
 * @param {{at: (event: At) => Cell|null, current: () => Cell|null, plot: HTMLElement, renderer: Renderer}} of
 */
function cellsOf(figureNow, { at, current, plot, renderer }) {
  /** @param {Cell} of */
  const boxAt = ({ row, column }) => {
    const [figure, area] = [figureNow(), renderer.area()];
    return figure && area && boxOf(row, column, area, figure.grid);
  };
  return {
    at,
    current,
    /** @param {Cell} of */
    box(of) {
      const grid = figureNow()?.grid;
      const box = boxAt(of);
      const isBar = grid && grid.columns < 2 && !grid.geometry;
      return box && isBar ? { ...box, left: 0, width: plot.clientWidth } : box;
    },
    /** @param {Cell} of */
    describe: ({ row, column }) => figureNow()?.grid.describe(row, column) ?? '',
    /** @param {Cell} of */
    meaning({ row, column }) {
      const grid = figureNow()?.grid;
      if (!grid) return null;
      const labels = [grid.rowLabels[row] ?? '', grid.columnLabels[column] ?? ''];
      return { ...grid.tokens(row, column), labels };
    },
    /** @param {{query: number|null, key: number|null}} wanted */
    boxOfTokens(wanted) {
      const grid = figureNow()?.grid;
      return grid ? boxOfTokens(grid, wanted, boxAt) : null;
    },
  };
}

/**
 * Tell where the mouse points, and where anything clicks.
 * @param {HTMLElement} plot
 * @param {AbortSignal} signal
 * @param {{onPoint: (event: PointerEvent|null) => void, onClick: (at: At) => void, onDrag: (from: At, to: At, isEnd: boolean) => void}} handlers
 */
function listenToPointer(plot, signal, { onPoint, onClick, onDrag }) {
  /** @type {At|null} */
  let pressed = null;
  plot.addEventListener('pointermove', (event) => {
    if (event.pointerType === 'touch') return;
    onPoint(event);
    if (pressed) onDrag(pressed, event, false);
  });
  plot.addEventListener('pointerleave', ({ pointerType }) => {
    if (pointerType !== 'touch') onPoint(null);
  });
  plot.addEventListener('pointerdown', ({ isPrimary, clientX, clientY }) => {
    pressed = isPrimary ? { clientX, clientY } : null;
  });
  plot.addEventListener('pointercancel', () => {
    pressed = null;
  });
  /** @param {PointerEvent} event */
  const release = ({ clientX, clientY, pointerType }) => {
    const at = pressed;
    pressed = null;
    const slop = SLOP[pointerType] ?? SLOP.mouse;
    if (!at) return;
    if (Math.hypot(clientX - at.clientX, clientY - at.clientY) < slop) onClick(at);
    else if (pointerType !== 'touch') onDrag(at, { clientX, clientY }, true);
  };
  window.addEventListener('pointerup', release, { signal });
}

/** Return the cell that the cursor enters at. @param {Pick<Grid, 'start'>} grid */
function startOf(grid) {
  return grid.start ?? { row: 0, column: 0 };
}

/** @typedef {{does: 'choose'}|{does: 'move', patch: Patch}|{does: 'point'|'leave', cell: Cell|null}} Reaction */

/**
 * Return what a key does in a drawing; null: nothing. `move` moves what is shown, `point` the cursor.
 * @param {Pick<KeyboardEvent, 'key'|'altKey'|'shiftKey'|'ctrlKey'|'metaKey'>} event
 * @param {Pick<Grid, 'rows'|'columns'|'start'|'move'>} grid
 * @param {Cell|null} cell under the cursor
 * @returns {Reaction|null}
 */
export function reaction({ key, altKey, shiftKey, ctrlKey, metaKey }, grid, cell) {
  if (altKey) return null;
  if (key === 'Enter' || key === ' ') return { does: 'choose' };
  if (key === 'Escape') return { does: 'leave', cell: null };
  const patch = grid.move?.(shiftKey && key.startsWith('Arrow') ? `Shift+${key}` : key, cell);
  if (patch) return { does: 'move', patch };
  const to = walk(cell ?? startOf(grid), key, grid, ctrlKey || metaKey);
  return to && { does: 'point', cell: to };
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
