/**
 * The layout of the map of a model: where each part, and each line between them, is drawn.
 *
 * As a rail, next to the drawings, it runs down: tokens, embedding, layers, prediction, with the
 * residual stream at the left. An encoder and a decoder are side by side. As a strip, on a phone,
 * it runs to the right, and the parts of the open layer are above it. Layers that do not fit are
 * folded to a bar each, but for the open one.
 */

/** @import { Layer, Part, Stack } from './parts.js' */

/** @typedef {{x: number, y: number, width: number, height: number}} Place in pixels */

/** @typedef {Place & {part: Part, bars?: Part[], isUnnumbered?: boolean}} Placed `bars`: the heads that a folded layer shows */

/** @typedef {{x0: number, y0: number, x1: number, y1: number, isCross?: boolean}} Line */

/** @typedef {{x: number, y0: number, y1: number, part: Part}} Reach of the residual stream along one layer */

/** @typedef {{stack: 'encoder'|'decoder', layer: number}} Open the layer that is never folded */

/** @typedef {{text: string, x: number, y: number, isEnd?: boolean}} Name written above parts, from its left end on or up to its right one */

/** @typedef {{isPair: boolean, isLabelled: boolean}} Shape of a model: with two stacks, with labels of its heads */

/** @typedef {{width: number, height: number, parts: Placed[], lines: Line[], stream: Reach[], names?: Name[]}} MapLayout */

const ROW = 26;
const GAP = 7;
const CELL_GAP = 3;
const LEFT = 34;
const STREAM = 16;
/** `wide`: cells from here on have the words of their label, in `worded` pixels of height. */
const HEAD = { worded: 56, roomy: 24, tight: 19, wide: 46, most: 58 };
const NETWORK = 19;
const LEAST_CELL = { single: 24, pair: 14 };
const FOLDED = { least: 7, most: 18 };
const COLUMN_GAP = 26;

/**
 * @param {Anatomy} anatomy
 * @param {{width: number, height: number, open: Open}} box `height`: what it should not exceed
 * @returns {MapLayout}
 */
export function railLayout(anatomy, { width, height, open }) {
  const { stacks, isLabelled, bridge, logits } = anatomy;
  const isPair = stacks.length > 1;
  const columnWidth = isPair ? Math.floor((width - COLUMN_GAP) / 2) : width;
  const fixed = 2 * (ROW + GAP) + (bridge ? ROW + GAP : 0) + GAP;
  const shape = { isPair, isLabelled };
  const heights = heightsOf(stacks, columnWidth, height - fixed, open, shape);
  /** @type {MapLayout} */
  const map = { width, height: 0, parts: [], lines: [], stream: [] };
  let bottom = 0;
  stacks.forEach((stack, column) => {
    const x = column * (columnWidth + COLUMN_GAP);
    bottom = Math.max(
      bottom,
      placeStack(map, stack, { x, width: columnWidth, heights, open, shape }),
    );
  });
  if (bridge) {
    connect(map, stacks, columnWidth, bottom);
    map.parts.push({ part: bridge, x: 0, y: bottom + 2, width: columnWidth, height: ROW });
  }
  map.parts.push({
    part: logits,
    x: bridge ? columnWidth + COLUMN_GAP : 0,
    y: bottom + 2,
    width: bridge ? columnWidth : width,
    height: ROW,
  });
  return { ...map, height: bottom + 2 + ROW };
}

/**
 * Return the height of each layer: all unfolded if they fit, otherwise only the open one.
 * @param {Stack[]} stacks
 * @param {number} width of a column
 * @param {number} room
 * @param {Open} open
 * @param {Shape} shape
 * @returns {{whole: number[], folded: number|null}}
 */
function heightsOf(stacks, width, room, open, shape) {
  const nLayers = Math.max(...stacks.map(({ layers }) => layers.length));
  const whole = Array.from({ length: nLayers }, (_, layer) =>
    Math.max(...stacks.map(({ layers }) => heightOf(layers[layer], width, shape))),
  );
  if (whole.reduce((sum, height) => sum + height + GAP, 0) <= room) return { whole, folded: null };
  const rest = (room - whole[open.layer] - GAP) / Math.max(1, nLayers - 1) - 2;
  return { whole, folded: Math.max(FOLDED.least, Math.min(FOLDED.most, Math.floor(rest))) };
}

/** @param {Layer|undefined} layer @param {number} width @param {Shape} shape */
function heightOf(layer, width, shape) {
  if (!layer) return 0;
  return (
    rowsOf(layer, width, shape).reduce((sum, { height }) => sum + height + CELL_GAP, 0) - CELL_GAP
  );
}

/**
 * Return the rows of an unfolded layer.
 * @param {Layer} layer
 * @param {number} width of the column
 * @param {Shape} shape
 * @returns {{parts: Part[], width: number, height: number, isFirst: boolean}[]}
 */
function rowsOf({ heads, cross, network }, width, { isPair, isLabelled }) {
  const inner = width - LEFT;
  const least = isPair ? LEAST_CELL.pair : LEAST_CELL.single;
  return [heads, cross, [network]].flatMap((parts) => {
    if (parts.length === 0) return [];
    if (parts[0] === network) return [{ parts, width: inner, height: NETWORK, isFirst: true }];
    const perRow = evenly(
      parts.length,
      Math.max(1, Math.floor((inner + CELL_GAP) / (least + CELL_GAP))),
    );
    const cell = (inner + CELL_GAP) / perRow - CELL_GAP;
    const isWide = cell >= HEAD.wide;
    const height = isWide ? (isLabelled ? HEAD.worded : HEAD.roomy) : HEAD.tight;
    return Array.from({ length: Math.ceil(parts.length / perRow) }, (_, row) => ({
      parts: parts.slice(row * perRow, (row + 1) * perRow),
      width: Math.min(cell, HEAD.most),
      height,
      isFirst: row === 0,
    }));
  });
}

/**
 * Divide parts among rows so that the rows are equally long.
 * @param {number} count
 * @param {number} most
 */
function evenly(count, most) {
  return Math.ceil(count / Math.ceil(count / most));
}

/**
 * @param {MapLayout} map
 * @param {Stack} stack
 * @param {{x: number, width: number, heights: {whole: number[], folded: number|null}, open: Open, shape: Shape}} box
 * @returns {number} where it ends
 */
function placeStack(map, { embedding, layers }, { x, width, heights, open, shape }) {
  let y = 0;
  map.parts.push({ part: embedding, x, y, width, height: ROW });
  y += ROW + GAP;
  layers.forEach((layer, index) => {
    const from = y;
    if (heights.folded !== null && index !== open.layer) {
      const height = heights.folded;
      const bars = [...layer.heads, ...layer.cross];
      map.parts.push({ part: layer.folded, x: x + STREAM, y, width: width - STREAM, height, bars });
      y += height + 2;
    } else {
      for (const row of rowsOf(layer, width, shape)) {
        row.parts.forEach((part, at) => {
          const left = x + LEFT + at * (row.width + CELL_GAP);
          map.parts.push({ part, x: left, y, width: row.width, height: row.height });
        });
        if (row.isFirst) map.lines.push(across(x + STREAM / 2, x + LEFT, y + row.height / 2));
        y += row.height + CELL_GAP;
      }
      // Among layers that are numbered, the open one has its number next to its first row.
      const number = { x: x + STREAM, y: from, width: LEFT - STREAM, height: NETWORK };
      if (heights.folded !== null) map.parts.push({ part: layer.folded, ...number });
      y = Math.max(y - CELL_GAP, from + heights.whole[index]) + GAP;
    }
    map.stream.push({
      x: x + STREAM / 2,
      y0: from - (index === 0 ? GAP : 0),
      y1: y,
      part: layer.stream,
    });
  });
  // One part for the whole stream, which a pointer finds.
  const stream = layers.at(-1)?.stream;
  if (stream) map.parts.push({ part: stream, x, y: ROW, width: STREAM, height: y - ROW - 3 });
  return y;
}

/** @param {number} x0 @param {number} x1 @param {number} y @returns {Line} */
const across = (x0, x1, y) => ({ x0, x1, y0: y, y1: y });

/**
 * Return the lines from the end of the encoder to each cross-attention of the decoder.
 * @param {MapLayout} map
 * @param {Stack[]} stacks
 * @param {number} width of a column
 * @param {number} bottom
 */
function connect(map, stacks, width, bottom) {
  const between = width + COLUMN_GAP / 2 - 3;
  const crossed = stacks[1].layers.flatMap(({ cross, folded }) => {
    const placed = map.parts.find(({ part }) => part === cross[0] || part === folded);
    return placed ? [placed] : [];
  });
  if (crossed.length === 0) return;
  map.lines.push({ x0: STREAM / 2, x1: between, y0: bottom - 3, y1: bottom - 3, isCross: true });
  const top = crossed[0].y + crossed[0].height / 2;
  map.lines.push({ x0: between, x1: between, y0: top, y1: bottom - 3, isCross: true });
  for (const { x, y, height } of crossed)
    map.lines.push({ ...across(between, x, y + height / 2), isCross: true });
}

const FLOW = 28;
const NAME = 14;
/** Cells touch, so that a finger finds each; their borders are seen as gaps. */
const STRIP_CELL = { least: 24, most: 44, height: 24 };
const STRIP_WIDTHS = { bridge: 26, logits: 64 };

/** @param {Anatomy} anatomy @param {{width: number, open: Open}} box @returns {MapLayout} */
export function stripLayout({ stacks, bridge, logits }, { width, open }) {
  /** @type {MapLayout} */
  const map = { width, height: 0, parts: [], lines: [], stream: [] };
  /** @type {Name[]} */
  const names = [];
  const opened = stacks.find(({ id }) => id === open.stack)?.layers[open.layer];
  let y = 0;
  const rows = opened ? stripRows(opened, width) : [];
  rows.forEach((row, of) => {
    const cell = Math.min(STRIP_CELL.most, width / row.length);
    // A row that goes on with the parts of the one above is not named again.
    const above = rows[of - 1]?.at(-1);
    const starts = row.flatMap((part, at) => (isOfOneRow(part, row[at - 1] ?? above) ? [] : [at]));
    starts.forEach((at, index) => {
      const isEnd = at > 0 && at === row.length - 1;
      const x = (isEnd ? at + 1 : at) * cell;
      const end = (starts[index + 1] ?? row.length) * cell;
      const name = nameOf(row[at], open.layer);
      const room = isEnd ? Infinity : end - x;
      const text = [name, name.split(' ')[0]].find((candidate) => candidate.length * LETTER < room);
      if (text) names.push({ text, x, y: y + NAME - 4, isEnd });
    });
    if (starts.length > 0) y += NAME;
    row.forEach((part, at) => {
      map.parts.push({ part, x: at * cell, y, width: cell, height: STRIP_CELL.height });
    });
    y += STRIP_CELL.height + 2;
  });
  const items = [
    ...stacks.flatMap(({ layers }, at) => [
      ...(at > 0 && bridge ? [bridge] : []),
      ...layers.map(({ folded }) => folded),
    ]),
    logits,
  ];
  /** @param {Part} part @returns {number|null} null for a layer */
  const fixed = ({ kind }) => STRIP_WIDTHS[/** @type {keyof typeof STRIP_WIDTHS} */ (kind)] ?? null;
  const nLayers = items.filter((part) => fixed(part) === null).length;
  const taken = items.reduce((sum, part) => sum + (fixed(part) ?? 0), 0);
  const gap = nLayers > 40 ? 0 : nLayers > 14 ? 1 : CELL_GAP;
  const room = (width - taken - gap * (items.length - 1)) / Math.max(1, nLayers);
  const every = 2 ** Math.max(0, Math.ceil(Math.log2(NUMBER / (room + gap))));
  let x = 0;
  y += NAME;
  for (const part of items) {
    const wide = fixed(part) ?? room;
    const bars = layerOf(stacks, part);
    const text = FLOW_NAMES[/** @type {keyof typeof FLOW_NAMES} */ (part.kind)];
    const isFirst = part.kind !== 'layer' || part.layer === 0;
    if (text && isFirst) names.push({ text, x, y: y - 4 });
    const isUnnumbered = part.kind === 'layer' && (part.layer ?? 0) % every > 0;
    map.parts.push({ part, x, y, width: wide, height: FLOW, ...(bars && { bars }), isUnnumbered });
    x += wide + gap;
  }
  map.lines.push(across(0, width, y + FLOW / 2));
  return { ...map, names, height: y + FLOW };
}

/** The width of a layer's number of two digits, and of the room next to it. */
const NUMBER = 21;
/** The width of a letter of a name. */
const LETTER = 6.6;
const FLOW_NAMES = { layer: 'layers', logits: 'predicts' };

/** @param {Part} part @param {Part|undefined} before */
function isOfOneRow(part, before) {
  return before !== undefined && before.kind === part.kind && before.place === part.place;
}

/** @param {Part} part @param {number} layer */
function nameOf({ kind, place }, layer) {
  if (kind === 'head')
    return place === 'cross' ? 'cross-attention heads' : `heads of layer ${layer}`;
  return { expert: 'experts', network: 'network' }[/** @type {string} */ (kind)] ?? '';
}

/** @param {Stack[]} stacks @param {Part} part */
function layerOf(stacks, part) {
  const layer = stacks.flatMap(({ layers }) => layers).find(({ folded }) => folded === part);
  return layer && [...layer.heads, ...layer.cross];
}

/**
 * Return the parts of the open layer, as many to a row as fit.
 * @param {Layer} layer
 * @param {number} width
 */
function stripRows({ heads, cross, network }, width) {
  const most = Math.floor(width / STRIP_CELL.least);
  const groups = [heads, cross, [network]];
  /** @type {Part[][]} */
  const rows = [];
  for (const group of groups.filter(({ length }) => length > 0)) {
    const last = rows.at(-1);
    if (last && last.length + group.length <= most) last.push(...group);
    else {
      const perRow = evenly(group.length, most);
      for (let at = 0; at < group.length; at += perRow) rows.push(group.slice(at, at + perRow));
    }
  }
  return rows;
}

/** Pixels by which a part is passed over while there is another. */
const FAR = 1e4;

/**
 * Return the part that an arrow key leads to: the nearest in that direction, in the same row or
 * column first.
 * @param {Placed[]} parts
 * @param {string} from id of a part
 * @param {string} key `ArrowUp`, …, `Home`, `End`
 * @returns {string|null} null: the key moves nothing
 */
export function neighbour(parts, from, key) {
  if (key === 'Home') return parts[0]?.part.id ?? null;
  if (key === 'End') return parts.at(-1)?.part.id ?? null;
  const start = parts.find(({ part }) => part.id === from);
  /** @type {Record<string, [number, number]>} */
  const directions = {
    ArrowRight: [1, 0],
    ArrowLeft: [-1, 0],
    ArrowDown: [0, 1],
    ArrowUp: [0, -1],
  };
  const direction = directions[key];
  if (!start || !direction) return null;
  let best = null;
  let least = Infinity;
  for (const placed of parts) {
    // The stream runs along all layers: up and down lead through them instead.
    const isPassed = direction[1] !== 0 && placed.part.kind === 'stream';
    const far =
      placed === start ? Infinity : distance(start, placed, direction) + (isPassed ? FAR : 0);
    if (far < least) [best, least] = [placed.part.id, far];
  }
  return best;
}

/**
 * Return how far one part is from another along a direction; what lies aside counts more.
 * @param {Place} from
 * @param {Place} to
 * @param {[number, number]} direction
 */
function distance(from, to, [right, down]) {
  const along =
    right * gapOf(from.x, from.width, to.x, to.width) +
    down * gapOf(from.y, from.height, to.y, to.height);
  if (along <= 0) return Infinity;
  const aside = right
    ? Math.abs(gapOf(from.y, from.height, to.y, to.height))
    : Math.abs(gapOf(from.x, from.width, to.x, to.width));
  return along + 4 * aside + Math.abs(centre(from) - centre(to)) / 1e4;
}

/** @param {Place} place */
const centre = ({ x, width, y }) => x + width / 2 + y;

/**
 * Return the signed gap between two stretches; 0 if they overlap.
 * @param {number} a
 * @param {number} aLength
 * @param {number} b
 * @param {number} bLength
 */
function gapOf(a, aLength, b, bLength) {
  if (b >= a + aLength - 1) return b - a - aLength + 1;
  if (a >= b + bLength - 1) return -(a - b - bLength + 1);
  return 0;
}
