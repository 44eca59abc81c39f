/**
 * One drawing with a cursor of cells over it, for the pointer and for the keyboard.
 * Plotly draws; what is pointed at is worked out here, from the plot area and the axes' ranges.
 */

import { ticks, ticksFor } from '../plot/figure.js';
import { boxOf, cellAt, openingBox, walk } from '../plot/grid.js';
import { deepEqual } from '../state/state.js';
import { element, palette, plotly } from './dom.js';

/**
 * @import { DrawnFigure, Lettering } from '../plot/figure.js'
 * @import { Area, Box, Cell, Grid, Highlight, Pixels } from '../plot/grid.js'
 * @import { Patch } from '../state/state.js'
 */

const CONFIG = {
  displayModeBar: false,
  responsive: false,
  showTips: false,
  typesetMath: false,
  doubleClick: 'reset',
};
const ZOOM_FROM = 40;
/** Pixels a press may stray and still be a click: a fingertip rolls. */
/** @type {Record<string, number>} */
const SLOP = { mouse: 4, pen: 6, touch: 12 };
/**
 * The cells of each drawing on the page: where one is, which is at the pointer or at the keyboard's
 * cursor, and what one says. Bars are boxes with their labels.
 * @type {WeakMap<Element, {at: (event: {clientX: number, clientY: number}) => Cell|null, current: () => Cell|null, box: (cell: Cell) => Pixels|null, describe: (cell: Cell) => string}>}
 */
export const CELLS = new WeakMap();
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
  /** @type {{asked: Pick<DrawnFigure, 'data'> & {layout: Record<string, unknown>}, done: Promise<unknown>}|null} */
  let painted = null;
  /** @type {ReturnType<typeof import('./pan_zoom.js').createPanZoom>|null} */
  let panZoom = null;

  /** @type {ReturnType<typeof import('./pan_zoom.js').createZoom>|null} */
  let zoom = null;
  /** The part of the map that is shown; null: the whole. @type {{of: string, box: Box|null}} */
  let seen = { of: '', box: null };

  /** @param {DrawnFigure} wanted */
  function boxOfFigure({ layout, grid }) {
    if (!isZoomable(grid)) return null;
    const { width, height, margin } = /** @type {any} */ (layout);
    const of = `${nameOfZoom(grid)} ${Math.round(width / 50)}`;
    const pixels = { width: width - margin.l - margin.r, height: height - margin.t - margin.b };
    if (seen.of !== of) seen = { of, box: openingBox(grid, pixels) };
    return seen.box;
  }

  /** @param {Box|null} box */
  async function showBox(box) {
    seen = { ...seen, box };
    if (!figure) return;
    await paint(await plotly(), figure);
    showMarks();
    zoom?.show({ across: figure.grid.columns, down: figure.grid.rows }, box);
  }

  /** @param {Grid} grid */
  async function letMove(grid) {
    const isLarge = isZoomable(grid);
    if (!grid.pan && !panZoom && !isLarge && !zoom) return;
    const { createPanZoom, createZoom } = await import('./pan_zoom.js');
    if (isLarge) zoom ??= createZoom(plot, { area: () => areaOf(drawing), onBox: showBox });
    zoom?.show(isLarge ? { across: grid.columns, down: grid.rows } : null, seen.box);
    if (!grid.pan && !panZoom) return;
    panZoom ??= createPanZoom(plot, {
      area: () => areaOf(drawing),
      onMoved: (patch) => onGoingOn?.(patch),
    });
    panZoom.show(figure?.grid.pan);
  }

  /**
   * An unchanged drawing, as when another cell is chosen, is not drawn again.
   * @param {PlotlyApi} Plotly
   * @param {DrawnFigure} wanted
   */
  function paint(Plotly, wanted) {
    const asked = { data: wanted.data, layout: withZoom(wanted, boxOfFigure(wanted)) };
    if (painted && deepEqual(painted.asked, asked)) return painted.done;
    if (painted && orientationOf(painted.asked) !== orientationOf(wanted))
      startAfresh(Plotly, drawing);
    const done = Plotly.react(drawing, wanted.data, asked.layout, CONFIG);
    painted = { asked, done };
    done.catch(() => {
      painted = null;
    });
    return done;
  }

  /** @param {Cell|null} to */
  function point(to, isKeyboard = false) {
    if (sameCell(cell, to)) return;
    cell = to;
    showMarks();
    if (figure) onCell(cell, figure.grid, isKeyboard);
  }

  function showMarks() {
    const area = areaOf(drawing);
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
    at: (event) => figure && cellUnder(event, drawing, figure.grid),
    current: () => cell,
    box(of) {
      const area = areaOf(drawing);
      const box = figure && area && boxOf(of.row, of.column, area, figure.grid);
      const isBar = figure && figure.grid.columns < 2 && !figure.grid.geometry;
      return box && isBar ? { ...box, left: 0, width: plot.clientWidth } : box;
    },
    describe: (of) => figure?.grid.describe(of.row, of.column) ?? '',
  });
  plot.addEventListener('pointermove', (event) => {
    if (figure && event.pointerType !== 'touch') point(cellUnder(event, drawing, figure.grid));
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
      const Plotly = await plotly();
      await paint(Plotly, wanted);
      drawing.style.minHeight = '';
      drawing.querySelector('.plot-waiting')?.remove();
      const before = figure?.grid;
      figure = wanted;
      if (cell && !isSameKind(before, figure.grid, cell)) cell = null;
      keepLabels(
        Plotly,
        drawing,
        () => figure?.grid ?? wanted.grid,
        showMarks,
        (area) => {
          seen = { ...seen, box: area && boxOfArea(area) };
          const { columns, rows } = figure?.grid ?? wanted.grid;
          zoom?.show({ across: columns, down: rows }, seen.box);
        },
      );
      showMarks();
      await letMove(figure.grid);
      if (cell) onCell(cell, figure.grid, false);
    },

    /**
     * @param {'png'|'svg'} format
     * @param {string[]} caption above the drawing, on the picture alone
     * @returns {Promise<string>} the drawing as a data URL
     */
    async image(format, caption) {
      if (!figure) throw new Error('there is no drawing yet');
      const drawn = figure;
      const Plotly = await plotly();
      const { captioned } = await import('../plot/publication.js');
      const size = drawing.querySelector('.main-svg');
      const [width, height] = ['width', 'height'].map((name) => Number(size?.getAttribute(name)));
      const layout = captioned(
        { ...drawn.layout, ...drawing.layout },
        caption,
        { width, height },
        palette(),
      );
      return Plotly.toImage(
        { data: drawing.data, layout, config: CONFIG },
        { format, width: layout.width, height: layout.height, scale: format === 'png' ? 2 : 1 },
      );
    },

    destroy() {
      gone.abort();
      panZoom?.destroy();
      if (drawing.classList.contains('js-plotly-plot')) window.Plotly.purge(drawing);
    },
  };
}

/** @param {Pick<DrawnFigure, 'data'>} drawing */
function orientationOf({ data }) {
  return data[0].colorbar?.orientation;
}

/**
 * Plotly leaves the numbers of a colour bar where they were when the bar is laid on its other side.
 * @param {PlotlyApi} Plotly
 * @param {HTMLElement} drawing
 */
function startAfresh(Plotly, drawing) {
  Plotly.purge(drawing);
  delete drawing.dataset.keepsLabels;
}

/**
 * Does the cell still mean what it meant? Resized, a drawing may lie on its other side.
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

/** @param {Grid} grid */
function isZoomable(grid) {
  return Boolean(grid.thinned) && Math.max(grid.rows, grid.columns) > ZOOM_FROM;
}

const hasMouse = () => matchMedia('(hover: hover)').matches;

/** @param {Grid} grid */
const nameOfZoom = ({ quantity, rows, columns }) => `${quantity} ${rows} ${columns}`;

/** @param {Area} area @returns {Box} in cells */
function boxOfArea({ window: { columns, rows } }) {
  return { x0: columns[0], x1: columns[1], y0: rows[0], y1: rows[1] };
}

/** @param {DrawnFigure} figure @param {Box|null} box the part to show; null: the whole */
function withZoom({ layout, grid }, box) {
  const zoom = isZoomable(grid) && hasMouse();
  const fix = (/** @type {Record<string, unknown>} */ axis) => ({ ...axis, fixedrange: !zoom });
  const fixed = Object.fromEntries(
    Object.entries(layout).map(([name, value]) => [
      name,
      /^[xy]axis/.test(name) ? fix(value) : value,
    ]),
  );
  const whole = { ...fixed, dragmode: zoom ? 'zoom' : false, uirevision: nameOfZoom(grid) };
  const { thinned } = grid;
  if (!box || !thinned) return whole;
  const { width, height, margin, xaxis, yaxis, annotations } = /** @type {any} */ (fixed);
  const labels = labelsFor(
    {
      window: { columns: [box.x0, box.x1], rows: [box.y0, box.y1] },
      width: width - margin.l - margin.r,
      height: height - margin.t - margin.b,
    },
    { ...grid, thinned },
  );
  return {
    ...whole,
    uirevision: JSON.stringify(box),
    annotations,
    xaxis: {
      ...xaxis,
      range: [box.x0 - 0.5, box.x1 - 0.5],
      tickvals: labels['xaxis.tickvals'],
      ticktext: labels['xaxis.ticktext'],
    },
    yaxis: {
      ...yaxis,
      range: [box.y1 - 0.5, box.y0 - 0.5],
      tickvals: labels['yaxis.tickvals'],
      ticktext: labels['yaxis.ticktext'],
    },
  };
}

/**
 * The plot area as Plotly laid it out, with the window of cells it shows.
 * @param {PlotlyElement} drawing
 * @returns {Area|null}
 */
function areaOf(drawing) {
  const pane = drawing.querySelector('.nsewdrag[data-subplot="xy"]');
  if (!pane || !drawing.layout?.xaxis?.range) return null;
  const [left, right] = drawing.layout.xaxis.range;
  const [bottom, top] = drawing.layout.yaxis.range;
  /** @param {string} name */
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

/**
 * @param {{clientX: number, clientY: number}} event
 * @param {PlotlyElement} drawing
 * @param {Grid} grid
 */
function cellUnder(event, drawing, grid) {
  const area = areaOf(drawing);
  if (!area) return null;
  const box = drawing.getBoundingClientRect();
  const zoom = box.width / drawing.offsetWidth || 1;
  const x = ((event.clientX - box.left) / zoom - area.left) / area.width;
  const y = ((event.clientY - box.top) / zoom - area.top) / area.height;
  return cellAt(x, y, area, grid);
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

/**
 * After zooming, as many labels as there is room for; the marks move along.
 * @param {PlotlyApi} Plotly
 * @param {PlotlyElement} drawing
 * @param {() => Grid} gridNow
 * @param {() => void} onMoved
 * @param {(area: Area|null) => void} onZoom with what is shown; null: the whole
 */
function keepLabels(Plotly, drawing, gridNow, onMoved, onZoom) {
  if (drawing.dataset.keepsLabels) return;
  drawing.dataset.keepsLabels = 'true';
  drawing.on?.('plotly_relayout', (change) => {
    const isZoom = Object.keys(change).some((name) => /^[xy]axis\.(range|autorange)/.test(name));
    const area = areaOf(drawing);
    const { rowLabels, columnLabels, thinned } = gridNow();
    if (isZoom && area && thinned)
      Plotly.relayout(drawing, labelsFor(area, { rowLabels, columnLabels, thinned }));
    if (isZoom) onZoom(Object.keys(change).some((name) => name.includes('auto')) ? null : area);
    onMoved();
  });
}

/**
 * @param {Pick<Area, 'window'|'width'|'height'>} area
 * @param {Pick<Grid, 'rowLabels'|'columnLabels'> & {thinned: NonNullable<Grid['thinned']>}} grid
 */
function labelsFor({ window, width, height }, grid) {
  /**
   * @param {string[]} labels
   * @param {[number, number]} window
   * @param {number} pixels
   * @param {Lettering} lettering
   */
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
