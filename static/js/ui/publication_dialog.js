/**
 * The dialog that saves a figure for a paper: a drawing or all heads, as PDF, SVG or PNG at a width
 * in millimetres, with text of a size in points, or its numbers. Loaded when it is asked for.
 */

import { messageOf } from '../api/calls.js';
import { choosePlace, tokensOf, weightsAt } from '../trace/attention.js';
import { madeOf } from '../api/request_code.js';
import { capitalised } from '../words/lists.js';
import { positionLabels } from '../words/tokens.js';
import { isCausal, matrixAt } from '../trace/trace.js';
import {
  allHeads,
  DPI,
  FORMATS,
  framed,
  headLines,
  LIMITS,
  paperDrawing,
  pixelsAcross,
  textSizeOf,
  withResolution,
} from '../plot/publication.js';
import { button, element, palette, save, segment } from './dom.js';
import { plotly } from '../plot/renderer.js';
import { csv, csvOf } from './exports.js';

/**
 * @import { Trace } from '../trace/trace.js'
 * @import { DrawnFigure } from '../plot/figure.js'
 * @import { Drawn, HeadMap } from '../plot/publication.js'
 * @import { Subject } from './panel.js'
 */

const PDF_FONT = 'DejaVu Sans';
const VENDOR = '../../vendor/pdf';
const WIDTHS = [
  [85, 'one column'],
  [180, 'two columns'],
];
/** Milliseconds after the last change until the preview is drawn again. */
const PAUSE = 250;

/** @type {{mm: number, points: number, what: string, format: string, hasCaption: boolean}} */
let wish = { mm: 85, points: 8, what: 'drawing', format: 'pdf', hasCaption: true };

/** @param {Subject} of @param {(message: string) => void} tell */
export function openPublicationDialog(of, tell) {
  const heads = headsOf(of.trace);
  wish = { ...wish, what: 'drawing' };
  const formats = document.body.classList.contains('is-saved')
    ? FORMATS.filter((format) => format !== 'pdf')
    : FORMATS;
  if (!formats.includes(wish.format)) wish = { ...wish, format: formats[0] };
  const preview = element('div', { class: 'paper-preview' });
  const said = element('p', { class: 'queue-said', role: 'status' });
  let timer = 0;
  /** True: the line says what was saved, until something else is chosen. */
  let isTold = false;

  /** @param {Partial<typeof wish>} patch */
  function change(patch) {
    wish = { ...wish, ...patch };
    isTold = false;
    clearTimeout(timer);
    timer = setTimeout(show, PAUSE);
  }

  async function show() {
    try {
      const figure = await figureOf(of, heads);
      const { width, height } = figure.mm;
      const image = element('img', {
        src: urlOf(figure.svg),
        alt: `Preview of the figure: ${of.figure.summary ?? of.figure.title}`,
        style: `width: ${width}mm`,
        onload: () => URL.revokeObjectURL(image.src),
      });
      preview.replaceChildren(image);
      if (!isTold) said.textContent = `${width} × ${Math.round(height)} mm`;
    } catch (error) {
      said.textContent = messageOf(error);
    }
  }

  /** Say what was saved, here and on the page. The dialog stays for the next file. @param {string} message */
  function say(message) {
    isTold = true;
    said.textContent = message;
    tell(message);
  }

  async function saveFigure() {
    said.textContent = 'Saving…';
    try {
      const figure = await figureOf(of, heads);
      const blob = await MAKERS[wish.format](figure);
      say(save(blob, `${nameOf(of)}.${wish.format}`));
    } catch (error) {
      said.textContent = `Not saved: ${messageOf(error)}`;
    }
  }

  function saveNumbers() {
    const text =
      wish.what === 'heads' ? csv(headLines(heads.maps, heads.labels)) : csvOf(of.figure.grid);
    say(save(new Blob([text], { type: 'text/csv' }), `${nameOf(of)}.csv`));
  }

  const mm = number('Width', 'mm', 'mm', change);
  const dialog = element(
    'dialog',
    { class: 'keys paper', 'aria-labelledby': 'paper-title', onclose: () => dialog.remove() },
    element('h2', { id: 'paper-title' }, 'Figure for a paper'),
    element(
      'div',
      { class: 'paper-form' },
      heads.maps.length === 0
        ? null
        : choices(
            'Show',
            'what',
            [
              ['drawing', 'This drawing'],
              ['heads', heads.title],
            ],
            change,
          ),
      element(
        'div',
        { class: 'paper-line' },
        mm.element,
        ...WIDTHS.map(([width, name]) =>
          button(`${width} mm, ${name}`, () => {
            mm.input.value = String(width);
            change({ mm: Number(width) });
          }),
        ),
      ),
      element(
        'div',
        { class: 'paper-line' },
        number('Text', 'points', 'pt', change).element,
        element(
          'label',
          {},
          element('input', {
            type: 'checkbox',
            checked: wish.hasCaption,
            onchange: (/** @type {Event} */ { target }) =>
              change({ hasCaption: /** @type {HTMLInputElement} */ (target).checked }),
          }),
          ' Caption: model, revision and text',
        ),
      ),
      choices(
        'Format',
        'format',
        formats.map((format) => [
          format,
          format === 'png' ? `PNG, ${DPI} dpi` : format.toUpperCase(),
        ]),
        change,
      ),
    ),
    preview,
    said,
    element(
      'div',
      { class: 'queue-actions' },
      button('Numbers as CSV', saveNumbers),
      element('span', { class: 'queue-gap' }),
      button('Close', () => dialog.close()),
      button('Save figure', saveFigure, { class: 'button is-primary' }),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
  show();
}

/** @param {Subject} of */
function nameOf({ name, trace }) {
  return wish.what === 'heads' ? `headlight-${trace.model}-heads` : name;
}

/** @param {Subject} of @param {ReturnType<typeof headsOf>} heads */
async function figureOf(of, heads) {
  for (const [name, [least, most]] of Object.entries(LIMITS)) {
    const value = wish[/** @type {'mm'|'points'} */ (name)];
    if (!(value >= least && value <= most))
      throw new Error(
        `The ${name === 'mm' ? 'width' : 'text'} must be ${least} to ${most} ${name === 'mm' ? 'mm' : 'points'}.`,
      );
  }
  const { font } = palette('light');
  const width = pixelsAcross(wish);
  const text = textSizeOf(width);
  const isHeads = wish.what === 'heads';
  /** @type {Drawn & {labelled?: string}} */
  const drawn = isHeads ? allHeads(heads.maps, { width, font }) : await drawingOf(of, width);
  const caption = wish.hasCaption
    ? [[captionOf(of, isHeads ? heads.title : null), drawn.labelled].filter(Boolean).join(' ')]
    : [];
  return framed(drawn, caption, { mm: wish.mm, font, text });
}

/**
 * Draw the view again at the width of the paper, in light colours.
 * @param {Subject} of
 * @param {number} width
 * @returns {Promise<Drawn & {labelled?: string}>}
 */
async function drawingOf({ figure, redraw }, width) {
  const made = redraw?.({ width, palette: palette('light') });
  const drawn = made?.data && made.layout ? /** @type {DrawnFigure} */ (made) : figure;
  return paperDrawing(await plotly(), drawn, width, palette('light'));
}

/** @param {Subject} of @param {string|null} title of all heads */
function captionOf({ trace, figure, cards }, title) {
  const facts = madeOf(trace, title === null ? figure.grid : {}, cards);
  return [title ?? namedOnce(figure), ...facts]
    .map((fact) => `${fact.replace(/\.$/, '')}.`)
    .join(' ');
}

/**
 * Return the title of a drawing and its quantity; a title that is part of the quantity is not
 * repeated.
 * @param {{title: string, grid: {quantity: string}}} figure
 */
function namedOnce({ title, grid: { quantity } }) {
  const isNamed = quantity.toLowerCase().includes(title.toLowerCase());
  return isNamed ? capitalised(quantity) : `${title}: ${quantity}`;
}

/** Return the weights of all heads of the attention that is looked at. @param {Trace} trace */
function headsOf(trace) {
  const place = choosePlace({ where: '' }, trace);
  /** @type {HeadMap[]} */
  const maps = weightsAt(place, trace).flatMap(({ layer, site }) => {
    const weights = trace.tensors[site];
    return Array.from({ length: weights.shape[0] }, (_, head) => ({
      layer,
      head,
      isCausal: isCausal(site),
      ...matrixAt(weights, head),
    }));
  });
  const labels = (/** @type {'source'|'target'} */ side) => positionLabels(tokensOf(trace, side));
  return {
    maps,
    title: `All ${maps.length} heads`,
    labels: place
      ? { rows: labels(place.rows), columns: labels(place.columns) }
      : { rows: [], columns: [] },
  };
}

/** @typedef {ReturnType<typeof framed>} Framed */

/** @type {Record<string, (figure: Framed) => Promise<Blob>>} */
const MAKERS = {
  svg: async ({ svg }) => new Blob([svg], { type: 'image/svg+xml' }),
  png: pngOf,
  pdf: pdfOf,
};

/** @param {string} svg */
function urlOf(svg) {
  return URL.createObjectURL(new Blob([svg], { type: 'image/svg+xml' }));
}

/** @param {Framed} figure */
async function pngOf({ svg, mm }) {
  const [width, height] = [mm.width, mm.height].map((side) => Math.round((side / 25.4) * DPI));
  const image = new Image(width, height);
  image.src = urlOf(svg);
  await image.decode();
  const canvas = element('canvas', { width, height });
  canvas.getContext('2d')?.drawImage(image, 0, 0, width, height);
  URL.revokeObjectURL(image.src);
  /** @type {Blob|null} */
  const blob = await new Promise((resolve) => {
    canvas.toBlob(resolve, 'image/png');
  });
  if (!blob) throw new Error('the picture is too large for this browser');
  return new Blob([withResolution(new Uint8Array(await blob.arrayBuffer()))], {
    type: 'image/png',
  });
}

/** @param {Framed} figure */
async function pdfOf({ svg, mm }) {
  const [{ jsPDF }, font] = await pdfLibrary();
  const size = [mm.width, mm.height];
  const orientation = mm.width > mm.height ? 'landscape' : 'portrait';
  const pdf = new jsPDF({
    unit: 'mm',
    format: size,
    orientation,
    compress: true,
    putOnlyUsedFonts: true,
  });
  pdf.addFileToVFS('DejaVuSans.ttf', font);
  for (const style of ['normal', 'bold', 'italic']) pdf.addFont('DejaVuSans.ttf', PDF_FONT, style);
  const host = element('div', { class: 'unseen', 'aria-hidden': 'true' });
  const parsed = new DOMParser().parseFromString(svg, 'image/svg+xml').documentElement;
  for (const part of [parsed, ...parsed.querySelectorAll('*')]) setFont(part);
  host.append(parsed);
  document.body.append(host);
  try {
    await pdf.svg(parsed, { x: 0, y: 0, width: mm.width, height: mm.height });
  } finally {
    host.remove();
  }
  return pdf.output('blob');
}

/** @param {Element} part of an SVG */
function setFont(part) {
  if (part.hasAttribute('font-family')) part.setAttribute('font-family', PDF_FONT);
  if (part instanceof SVGElement && part.style.fontFamily) part.style.fontFamily = PDF_FONT;
}

/** @type {Promise<[any, string]>|null} */
let library = null;

/** @returns {Promise<[any, string]>} jsPDF with svg2pdf, and a font in base64 */
function pdfLibrary() {
  library ??= loadPdf().catch((error) => {
    library = null;
    throw error;
  });
  return library;
}

/** @returns {Promise<[any, string]>} */
async function loadPdf() {
  const url = (/** @type {string} */ name) => new URL(`${VENDOR}/${name}`, import.meta.url).href;
  await script(url('jspdf.umd.min.js'));
  await script(url('svg2pdf.umd.min.js'));
  const answer = await fetch(url('DejaVuSans.ttf'));
  if (!answer.ok) throw new Error('the server does not respond; check that it is running');
  const bytes = new Uint8Array(await answer.arrayBuffer());
  let letters = '';
  for (let at = 0; at < bytes.length; at += 8192)
    letters += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return [/** @type {any} */ (window).jspdf, btoa(letters)];
}

/** @param {string} src */
function script(src) {
  return new Promise((resolve, reject) => {
    const made = element('script', { src, onload: resolve });
    made.addEventListener('error', () =>
      reject(new Error('the server does not respond; check that it is running')),
    );
    document.head.append(made);
  });
}

/**
 * @param {string} label
 * @param {'mm'|'points'} name
 * @param {string} unit
 * @param {(patch: Partial<typeof wish>) => void} onChange
 */
function number(label, name, unit, onChange) {
  const [min, max] = LIMITS[name];
  const input = element('input', {
    type: 'number',
    min,
    max,
    step: name === 'mm' ? 1 : 0.5,
    value: wish[name],
    oninput: () => onChange({ [name]: Number(input.value) }),
  });
  return { input, element: element('label', {}, `${label} `, input, ` ${unit}`) };
}

/**
 * @param {string} legend
 * @param {'what'|'format'} name
 * @param {string[][]} options
 * @param {(patch: Partial<typeof wish>) => void} onChange
 */
function choices(legend, name, options, onChange) {
  return element(
    'fieldset',
    { class: 'paper-line' },
    element('legend', { class: 'unseen' }, legend),
    element(
      'div',
      { class: 'segmented' },
      ...options.map(([value, title]) =>
        segment(
          `paper-${name}`,
          value,
          title,
          {},
          { checked: wish[name] === value, onchange: () => onChange({ [name]: value }) },
        ),
      ),
    ),
  );
}
