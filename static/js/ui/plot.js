/**
 * One drawing with a cursor of cells over it, for the pointer and for the keyboard.
 * Plotly draws; what is pointed at is worked out here, from the plot area and the axes' ranges.
 */

import { ticks, ticksFor } from '../plot/figure.js';
import { cellAt, walk } from '../plot/grid.js';
import { deepEqual } from '../state/state.js';
import { element, palette, plotly } from './dom.js';

/** @typedef {import('../plot/grid.js').Cell} Cell */
/** @typedef {import('../plot/grid.js').Grid} Grid */
/** @typedef {import('../plot/figure.js').Figure} Figure */

const CONFIG = {
  displayModeBar: false,
  responsive: false,
  showTips: false,
  typesetMath: false,
  doubleClick: 'reset',
};
const ZOOM_FROM = 40;
/** Pixels a press may stray and still be a click: a fingertip rolls. */
const SLOP = { mouse: 4, pen: 6, touch: 12 };
const MARKS = ['chosen', 'picked', 'row', 'column', 'cell'];

let count = 0;

/**
 * @param {Object} handlers
 * @param {(cell: Cell|null, grid: Grid, isKeyboard: boolean) => void} handlers.onCell the cell under the cursor, or none
 * @param {(cell: Cell, grid: Grid) => void} handlers.onChoose
 */
export function createPlot({ onCell, onChoose }) {
  count += 1;
  const hint = element('p', { class: 'plot-hint', id: `plot-hint-${count}` });
  const note = element('p', { class: 'plot-note' });
  /** @type {any} a `div` that Plotly extends */
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
  /** @type {Figure|null} */
  let figure = null;
  /** @type {Cell|null} */
  let cell = null;
  let pressed = null;
  /** @type {{asked: {data: Object[], layout: Object}, done: Promise<unknown>}|null} */
  let painted = null;

  /** An unchanged drawing, as when another cell is chosen, is not drawn again. */
  function paint(Plotly, wanted) {
    const asked = { data: wanted.data, layout: withZoom(wanted) };
    if (painted && deepEqual(painted.asked, asked)) return painted.done;
    if (painted && orientationOf(painted.asked) !== orientationOf(wanted))
      startAfresh(Plotly, drawing);
    painted = { asked, done: Plotly.react(drawing, wanted.data, withZoom(wanted), CONFIG) };
    painted.done.catch(() => {
      painted = null;
    });
    return painted.done;
  }

  function point(to, isKeyboard = false) {
    if (sameCell(cell, to)) return;
    cell = to;
    showMarks();
    onCell(cell, figure.grid, isKeyboard);
  }

  function showMarks() {
    const area = figure && areaOf(drawing);
    if (!area) return;
    const { grid } = figure;
    const at = (rows, columns) => boxOf(rows, columns, area, grid);
    const hasSides = grid.columns > 1 && (!grid.geometry || grid.geometry.highlight);
    highlight.show(cell && grid.geometry?.highlight?.(cell), area);
    place(marks.chosen, grid.chosen && at(grid.chosen.row, grid.chosen.column));
    place(marks.picked, grid.picked && at(grid.picked.row, grid.picked.column));
    place(marks.row, cell && hasSides && at(cell.row, undefined));
    place(marks.column, cell && hasSides && at(undefined, cell.column));
    place(marks.cell, cell && at(cell.row, cell.column));
    showTip(tip, cell && grid.tip(cell.row, cell.column), cell && at(cell.row, cell.column), plot);
  }

  function choose() {
    if (cell && figure.grid.choose) onChoose(cell, figure.grid);
  }

  plot.addEventListener('pointermove', (event) => {
    if (figure && event.pointerType !== 'touch') point(cellUnder(event, drawing, figure.grid));
  });
  plot.addEventListener('pointerleave', (event) => {
    if (figure && event.pointerType !== 'touch') point(null);
  });
  plot.addEventListener('pointerdown', (event) => {
    pressed = { clientX: event.clientX, clientY: event.clientY };
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
      if (!isClick || !figure) return;
      point(cellUnder(at, drawing, figure.grid));
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
    const from = cell ?? figure.grid.start ?? { row: 0, column: 0 };
    const to = walk(from, event.key, figure.grid, event.ctrlKey || event.metaKey);
    if (!to) return;
    event.preventDefault();
    point(to, true);
  });

  return {
    element: element('div', {}, plot, element('div', { class: 'plot-words' }, hint, note)),

    /**
     * @param {Figure} wanted
     * @returns {Promise<void>}
     */
    async draw(wanted) {
      plot.setAttribute('aria-label', wanted.summary);
      plot.setAttribute(
        'aria-roledescription',
        wanted.grid.kind ?? (wanted.grid.columns > 1 ? 'heatmap' : 'bar chart'),
      );
      hint.textContent = hintFor(wanted.grid);
      note.textContent = noteFor(wanted.grid);
      const Plotly = await plotly();
      await paint(Plotly, wanted);
      drawing.querySelector('.plot-waiting')?.remove();
      const before = figure?.grid;
      figure = wanted;
      if (cell && !isSameKind(before, figure.grid, cell)) cell = null;
      keepLabels(Plotly, drawing, () => figure.grid, showMarks);
      showMarks();
      if (cell) onCell(cell, figure.grid, false);
    },

    /**
     * @param {'png'|'svg'} format
     * @param {string[]} caption above the drawing, on the picture alone
     * @returns {Promise<string>} the drawing as a data URL
     */
    async image(format, caption) {
      const Plotly = await plotly();
      const { captioned } = await import('../plot/caption.js');
      const size = drawing.querySelector('.main-svg');
      const [width, height] = ['width', 'height'].map((name) => Number(size.getAttribute(name)));
      const layout = captioned(drawing.layout, caption, { width, height }, palette());
      return Plotly.toImage(
        { data: drawing.data, layout, config: CONFIG },
        { format, width: layout.width, height: layout.height, scale: format === 'png' ? 2 : 1 },
      );
    },

    destroy() {
      gone.abort();
      if (drawing.classList.contains('js-plotly-plot')) window.Plotly.purge(drawing);
    },
  };
}

function orientationOf({ data }) {
  return data[0].colorbar?.orientation;
}

/** Plotly leaves the numbers of a colour bar where they were when the bar is laid on its other side. */
function startAfresh(Plotly, drawing) {
  Plotly.purge(drawing);
  delete drawing.dataset.keepsLabels;
}

/** Does the cell still mean what it meant? Resized, a drawing may lie on its other side. */
function isSameKind(before, { rows, columns, rowTitle }, cell) {
  return before?.rowTitle === rowTitle && cell.row < rows && cell.column < columns;
}

function sameCell(a, b) {
  return (
    a === b ||
    (a !== null && b !== null && a.row === b.row && a.column === b.column && a.of === b.of)
  );
}

function hintFor(grid) {
  const move = 'Arrow keys move from cell to cell, Home and End to the ends of a row';
  return grid.choose
    ? `${move}; ${grid.chooseHint ?? 'Enter chooses the cell’s token'}.`
    : `${move}.`;
}

function noteFor(grid) {
  return grid.note ?? (isZoomable(grid) ? 'Drag to zoom in, double-click to zoom out.' : '');
}

function isZoomable(grid) {
  return (
    Boolean(grid.thinned) &&
    Math.max(grid.rows, grid.columns) > ZOOM_FROM &&
    matchMedia('(hover: hover)').matches
  );
}

function withZoom({ layout, grid }) {
  const zoom = isZoomable(grid);
  const fix = (axis) => ({ ...axis, fixedrange: !zoom });
  const fixed = Object.fromEntries(
    Object.entries(layout).map(([name, value]) => [
      name,
      /^[xy]axis/.test(name) ? fix(value) : value,
    ]),
  );
  return {
    ...fixed,
    dragmode: zoom ? 'zoom' : false,
    uirevision: `${grid.quantity} ${grid.rows} ${grid.columns}`,
  };
}

/**
 * The plot area as Plotly laid it out, with the window of cells it shows.
 * @returns {{left: number, top: number, width: number, height: number, window: {columns: [number, number], rows: [number, number]}, axes: {x: [number, number], y: [number, number]}}|null}
 */
function areaOf(drawing) {
  const pane = drawing.querySelector('.nsewdrag[data-subplot="xy"]');
  if (!pane || !drawing.layout?.xaxis?.range) return null;
  const [left, right] = drawing.layout.xaxis.range;
  const [bottom, top] = drawing.layout.yaxis.range;
  const size = (name) => Number(pane.getAttribute(name));
  return {
    left: size('x'),
    top: size('y'),
    width: size('width'),
    height: size('height'),
    window: { columns: [left + 0.5, right + 0.5], rows: [top + 0.5, bottom + 0.5] },
    axes: { x: [left, right], y: [top, bottom] },
  };
}

/** @returns {[number, number]} */
function coordinatesAt(x, y, { x: [left, right], y: [top, bottom] }) {
  return [left + x * (right - left), top + y * (bottom - top)];
}

function cellUnder(event, drawing, grid) {
  const area = areaOf(drawing);
  if (!area) return null;
  const box = drawing.getBoundingClientRect();
  const x = (event.clientX - box.left - area.left) / area.width;
  const y = (event.clientY - box.top - area.top) / area.height;
  if (grid.geometry)
    return x < 0 || x > 1 || y < 0 || y > 1
      ? null
      : grid.geometry.at(...coordinatesAt(x, y, area.axes));
  return cellAt(x, y, windowFor(area, grid), grid);
}

/** A bar has no columns to tell apart: the whole width is its one cell. */
function windowFor({ window }, grid) {
  return grid.columns > 1 ? window : { ...window, columns: [0, 1] };
}

/** Pixels of a cell, a whole row (no column) or a whole column (no row), cut to the plot area. */
function boxOf(row, column, area, grid) {
  if (grid.geometry) return boxIn(grid.geometry.box(row, column), area);
  const { columns, rows } = windowFor(area, grid);
  const across = span(column, columns, area.left, area.width);
  const down = span(row, rows, area.top, area.height);
  return across && down && { left: across[0], width: across[1], top: down[0], height: down[1] };
}

/** Pixels of a box that a drawing of its own geometry gives in the coordinates of its axes. */
function boxIn(box, { left, top, width, height, axes }) {
  if (!box) return null;
  const across = (x) => left + ((x - axes.x[0]) / (axes.x[1] - axes.x[0])) * width;
  const down = (y) => top + ((y - axes.y[0]) / (axes.y[1] - axes.y[0])) * height;
  const [x0, x1] = [across(box.x0), across(box.x1)].sort((a, b) => a - b);
  const [y0, y1] = [down(box.y0), down(box.y1)].sort((a, b) => a - b);
  return { left: x0, width: x1 - x0, top: y0, height: y1 - y0 };
}

function span(index, [first, last], start, length) {
  if (index === undefined) return [start, length];
  const unit = length / (last - first);
  const from = Math.max(0, (index - first) * unit);
  const to = Math.min(length, (index + 1 - first) * unit);
  return to > from ? [start + from, to - from] : null;
}

function place(mark, box) {
  mark.classList.toggle('is-shown', Boolean(box));
  if (!box) return;
  mark.style.transform = `translate(${box.left}px, ${box.top}px)`;
  mark.style.width = `${box.width}px`;
  mark.style.height = `${box.height}px`;
}

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

/** After zooming, as many labels as there is room for; the marks move along. */
function keepLabels(Plotly, drawing, gridNow, onMoved) {
  if (drawing.dataset.keepsLabels) return;
  drawing.dataset.keepsLabels = 'true';
  drawing.on('plotly_relayout', (change) => {
    const isZoom = Object.keys(change).some((name) => /^[xy]axis\.(range|autorange)/.test(name));
    if (isZoom && gridNow().thinned) Plotly.relayout(drawing, labelsFor(drawing, gridNow()));
    onMoved();
  });
}

function labelsFor(drawing, grid) {
  const { window, width, height } = areaOf(drawing);
  const shown = (labels, [first, last], pixels, lettering) => {
    const from = Math.max(0, Math.ceil(first));
    const to = Math.min(labels.length, Math.floor(last)) - 1;
    return ticks(labels, ticksFor(from, to, pixels, lettering.space), lettering);
  };
  const x = shown(grid.columnLabels, window.columns, width, grid.thinned.columns);
  const y = shown(grid.rowLabels, window.rows, height, grid.thinned.rows);
  return {
    'xaxis.tickvals': x.tickvals,
    'xaxis.ticktext': x.ticktext,
    'yaxis.tickvals': y.tickvals,
    'yaxis.ticktext': y.ticktext,
  };
}

const SVG = 'http://www.w3.org/2000/svg';

export function createHighlight() {
  const svg = node('svg', { class: 'plot-highlight', 'aria-hidden': 'true' });

  return {
    element: svg,

    /**
     * @param {import('../plot/grid.js').Highlight|null|undefined} highlight
     * @param {{left: number, top: number, width: number, height: number, axes: {x: [number, number], y: [number, number]}}} area of the plot, with the ends of its axes
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
      for (const [name, value] of Object.entries({ width, height })) svg.setAttribute(name, value);
      svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
      const across = (value) => ((value - x[0]) / (x[1] - x[0])) * width;
      const down = (value) => ((value - y[0]) / (y[1] - y[0])) * height;
      svg.replaceChildren(...partsOf(highlight, across, down));
    },
  };
}

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

function node(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}
