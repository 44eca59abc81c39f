/**
 * A page without a browser, for tests of what touches the DOM: jsdom, with stand-ins for what it
 * lacks. Nothing is laid out; a test says with `layOut` where an element is. The globals of a browser
 * are set once, so each test file has one page; `blank` empties it.
 */

import { readFileSync } from 'node:fs';
import { JSDOM } from 'jsdom';

const TEMPLATES = new URL('../../templates/', import.meta.url);

/** The markup of a template, its instructions left out. */
export function templateOf(name) {
  const text = readFileSync(new URL(name, TEMPLATES), 'utf8');
  return text
    .replace(/{% include '([^']+)' %}/g, (_, part) => templateOf(part))
    .replace(/<script[^]*?<\/script>|<link[^>]*>|{[{%][^]*?[%}]}/g, '');
}

const { window } = new JSDOM('<!doctype html><body></body>', {
  url: 'http://localhost/',
  pretendToBeVisual: true,
});

/** Of node's own globals, those that have to be the ones of the page. */
const REPLACED = ['AbortController', 'AbortSignal', 'Blob', 'CustomEvent', 'Event', 'EventTarget'];
const ALSO = ['File', 'FormData', 'Headers', 'URLSearchParams', 'localStorage', 'navigator'];

for (const name of Object.getOwnPropertyNames(window)) {
  const isNew = !(name in globalThis) || REPLACED.includes(name) || ALSO.includes(name);
  if (isNew && name !== 'URLSearchParams')
    Object.defineProperty(globalThis, name, {
      get: () => window[name],
      set(value) {
        Object.defineProperty(window, name, { value, configurable: true });
      },
      configurable: true,
    });
}
for (const name of ['addEventListener', 'removeEventListener', 'dispatchEvent'])
  globalThis[name] = window[name].bind(window);

/** Lets a test file end though a link to a saved file is revoked later. */
const LATER = 10_000;
const { setTimeout: wait } = globalThis;
globalThis.setTimeout = (call, milliseconds, ...given) => {
  const timer = wait(call, milliseconds, ...given);
  return milliseconds >= LATER ? timer.unref() : timer;
};

/** Where elements are, by element. @type {WeakMap<Element, DOMRect>} */
const boxes = new WeakMap();

/** Says where an element is, and how large. */
export function layOut(node, { left = 0, top = 0, width = 0, height = 0 }) {
  const box = {
    left,
    top,
    width,
    height,
    right: left + width,
    bottom: top + height,
    x: left,
    y: top,
  };
  boxes.set(node, box);
}

const NOWHERE = { left: 0, top: 0, width: 0, height: 0, right: 0, bottom: 0, x: 0, y: 0 };
const boxOf = (node) => boxes.get(node) ?? NOWHERE;
window.Element.prototype.getBoundingClientRect = function boundingBox() {
  return boxOf(this);
};
window.Range.prototype.getBoundingClientRect = function boundingBox() {
  const { startContainer: at } = this;
  return boxOf(at instanceof window.Element ? at : at.parentElement);
};
const SIZES = { Width: 'width', Height: 'height', Left: 'left', Top: 'top' };
for (const [side, name] of Object.entries(SIZES)) {
  const get = function size() {
    return boxOf(this)[name];
  };
  Object.defineProperty(window.HTMLElement.prototype, `offset${side}`, { get, configurable: true });
  Object.defineProperty(window.Element.prototype, `client${side}`, { get, configurable: true });
}

/** What was painted, by canvas. */
export const painted = new Map();
window.HTMLCanvasElement.prototype.getContext = function context() {
  const calls = painted.get(this) ?? [];
  painted.set(this, calls);
  return new Proxy(
    { calls },
    {
      get: (of, name) => of[name] ?? ((...given) => calls.push([name, ...given])),
      set: (of, name, value) => calls.push([name, value]) > 0,
    },
  );
};
window.HTMLCanvasElement.prototype.toBlob = function toBlob(done) {
  done(new window.Blob(['picture'], { type: 'image/png' }));
};
globalThis.ImageData ??= class ImageData {
  constructor(width, height) {
    Object.assign(this, { width, height, data: new Uint8ClampedArray(4 * width * height) });
  }
};

window.HTMLDialogElement.prototype.showModal = function showModal() {
  this.open = true;
};
window.HTMLDialogElement.prototype.close = function close() {
  if (!this.open) return;
  this.open = false;
  this.dispatchEvent(new window.Event('close'));
};
window.HTMLElement.prototype.hidePopover = function hidePopover() {
  this.dataset.popover = 'hidden';
};

/** The links that were clicked to save a file: its name and its content. */
export const saved = [];
window.URL.createObjectURL = globalThis.URL.createObjectURL = (blob) => {
  saved.push({ blob });
  return `blob:${saved.length}`;
};
window.URL.revokeObjectURL = globalThis.URL.revokeObjectURL = () => {};
window.HTMLAnchorElement.prototype.click = function click() {
  if (this.download) Object.assign(saved.at(-1), { name: this.download });
  else this.dispatchEvent(new window.MouseEvent('click', { bubbles: true, cancelable: true }));
};

/** What the queries about the screen say, and who listens to each. */
export const media = { matching: new Set(['(hover: hover)']), listeners: {} };
globalThis.matchMedia = window.matchMedia = (query) => ({
  get matches() {
    return media.matching.has(query);
  },
  addEventListener: (_, listener) => (media.listeners[query] ??= []).push(listener),
});

/** Makes a query about the screen match, or no longer, and tells those who listen. */
export function match(query, matches) {
  if (matches) media.matching.add(query);
  else media.matching.delete(query);
  for (const listener of media.listeners[query] ?? []) listener({ matches });
}

/** The observers that the page made, by kind; a test calls them with entries. */
export const observers = { ResizeObserver: [], IntersectionObserver: [] };
for (const name of Object.keys(observers))
  globalThis[name] = window[name] = class Observer {
    constructor(call) {
      observers[name].push({ call, observer: this });
    }
    observe(node) {
      observers[name].at(-1).node = node;
    }
    disconnect() {}
    unobserve() {}
  };

/** How far the page was scrolled by each call. */
export const scrolled = [];
window.scrollBy = (x, y) => scrolled.push([x, y]);
window.scrollTo = (x, y) => scrolled.push([x, y]);
window.Element.prototype.setPointerCapture = () => {};
window.Element.prototype.releasePointerCapture = () => {};
Object.defineProperty(globalThis, 'innerHeight', { value: 800, writable: true });
Object.defineProperty(globalThis, 'innerWidth', { value: 1200, writable: true });
Object.assign(window, { innerHeight: 800, innerWidth: 1200 });

/** What Plotly was asked for, newest last: `[method, drawing, …]`. */
export const drawn = [];
const PANE = '.nsewdrag[data-subplot="xy"]';
window.Plotly = {
  async react(drawing, data, layout, config) {
    drawn.push(['react', drawing, data, layout, config]);
    Object.assign(drawing, { data, layout, on: (_, listener) => (drawing.relaid = listener) });
    drawing.classList.add('js-plotly-plot');
    const pane = drawing.querySelector(PANE) ?? drawing.appendChild(document.createElement('i'));
    pane.className = 'nsewdrag';
    pane.dataset.subplot = 'xy';
    const { width, height, margin: { l = 0, r = 0, t = 0, b = 0 } = {} } = layout;
    const box = { x: l, y: t, width: width - l - r, height: height - t - b };
    for (const [name, value] of Object.entries(box)) pane.setAttribute(name, value);
  },
  purge: (drawing) => drawn.push(['purge', drawing]),
  relayout: async (drawing, update) => drawn.push(['relayout', drawing, update]),
  async toImage(figure, options) {
    drawn.push(['toImage', figure, options]);
    return `data:image/svg+xml,${encodeURIComponent('<svg xmlns="http://www.w3.org/2000/svg"/>')}`;
  },
};
globalThis.Plotly = window.Plotly;

/** Empties the page and puts markup into it. @param {string} [markup] */
export function blank(markup = '') {
  document.body.className = '';
  document.body.innerHTML = markup;
}

/** Puts a template into the page. */
export function showTemplate(name) {
  const { body } = new window.DOMParser().parseFromString(templateOf(name), 'text/html');
  document.body.replaceChildren(...body.childNodes);
}

export const find = (selector, host = document) => host.querySelector(selector);
export const all = (selector, host = document) => [...host.querySelectorAll(selector)];
export const texts = (selector, host = document) =>
  all(selector, host).map(({ textContent }) => textContent);

/** The button of a host with this label. */
export function labelled(label, host = document) {
  return all('button', host).find(({ textContent }) => textContent.trim() === label);
}

/** Sends an event that bubbles. @returns {boolean} false: its default was prevented */
export function send(node, type, members = {}) {
  const Kind = type.startsWith('key')
    ? window.KeyboardEvent
    : /^(pointer|click|dbl|mouse|wheel)/.test(type)
      ? window.MouseEvent
      : window.Event;
  const event = new Kind(type, { bubbles: true, cancelable: true, ...members });
  for (const [name, value] of Object.entries(members))
    if (event[name] !== value) Object.defineProperty(event, name, { value });
  return node.dispatchEvent(event);
}

export const press = (node, key, members = {}) => send(node, 'keydown', { key, ...members });

/** Types into a field. */
export function type(field, value, kind = 'input') {
  field.value = value;
  send(field, kind);
}

/** Waits until what is under way has come to rest. */
export async function settled(milliseconds = 0) {
  await new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });
}

/** Records the calls of functions by name. */
export function recorder(...names) {
  const calls = [];
  const handlers = Object.fromEntries(
    names.map((name) => [name, (...given) => void calls.push([name, ...given])]),
  );
  return { calls, handlers, take: () => calls.splice(0) };
}
