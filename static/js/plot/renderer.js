/**
 * The renderer: Plotly loads here, draws figures and zooms in them, and says where on the page the
 * cells of a drawing are. Only charts and this module know its keys.
 */

import { ticks, ticksFor } from './scales.js';
import { deepEqual } from '../state/state.js';

/** @import { Box, Cell } from './grid.js' */

/**
 * As it loads, plotly.js 4.1 writes a <style> for maps unless an element has this id. There are no
 * maps here, and a strict Content-Security-Policy forbids the <style>: an empty element stands in.
 */
const MAP_STYLES = '9f215cf04c5486422605d13261cb87401f4e7763b6296af81e98efbc0130da53';

const LONGEST_FRAME = 200;
const LONGEST_SCENE = 1000;
/** @type {Promise<PlotlyApi>|null} */
let arriving = null;
/** @type {Promise<void>|undefined} */
let scene;

/** Run Plotly, which holds the page up, after the scene above the drawings is there. @param {Promise<void>} shown */
export function runAfter(shown) {
  scene = Promise.race([
    shown,
    new Promise((resolve) => {
      setTimeout(resolve, LONGEST_SCENE);
    }),
  ]);
}

/**
 * Load Plotly: more than a megabyte, fetched after the page. Running it takes long, so everything
 * that needs no Plotly is painted first.
 * @returns {Promise<PlotlyApi>} the Plotly global
 */
export function plotly() {
  if (window.Plotly) return Promise.resolve(window.Plotly); // a saved page holds it
  arriving ??= (scene ?? Promise.resolve()).then(painted).then(runPlotly);
  return arriving;
}

/** Resolve after the next paint; a hidden page paints nothing and waits for the timer. */
export function painted() {
  return new Promise((resolve) => {
    requestAnimationFrame(() => setTimeout(resolve));
    setTimeout(resolve, LONGEST_FRAME);
  });
}

/** @returns {Promise<PlotlyApi>} */
function runPlotly() {
  return new Promise((resolve, reject) => {
    const placeholder = document.getElementById(MAP_STYLES) ?? document.createElement('meta');
    placeholder.id = MAP_STYLES;
    const script = document.createElement('script');
    script.src = /** @type {HTMLLinkElement} */ (document.getElementById('plotly')).href;
    script.addEventListener('load', () => resolve(window.Plotly));
    script.addEventListener('error', () => {
      arriving = null;
      script.remove();
      reject(new Error('Plotly did not load. The tables below hold the same numbers.'));
    });
    document.head.append(placeholder, script);
  });
}

const CONFIG = {
  displayModeBar: false,
  responsive: false,
  showTips: false,
  typesetMath: false,
  doubleClick: 'reset',
};
const ZOOM_FROM = 40;

/**
 * Draw figures in an element, one after the other.
 * @param {PlotlyElement} drawing
 * @param {Object} handlers
 * @param {() => void} handlers.onMoved the drawing shows another part
 * @param {(box: Box|null) => void} handlers.onZoom to this part; null: to the whole
 */
export function createRenderer(drawing, { onMoved, onZoom }) {
  /** @type {DrawnFigure|null} */
  let figure = null;
  /** @type {{asked: Pick<DrawnFigure, 'data'> & {layout: Record<string, unknown>}, done: Promise<unknown>}|null} */
  let last = null;
  /** The part of the map that is shown; null: the whole. @type {{of: string, box: Box|null}} */
  let seen = { of: '', box: null };
  let isFollowed = false;

  /** @param {DrawnFigure} wanted */
  function partOf({ layout, grid }) {
    if (!isZoomable(grid)) return null;
    const { width, height, margin } = layout;
    const of = `${nameOfZoom(grid)} ${Math.round(width / 50)}`;
    const pixels = { width: width - margin.l - margin.r, height: height - margin.t - margin.b };
    if (seen.of !== of) seen = { of, box: openingBox(grid, pixels) };
    return seen.box;
  }

  /**
   * An unchanged drawing, as when another cell is chosen, is not drawn again.
   * @param {PlotlyApi} Plotly
   * @param {DrawnFigure} wanted
   */
  function paint(Plotly, wanted) {
    const asked = { data: wanted.data, layout: withZoom(wanted, partOf(wanted)) };
    if (last && deepEqual(last.asked, asked)) return last.done;
    // Plotly leaves the numbers of a colour bar where they were when the bar is laid on its other side.
    if (last && orientationOf(last.asked) !== orientationOf(wanted)) {
      Plotly.purge(drawing);
      isFollowed = false;
    }
    const done = Plotly.react(drawing, wanted.data, asked.layout, CONFIG);
    last = { asked, done };
    done.catch(() => {
      last = null;
    });
    return done;
  }

  /** After zooming, as many labels as there is room for; the marks move along. @param {PlotlyApi} Plotly */
  function follow(Plotly) {
    if (isFollowed) return;
    isFollowed = true;
    drawing.on?.('plotly_relayout', (change) => {
      const keys = Object.keys(change);
      const isZoom = keys.some((name) => /^[xy]axis\.(range|autorange)/.test(name));
      const area = areaOf(drawing);
      if (isZoom && area && figure?.grid.thinned)
        Plotly.relayout(drawing, labelsFor(area, figure.grid, figure.grid.thinned));
      if (isZoom) {
        const isWhole = keys.some((name) => name.includes('auto'));
        seen = { ...seen, box: isWhole || !area ? null : boxOfArea(area) };
        onZoom(seen.box);
      }
      onMoved();
    });
  }

  return {
    /** @param {DrawnFigure} wanted @returns {Promise<void>} */
    async draw(wanted) {
      const Plotly = await plotly();
      await paint(Plotly, wanted);
      figure = wanted;
      follow(Plotly);
    },

    /** Show a part of the map; null: the whole. @param {Box|null} box */
    async show(box) {
      seen = { ...seen, box };
      if (figure) paint(await plotly(), figure);
      await last?.done;
    },

    shown: () => seen.box,
    area: () => areaOf(drawing),

    /**
     * @param {'png'|'svg'} format
     * @param {string} caption below the drawing, only on the picture
     * @param {Palette} palette
     * @returns {Promise<string>} the drawing as a data URL
     */
    async image(format, caption, palette) {
      if (!figure) throw new Error('there is no drawing yet');
      const { pictureOf } = await import('./picture.js');
      const { data } = drawing;
      const layout = /** @type {Layout} */ ({ ...figure.layout, ...drawing.layout });
      const how = { format, scale: format === 'png' ? 2 : 1, ink: palette.muted };
      return pictureOf(await plotly(), { data, layout }, caption, how);
    },

    destroy() {
      if (drawing.classList.contains('js-plotly-plot')) window.Plotly.purge(drawing);
    },
  };
}

/** @param {Pick<DrawnFigure, 'data'>} drawing */
function orientationOf({ data }) {
  return data[0].colorbar?.orientation;
}

/** @param {Grid} grid */
export function isZoomable(grid) {
  return Boolean(grid.thinned) && Math.max(grid.rows, grid.columns) > ZOOM_FROM;
}

export const hasMouse = () => matchMedia('(hover: hover)').matches;

/** @param {Grid} grid */
const nameOfZoom = ({ quantity, rows, columns }) => `${quantity} ${rows} ${columns}`;

/** @param {Area} area @returns {Box} in cells */
function boxOfArea({ window: { columns, rows } }) {
  return { x0: columns[0], x1: columns[1], y0: rows[0], y1: rows[1] };
}

/** @param {DrawnFigure} figure @param {Box|null} box the part to show; null: the whole */
function withZoom({ layout, grid }, box) {
  const zoom = isZoomable(grid) && hasMouse();
  const fixed = Object.fromEntries(
    Object.entries(layout).map(([name, value]) => [
      name,
      /^[xy]axis/.test(name) ? { ...value, fixedrange: !zoom } : value,
    ]),
  );
  const whole = { ...fixed, dragmode: zoom ? 'zoom' : false, uirevision: nameOfZoom(grid) };
  if (!box || !grid.thinned) return whole;
  const { width, height, margin } = layout;
  const labels = labelsFor(
    {
      window: { columns: [box.x0, box.x1], rows: [box.y0, box.y1] },
      width: width - margin.l - margin.r,
      height: height - margin.t - margin.b,
    },
    grid,
    grid.thinned,
  );
  return {
    ...whole,
    uirevision: JSON.stringify(box),
    xaxis: {
      ...fixed.xaxis,
      range: [box.x0 - 0.5, box.x1 - 0.5],
      tickvals: labels['xaxis.tickvals'],
      ticktext: labels['xaxis.ticktext'],
    },
    yaxis: {
      ...fixed.yaxis,
      range: [box.y1 - 0.5, box.y0 - 0.5],
      tickvals: labels['yaxis.tickvals'],
      ticktext: labels['yaxis.ticktext'],
    },
  };
}

/**
 * @param {Pick<Area, 'window'|'width'|'height'>} area
 * @param {Pick<Grid, 'rowLabels'|'columnLabels'>} grid
 * @param {NonNullable<Grid['thinned']>} thinned
 */
function labelsFor({ window, width, height }, { rowLabels, columnLabels }, thinned) {
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
  const x = shown(columnLabels, window.columns, width, thinned.columns);
  const y = shown(rowLabels, window.rows, height, thinned.rows);
  return {
    'xaxis.tickvals': x.tickvals,
    'xaxis.ticktext': x.ticktext,
    'yaxis.tickvals': y.tickvals,
    'yaxis.ticktext': y.ticktext,
  };
}

/**
 * Return the plot area as Plotly laid it out, with the window of cells it shows.
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

/** @typedef {{left: number, top: number, width: number, height: number}} Pixels */

/** @typedef {Pixels & {window: {columns: [number, number], rows: [number, number]}, axes: {x: [number, number], y: [number, number]}}} Area of a plot, in pixels, cells and coordinates */

/**
 * Return the cell under a point of the plot area.
 * @param {number} x across the area, 0 to 1
 * @param {number} y down the area, 0 to 1
 * @param {Pick<Area, 'window'|'axes'>} area
 * @param {Pick<Grid, 'rows'|'columns'|'geometry'>} grid
 * @returns {Cell|null}
 */
export function cellAt(x, y, area, grid) {
  if (x < 0 || x > 1 || y < 0 || y > 1) return null;
  if (grid.geometry) return grid.geometry.at(along(x, area.axes.x), along(y, area.axes.y));
  const shown = windowFor(area, grid);
  const column = Math.floor(along(x, shown.columns));
  const row = Math.floor(along(y, shown.rows));
  const isInside = row >= 0 && column >= 0 && row < grid.rows && column < grid.columns;
  return isInside ? { row, column } : null;
}

/** @param {number} part @param {[number, number]} ends */
function along(part, [from, to]) {
  return from + part * (to - from);
}

/**
 * A bar has no columns to tell apart: the whole width is its one cell.
 * @param {Pick<Area, 'window'>} area
 * @param {{columns: number}} grid
 * @returns {Area['window']}
 */
function windowFor({ window }, grid) {
  return grid.columns > 1 ? window : { ...window, columns: [0, 1] };
}

/**
 * Return pixels of a cell, a whole row (no column) or a whole column (no row), cut to the plot area.
 * @param {number|undefined} row
 * @param {number|undefined} column
 * @param {Area} area
 * @param {Grid} grid
 * @returns {Pixels|null}
 */
export function boxOf(row, column, area, grid) {
  if (grid.geometry) return boxIn(grid.geometry.box(row, column), area);
  const { columns, rows } = windowFor(area, grid);
  const across = span(column, columns, area.left, area.width);
  const down = span(row, rows, area.top, area.height);
  return across && down && { left: across[0], width: across[1], top: down[0], height: down[1] };
}

/**
 * Return pixels of a box that a drawing with its own geometry gives in the coordinates of its axes.
 * @param {Box|null} box
 * @param {Area} area
 * @returns {Pixels|null}
 */
export function boxIn(box, { left, top, width, height, axes }) {
  if (!box) return null;
  const across = (/** @type {number} */ x) =>
    left + ((x - axes.x[0]) / (axes.x[1] - axes.x[0])) * width;
  const down = (/** @type {number} */ y) =>
    top + ((y - axes.y[0]) / (axes.y[1] - axes.y[0])) * height;
  const [x0, x1] = [across(box.x0), across(box.x1)].sort((a, b) => a - b);
  const [y0, y1] = [down(box.y0), down(box.y1)].sort((a, b) => a - b);
  return { left: x0, width: x1 - x0, top: y0, height: y1 - y0 };
}

/**
 * @param {number|undefined} index
 * @param {[number, number]} window
 * @param {number} start
 * @param {number} length
 * @returns {[number, number]|null}
 */
function span(index, [first, last], start, length) {
  if (index === undefined) return [start, length];
  const unit = length / (last - first);
  const from = Math.max(0, (index - first) * unit);
  const to = Math.min(length, (index + 1 - first) * unit);
  return to > from ? [start + from, to - from] : null;
}

/** Pixels: a map whose cells would be smaller opens on a part of it. */
const LEAST_CELL = 4;

/**
 * Return the part of a large map that it opens on: around the chosen row and its greatest number.
 * @param {Grid} grid
 * @param {{width: number, height: number}} pixels of the map
 * @returns {Box|null} in cells; null: all of it has room
 */
export function openingBox(grid, { width, height }) {
  const { rows, columns, value, query, start, thinned, isReadFromStart } = grid;
  const [across, down] = [width / LEAST_CELL, height / LEAST_CELL].map(Math.floor);
  if (!thinned || (across >= columns && down >= rows)) return null;
  const row = query ?? start?.row ?? 0;
  const last = isReadFromStart ? 1 : columns;
  let column = 0;
  for (let candidate = 1; candidate < last; candidate += 1)
    if (value(row, candidate) > (value(row, column) || 0)) column = candidate;
  /** @param {number} at @param {number} length @param {number} end */
  const part = (at, length, end) => {
    const size = Math.min(length, end);
    const first = Math.max(0, Math.min(end - size, Math.round(at - size / 2)));
    return [first, first + size];
  };
  const [x0, x1] = part(column, across, columns);
  const [y0, y1] = part(row, down, rows);
  return { x0, x1, y0, y1 };
}
