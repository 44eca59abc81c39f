/**
 * Figures for a paper as SVG: a drawing or all heads of a model, at a width in millimetres, with
 * text of a size in points and a caption below. A drawing is made for the width at which its text of
 * 12 pixels comes out at that size. The caption of a saved picture has its title, model and text.
 */

import { madeOf, originOf } from '../api/request_code.js';
import { escapeForPlotly, shortened } from '../words/text.js';
import { css, computeLevel, LEVELS, sequential } from './colour.js';
import { letteringFor } from './scales.js';

/**
 * @import { Card } from '../trace/card.js'
 * @import { Trace } from '../trace/trace.js'
 * @import { DrawnFigure, Figure, Layout } from './figure.js'
 * @import { Box, Grid } from './grid.js'
 */

/** @typedef {{mm: number, points: number}} Size the width of a figure, and the size of its text */
/** @typedef {{svg: string, width: number, height: number}} Drawn an SVG and its size in pixels of the drawing */
/** @typedef {{layer: number, head: number, rows: number, columns: number, data: ArrayLike<number>, isCausal?: boolean}} HeadMap the weights of a head, row-major; causal: the future is left white */

export const FORMATS = ['pdf', 'svg', 'png'];
export const LIMITS = { mm: [20, 400], points: [4, 24] };
export const DPI = 300;

const MM_PER_INCH = 25.4;
const POINTS_PER_INCH = 72;
const TEXT = 12;
const LINE_HEIGHT = 17;
/** The width of a letter relative to its size, on the average. */
const LETTER = 0.55;

/** Return the pixels across at which a drawing is made. @param {Size} size */
export function pixelsAcross({ mm, points }) {
  /** @param {number} text the size of the text in pixels */
  const across = (text) => Math.round(((mm / MM_PER_INCH) * POINTS_PER_INCH * text) / points);
  const wide = across(TEXT);
  return across(textSizeOf(wide));
}

/**
 * Return the size of all text of a figure: that of the labels, for which a drawing has room.
 * @param {number} width pixels across
 */
export function textSizeOf(width) {
  return letteringFor(width).size;
}

/**
 * Draw a figure as SVG on white, with text all of one size and its marked cells outlined.
 * @param {PlotlyApi} Plotly
 * @param {DrawnFigure} figure
 * @param {number} width pixels across, if the figure names none
 * @param {{ink: string, query: string}} palette
 * @returns {Promise<Drawn & {labelled?: string}>}
 */
export async function paperDrawing(Plotly, { data, layout, grid, labelled }, width, palette) {
  const text = textSizeOf(width);
  const size = { width: layout.width ?? width, height: layout.height ?? width };
  const shapes = [...(layout.shapes ?? []), ...markShapes(grid, palette)];
  const url = await Plotly.toImage(
    { data: evenText(data, text), layout: forPublication({ ...layout, shapes }, text), config: {} },
    { format: 'svg', scale: 1, ...size },
  );
  const svg = decodeURIComponent(url.slice(url.indexOf(',') + 1)).replace(/^<\?xml[^>]*>/, '');
  return { svg, labelled, ...size };
}

/**
 * Return a layout whose text is all of one size, on white.
 * @template {Layout} T
 * @param {T} layout
 * @param {number} [text] the size
 * @returns {T}
 */
export function forPublication(layout, text = TEXT) {
  return { ...evenText(layout, text), paper_bgcolor: '#fff', plot_bgcolor: '#fff' };
}

/**
 * Return the outlines of the marked row and cell of a map, which the page draws above it.
 * @param {Grid} grid
 * @param {{ink: string, query: string}} palette
 * @returns {Record<string, unknown>[]} shapes of Plotly; none for a drawing other than a plain matrix
 */
export function markShapes({ rows, columns, chosen, picked, geometry }, { ink, query }) {
  if (geometry || columns === 1) return [];
  /** @param {Box} box @param {string} color @param {number} width */
  const outline = (box, color, width) => ({ type: 'rect', ...box, line: { color, width } });
  /** @param {number|undefined} index @param {number} count */
  const span = (index, count) =>
    index === undefined ? [-0.5, count - 0.5] : [index - 0.5, index + 0.5];
  /** @param {{row?: number, column?: number}} at @returns {Box} */
  const boxOf = ({ row, column }) => {
    const [[x0, x1], [y0, y1]] = [span(column, columns), span(row, rows)];
    return { x0, x1, y0, y1 };
  };
  const isMarked = chosen && (chosen.row !== undefined || chosen.column !== undefined);
  return [
    ...(isMarked ? [outline(boxOf(chosen), query, 1)] : []),
    ...(picked ? [outline(boxOf(picked), ink, 2)] : []),
  ];
}

/**
 * @param {any} part of Plotly's layout or data
 * @param {number} [text] the size
 * @returns {any} the same with every size of a font at that of the text
 */
export function evenText(part, text = TEXT) {
  if (Array.isArray(part)) return part.map((each) => evenText(each, text));
  if (typeof part !== 'object' || part === null || ArrayBuffer.isView(part)) return part;
  return Object.fromEntries(
    Object.entries(part).map(([name, value]) => [
      name,
      /font$/i.test(name) && value?.size ? { ...value, size: text } : evenText(value, text),
    ]),
  );
}

/**
 * @param {string} text
 * @param {number} width pixels
 * @param {number} [size] of the text
 * @returns {string[]} lines that fit
 */
export function wrapped(text, width, size = TEXT) {
  const most = Math.max(8, Math.floor(width / (size * LETTER)));
  /** @type {string[]} */
  const lines = [];
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= most)
      lines[lines.length - 1] = `${last} ${word}`;
    else for (let at = 0; at < word.length; at += most) lines.push(word.slice(at, at + most));
  }
  return lines;
}

/**
 * Return a drawing at its width in millimetres, with a caption below.
 * @param {Drawn} drawn
 * @param {string[]} caption paragraphs; none: no caption
 * @param {{mm: number, font: string, text?: number}} page `text`: its size in pixels
 * @returns {Drawn & {mm: {width: number, height: number}}}
 */
export function framed({ svg, width, height }, caption, { mm, font, text = TEXT }) {
  const lines = caption.flatMap((paragraph) => wrapped(paragraph, width, text));
  const below = lines.length === 0 ? 0 : LINE_HEIGHT * (lines.length + 0.5);
  const whole = height + below;
  const scale = mm / width;
  const texts = lines.map(
    (line, index) =>
      `<text x="0" y="${height + LINE_HEIGHT * (index + 1)}" font-family="${escaped(font)}" font-size="${text}" fill="#000">${escaped(line)}</text>`,
  );
  return {
    svg: `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="${round(mm)}mm" height="${round(whole * scale)}mm" viewBox="0 0 ${width} ${whole}"><rect width="${width}" height="${whole}" fill="#fff"/>${svg}${texts.join('')}</svg>`,
    width,
    height: whole,
    mm: { width: mm, height: whole * scale },
  };
}

const SIDE = 52;
const TOP = 20;
const GAP = 4;
const BAR = { length: 120, height: 8, room: 34 };

/**
 * Return all heads, a row for each layer, in the colours of one scale that ends at the greatest
 * weight.
 * @param {HeadMap[]} maps
 * @param {{width: number, font: string}} of pixels across
 * @returns {Drawn}
 */
export function allHeads(maps, { width, font }) {
  const layers = [...new Set(maps.map(({ layer }) => layer))].sort((a, b) => a - b);
  const heads = [...new Set(maps.map(({ head }) => head))].sort((a, b) => a - b);
  const side = (width - SIDE) / heads.length - GAP;
  const ceiling = maps.reduce((most, { data }) => Array.from(data).reduce(greater, most), 0);
  const height = TOP + layers.length * (side + GAP) + BAR.room;
  /** @param {number} x @param {number} y @param {string} words @param {string} [anchor] */
  const text = (x, y, words, anchor = 'middle') =>
    `<text x="${round(x)}" y="${round(y)}" text-anchor="${anchor}" font-family="${escaped(font)}" font-size="${textSizeOf(width)}" fill="#000">${escaped(words)}</text>`;
  /** @param {number} place */
  const left = (place) => SIDE + place * (side + GAP);
  /** @param {number} place */
  const top = (place) => TOP + place * (side + GAP);
  const barTop = top(layers.length) + 6;
  const steps = 64;
  return {
    width,
    height,
    svg: [
      ...heads.map((head, place) =>
        text(left(place) + side / 2, TOP - 6, place === 0 ? `head ${head}` : String(head)),
      ),
      ...layers.map((layer, place) =>
        text(SIDE - 6, top(place) + side / 2 + 4, `layer ${layer}`, 'end'),
      ),
      ...maps.map((map) => {
        const place = [left(heads.indexOf(map.head)), top(layers.indexOf(map.layer))];
        return cellsOf(map, place, side, ceiling);
      }),
      ...Array.from({ length: steps }, (_, step) => {
        const colour = css(sequential('light'), Math.round((step / (steps - 1)) * (LEVELS - 1)));
        return `<rect x="${round(SIDE + (step * BAR.length) / steps)}" y="${round(barTop)}" width="${round(BAR.length / steps + 0.3)}" height="${BAR.height}" fill="${colour}"/>`;
      }),
      text(SIDE, barTop + BAR.height + 13, '0', 'start'),
      text(SIDE + BAR.length, barTop + BAR.height + 13, round(ceiling), 'end'),
      text(SIDE + BAR.length + 10, barTop + BAR.height, 'attention weight', 'start'),
    ].join(''),
  };
}

/** @param {number} a @param {number} b */
function greater(a, b) {
  return Math.max(a, b);
}

/**
 * Return the cells of a head: one path for each colour, neighbours of one colour in one rectangle.
 * @param {HeadMap} map
 * @param {number[]} place
 * @param {number} side
 * @param {number} ceiling
 */
function cellsOf({ rows, columns, data, isCausal = false }, [x, y], side, ceiling) {
  /** @type {Map<number, string>} */
  const paths = new Map();
  for (let row = 0; row < rows; row += 1) {
    const seen = isCausal ? Math.min(columns, row + 1) : columns;
    for (let from = 0; from < seen;) {
      const level = computeLevel(data[row * columns + from], ceiling);
      let end = from + 1;
      while (end < seen && computeLevel(data[row * columns + end], ceiling) === level) end += 1;
      paths.set(level, `${paths.get(level) ?? ''}M${from} ${row}h${end - from}v1h${from - end}z`);
      from = end;
    }
  }
  return [
    `<g transform="translate(${round(x)} ${round(y)}) scale(${side / columns} ${side / rows})" shape-rendering="crispEdges">`,
    ...[...paths].map(
      ([level, path]) => `<path fill="${css(sequential('light'), level)}" d="${path}"/>`,
    ),
    '</g>',
  ].join('');
}

/**
 * Return the weights of all heads as lines of a table.
 * @param {HeadMap[]} maps
 * @param {{rows: string[], columns: string[]}} labels
 * @returns {string[][]}
 */
export function headLines(maps, labels) {
  const header = ['layer', 'head', 'query', 'query_token', 'key', 'key_token', 'weight'];
  return [
    header,
    ...maps.flatMap(({ layer, head, rows, columns, data }) =>
      Array.from({ length: rows * columns }, (_, at) => {
        const [row, column] = [Math.floor(at / columns), at % columns];
        return [layer, head, row, labels.rows[row], column, labels.columns[column], data[at]].map(
          String,
        );
      }),
    ),
  ];
}

/** @param {number} value */
function round(value) {
  return String(Number(value.toFixed(3)));
}

/** @param {string} text */
function escaped(text) {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

const SIGNATURE_AND_HEADER = 8 + 25;

/**
 * Return a PNG that says how large it is on paper: with a chunk pHYs, its pixels per metre.
 * https://www.w3.org/TR/png/#11pHYs
 * @param {Uint8Array} png
 * @param {number} [dpi]
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function withResolution(png, dpi = DPI) {
  const chunk = new Uint8Array(21);
  const view = new DataView(chunk.buffer);
  view.setUint32(0, 9);
  chunk.set(new TextEncoder().encode('pHYs'), 4);
  const perMetre = Math.round((dpi * 1000) / MM_PER_INCH);
  view.setUint32(8, perMetre);
  view.setUint32(12, perMetre);
  chunk[16] = 1;
  view.setUint32(17, crc32(chunk.subarray(4, 17)));
  const whole = new Uint8Array(png.length + chunk.length);
  whole.set(png.subarray(0, SIGNATURE_AND_HEADER));
  whole.set(chunk, SIGNATURE_AND_HEADER);
  whole.set(png.subarray(SIGNATURE_AND_HEADER), SIGNATURE_AND_HEADER + chunk.length);
  return whole;
}

/** @param {Uint8Array} bytes */
function crc32(bytes) {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

const EDGE = 16;
/** A narrow drawing is padded on the right so that its caption stays readable. */
const LEAST_WIDTH = 480;
const TITLE = { size: 15, line: 20, letters: 7.6 };
const LINE = { size: 12, line: 17, letters: 6.4 };

/**
 * @param {Trace} trace
 * @param {Pick<Figure, 'title'> & {grid: Grid}} figure
 * @param {Card[]} cards of all models
 * @returns {string[]} the title, then a line or two below it
 */
export function captionOf(trace, { title, grid }, cards) {
  const { text, edits, experiment } = originOf(trace, grid, cards);
  if (experiment) return [title, text];
  const [model, texts, ...others] = madeOf(trace, grid, cards);
  return [
    title,
    ...(edits ? [grid.quantity] : []),
    [model, texts].filter(Boolean).join(' · '),
    ...others,
  ];
}

/**
 * Add the caption above a layout without shrinking its plot area.
 * @param {Layout} layout of Plotly, with its margin
 * @param {string[]} caption
 * @param {{width: number, height: number}} size of the drawing
 * @param {{ink: string, muted: string}} palette
 * @returns {Layout} a layout with its size
 */
export function captioned(layout, [title, ...lines], { width, height }, palette) {
  const across = Math.max(width, LEAST_WIDTH);
  const room = EDGE + TITLE.line + lines.length * LINE.line;
  /** @param {string} text @param {{size: number, line: number, letters: number}} of */
  const fitted = (text, { letters }) =>
    escapeForPlotly(shortened(text, Math.floor((across - 2 * EDGE) / letters)));
  const text = [
    `<b>${fitted(title, TITLE)}</b>`,
    ...lines.map(
      (line) =>
        `<span style="font-size:${LINE.size}px;color:${palette.muted}">${fitted(line, LINE)}</span>`,
    ),
  ].join('<br>');
  return {
    ...layout,
    width: across,
    height: height + room,
    margin: { ...layout.margin, t: layout.margin.t + room, r: layout.margin.r + across - width },
    title: {
      text,
      font: { size: TITLE.size, color: palette.ink },
      xref: 'container',
      yref: 'container',
      x: 0,
      xanchor: 'left',
      y: 1,
      yanchor: 'top',
      pad: { l: EDGE, t: EDGE },
    },
  };
}

/** More cells than this are not told at the pointer: each takes some fifty letters. */
const MOST_TOLD = 16384;

/**
 * Return the drawing, which tells its numbers at the pointer by itself: no page does it any more.
 * @param {DrawnFigure} figure
 */
export function selfTelling({ data, layout, grid }) {
  const isTold = grid.rows * grid.columns <= MOST_TOLD;
  return {
    data: data.map((part) =>
      isTold && isOf(part, grid) ? { ...part, hoverinfo: 'text', hovertext: tipsOf(grid) } : part,
    ),
    layout: { ...layout, hovermode: 'closest', dragmode: false, uirevision: undefined },
  };
}

/**
 * @param {any} part of Plotly's data
 * @param {Grid} grid
 */
function isOf({ type, z }, { rows, columns, geometry }) {
  return type === 'heatmap' && !geometry && z?.length === rows && z[0]?.length === columns;
}

/** @param {Grid} grid */
function tipsOf({ rows, columns, tip }) {
  return Array.from({ length: rows }, (_, row) =>
    Array.from({ length: columns }, (_, column) =>
      tip(row, column).map(escapeForPlotly).join('<br>'),
    ),
  );
}
