/**
 * Pan and zoom by hand: while a map is dragged, pinched or wheeled, a canvas over it shows the
 * numbers at hand. The page then requests the place where the movement ends. Loaded with the first
 * map that can be moved.
 */

import { element, paintValues } from './dom.js';

/**
 * @import { Area } from '../plot/renderer.js'
 * @import { Box, Pan } from '../plot/grid.js'
 * @import { Patch } from '../state/state.js'
 */

/** @typedef {{x: number, y: number}} Point */

/** Pixels after which a press is a drag. */
const SLOP = 4;
/** Milliseconds after the last turn of the wheel at which the place is requested. */
const PAUSE = 160;
/** Zoom by a pixel of the wheel; browsers send some 100 for a notch, and few for a pinch. */
const WHEEL = 0.004;
const MOST_TURN = 60;

/**
 * Return the box after a movement of one or two fingers, which keep the cells that they touched.
 * @param {Pick<Pan, 'most'|'least'>} pan
 * @param {Box} box as the movement began
 * @param {Point[]} from where the fingers touched, as shares of the map
 * @param {Point[]} to where they are
 * @param {number} [zoom] another factor of the sides
 * @returns {Box} inside the text
 */
export function boxAfter({ most, least }, box, from, to, zoom = 1) {
  const factor = (zoom * spread(from)) / spread(to);
  /** @param {'x'|'y'} axis @param {number} first @param {number} last @param {number} end */
  const side = (axis, first, last, end) => {
    const length = Math.max(Math.min(least, end), Math.min(end, (last - first) * factor));
    const start = first + middle(from, axis) * (last - first) - middle(to, axis) * length;
    const begin = Math.max(0, Math.min(end - length, start));
    return [begin, begin + length];
  };
  const [x0, x1] = side('x', box.x0, box.x1, most.across);
  const [y0, y1] = side('y', box.y0, box.y1, most.down);
  return { x0, x1, y0, y1 };
}

/** @param {Point[]} points @param {'x'|'y'} axis */
function middle(points, axis) {
  return points.reduce((sum, point) => sum + point[axis], 0) / points.length;
}

/** @typedef {{clientX: number, clientY: number}} At a place of the window */

/**
 * @param {HTMLElement} plot
 * @param {Area|null} area of the map on it
 * @param {At} at
 * @returns {Point} a share of the map; the middle, if there is none
 */
function placeIn(plot, area, { clientX, clientY }) {
  const { left, top } = plot.getBoundingClientRect();
  if (!area) return { x: 0.5, y: 0.5 };
  return {
    x: (clientX - left - area.left) / area.width,
    y: (clientY - top - area.top) / area.height,
  };
}

/** @param {Point[]} points the distance of two; of one there is none */
function spread([first, second]) {
  return second ? Math.max(0.02, Math.hypot(first.x - second.x, first.y - second.y)) : 1;
}

/**
 * @param {HTMLElement} plot
 * @param {{area: () => Area|null, onMoved: (patch: Patch) => void}} handlers
 */
export function createPanZoom(plot, { area, onMoved }) {
  const canvas = element('canvas.plot-pan', { 'aria-hidden': 'true' });
  plot.append(canvas);
  /** @type {Pan|undefined} */
  let pan;
  /** @type {Layer[]} */
  let layers = [];
  /** The place of the map; the server may not have answered yet. @type {Box} */
  let box = { x0: 0, x1: 1, y0: 0, y1: 1 };
  /** @type {Map<number, Point>} */
  const fingers = new Map();
  /** @type {{box: Box, from: Point[]}|null} */
  let grip = null;
  let isMoving = false;
  let frame = 0;
  let timer = 0;

  /** @param {At} event */
  const placeOf = (event) => placeIn(plot, area(), event);

  /** @param {Box} to */
  function moveTo(to) {
    box = to;
    if (!isMoving && pan) layers = paintLayers(pan);
    isMoving = true;
    plot.classList.add('is-panning');
    if (!frame) frame = requestAnimationFrame(draw);
  }

  function draw() {
    frame = 0;
    const rectangle = area();
    if (rectangle && isMoving) drawLayers(canvas, rectangle, layers, box);
  }

  function end() {
    grip = null;
    clearTimeout(timer);
    if (!isMoving || !pan) return;
    onMoved(pan.patch(box));
  }

  /** @param {PointerEvent} event */
  function grab(event) {
    if (!pan || event.button > 0) return;
    fingers.set(event.pointerId, placeOf(event));
    grip = { box, from: [...fingers.values()] };
    if (fingers.size > 1) clearTimeout(timer);
  }

  /** @param {PointerEvent} event */
  function drag(event) {
    if (!pan || !grip || !fingers.has(event.pointerId)) return;
    // One finger scrolls the page, two move the map.
    if (event.pointerType === 'touch' && fingers.size < 2) return;
    fingers.set(event.pointerId, placeOf(event));
    const to = [...fingers.values()];
    const { width = 0, height = 0 } = area() ?? {};
    const [{ x, y }] = grip.from;
    const far = Math.hypot((to[0].x - x) * width, (to[0].y - y) * height);
    if (isMoving || to.length > 1 || far > SLOP) moveTo(boxAfter(pan, grip.box, grip.from, to));
  }

  /** @param {PointerEvent} event */
  function letGo({ pointerId }) {
    if (!fingers.delete(pointerId)) return;
    if (fingers.size > 0) grip = { box, from: [...fingers.values()] };
    else end();
  }

  const gone = new AbortController(); // the window outlives the drawing
  plot.addEventListener('pointerdown', grab);
  for (const [type, act] of /** @type {[string, (event: any) => void][]} */ ([
    ['pointermove', drag],
    ['pointerup', letGo],
    ['pointercancel', letGo],
  ]))
    window.addEventListener(type, act, { signal: gone.signal });
  for (const type of ['touchstart', 'touchmove'])
    plot.addEventListener(
      type,
      (event) => {
        const { touches } = /** @type {TouchEvent} */ (event);
        if (pan && touches.length > 1 && event.cancelable) event.preventDefault();
      },
      { passive: false },
    );
  // A pinch on a touchpad arrives as a wheel with Ctrl.
  plot.addEventListener(
    'wheel',
    (event) => {
      if (!pan || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      const turn = Math.max(-MOST_TURN, Math.min(MOST_TURN, event.deltaY));
      const at = [placeOf(event)];
      moveTo(boxAfter(pan, box, at, at, Math.exp(turn * WHEEL * 2)));
      clearTimeout(timer);
      timer = setTimeout(end, PAUSE);
    },
    { passive: false },
  );

  return {
    /** @param {Pan|undefined} wanted of the figure that was just drawn */
    show(wanted) {
      pan = wanted;
      plot.classList.toggle('is-movable', Boolean(pan));
      if (grip && isMoving) return; // still under the fingers
      isMoving = false;
      plot.classList.remove('is-panning');
      if (pan) box = pan.box;
    },

    destroy() {
      gone.abort();
      cancelAnimationFrame(frame);
      clearTimeout(timer);
    },
  };
}

/** A press on a button of zoom changes the sides by this factor. */
const STEP = 1.6;
const LEAST_CELLS = 8;
const CENTRE = [{ x: 0.5, y: 0.5 }];

/**
 * Create the zoom of a map that is drawn whole: buttons, and two fingers.
 * @param {HTMLElement} plot
 * @param {{area: () => Area|null, onBox: (box: Box|null) => void}} handlers null: the whole map
 */
export function createZoom(plot, { area, onBox }) {
  /** @type {Pick<Pan, 'most'|'least'>} */
  let limits = { most: { across: 1, down: 1 }, least: LEAST_CELLS };
  /** @type {Box} */
  let box = { x0: 0, x1: 1, y0: 0, y1: 1 };
  /** @type {{box: Box, from: Point[]}|null} */
  let grip = null;
  let frame = 0;
  /** @param {Box} to */
  const moveTo = (to) => {
    box = to;
    if (!frame)
      frame = requestAnimationFrame(() => {
        frame = 0;
        const { across, down } = limits.most;
        const isWhole = box.x1 - box.x0 >= across && box.y1 - box.y0 >= down;
        onBox(isWhole ? null : box);
      });
  };
  /** @param {string} label @param {string} name @param {() => void} onclick */
  const button = (label, name, onclick) =>
    element('button', { type: 'button', 'aria-label': name, title: name, onclick }, label);
  const buttons = element(
    'div.plot-zoom',
    { role: 'group', 'aria-label': 'Zoom' },
    button('+', 'Zoom in', () => moveTo(boxAfter(limits, box, CENTRE, CENTRE, 1 / STEP))),
    button('−', 'Zoom out', () => moveTo(boxAfter(limits, box, CENTRE, CENTRE, STEP))),
    button('Whole map', 'Whole map', () =>
      moveTo({ x0: 0, x1: limits.most.across, y0: 0, y1: limits.most.down }),
    ),
  );
  (plot.parentElement ?? plot).append(buttons);

  /** @param {TouchEvent} event */
  const placesOf = ({ touches }) => Array.from(touches, (touch) => placeIn(plot, area(), touch));
  /** @param {(event: TouchEvent) => void} act @returns {(event: Event) => void} */
  const withTwo = (act) => (event) => {
    const touch = /** @type {TouchEvent} */ (event);
    if (buttons.hidden || touch.touches.length < 2) {
      grip = null;
      return;
    }
    if (touch.cancelable) touch.preventDefault();
    act(touch);
  };
  const options = { passive: false };
  plot.addEventListener(
    'touchstart',
    withTwo((event) => {
      grip = { box, from: placesOf(event) };
    }),
    options,
  );
  plot.addEventListener(
    'touchmove',
    withTwo((event) => {
      if (grip) moveTo(boxAfter(limits, grip.box, grip.from, placesOf(event)));
    }),
    options,
  );

  return {
    /**
     * @param {{across: number, down: number}|null} size of the whole map in cells; null: no zoom
     * @param {Box|null} shown null: the whole
     */
    show(size, shown) {
      buttons.hidden = size === null;
      if (!size) return;
      limits = { most: size, least: LEAST_CELLS };
      if (!grip) box = shown ?? { x0: 0, x1: size.across, y0: 0, y1: size.down };
    },
  };
}

/** @typedef {{image: HTMLCanvasElement, box: Box}} Layer the numbers at hand, as a picture */

/** @param {Pan} pan @returns {Layer[]} */
function paintLayers({ layers, colours, top }) {
  return layers.map(({ matrix: { rows, columns, data }, box }) => {
    const image = element('canvas', { width: columns, height: rows });
    paintValues(image, data, colours, top);
    return { image, box };
  });
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Area} area of the map
 * @param {Layer[]} layers
 * @param {Box} box that is shown
 */
function drawLayers(canvas, area, layers, box) {
  const context = canvas.getContext('2d');
  if (!context) return;
  const [width, height] = [Math.round(area.width), Math.round(area.height)];
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  canvas.style.transform = `translate(${area.left}px, ${area.top}px)`;
  context.clearRect(0, 0, width, height);
  context.imageSmoothingEnabled = false;
  for (const layer of layers) drawLayer(context, layer, { box, width, height });
}

/**
 * Draw the part of a layer that is in sight.
 * @param {CanvasRenderingContext2D} context
 * @param {Layer} layer
 * @param {{box: Box, width: number, height: number}} shown
 */
function drawLayer(context, { image, box: of }, { box, width, height }) {
  const [x0, x1] = [Math.max(box.x0, of.x0), Math.min(box.x1, of.x1)];
  const [y0, y1] = [Math.max(box.y0, of.y0), Math.min(box.y1, of.y1)];
  if (x0 >= x1 || y0 >= y1) return;
  const source = { x: image.width / (of.x1 - of.x0), y: image.height / (of.y1 - of.y0) };
  const target = { x: width / (box.x1 - box.x0), y: height / (box.y1 - box.y0) };
  /** @type {[number, number][]} */
  const [place, size, from, part] = [
    [(x0 - box.x0) * target.x, (y0 - box.y0) * target.y],
    [(x1 - x0) * target.x, (y1 - y0) * target.y],
    [(x0 - of.x0) * source.x, (y0 - of.y0) * source.y],
    [(x1 - x0) * source.x, (y1 - y0) * source.y],
  ];
  context.clearRect(...place, ...size);
  context.drawImage(image, ...from, ...part, ...place, ...size);
}
