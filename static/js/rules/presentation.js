/**
 * A presentation: views in an order, each with a name, the fragment of its link, and the cells that
 * stay covered until they are asked for. It is kept and exported as JSON.
 */

/** @typedef {{panel: number, row: number, column: number}} Cover a cell or bar of one of a view's drawings */
/** @typedef {{name: string, link: string, covers: Cover[], text?: string, question?: string}} Slide `text` and `question` are for a chapter */
/** @typedef {{at: number, revealed: number}} Place the slide shown, and how many of its covers are off */

const VERSION = 1;
const MOST_SLIDES = 500;
const LONGEST_NAME = 200;
const LONGEST_LINK = 20_000;
const LONGEST_TEXT = 2_000;

/** @param {Slide[]} slides @returns {string} a file */
export function written(slides) {
  return JSON.stringify({ headlight_presentation: VERSION, views: slides }, null, 1);
}

/**
 * @param {string} file
 * @returns {Slide[]}
 * @throws {Error} with a sentence on what is wrong with the file
 */
export function read(file) {
  /** @type {any} */
  let presentation;
  try {
    presentation = JSON.parse(file);
  } catch {
    throw new Error('The file is not JSON, so it is not a presentation.');
  }
  if (presentation?.headlight_presentation === undefined)
    throw new Error('The file is not a presentation of Headlight.');
  if (presentation.headlight_presentation !== VERSION)
    throw new Error('A newer version of Headlight wrote this presentation.');
  if (!Array.isArray(presentation.views) || presentation.views.length === 0)
    throw new Error('The presentation holds no views.');
  if (presentation.views.length > MOST_SLIDES)
    throw new Error(`The presentation holds more than ${MOST_SLIDES} views.`);
  return presentation.views.map(slideOf);
}

/** @param {any} view @param {number} index @returns {Slide} */
function slideOf(view, index) {
  const link = typeof view?.link === 'string' ? view.link.replace(/^[^#]*/, '') : '';
  if (link === '' || link.length > LONGEST_LINK)
    throw new Error(`View ${index + 1} of the presentation has no link.`);
  const name = typeof view.name === 'string' ? view.name.slice(0, LONGEST_NAME) : '';
  const covers = Array.isArray(view.covers) ? view.covers : [];
  if (!covers.every(isCover))
    throw new Error(`View ${index + 1} of the presentation covers something that is not a cell.`);
  return {
    name: name || `View ${index + 1}`,
    link,
    covers: covers.map((/** @type {Cover} */ { panel, row, column }) => ({ panel, row, column })),
    ...ofText('text', view.text),
    ...ofText('question', view.question),
  };
}

/** @param {string} name @param {any} value @returns {Partial<Slide>} nothing, unless it is a text */
function ofText(name, value) {
  return typeof value === 'string' && value !== '' ? { [name]: value.slice(0, LONGEST_TEXT) } : {};
}

/** @param {any} cover @returns {cover is Cover} */
function isCover(cover) {
  return ['panel', 'row', 'column'].every(
    (name) => Number.isInteger(cover?.[name]) && cover[name] >= 0,
  );
}

/** The parameters of a link that name the text and the model. */
const READING = ['text', 'target', 'model'];

/**
 * The opening of a saved page: a view, and a presentation of views of the same text.
 * @typedef {{link: string, slides: Slide[]}} Opening
 */

/**
 * @param {string} link of the view that is looked at
 * @param {Slide[]} slides of any text
 * @returns {Opening} links of a page that holds one text, and those slides that show it
 */
export function openingOf(link, slides) {
  const reading = readingOf(link);
  const matching = slides.filter((slide) => readingOf(slide.link) === reading);
  return {
    link: withoutReading(link),
    slides: matching.map((slide) => ({ ...slide, link: withoutReading(slide.link) })),
  };
}

/** @param {Opening} opening @returns {string} an element of a page */
export function openingElement({ link, slides }) {
  const json = JSON.stringify({ link, slides }).replaceAll('<', '\\u003c');
  return `<script type="application/json" id="${OPENING}">${json}</script>\n`;
}

/**
 * @param {{getElementById: (id: string) => {textContent: string|null}|null}} page
 * @returns {Opening|null} null: the page was not saved from a view
 */
export function openingIn(page) {
  const json = page.getElementById(OPENING)?.textContent;
  return json ? JSON.parse(json) : null;
}

const OPENING = 'opening';
const TILE = 'tile';

/** @typedef {{query: Record<string, string>, bytes: ArrayBuffer}} HeldTile the part of a map that a saved page shows, and its answer */

/** @param {string} path of the request @param {ArrayBuffer} bytes @returns {string} HTML */
export function tileElement(path, bytes) {
  const query = Object.fromEntries(new URLSearchParams(path.split('?')[1]));
  let binary = '';
  for (const byte of new Uint8Array(bytes)) binary += String.fromCharCode(byte);
  const json = JSON.stringify({ query, bytes: btoa(binary) }).replaceAll('<', '\\u003c');
  return `<script type="application/json" id="${TILE}">${json}</script>\n`;
}

/**
 * @param {{getElementById: (id: string) => {textContent: string|null}|null}} page
 * @returns {HeldTile|null} null: the page was saved with the whole map
 */
export function tileIn(page) {
  const json = page.getElementById(TILE)?.textContent;
  if (!json) return null;
  const { query, bytes } = JSON.parse(json);
  return { query, bytes: Uint8Array.from(atob(bytes), (byte) => byte.charCodeAt(0)).buffer };
}

/** @param {string} link */
function readingOf(link) {
  const written = new URLSearchParams(link.replace(/^#/, ''));
  return JSON.stringify(READING.map((name) => written.get(name)));
}

/** @param {string} link */
function withoutReading(link) {
  const written = new URLSearchParams(link.replace(/^#/, ''));
  for (const name of READING) written.delete(name);
  return `#${written}`;
}

/**
 * @template T
 * @param {T[]} list
 * @param {number} from
 * @param {number} to
 * @returns {T[]} with one entry in another place
 */
export function moved(list, from, to) {
  if (to < 0 || to >= list.length) return list;
  const left = list.filter((_, index) => index !== from);
  return [...left.slice(0, to), list[from], ...left.slice(to)];
}

/**
 * @param {Slide} slide
 * @param {Cover} cover
 * @returns {Slide} with a cover more, or less if it has this one already
 */
export function toggledCover(slide, cover) {
  const others = slide.covers.filter(
    ({ panel, row, column }) =>
      panel !== cover.panel || row !== cover.row || column !== cover.column,
  );
  const isNew = others.length === slide.covers.length;
  return { ...slide, covers: isNew ? [...others, cover] : others };
}

/**
 * @param {Slide[]} slides
 * @param {number} at
 * @param {Partial<Slide>} patch
 * @returns {Slide[]} with one slide changed
 */
export function patched(slides, at, patch) {
  return slides.map((slide, index) => (index === at ? { ...slide, ...patch } : slide));
}

/** @typedef {'next'|'back'|'first'|'last'} Turn */

/**
 * Turn the slides. On the way on the covers of a slide are lifted first, one at a time; a slide that
 * is turned back to is covered as at first.
 * @param {Pick<Slide, 'covers'>[]} slides
 * @param {Place} place
 * @param {Turn} turn
 * @returns {Place} the same at the end
 */
export function turned(slides, place, turn) {
  const { at, revealed } = place;
  if (turn === 'back') return { at: Math.max(0, at - 1), revealed: 0 };
  if (turn !== 'next') return { at: turn === 'first' ? 0 : slides.length - 1, revealed: 0 };
  if (revealed < slides[at].covers.length) return { at, revealed: revealed + 1 };
  return at + 1 < slides.length ? { at: at + 1, revealed: 0 } : place;
}
