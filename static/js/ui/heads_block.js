/**
 * The side of the Attention view that heads are chosen from: all of them at a glance, how they are
 * coloured and ordered, and where in this text the well-known kinds of head are.
 */

import { messageOf } from '../api/calls.js';
import {
  helpOf,
  labelsExplained,
  placeOf,
  strongestHeads,
  tokensOf,
  weightsAt,
  labelledHeads,
  rankedByPair,
} from '../data/attention.js';
import { share, capitalised, named, positionLabels } from '../data/format.js';
import { isCausal } from '../data/trace.js';
import { inksOf, paintInto, peak, sequential } from '../plot/colour.js';
import { choosingHead, isShown, switchesOf } from '../state/attention_switches.js';
import { queryOf, choosing } from '../state/state.js';
import { button, createHelp, element, palette, partOf, pngOf, save, segment } from './dom.js';
import { createHeads } from './heads.js';

/**
 * @import { Place } from '../data/attention.js'
 * @import { Trace } from '../data/trace.js'
 * @import { Picture, Theme } from '../plot/colour.js'
 * @import { ViewState } from '../plot/figure.js'
 * @import { Switches } from '../state/attention_switches.js'
 * @import { Patch, State } from '../state/state.js'
 * @import { Order, Row } from './heads.js'
 */

/** The switches of the overview: the field each sets, and what it may be. */
const SWITCHES = [
  {
    field: 'range',
    label: 'Colours',
    legend: 'Colour range',
    options: [
      ['one', '0 to 1', 'The same colours for every head'],
      ['head', '0 to max', 'Up to each head’s own maximum'],
    ],
  },
  {
    field: 'attention_order',
    label: 'Sort',
    legend: 'Order of heads',
    options: [
      ['layer', 'Layer', 'One row per layer'],
      ['label', 'Label', 'Heads with the same label together'],
    ],
  },
];

/**
 * @param {{onState: (patch: Partial<State>) => void, announce: (message: string) => void, onSight?: () => void}} handlers
 */
export function createHeadsBlock({ onState, announce, onSight }) {
  const heads = createHeads({
    painter: { keyOf, paint, picturesOf },
    onChoose: (layer, head) => {
      if (!shown) return;
      onState(choosingHead(shown.switches, shown.state, { layer, head }));
      onSight?.();
    },
  });
  const fieldsets = SWITCHES.map((wanted) => radios(wanted, onState));
  const pairs = createHeadPairs(onState);
  const patterns = element('div', { class: 'patterns' });
  const help = createHelp('Labels of heads');
  help.show([
    { title: '', parts: labelsExplained() },
    ...SWITCHES.map(({ label, options }) => ({
      title: label,
      parts: options.map(([, title, meaning]) => [title, meaning]),
    })),
  ]);
  const png = button('PNG', saveImage, {
    class: 'heads-png',
    title: 'Save the maps of all heads as an image',
  });
  const heading = element('h2', {});
  heads.foot.append(png);
  const block = element(
    'section',
    { class: 'heads-block', 'aria-label': 'All heads' },
    element(
      'div',
      { class: 'heads-head' },
      element('div', { class: 'heads-title' }, heading, help.element),
      ...fieldsets,
    ),
    pairs.element,
    heads.element,
    patterns,
  );
  async function saveImage() {
    try {
      const blob = await headsImage(partOf(block, '.heads', HTMLElement));
      announce(save(blob, 'headlight-all-heads.png'));
    } catch (error) {
      announce(`Export failed: ${messageOf(error)}.`);
    }
  }
  /** @type {{trace: Trace, place: string|undefined, state: ViewState, switches: Switches}|null} */
  let shown = null;
  /** @type {ReturnType<typeof strongestHeads>} */
  let found = [];

  return {
    element: block,
    /** @param {Trace} trace @param {ViewState} state */
    show(trace, state) {
      const place = placeOf(state, trace);
      const switches = switchesOf(state, {
        placeId: place?.id ?? '',
        nHeads: trace.card?.n_heads ?? Infinity,
      });
      SWITCHES.forEach(({ field }, index) => {
        partOf(fieldsets[index], `[value="${state[field]}"]`, HTMLInputElement).checked = true;
      });
      heading.textContent = areMapsOther(switches) ? 'All weights' : 'All heads';
      heads.show(trace, {
        ...state,
        order: state.attention_order,
        width: block.clientWidth,
        pair: place && pairOf(trace, place, state),
        isChosen: (head) => isShown(switches, state, head),
      });
      pairs.show(trace, place, state);
      const isOther = trace !== shown?.trace || place?.id !== shown.place;
      shown = { trace, place: place?.id, state, switches };
      if (isOther) {
        found = strongestHeads(trace, place);
        patterns.replaceChildren(...patternList(found, onState));
      }
      patterns.querySelectorAll('button').forEach((button, index) => {
        button.setAttribute(
          'aria-pressed',
          String(switches.which === 'head' && isShown(switches, state, found[index])),
        );
      });
    },
  };
}

/**
 * The chosen cell, which every map marks.
 * @param {Trace} trace
 * @param {Place} place
 * @param {ViewState} state
 */
function pairOf(trace, place, state) {
  if (state.key === null || state.key >= tokensOf(trace, place.columns).length) return null;
  return { query: queryOf(state, trace, place.rows), key: state.key };
}

/** The small maps are weights, whatever the large one is. @param {Switches} switches */
function areMapsOther({ what, which }) {
  return what !== 'weights' || which === 'rollout';
}

/**
 * @param {{field: string, label: string, legend: string, options: string[][]}} of
 * @param {(patch: Patch) => void} onState
 */
function radios({ field, label, legend, options }, onState) {
  const control = element(
    'fieldset',
    { class: 'heads-range' },
    element('legend', { class: 'unseen' }, legend),
    element('span', { 'aria-hidden': 'true' }, label),
    element(
      'div',
      { class: 'segmented' },
      ...options.map(([value, title, help]) => segment(field, value, title, { title: help })),
    ),
  );
  control.addEventListener('change', ({ target }) =>
    onState({ [field]: /** @type {HTMLInputElement} */ (target).value }),
  );
  return control;
}

/** @param {ReturnType<typeof strongestHeads>} found @param {(patch: Patch) => void} onState */
function patternList(found, onState) {
  if (found.length === 0) return [];
  return [
    element('h2', {}, 'Heads worth a look'),
    element(
      'p',
      { class: 'patterns-note' },
      'The head with the highest score in this text, for each pattern of attention.',
    ),
    element(
      'ul',
      {},
      ...found.map((pattern) => {
        const { title, layer, head, score } = pattern;
        return element(
          'li',
          {},
          element(
            'button',
            {
              type: 'button',
              title: helpOf(pattern),
              onclick: () => onState({ layer, head, attention_which: 'head' }),
            },
            element('span', { class: 'patterns-title' }, capitalised(title)),
            element('span', { class: 'patterns-place' }, `layer ${layer}, head ${head}`),
            element('span', { class: 'patterns-score' }, share(score, 2)),
          ),
        );
      }),
    ),
  ];
}

/** @typedef {{keyOf: typeof keyOf, paint: typeof paint, picturesOf: typeof picturesOf}} Painter of the maps */
/** @typedef {{query: number, key: number}} Pair */
/** @typedef {Picture & {ceiling: number}} HeadPicture */
/** @typedef {Map<string, HeadPicture>} Pictures by layer and head */
/** @typedef {{left: number, top: number, size: number, picture: HeadPicture}} Placed */
/** @typedef {{trace: Trace, place: string|undefined, order: Order, size: number, range: 'one'|'head', width: number, theme: Theme, ratio: number, query: number, key: number, beam: string}} Look what the picture depends on; `query`, `key`: the marked pair, −1 for none */

/** The least width of a mark, in pixels. */
const LEAST_MARK = 7;

/** @param {{layer: number, head: number}} of */
const keyOf = ({ layer, head }) => `${layer} ${head}`;

/**
 * By layer and head, what there is to paint.
 * @param {Trace} trace
 * @param {Place|null} place
 */
function picturesOf(trace, place) {
  /** @type {Pictures} */
  const found = new Map();
  for (const { layer, site } of weightsAt(place, trace)) {
    const {
      shape: [nHeads, rows, columns],
      data,
      scale,
    } = trace.tensors[site];
    for (let head = 0; head < nHeads; head += 1) {
      const picture = {
        data,
        offset: head * rows * columns,
        rows,
        columns,
        scale,
        isCausal: isCausal(site),
      };
      found.set(keyOf({ layer, head }), { ...picture, ceiling: peak(picture) });
    }
  }
  return found;
}

/**
 * All maps into one picture, and that onto the canvas at once.
 * @param {{canvas: HTMLCanvasElement, frame: HTMLElement, cells: HTMLElement[][], rows: Row[], pictures: Pictures}} drawn
 * @param {Look} look
 */
function paint({ canvas, frame, cells, rows, pictures }, look) {
  const { size, range, theme, ratio } = look;
  const box = frame.getBoundingClientRect();
  const width = Math.max(1, Math.round(box.width * ratio));
  const height = Math.max(1, Math.round(box.height * ratio));
  const side = Math.round(size * ratio);
  const image = new ImageData(width, height);
  const sheet = { pixels: new Uint32Array(image.data.buffer), width };
  const inks = inksOf(sequential(theme));
  /** @param {number} place @param {number} most */
  const within = (place, most) => Math.max(0, Math.min(Math.round(place * ratio), most - side));
  /** @type {Placed[]} */
  const squares = [];
  rows.forEach(({ heads }, row) =>
    heads.forEach((head, column) => {
      const picture = pictures.get(keyOf(head));
      if (!picture) return;
      const { left, top } = cells[row][column].getBoundingClientRect();
      const square = {
        left: within(left - box.left, width),
        top: within(top - box.top, height),
        size: side,
      };
      squares.push({ ...square, picture });
      if (side <= Math.min(width, height))
        paintInto(
          sheet,
          square,
          { ...picture, ceiling: range === 'head' ? picture.ceiling : 1 },
          inks,
        );
    }),
  );
  Object.assign(canvas, { width, height });
  Object.assign(canvas.style, { width: `${width / ratio}px`, height: `${height / ratio}px` });
  const context = canvas.getContext('2d');
  context?.putImageData(image, 0, 0);
  if (context && look.key >= 0) for (const square of squares) mark(context, square, look);
}

/**
 * A frame around one cell, large enough to be seen, light on dark.
 * @param {CanvasRenderingContext2D} context
 * @param {Placed} square
 * @param {Look} look
 */
function mark(context, { left, top, size, picture }, { query, key, beam, ratio }) {
  const [across, down] = [size / picture.columns, size / picture.rows];
  const reach = Math.max(LEAST_MARK * ratio, across + 2 * ratio, down + 2 * ratio);
  const [x, y] = [left + (key + 0.5) * across, top + (query + 0.5) * down];
  for (const [colour, width] of /** @type {const} */ ([
    ['#fff', 3],
    [beam, 1.5],
  ])) {
    context.strokeStyle = colour;
    context.lineWidth = width * ratio;
    context.strokeRect(x - reach / 2, y - reach / 2, reach, reach);
  }
}

const SCALE = 2;
const MARGIN = 8;
const WORDS = '.heads-label:not(.is-corner), .heads-name > span';

/**
 * @param {HTMLElement} frame around a canvas and the words over it
 * @returns {Promise<Blob>} PNG
 */
function headsImage(frame) {
  const box = frame.getBoundingClientRect();
  const picture = document.createElement('canvas');
  picture.width = Math.ceil((box.width + 2 * MARGIN) * SCALE);
  picture.height = Math.ceil((box.height + 2 * MARGIN) * SCALE);
  const context = picture.getContext('2d');
  if (!context) throw new Error('this browser paints no pictures');
  const { surface } = palette();
  context.fillStyle = surface;
  context.fillRect(0, 0, picture.width, picture.height);
  context.scale(SCALE, SCALE);
  context.translate(MARGIN, MARGIN);
  context.imageSmoothingEnabled = false;
  const maps = partOf(frame, 'canvas', HTMLCanvasElement);
  context.drawImage(maps, 0, 0, parseFloat(maps.style.width), parseFloat(maps.style.height));
  for (const node of frame.querySelectorAll(WORDS)) write(context, node, box);
  return pngOf(picture);
}

/**
 * A word as it stands on the page.
 * @param {CanvasRenderingContext2D} context
 * @param {Element} node
 * @param {DOMRect} box
 */
function write(context, node, box) {
  const words = node.textContent.trim();
  const range = document.createRange();
  range.selectNodeContents(node);
  const place = range.getBoundingClientRect();
  if (words === '' || place.width === 0) return;
  const { color, fontSize, fontWeight, fontFamily } = getComputedStyle(node);
  context.fillStyle = color;
  context.font = `${fontWeight} ${fontSize} ${fontFamily}`;
  context.textBaseline = 'middle';
  context.fillText(words, place.left - box.left, place.top - box.top + place.height / 2);
}

/** The heads that are listed for a pair. */
const MOST_RANKED = 6;

/**
 * "From this token to that one: which heads?": two tokens to choose, and the heads ranked by their
 * weight on the pair. Folded until a pair is chosen or asked for.
 * @param {(patch: Patch) => void} onState
 */
function createHeadPairs(onState) {
  const from = element('select', { 'aria-label': 'From the token' });
  const to = element('select', { 'aria-label': 'To the token' });
  const none = button('No pair', () => onState({ key: null }), { class: 'button pair-none' });
  const note = element('p', { class: 'patterns-note', 'aria-live': 'polite' });
  const list = element('ul', {});
  /** @type {{trace: Trace, place: Place}|null} */
  let shown = null;
  let offered = '';
  const choose = () => {
    if (!shown || to.value === '') return;
    onState({
      ...choosing(shown.trace, shown.place.rows, Number(from.value)),
      key: Number(to.value),
    });
  };
  from.addEventListener('change', choose);
  to.addEventListener('change', choose);

  const details = element(
    'details',
    { class: 'patterns head-pairs' },
    element('summary', {}, 'From one token to another: which heads?'),
    element(
      'div',
      { class: 'patterns head-pairs', role: 'group', 'aria-label': 'Heads by a pair of tokens' },
      element(
        'div',
        { class: 'pair-choice control' },
        'From (query, reads) ',
        from,
        ' to (key, is read) ',
        to,
        none,
      ),
      list,
      note,
    ),
  );
  /** The key of the pair before, so that a folded list stays folded. @type {number|null} */
  let last = null;

  return {
    element: details,

    /** @param {Trace} trace @param {Place|null} place @param {ViewState} state */
    show(trace, place, state) {
      if (state.key !== null && state.key !== last) details.open = true;
      last = state.key;
      shown = place && { trace, place };
      if (!place) return;
      const [rows, columns] = [place.rows, place.columns].map((side) => tokensOf(trace, side));
      const labels = [positionLabels(rows), positionLabels(columns)];
      const wanted = JSON.stringify(labels);
      if (wanted !== offered) {
        from.replaceChildren(...labels[0].map(optionOf));
        to.replaceChildren(
          element('option', { value: '' }, 'a token …'),
          ...labels[1].map(optionOf),
        );
        offered = wanted;
      }
      const query = queryOf(state, trace, place.rows);
      const key = state.key !== null && state.key < columns.length ? state.key : null;
      from.value = String(query);
      to.value = key === null ? '' : String(key);
      none.hidden = key === null;
      list.hidden = key === null;
      if (key === null) {
        note.textContent =
          'Choose two tokens, or a cell of the large map, to rank all heads by it.';
        return;
      }
      const ranked = rankedByPair(trace, place, query, key);
      note.textContent =
        ranked.length === 0
          ? `${named(rows, query)} cannot attend to ${named(columns, key)}, which comes later.`
          : `${countSaid(ranked.length)} from ${named(rows, query)}, the query, which reads, to ${named(columns, key)}, the key, which is read; the cell is marked on every map. Labels are of the whole text: a “sink” may still look here.`;
      const labelled = labelledHeads(trace, place);
      /** @param {number} layer @param {number} head */
      const labelAt = (layer, head) => labelled[layer]?.heads[head]?.label?.short ?? '';
      list.replaceChildren(
        ...ranked
          .slice(0, MOST_RANKED)
          .map(({ layer, head, weight }) =>
            element(
              'li',
              {},
              element(
                'button',
                {
                  type: 'button',
                  'aria-pressed': String(layer === state.layer && head === state.head),
                  onclick: () => onState({ layer, head, attention_which: 'head' }),
                },
                element('span', { class: 'patterns-title' }, `Layer ${layer}, head ${head}`),
                element('span', { class: 'patterns-place' }, labelAt(layer, head)),
                element('span', { class: 'patterns-score' }, share(weight, 2)),
              ),
            ),
          ),
      );
    },
  };
}

/** @param {number} all heads */
function countSaid(all) {
  return all > MOST_RANKED
    ? `The ${MOST_RANKED} of ${all} heads with the greatest weight`
    : `The weight of all ${all} heads`;
}

/** @param {string} title @param {number} index */
function optionOf(title, index) {
  return element('option', { value: String(index) }, title);
}
