/** The layers over a drawing: marks of cells, rows and columns, the tip, and the highlight. */

import { boxOf } from '../plot/renderer.js';
import { element, mapOf, palette } from './dom.js';

/**
 * @import { Cell, Highlight } from '../plot/grid.js'
 * @import { Picture } from '../plot/colour.js'
 */

const MARKS = ['chosen', 'picked', 'row', 'column', 'cell', 'brush'];
/** Pixels of a map in a tip. */
const MAP = 96;

export function createMarks() {
  const highlight = createHighlight();
  const marks = Object.fromEntries(
    MARKS.map((name) => [name, element('div', { class: `plot-mark is-${name}` })]),
  );
  const tip = element('div.tip', { 'aria-hidden': 'true' });

  return {
    elements: [highlight.element, ...Object.values(marks), tip],

    /** @param {Pixels|null} box that is being drawn */
    brush: (box) => place(marks.brush, box),

    /** @param {Grid} grid @param {Cell|null} cell under the cursor @param {Area} area of the plot */
    show(grid, cell, area) {
      /** @param {number|undefined} rows @param {number|undefined} columns */
      const at = (rows, columns) => boxOf(rows, columns, area, grid);
      const { chosen, picked, geometry } = grid;
      const hasSides = grid.columns > 1 && Boolean(!geometry || geometry.highlight);
      const box = cell && at(cell.row, cell.column);
      highlight.show(cell && geometry?.highlight?.(cell), area);
      place(marks.chosen, chosen && at(chosen.row, chosen.column));
      place(marks.picked, picked && at(picked.row, picked.column));
      place(marks.row, cell && hasSides ? at(cell.row, undefined) : null);
      place(marks.column, cell && hasSides ? at(undefined, cell.column) : null);
      place(marks.cell, box);
      showTip(tip, cell && grid.tip(cell.row, cell.column), box, cell && grid.picture?.(cell.row));
    },
  };
}

/**
 * Return the box around the cells of some tokens; null: there is none.
 * @param {Grid} grid
 * @param {{query: number|null, key: number|null}} wanted
 * @param {(cell: Cell) => Pixels|null} boxAt
 */
export function boxOfTokens(grid, wanted, boxAt) {
  return unionOf(cellsOfTokens(grid, wanted).map(boxAt));
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
 * @param {Picture|null} [picture]
 */
function showTip(tip, lines, box, picture) {
  tip.classList.toggle('is-shown', Boolean(lines && box));
  if (!lines || !box) return;
  const plot = /** @type {HTMLElement} */ (tip.parentElement);
  const [what, much] = lines;
  const map = picture ? [mapOf(picture, palette().theme, MAP)] : [];
  tip.replaceChildren(what, element('strong', much), ...map);
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
 * @param {Grid} grid
 * @param {{query: number|null, key: number|null}} wanted null: any
 * @returns {Cell[]} the cells of these tokens
 */
function cellsOfTokens(grid, wanted) {
  /** @param {number|null} token @param {number|number[]|undefined} of */
  const isOf = (token, of) => token === null || (of !== undefined && [of].flat().includes(token));
  return Array.from({ length: grid.rows * grid.columns }, (_, at) => ({
    row: Math.floor(at / grid.columns),
    column: at % grid.columns,
  })).filter(({ row, column }) => {
    const { query, key } = grid.tokens(row, column);
    return isOf(wanted.query, query) && isOf(wanted.key, key);
  });
}

/** @param {(Pixels|null)[]} boxes @returns {Pixels|null} the box around all of them */
function unionOf(boxes) {
  const seen = boxes.filter((box) => box !== null);
  if (seen.length === 0) return null;
  const left = Math.min(...seen.map((box) => box.left));
  const top = Math.min(...seen.map((box) => box.top));
  return {
    left,
    top,
    width: Math.max(...seen.map((box) => box.left + box.width)) - left,
    height: Math.max(...seen.map((box) => box.top + box.height)) - top,
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
      svg.replaceChildren(...highlightParts(highlight, across, down));
    },
  };
}

/**
 * @param {Highlight} highlight
 * @param {(value: number) => number} across
 * @param {(value: number) => number} down
 */
function highlightParts({ veil, lines, numbers }, across, down) {
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
