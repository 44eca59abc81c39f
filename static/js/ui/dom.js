/**
 * The browser: building elements, placing boxes, copying, saving and reading files, and the theme's colours.
 */

import { computeLevel, markRoles, packPixels, paintInto, sequential } from '../plot/colour.js';

/** @import { Picture } from '../plot/colour.js' @import { Explained } from './controls.js' */

/** @typedef {Node|string|null|undefined|false|Child[]} Child what is null, undefined or false is left out */

/**
 * Build an element. Text goes in as text, never as markup.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T|`${T}.${string}`} name its tag, and the classes that it always has: `p.help`
 * @param {...(Record<string, any>|Child)} given attributes, if there are any, then children: `data-…`, `aria-…`, or `on…` listeners; null, undefined and false are left out
 * @returns {HTMLElementTagNameMap[T]}
 */
export function element(name, ...given) {
  const [tag, ...classes] = name.split('.');
  const node = document.createElement(/** @type {T} */ (tag));
  if (classes.length > 0) node.className = classes.join(' ');
  const [attributes, ...children] = isAttributes(given[0]) ? given : [{}, ...given];
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false)
      node.setAttribute(key, value === true ? '' : value);
  }
  const shown = children.flat(Infinity).filter((child) => child || child === '');
  node.append(.../** @type {Node[]} */ (shown));
  return node;
}

/** @param {unknown} given */
function isAttributes(given) {
  return Object.getPrototypeOf(given ?? '') === Object.prototype;
}

/** @param {string} label @param {() => void} onclick @param {Record<string, any>} [attributes] */
export function button(label, onclick, attributes = {}) {
  return element('button.button', { type: 'button', onclick, ...attributes }, label);
}

/** Build the head and the body of a table. @param {Child[]} head @param {Child[][]} rows */
export function tableParts(head, rows) {
  return [
    element('thead', element('tr', head)),
    element(
      'tbody',
      rows.map((row) => element('tr', row)),
    ),
  ];
}

/**
 * Build one of several radios in a row.
 * @param {string} name of all of them
 * @param {unknown} value
 * @param {string} title
 * @param {Record<string, any>} [attributes] of the label
 * @param {Record<string, any>} [more] of the radio
 */
export function segment(name, value, title, attributes = {}, more = {}) {
  return element(
    'label',
    attributes,
    element('input', { type: 'radio', name, value: String(value), ...more }),
    element('span', title),
  );
}

/**
 * Paint numbers, a pixel each; NaN: none.
 * @param {HTMLCanvasElement} canvas as wide and high as there are columns and rows
 * @param {Float64Array} values
 * @param {Uint8Array} colours
 * @param {number} top the value at the end of the colours
 */
export function paintValues(canvas, values, colours, top) {
  const image = new ImageData(canvas.width, canvas.height);
  values.forEach((value, at) => {
    if (Number.isNaN(value)) return;
    const level = 3 * computeLevel(value, top);
    for (let part = 0; part < 3; part += 1) image.data[4 * at + part] = colours[level + part];
    image.data[4 * at + 3] = 255;
  });
  canvas.getContext('2d')?.putImageData(image, 0, 0);
}

/**
 * Return a sentence with W_O, W_Q, W_K, W_V and d_k set as in the formulas.
 * @param {string} text
 * @returns {(Node|string)[]}
 */
export function withSymbols(text) {
  return text.split(/(W_[OQKV]|d_k)\b/).map((part, at) => {
    if (at % 2 === 0) return part;
    const [letter, index] = part.split('_');
    return element('span', element('i', letter), element('sub', index));
  });
}

/**
 * Return a part that the page is known to hold.
 * @template {Element} T
 * @param {ParentNode} host
 * @param {string} selector
 * @param {{new (): T}} kind `HTMLInputElement`
 * @returns {T}
 * @throws {TypeError} if there is none of this kind
 */
export function partOf(host, selector, kind) {
  const part = host.querySelector(selector);
  if (part instanceof kind) return part;
  throw new TypeError(`the page has no ${kind.name} at ${selector}`);
}

/** @typedef {{left: number, top: number, width: number, height: number}} Box */

/** @type {Record<string, string>} */
const TYPES = {
  csv: 'text/csv',
  html: 'text/html',
  json: 'application/json',
  md: 'text/markdown',
  svg: 'image/svg+xml',
};

/** @param {Blob|BlobPart[]} content @param {string} name its ending says the type @returns {string} what to say about it */
export function save(content, name) {
  const type = TYPES[name.split('.').at(-1) ?? ''];
  const blob = content instanceof Blob ? content : new Blob(content, { type });
  const link = element('a', { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  return `Saved ${name}`;
}

/**
 * Print a part without the page around it.
 * @param {HTMLElement} part
 * @param {string} [paper] rules of `@page`
 */
export function printAlone(part, paper = '') {
  const { documentElement: root, body } = document;
  const rules = new CSSStyleSheet();
  rules.replaceSync(`@page { ${paper} }`);
  document.adoptedStyleSheets.push(rules);
  part.classList.add('on-paper');
  root.classList.add('is-printed');
  body.append(part);
  const leave = () => {
    part.remove();
    root.classList.remove('is-printed');
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== rules);
  };
  window.addEventListener('afterprint', leave, { once: true });
  window.print();
}

const systemIsDark = () => matchMedia('(prefers-color-scheme: dark)');

/**
 * @param {HTMLElement} fieldset the switch of themes, which `theme_first.js` acts on
 * @param {() => void} onChange colours are different now
 */
export function watchTheme(fieldset, onChange) {
  fieldset.addEventListener('change', onChange);
  systemIsDark().addEventListener('change', onChange);
}

/** Return how much larger the page is drawn while it is presented. */
export function pageZoom() {
  return Number(getComputedStyle(document.documentElement).getPropertyValue('--zoom')) || 1;
}

/**
 * Return the value that this browser kept: null if none, undefined if storage is forbidden.
 * @param {string} name
 */
export function kept(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return undefined;
  }
}

/** @param {string} name @param {string} value */
export function keep(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // Storage may be forbidden; the choice then lasts until the page is left.
  }
}

/**
 * @param {'light'|'dark'} [theme] absent: that of the page
 * @returns {Palette} CSS custom properties as plain colours
 */
export function palette(theme = currentTheme()) {
  const probe = document.createElement('span');
  probe.style.colorScheme = theme;
  probe.style.setProperty('forced-color-adjust', 'none'); // else every colour is that of text
  document.body.append(probe);
  /** @param {string} name */
  const colour = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const colours = {
    surface: colour('surface'),
    sunken: colour('sunken'),
    ink: colour('ink'),
    muted: colour('muted'),
    line: colour('line'),
    query: colour('query'),
    key: colour('key'),
    beam: colour('beam'),
  };
  probe.remove();
  const font = getComputedStyle(document.body).fontFamily;
  return { theme, font, ...colours };
}

/** @returns {'light'|'dark'} */
function currentTheme() {
  const { theme } = document.documentElement.dataset;
  if (theme === 'light' || theme === 'dark') return theme;
  return systemIsDark().matches ? 'dark' : 'light';
}

let count = 0;

/**
 * Keep a popover beside its button while it is open.
 * @param {HTMLElement} button
 * @param {HTMLElement} box
 */
export function keepBeside(button, box) {
  function place() {
    const { left, top } = placeBeside(
      button.getBoundingClientRect(),
      { width: box.offsetWidth, height: box.offsetHeight },
      { width: document.documentElement.clientWidth, height: window.innerHeight },
    );
    box.style.left = `${left}px`;
    box.style.top = `${top}px`;
  }

  // Only while it is open: the window outlives the popover.
  box.addEventListener('toggle', ({ newState }) => {
    const isOpen = newState === 'open';
    if (isOpen) place();
    box.classList.toggle('is-placed', isOpen);
    if (isOpen) window.addEventListener('scroll', place, { passive: true });
    else window.removeEventListener('scroll', place);
  });
}

/** @param {string} title what is explained */
export function createHelp(title) {
  count += 1;
  const id = `help-${count}`;
  const list = element('div');
  const heading = element('p.help-title', title);
  const box = element(
    'div.help-box',
    { id, popover: 'auto', role: 'region', 'aria-label': title, tabindex: 0, autofocus: true },
    heading,
    list,
  );
  const button = element(
    'button.help-button',
    { type: 'button', popovertarget: id, 'aria-label': title },
    '?',
  );
  const host = element('span.help-host', { hidden: true }, button, box);
  let said = '';

  keepBeside(button, box);

  return {
    element: host,
    /** @param {Explained[]} explained */
    show(explained) {
      host.hidden = explained.length === 0;
      if (JSON.stringify(explained) === said) return;
      said = JSON.stringify(explained);
      list.replaceChildren(
        ...explained.flatMap(({ title: group, parts }) => [
          ...(group ? [element('h3', group)] : []),
          element(
            'dl',
            parts.flatMap(([word, meaning]) => [element('dt', word), element('dd', meaning)]),
          ),
        ]),
      );
    },
  };
}

const HEIGHTS = { least: 400, most: 700, around: 440 };

/**
 * Return the greatest height of a drawing that still fits on the screen.
 * @param {number} windowHeight
 */
export function plotHeight(windowHeight) {
  return Math.max(HEIGHTS.least, Math.min(HEIGHTS.most, windowHeight - HEIGHTS.around));
}

const GAP = 12;
const EDGE = 8;

/**
 * Place a card next to its target: right, left, below or above, wherever it fits; otherwise at the
 * bottom of the screen.
 * @param {Box} target
 * @param {{width: number, height: number}} card
 * @param {{width: number, height: number}} screen
 * @returns {{left: number, top: number}}
 */
export function placeBeside(target, card, screen) {
  /** @param {number} value @param {number} most */
  const within = (value, most) => Math.max(EDGE, Math.min(value, most - EDGE));
  const top = within(target.top, screen.height - card.height);
  const left = within(target.left, screen.width - card.width);
  const places = [
    { left: target.left + target.width + GAP, top },
    { left: target.left - GAP - card.width, top },
    { left, top: target.top + target.height + GAP },
    { left, top: target.top - GAP - card.height },
  ];
  /** @param {{left: number, top: number}} place */
  const fits = (place) =>
    place.left >= EDGE &&
    place.top >= EDGE &&
    place.left + card.width <= screen.width - EDGE &&
    place.top + card.height <= screen.height - EDGE;
  return (
    places.find(fits) ?? {
      left: within(screen.width, screen.width - card.width),
      top: within(screen.height, screen.height - card.height),
    }
  );
}

/**
 * Return a canvas with the map of one head.
 * @param {Picture} picture
 * @param {Theme} theme
 * @param {number} size in pixels
 */
export function mapOf(picture, theme, size) {
  const canvas = Object.assign(document.createElement('canvas'), { width: size, height: size });
  const image = new ImageData(size, size);
  const sheet = { pixels: new Uint32Array(image.data.buffer), width: size };
  paintInto(sheet, { left: 0, top: 0, size }, picture, packPixels(sequential(theme)));
  const context = canvas.getContext('2d');
  context?.putImageData(image, 0, 0);
  if (context) markRoles(context, { left: 0, top: 0, size, picture }, Math.ceil(size / 32));
  return canvas;
}

/** Return the height that the sentence covers of a page that is scrolled, with the bar above it. */
export function heightCovered() {
  const sentence = document.getElementById('sentence');
  return sentence ? sentence.offsetHeight + (parseFloat(getComputedStyle(sentence).top) || 0) : 0;
}
