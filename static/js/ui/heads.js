/**
 * Every head of every layer as a small map. The maps are pixels on one canvas; over each lies a
 * button, so that mouse, touch, keyboard and screen reader all reach it, and under it what the head
 * does with this text.
 */

import {
  bareTitle,
  labelsInWords,
  labelledHeads,
  choosePlace,
  describeRole,
  restOnFirst,
  weightsAt,
  tokensOf,
} from '../trace/attention.js';
import { findCeiling } from '../trace/arithmetic.js';
import { share } from '../words/numbers.js';
import { isHeld } from '../trace/layered.js';
import { isCausal } from '../trace/trace.js';
import { alone } from '../trace/words.js';
import { peak, paintHeads } from '../plot/colour.js';
import { roleColours, rolesIn } from '../plot/roles.js';
import { walk } from './plot.js';
import { element } from './dom.js';

/** @import { Place } from '../trace/attention.js' @import { Picture } from '../plot/colour.js' */

/** @typedef {ReturnType<typeof labelledHeads>[number]} Row */
/** @typedef {{rows: Row[], isBare: boolean, every: number}} Build what the cells depend on */

/** @typedef {{query: number, key: number}} Pair */
/** @typedef {Picture & {ceiling: number}} HeadPicture `skip`: 1 where the first token hides the rest */
/** @typedef {Map<string, HeadPicture>} Pictures by layer and head */
/** @typedef {{left: number, top: number, size: number, picture: HeadPicture}} Placed */
/** @typedef {{trace: Trace, place: string|undefined, size: number, range: 'one'|'head', width: number, theme: Theme, ratio: number, query: number, key: number, beam: string, maps: Trace|undefined, hide: unknown}} Look what the picture depends on; `query`, `key`: the marked pair, −1 for none; `maps`: small ones of layers whose weights are not here */

const MARGIN = 44;
const GAP = 6;
const LARGEST = 96;
/** Maps that would be smaller, as 32 heads on a phone, have less between them. */
const SMALLEST = 12;
const TIGHT = { margin: 26, gap: 1, smallest: 6 };
/** The width of a head's number, and of the room next to it. */
const NUMBER = 20;
/** Maps narrower than this have no words below: they would run into the next. */
const ROOM_FOR_LABELS = 58;
const ORDER = 'Rows are layers, columns are heads, counted from 0.';
const HOW = {
  mouse: 'Point at a map, or choose one to enlarge it.',
  touch: 'Tap a map to enlarge it.',
};

/** @param {{onChoose: (layer: number, head: number) => void}} handlers */
export function createHeads({ onChoose }) {
  const canvas = element('canvas', { 'aria-hidden': 'true' });
  const grid = element('div.heads-grid', {
    role: 'grid',
    'aria-label': 'Heads: rows are layers, columns are heads',
    'aria-multiselectable': 'true',
  });
  const caption = element('p.heads-caption');
  const frame = element('div.heads', canvas, grid);
  const foot = element('div.heads-foot', caption);
  /** @type {Pictures} */
  let pictures = new Map();
  /** @type {Row[]} */
  let rows = [];
  /** @type {HTMLElement[][]} */
  let cells = [];
  /** @type {Partial<Build>} */
  let built = {};
  /** @type {Partial<Look>} */
  let painted = {};

  /** @param {LabelledHead} head */
  const pictureOf = (head) => pictures.get(keyOf(head));

  /** @param {{row: number, column: number}|null} cell */
  const say = (cell) => {
    caption.textContent = cell
      ? captionOf(rows[cell.row].heads[cell.column], pictureOf(rows[cell.row].heads[cell.column]))
      : [ORDER, canPoint() ? HOW.mouse : HOW.touch, ...leftOut(rows, pictures)].join(' ');
  };
  grid.addEventListener('click', ({ target }) => {
    const cell = cellOf(cells, target);
    if (cell)
      onChoose(rows[cell.row].heads[cell.column].layer, rows[cell.row].heads[cell.column].head);
  });
  grid.addEventListener('keydown', (event) => {
    const from = cellOf(cells, event.target);
    const to = from && step(from, event, cells);
    if (!to) return;
    event.preventDefault();
    rove(cells, to);
    cells[to.row][to.column].focus();
  });
  for (const type of ['pointerover', 'focusin'])
    grid.addEventListener(type, ({ target }) => say(cellOf(cells, target)));
  for (const type of ['pointerleave', 'focusout']) grid.addEventListener(type, () => say(null));
  say(null);

  return {
    element: element('div', frame, foot),
    foot,

    /**
     * @param {Trace} trace
     * @param {{where: string, layer: number, head: number, range: 'one'|'head', width: number, palette: {theme: 'light'|'dark', beam: string}, pair?: Pair|null, isChosen?: (head: LabelledHead) => boolean, attention_hide?: unknown, answers?: ViewState['answers']}} state `pair`: the cell marked on every map; `isChosen`: where others than the chosen head are shown too
     */
    show(trace, state) {
      const place = choosePlace(state, trace);
      const maps = state.answers?.maps?.trace;
      const isNew = trace !== painted.trace || place?.id !== painted.place;
      const isOther = isNew || maps !== painted.maps || state.attention_hide !== painted.hide;
      if (isOther) pictures = picturesOf(trace, place, state);
      if (isNew) rows = labelledHeads(trace, place);
      const nHeads = rows[0]?.heads.length ?? 0;
      const { size, gap, margin } = sizesFor(state.width, nHeads);
      const isBare = size < ROOM_FOR_LABELS;
      const every = Math.ceil(NUMBER / (size + gap));
      const wish = { rows, isBare, every };
      if (isOther || !isSame(wish, built)) {
        cells = build(grid, wish);
        built = wish;
        say(null);
      }
      select(grid, rows, cells, state);
      const look = {
        trace,
        place: place?.id,
        size,
        range: state.range,
        width: state.width,
        theme: state.palette.theme,
        ratio: window.devicePixelRatio || 1,
        query: state.pair?.query ?? -1,
        key: state.pair?.key ?? -1,
        beam: state.palette.beam,
        maps,
        hide: state.attention_hide,
      };
      if (isSame(look, painted)) return;
      fit(frame, { size, gap, margin, heads: nHeads });
      paintHeads({ canvas, frame, cells, rows, pictureOf }, look);
      painted = look;
    },
  };
}

/** @param {Trace} trace @param {Place|null} place */
function rolesOf(trace, place) {
  if (!place || rolesIn(trace).length === 0) return null;
  const [x, y] = [place.columns, place.rows].map((side) =>
    roleColours(trace, side, alone(tokensOf(trace, side))),
  );
  return { x, y };
}

/** Return true if the device can point. A finger chooses what it touches; it cannot point first. */
function canPoint() {
  return !window.matchMedia('(hover: none)').matches;
}

/** @param {Record<string, unknown>} a @param {Record<string, unknown>} b */
function isSame(a, b) {
  return Object.keys(a).every((name) => a[name] === b[name]);
}

/** @param {{row: number, column: number}} from @param {KeyboardEvent} event @param {HTMLElement[][]} cells */
function step(from, { key, ctrlKey, metaKey }, cells) {
  return walk(from, key, { rows: cells.length, columns: cells[0].length }, ctrlKey || metaKey);
}

/** @param {HTMLElement} grid @param {Build} wish @returns {HTMLElement[][]} */
function build(grid, { rows, isBare, every }) {
  const cells = rows.map(({ heads }) =>
    heads.map((head) =>
      element('button.heads-cell', {
        type: 'button',
        role: 'gridcell',
        tabindex: -1,
        'aria-label': spoken(head),
      }),
    ),
  );
  const lines = rows.map(({ layer, heads }, row) =>
    element(
      'div.heads-row',
      { role: 'row' },
      element(
        'span.heads-label.is-layer',
        { role: 'rowheader', 'aria-label': `layer ${layer}` },
        row % every === 0 ? String(layer) : '',
      ),
      cells[row].map((cell, column) =>
        element('div.heads-item', cell, isBare ? [] : [nameOf(heads[column])]),
      ),
    ),
  );
  grid.replaceChildren(headline(rows[0]?.heads ?? [], every), ...lines);
  return cells;
}

/** @param {LabelledHead[]} heads @param {number} every how many heads one is numbered */
function headline(heads, every) {
  return element(
    'div.heads-row',
    { role: 'row' },
    element('span.heads-label.is-corner', { role: 'presentation' }, ''),
    heads.map(({ head }) =>
      element(
        'span.heads-label.is-head',
        { role: 'columnheader', 'aria-label': `head ${head}` },
        head % every === 0 ? String(head) : '',
      ),
    ),
  );
}

/** Return a map by name, with what its head does. @param {LabelledHead} head */
function spoken(head) {
  return [`Layer ${head.layer}, head ${head.head}`, labelsInWords(head)].filter(Boolean).join(': ');
}

/** Return the caption of a map: what its head is for. @param {LabelledHead} labelled */
function nameOf(labelled) {
  return element('span.heads-name', { 'aria-hidden': 'true' }, describeRole(labelled));
}

/**
 * Select the shown heads; the keyboard enters at the one that was chosen.
 * @param {HTMLElement} grid
 * @param {Row[]} rows
 * @param {HTMLElement[][]} cells
 * @param {{layer: number, head: number, isChosen?: (head: LabelledHead) => boolean}} state
 */
function select(
  grid,
  rows,
  cells,
  { layer, head, isChosen = (each) => each.layer === layer && each.head === head },
) {
  let chosen = { row: 0, column: 0 };
  rows.forEach(({ heads }, row) =>
    heads.forEach((each, column) => {
      cells[row][column].setAttribute('aria-selected', String(isChosen(each)));
      if (each.layer === layer && each.head === head) chosen = { row, column };
    }),
  );
  grid.classList.toggle('is-many', grid.querySelectorAll('[aria-selected="true"]').length > 1);
  grid
    .querySelectorAll('.is-layer')
    .forEach((label, row) => label.classList.toggle('is-current', row === chosen.row));
  grid
    .querySelectorAll('.is-head')
    .forEach((label, column) => label.classList.toggle('is-current', column === chosen.column));
  if (!grid.contains(document.activeElement)) rove(cells, chosen);
}

/** @param {HTMLElement[][]} cells @param {{row: number, column: number}} of */
function rove(cells, { row, column }) {
  cells.forEach((line, r) =>
    line.forEach((cell, c) => {
      cell.tabIndex = r === row && c === column ? 0 : -1;
    }),
  );
}

/** @param {HTMLElement[][]} cells @param {EventTarget|null} target */
function cellOf(cells, target) {
  for (let row = 0; row < cells.length; row += 1) {
    const column = cells[row].findIndex((cell) => cell === target);
    if (column >= 0) return { row, column };
  }
  return null;
}

/** @param {LabelledHead} labelled @param {HeadPicture|undefined} picture */
function captionOf(labelled, picture) {
  const { label, score } = labelled;
  const help = label && score !== null ? ` (${bareTitle(label)}: ${label.help})` : '';
  if (!picture) return `${spoken(labelled)}${help}; not read yet`;
  const past = picture.skip ? ' on a token after the first' : '';
  return `${spoken(labelled)}${help}; strongest weight${past} ${share(picture.ceiling)}`;
}

/**
 * Return the side of a map and what is around it, in pixels.
 * @param {number} width
 * @param {number} nHeads
 */
function sizesFor(width, nHeads) {
  /** @param {number} margin @param {number} gap */
  const room = (margin, gap) => Math.floor((width - margin) / Math.max(nHeads, 1) - gap);
  const size = room(MARGIN, GAP);
  if (size >= SMALLEST) return { size: Math.min(LARGEST, size), gap: GAP, margin: MARGIN };
  const { margin, gap, smallest } = TIGHT;
  return { size: Math.max(smallest, Math.min(SMALLEST, room(margin, gap))), gap, margin };
}

/** @param {HTMLDivElement} frame @param {Record<string, number>} sizes */
function fit(frame, sizes) {
  for (const [name, size] of Object.entries(sizes))
    frame.style.setProperty(`--${name}`, name === 'heads' ? `${size}` : `${size}px`);
}

/** @param {{layer: number, head: number}} of */
export const keyOf = ({ layer, head }) => `${layer} ${head}`;

/** Say where maps lack something. @param {Row[]} labels @param {Pictures} pictures */
function leftOut(labels, pictures) {
  const nHeads = labels.reduce((sum, { heads }) => sum + heads.length, 0);
  const nResting = [...pictures.values()].filter(({ skip }) => skip).length;
  return [
    ...(nResting > 0
      ? [
          `${nResting} of ${nHeads} maps leave out the first token, on which most of the weight rests, and have their own colours.`,
        ]
      : []),
    ...(pictures.size < nHeads ? ['The maps of the other layers are being read.'] : []),
  ];
}

/** The share of the numbers of a long text's map that the colours tell apart. */
const COLOURED = 0.98;

/** @param {Omit<Picture, 'ceiling'>} picture */
function ceilingOf({ data, offset, rows, columns, scale }) {
  const values = Float64Array.from(
    { length: rows * columns },
    (_, at) => data[offset + at] * scale,
  );
  return findCeiling(values, COLOURED);
}

/**
 * Return the pictures to paint, by layer and head: weights, or small maps of layers not here.
 * @param {Trace} trace
 * @param {Place|null} place
 * @param {{attention_hide?: unknown, answers?: ViewState['answers']}} state
 * @param {number} [only] layer
 */
export function picturesOf(trace, place, { attention_hide: hide, answers }, only) {
  const maps = answers?.maps?.trace?.tensors ?? {};
  /** @type {Pictures} */
  const pictures = new Map();
  const roles = rolesOf(trace, place);
  for (const { layer, site } of weightsAt(place, trace)) {
    const map = maps[site.replace(/weights$/, 'max_map')];
    const array = isHeld(trace.tensors[site]) ? trace.tensors[site] : map;
    if (!array || layer !== (only ?? layer)) continue;
    const [nHeads, rows, columns] = array.shape;
    const { data, scale } = array;
    for (let head = 0; head < nHeads; head += 1) {
      const isResting = hide === 'auto' && restOnFirst(trace, site, array, [head]) > 0;
      const picture = {
        data,
        offset: head * rows * columns,
        rows,
        columns,
        scale,
        isCausal: isCausal(site),
        ...(isResting && { skip: 1 }),
        ...(roles && { roles }),
      };
      const ceiling = trace.resolution ? ceilingOf(picture) : peak(picture);
      pictures.set(keyOf({ layer, head }), { ...picture, ceiling });
    }
  }
  return pictures;
}
