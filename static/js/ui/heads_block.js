/**
 * The side of the Attention view that heads are chosen from: all of them at a glance, how they are
 * coloured and ordered, and where in this text the well-known kinds of head are.
 */

import { helpOf, labelsExplained, placeOf, strongestHeads } from '../data/attention.js';
import { share } from '../data/format.js';
import { capitalised } from '../data/text.js';
import { choosingHead, isShown, switchesOf } from '../state/attention_switches.js';
import { createHelp, element, palette, partOf, save } from './dom.js';
import { createHeads } from './heads.js';

/**
 * @import { Trace } from '../data/trace.js'
 * @import { ViewState } from '../plot/figure.js'
 * @import { Switches } from '../state/attention_switches.js'
 * @import { Patch, State } from '../state/state.js'
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
    onChoose: (layer, head) => {
      if (!shown) return;
      onState(choosingHead(shown.switches, shown.state, { layer, head }));
      onSight?.();
    },
  });
  const fieldsets = SWITCHES.map((wanted) => radios(wanted, onState));
  const patterns = element('div', { class: 'patterns' });
  const help = createHelp('Labels of heads');
  help.show([
    { title: '', parts: labelsExplained() },
    ...SWITCHES.map(({ label, options }) => ({
      title: label,
      parts: options.map(([, title, meaning]) => [title, meaning]),
    })),
  ]);
  const png = element(
    'button',
    {
      type: 'button',
      class: 'heads-png',
      title: 'Save the maps of all heads as an image',
      onclick: saveImage,
    },
    'PNG',
  );
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
    heads.element,
    patterns,
  );
  function saveImage() {
    headsImage(partOf(block, '.heads', HTMLElement))
      .then(
        (blob) => save(blob, 'headlight-all-heads.png'),
        (error) => `Export failed: ${error.message}.`,
      )
      .then(announce);
  }
  /** @type {{trace: Trace, place: string|undefined, state: ViewState, switches: Switches}|null} */
  let shown = null;
  /** @type {ReturnType<typeof strongestHeads>} */
  let found = [];

  return {
    element: block,
    /**
     * @param {Trace} trace
     * @param {ViewState} state
     */
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
        isChosen: (head) => isShown(switches, state, head),
      });
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
 * The small maps are weights, whatever the large one is.
 * @param {Switches} switches
 */
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
      ...options.map(([value, title, help]) =>
        element(
          'label',
          { title: help },
          element('input', { type: 'radio', name: field, value }),
          element('span', {}, title),
        ),
      ),
    ),
  );
  control.addEventListener('change', ({ target }) =>
    onState({ [field]: /** @type {HTMLInputElement} */ (target).value }),
  );
  return control;
}

/**
 * @param {ReturnType<typeof strongestHeads>} found
 * @param {(patch: Patch) => void} onState
 */
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

const SCALE = 2;
const MARGIN = 8;
const WORDS = '.heads-label:not(.is-corner), .heads-name > span';

/**
 * @param {HTMLElement} frame around a canvas and the words over it
 * @returns {Promise<Blob>} PNG
 */
export function headsImage(frame) {
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
  return new Promise((resolve, reject) => {
    picture.toBlob(
      (blob) =>
        blob
          ? resolve(blob)
          : reject(
              new Error('the picture is too large for this browser; save a single head instead'),
            ),
      'image/png',
    );
  });
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
