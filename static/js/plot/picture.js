/**
 * Pictures of a drawing by Plotly, with a caption below: as it is on the page, or for paper at a
 * width in millimetres with text of a size in points. On paper a drawing is made for the width at
 * which its text of 13 pixels comes out at that size. All heads of a model are a drawing, too.
 */

import { escapeForPlotly } from '../words/text.js';
import { chart } from './chart.js';
import { cell } from './marks/mark.js';
import { band } from './scales.js';

/** @typedef {{layer: number, head: number, rows: number, columns: number, data: Float64Array, isCausal?: boolean}} HeadMap the weights of a head, row-major; causal: the future is left white */
/** @typedef {{data: PlotlyTrace[], layout: Layout}} Drawn */
/** @typedef {{url: string, width: number, height: number}} Picture a data URL, and its size in millimetres */

export const FORMATS = ['svg', 'png'];
export const LIMITS = { mm: [20, 400], points: [4, 24] };
export const DPI = 300;

const MM_PER_INCH = 25.4;
const POINTS_PER_INCH = 72;
const SVG = 'data:image/svg+xml,';
const TEXT = 13;
const LINE_HEIGHT = 1.3 * TEXT;
/** The width of a letter relative to its size, on the average. */
const LETTER = 0.55;
const EDGE = 8;

/**
 * Return a drawing with its caption as a data URL.
 * @param {PlotlyApi} Plotly
 * @param {Drawn} drawn
 * @param {string} caption empty: none
 * @param {{format: string, scale?: number, ink: string}} how
 */
export function pictureOf(Plotly, { data, layout }, caption, { format, scale = 1, ink }) {
  const whole = captioned(layout, caption, ink);
  const { width, height } = whole;
  return Plotly.toImage({ data, layout: whole, config: {} }, { format, width, height, scale });
}

/** Return the pixels across at which a drawing is made. @param {{mm: number, points: number}} size */
export function pixelsAcross({ mm, points }) {
  return Math.round(((mm / MM_PER_INCH) * POINTS_PER_INCH * TEXT) / points);
}

/**
 * Draw a figure for paper: on white, with text all of one size and its marked cells outlined.
 * @param {PlotlyApi} Plotly
 * @param {Omit<DrawnFigure, 'title'>} figure
 * @param {string} caption empty: none
 * @param {{mm: number, format: string}} size
 * @param {Palette} palette
 * @returns {Promise<Picture>}
 */
export async function paperPicture(Plotly, { data, layout, grid }, caption, size, palette) {
  const { mm, format } = size;
  const shapes = [...(layout.shapes ?? []), ...markShapes(grid, palette)];
  const white = { ...evenText(layout), shapes, paper_bgcolor: '#fff', plot_bgcolor: '#fff' };
  const { width, height } = captioned(white, caption, palette.ink);
  const down = Number(((mm * height) / width).toFixed(3));
  const scale = (Math.round((mm / MM_PER_INCH) * DPI) + 0.5) / width; // Plotly rounds pixels down
  const how = format === 'svg' ? { format } : { format, scale };
  const drawn = { data: evenText(data), layout: white };
  const url = await pictureOf(Plotly, drawn, caption, { ...how, ink: palette.ink });
  return { url: format === 'svg' ? inMillimetres(url, mm, down) : url, width: mm, height: down };
}

/** Give an SVG its size on paper. @param {string} url @param {number} width @param {number} height */
function inMillimetres(url, width, height) {
  const svg = decodeURIComponent(url.slice(SVG.length));
  const sized = svg.replace(/<svg[^>]*>/, (opening) =>
    opening
      .replace(/ (width|height)="[^"]*"/g, '')
      .replace('<svg', `<svg width="${width}mm" height="${height}mm"`),
  );
  return SVG + encodeURIComponent(sized);
}

/**
 * Return the outlines of the marked row and cell of a map, which the page draws above it.
 * @param {Grid} grid
 * @param {Pick<Palette, 'ink'|'query'>} palette
 * @returns {Record<string, unknown>[]} shapes of Plotly; none for a drawing other than a plain matrix
 */
export function markShapes({ rows, columns, chosen, picked, geometry }, { ink, query }) {
  if (geometry || columns === 1) return [];
  /** @param {number|undefined} index @param {number} count */
  const span = (index, count) =>
    index === undefined ? [-0.5, count - 0.5] : [index - 0.5, index + 0.5];
  /** @param {{row?: number, column?: number}} at @param {string} color @param {number} width */
  const outline = ({ row, column }, color, width) => {
    const [[x0, x1], [y0, y1]] = [span(column, columns), span(row, rows)];
    return { type: 'rect', x0, x1, y0, y1, line: { color, width } };
  };
  const isMarked = chosen && (chosen.row !== undefined || chosen.column !== undefined);
  return [
    ...(isMarked ? [outline(chosen, query, 1)] : []),
    ...(picked ? [outline(picked, ink, 2)] : []),
  ];
}

/**
 * @param {any} part of Plotly's layout or data
 * @returns {any} the same with every size of a font at that of the text
 */
export function evenText(part) {
  if (Array.isArray(part)) return part.map(evenText);
  if (typeof part !== 'object' || part === null || ArrayBuffer.isView(part)) return part;
  return Object.fromEntries(
    Object.entries(part).map(([name, value]) => [
      name,
      /font$/i.test(name) && value?.size ? { ...value, size: TEXT } : evenText(value),
    ]),
  );
}

/**
 * Add a caption below a layout without shrinking its plot area.
 * @param {Layout} layout
 * @param {string} caption empty: none
 * @param {string} ink
 * @returns {Layout}
 */
export function captioned(layout, caption, ink) {
  const { width, height, margin } = layout;
  const lines = wrapped(caption, width - 2 * EDGE);
  if (lines.length === 0) return layout;
  const room = Math.ceil(lines.length * LINE_HEIGHT) + EDGE;
  return {
    ...layout,
    height: height + room,
    margin: { ...margin, b: margin.b + room },
    title: {
      text: lines.map(escapeForPlotly).join('<br>'),
      font: { size: TEXT, color: ink },
      ...{ xref: 'container', x: 0, xanchor: 'left', pad: { l: EDGE, t: EDGE } },
      ...{ yref: 'container', y: room / (height + room), yanchor: 'top' },
    },
  };
}

/** @param {string} text @param {number} width pixels @returns {string[]} lines that fit */
export function wrapped(text, width) {
  const most = Math.max(8, Math.floor(width / (TEXT * LETTER)));
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

/** The share of a head's side that is left free between heads. */
const GAP = 1 / 16;

/**
 * Draw all heads, a row for each layer, on one scale that ends at the greatest weight.
 * @param {HeadMap[]} maps of one attention
 * @param {number} width pixels
 * @param {Palette} palette
 */
export function allHeads(maps, width, palette) {
  const [{ rows, columns }] = maps;
  const across = placesOf(
    maps.map(({ head }) => head),
    columns,
    'head',
  );
  const down = placesOf(
    maps.map(({ layer }) => layer),
    rows,
    'layer',
  );
  const size = { rows: down.labels.length, columns: across.labels.length };
  const data = new Float64Array(size.rows * size.columns).fill(NaN);
  let top = 0;
  for (const { layer, head, isCausal, data: weights } of maps)
    for (let row = 0; row < rows; row += 1) {
      const seen = isCausal ? row + 1 : columns;
      const line = weights.slice(row * columns, row * columns + seen);
      data.set(line, (down.start(layer) + row) * size.columns + across.start(head));
      top = Math.max(top, ...line);
    }
  /** @type {Ramp} */
  const ramp = { title: 'attention weight', domain: [0, top], legend: 'short' };
  return chart(
    {
      x: band(across.labels, { keep: across.keep, isSlanted: false }),
      y: band(down.labels, { keep: down.keep }),
      marks: [cell({ ...size, data }, { ramp, gap: [0, 0] })],
      size: { isSquare: true },
      table: { quantity: 'attention weight' },
    },
    { width, palette },
  );
}

/**
 * Place heads or layers next to each other, each with its name in the middle.
 * @param {number[]} ids with repetitions
 * @param {number} side cells of each
 * @param {string} name
 */
function placesOf(ids, side, name) {
  const all = [...new Set(ids)].sort((a, b) => a - b);
  const step = side + Math.ceil(side * GAP);
  const keep = all.map((_, at) => at * step + Math.floor(side / 2));
  const labels = Array.from({ length: all.length * step }, () => '');
  keep.forEach((cell, at) => (labels[cell] = `${name} ${all[at]}`));
  return { keep, labels, start: (/** @type {number} */ id) => all.indexOf(id) * step };
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

const SIGNATURE_AND_HEADER = 8 + 25;
/** The chunk pHYs of 300 dpi, 11811 pixels per metre. https://www.w3.org/TR/png/#11pHYs */
const RESOLUTION = Uint8Array.of(
  ...[0, 0, 0, 9, 0x70, 0x48, 0x59, 0x73, 0, 0, 0x2e, 0x23, 0, 0, 0x2e, 0x23, 1],
  ...[0x78, 0xa5, 0x3f, 0x76],
);

/** Return a PNG that says how large it is on paper. @param {Blob} png @returns {Blob} */
export function withResolution(png) {
  const head = png.slice(0, SIGNATURE_AND_HEADER);
  return new Blob([head, RESOLUTION, png.slice(SIGNATURE_AND_HEADER)], { type: png.type });
}
