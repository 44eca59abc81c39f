/**
 * A long text while it is read: how much of it, how long that takes on this machine, and the map of
 * every head as far as it is computed. It takes the place of the results of the text before.
 */

import { findCeiling } from '../trace/arithmetic.js';
import { counted } from '../words/lists.js';
import { grouped } from '../words/numbers.js';
import { sequential } from '../plot/colour.js';
import { element, palette, paintValues } from './dom.js';

/** @import { PartialMap, Progress } from '../api/answers.js' */

/** The share of a map's values that the colours tell apart. */
const COLOURED = 0.98;

/** @param {HTMLElement} results whose place it takes */
export function createReading(results) {
  const heading = element('h2');
  const large = element('canvas.reading-large', { 'aria-hidden': 'true' });
  const caption = element('p.heads-caption');
  const rows = element('div.reading-heads');
  const section = element(
    'section.reading',
    { 'aria-label': 'Reading', hidden: true },
    heading,
    element('div.reading-maps', { hidden: true }, element('div', large, caption), rows),
  );
  const maps = /** @type {HTMLElement} */ (section.lastElementChild);
  results.before(section);
  /** The canvases of the heads of each attention, in the order in which they are computed. @type {Map<string, HTMLCanvasElement[]>} */
  let canvases = new Map();
  let since = 0;
  let tokens = 0;
  let isOn = false;
  let wasHidden = results.hidden;

  /** @param {PartialMap} map */
  function draw(map) {
    const { attention, head, read, tokens: sizes } = map;
    if (!canvases.has(attention)) addRow(attention);
    const line = canvases.get(attention) ?? [];
    while (line.length <= head) {
      const canvas = element('canvas.reading-head', { 'aria-hidden': 'true' });
      line.push(canvas);
      rows.lastElementChild?.append(canvas);
    }
    paint(line[head], map);
    paint(large, map);
    maps.hidden = false;
    const part = read < sizes[0] ? `: ${grouped(read)} of ${grouped(sizes[0])} queries` : '';
    caption.textContent = `${placeOf(attention)}, head ${head}${part}`;
  }

  /** @param {string} attention */
  function addRow(attention) {
    const layer = element('span.reading-layer', attention.match(/\d+/)?.[0] ?? '');
    rows.append(element('div.reading-row', layer));
    canvases.set(attention, []);
  }

  return {
    /**
     * @param {Progress} progress
     * @param {Ask} body what is read
     * @param {{count: number, isWhole: boolean}} of tokens, if they are known; `isWhole`: no result of this text is shown yet
     * @returns {{share: number, words: string}|null} null: nothing new to tell in words
     */
    take({ share, secondsLeft = null, map }, body, { count, isWhole }) {
      if (!isOn) {
        since = performance.now();
        tokens = isWhole ? 0 : count;
        wasHidden = results.hidden;
      }
      isOn = true;
      const isShown = isWhole && body.resolution !== undefined;
      section.hidden = !isShown;
      results.hidden = isShown || wasHidden;
      if (map) {
        tokens = Math.max(...map.tokens);
        if (isShown) draw(map);
        return null;
      }
      const took = (performance.now() - since) / 1000;
      const time = secondsLeft === null ? '' : `, ${aboutSeconds(took + secondsLeft)}`;
      const size =
        tokens > 0 ? counted(tokens, 'token') : `${grouped(body.text?.length ?? 0)} characters`;
      const words = `${workOf(body)} ${size}${time}`;
      heading.textContent = words;
      return { share: share ?? 0, words };
    },

    /** @returns {boolean} was there something to tell? */
    end() {
      const wasOn = isOn;
      if (isOn) results.hidden = wasHidden;
      isOn = false;
      section.hidden = maps.hidden = true;
      canvases = new Map();
      rows.replaceChildren();
      return wasOn;
    },
  };
}

/**
 * Return a time in words, rounded: it is an estimate.
 * @param {number} seconds
 * @returns {string} `about 40 s`, `about 2 min`
 */
export function aboutSeconds(seconds) {
  if (seconds < 10) return `about ${Math.max(1, Math.round(seconds))} s`;
  return seconds < 90
    ? `about ${10 * Math.round(seconds / 10)} s`
    : `about ${Math.round(seconds / 60)} min`;
}

/** Return what a request computes of a text. @param {Ask} body */
function workOf({ resolution, capture = [] }) {
  if (resolution !== undefined) return 'Reading';
  return capture.some((site) => site.endsWith('.entropy')) ? 'Curves of' : 'One row of';
}

/** @param {string} attention its path, `decoder.layers.1.self_attention` */
function placeOf(attention) {
  const [, stack = '', layer = '', kind = ''] =
    attention.match(/^(\w+)\.layers\.(\d+)\.(\w+?)_/) ?? [];
  const isCross = kind === 'cross';
  return `Layer ${layer}${isCross ? ', cross attention' : stack === 'encoder' ? ' of the encoder' : ''}`;
}

/** @param {HTMLCanvasElement} canvas @param {PartialMap} map */
function paint(canvas, { bins: [height, width], mean }) {
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  const values = Float64Array.from(mean);
  paintValues(canvas, values, sequential(palette().theme), findCeiling(values, COLOURED));
}
