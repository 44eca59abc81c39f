/**
 * The map of the model on the page: its parts are buttons, one tab stop that the arrow keys walk
 * through, over lines that say how they hang together. The list below it has the views of the part
 * that is shown.
 */

import { guessInWords } from '../../words/tokens.js';
import { feedersOf } from '../../trace/card.js';
import { choosePlace, chooseStack } from '../../trace/attention.js';
import { readRoleShares } from '../../plot/roles.js';
import { buildAnatomy, litParts, readParts } from './parts.js';
import { css, diverging, inkOn, computeLevel, sequential } from '../../plot/colour.js';
import { isPredicting } from '../../rules/prediction.js';
import { neighbour, railLayout, stripLayout } from './layout.js';
import { isShown, readSwitches } from '../../state/attention_switches.js';
import { amount } from '../../words/numbers.js';
import { element } from '../dom.js';

/**
 * @import { Part, Reading } from './parts.js'
 * @import { MapLayout, Open, Placed } from './layout.js'
 */

/**
 * @typedef {Object} Shown
 * @property {string} name of the model, its shape included: another has other parts
 * @property {Anatomy} anatomy
 * @property {(part: Part) => Reading} read
 * @property {Set<string>} lit ids of the parts that the drawing shows
 * @property {Open} open
 * @property {Effects|null} effects on the prediction, which the colours show
 * @property {boolean} isAwaited the effects are being computed: nothing else takes their colours
 * @property {string} pass whose numbers these are, if an edit is made; else ''
 * @property {string} role whose shares the colours show; empty: none
 * @property {(part: Part) => string[]} viewsOf ids of the views that a part opens; none: it is only drawn
 * @property {{from: string, to: string, share: number}[]} feeds ids of heads that write what the open one reads, and its own
 * @property {Theme} theme
 */

/** @typedef {{state: ViewState, kind: Kind, query: number, effects: Effects|null, viewsOf: (part: Part) => string[]}} Looked what is open: its kind of part, its row, the effects on its prediction, and the views that a part opens */

const SVG = 'http://www.w3.org/2000/svg';
export const NARROW = '(max-width: 60rem)';
const STREAM = { least: 2, most: 13 };
/** Up to here the colours go, so that the mark of a lit part is seen on all of them. */
const DARKEST = 0.6;
/** The share of the diverging scale that is used, for the same reason. */
const STRONGEST = 0.8;
/** Pixels that the rail needs next to the map: its caption, key and margins. */
const AROUND = 210;
/** The text passes through the column in twice this time. */
const PASS = { duration: 300, easing: 'ease-out', fill: /** @type {FillMode} */ ('backwards') };
const HEIGHTS = { least: 380, most: 700 };

/**
 * @param {HTMLElement} host
 * @param {HTMLElement} caption says in words what is pointed at
 * @param {{onChoose: (part: Part) => void}} handlers
 */
export function createModelMap(host, caption, { onChoose }) {
  const drawing = document.createElementNS(SVG, 'svg');
  drawing.setAttribute('aria-hidden', 'true');
  const body = element('div.map-parts', { role: 'toolbar', 'aria-label': 'Map of the model' });
  const frame = element('div.map-body');
  const arrows = document.createElementNS(SVG, 'svg');
  arrows.setAttribute('aria-hidden', 'true');
  frame.append(drawing, body, arrows);
  const key = createKey();
  host.after(key.element);
  host.append(frame);
  const narrow = matchMedia(NARROW);
  const still = matchMedia('(prefers-reduced-motion: reduce)');
  /** @type {Map<string, HTMLElement>} */
  let nodes = new Map();
  /** @type {MapLayout|null} */
  let layout = null;
  /** @type {Shown|null} */
  let shown = null;
  let built = '';
  /** The trace whose way through the parts was shown. */
  let passed = '';
  /** The part that Tab leads to. */
  let stop = '';

  /** @param {EventTarget|null} target */
  const placedAt = (target) => {
    const node = target instanceof Element ? target.closest('[data-part]') : null;
    const id = node instanceof HTMLElement ? node.dataset.part : undefined;
    return layout?.parts.find(({ part }) => part.id === id) ?? null;
  };
  body.addEventListener('click', ({ target }) => {
    const placed = placedAt(target);
    if (!placed || !shown?.viewsOf(placed.part).length) return;
    stop = placed.part.id;
    onChoose(placed.part);
  });
  body.addEventListener('keydown', (event) => {
    const placed = placedAt(event.target);
    if (!placed || event.altKey || event.ctrlKey || event.metaKey) return;
    const to = neighbour(choosable(), placed.part.id, event.key);
    if (!to) return;
    event.preventDefault();
    rove(to);
    nodes.get(to)?.focus();
  });
  for (const type of ['pointerover', 'focusin'])
    body.addEventListener(type, ({ target }) => say(placedAt(target)));
  for (const type of ['pointerleave', 'focusout']) body.addEventListener(type, () => say(null));

  const choosable = () => layout?.parts.filter(({ part }) => shown?.viewsOf(part).length) ?? [];

  /** @param {Placed|null} placed */
  function say(placed) {
    if (!shown || !layout) return;
    const { lit, read } = shown;
    const chosen = placed ?? layout.parts.find(({ part }) => lit.has(part.id));
    caption.textContent = capital(chosen ? read(chosen.part).words : '').replaceAll(
      ' %',
      '\u00a0%',
    );
  }

  /** @param {string} id */
  function rove(id) {
    stop = id;
    for (const [key, node] of nodes) node.tabIndex = key === id ? 0 : -1;
  }

  /** @param {Shown} wanted */
  function build(wanted) {
    const isStrip = narrow.matches;
    const width = frame.clientWidth;
    const height = Math.max(HEIGHTS.least, Math.min(HEIGHTS.most, window.innerHeight - AROUND));
    const { stack, layer } = wanted.open;
    const key = [wanted.name, isStrip, width, isStrip ? 0 : height, stack, layer].join(' ');
    if (key === built || width === 0) return;
    built = key;
    layout = isStrip
      ? stripLayout(wanted.anatomy, { width, open: wanted.open })
      : railLayout(wanted.anatomy, { width, height, open: wanted.open });
    host.classList.toggle('is-strip', isStrip);
    frame.style.height = `${layout.height}px`;
    nodes = new Map(layout.parts.map((placed) => [placed.part.id, nodeOf(placed, wanted)]));
    body.replaceChildren(...nodes.values());
    if (!nodes.has(stop)) stop = '';
  }

  return {
    /** @param {Trace} trace @param {Card} card of its model @param {Looked} looked */
    show(trace, card, looked) {
      const wanted = shownOf(trace, card, looked);
      shown = wanted;
      const hadFocus = body.contains(document.activeElement);
      build(wanted);
      if (!layout) return;
      draw(drawing, layout, wanted);
      arrows.replaceChildren(...wanted.feeds.flatMap((feed) => arrowOf(feed, layout?.parts ?? [])));
      for (const placed of layout.parts) {
        const node = nodes.get(placed.part.id);
        if (node) dress(node, placed, wanted, narrow.matches);
      }
      const offered = choosable();
      const first = offered.find(({ part }) => wanted.lit.has(part.id)) ?? offered[0];
      rove(hadFocus && stop ? stop : (first?.part.id ?? ''));
      // A layer that was opened has become its parts.
      if (hadFocus) nodes.get(stop)?.focus();
      key.show(wanted);
      say(null);
      const isNew = passed !== trace.id && !still.matches;
      passed = trace.id;
      if (isNew) pass(layout, nodes, drawing, narrow.matches);
    },
  };
}

/**
 * Light the parts one after the other, from the embedding to the prediction.
 * @param {MapLayout} layout
 * @param {Map<string, HTMLElement>} nodes
 * @param {SVGSVGElement} drawing
 * @param {boolean} isStrip
 */
function pass({ parts, width, height }, nodes, drawing, isStrip) {
  /** @param {Element|undefined} node @param {number} at */
  const light = (node, at) =>
    node?.animate?.({ opacity: [0.2, 1] }, { ...PASS, delay: at * PASS.duration });
  for (const { part, x, y } of parts) light(nodes.get(part.id), isStrip ? x / width : y / height);
  const reaches = [...drawing.querySelectorAll('.map-stream')];
  reaches.forEach((reach, index) => light(reach, index / reaches.length));
}

/** @param {Trace} trace @param {Card} card of its model @param {Looked} looked @returns {Shown} */
function shownOf(trace, card, { state, kind, query, effects, viewsOf }) {
  const place = choosePlace(state, trace);
  const stack = (kind === 'head' ? place?.stack : undefined) ?? chooseStack(state, trace);
  const switches = readSwitches(state, { placeId: place?.id ?? '', nHeads: card.n_heads });
  const anatomy = buildAnatomy(card);
  const isSwitchedOff =
    state.view === 'compare' && state.compare_with === 'edit' && state.compare_edit === 'heads';
  const { compare_heads: heads, compare_layer: chosen } = state;
  const off = chosen === 'all' ? null : (chosen ?? state.layer);
  /** @param {Part} part */
  const isOff = ({ id, layer, index = 0 }) =>
    id === state.off || (isSwitchedOff && heads.includes(index) && (off ?? layer) === layer);
  const roles = readRoleShares(trace, state);
  const edited = state.answers?.next_edited;
  const next_token = edited?.trace?.analyses.next_token;
  const shown = next_token ? { ...trace, analyses: { ...trace.analyses, next_token } } : trace;
  const read = readParts(card, shown, isOff, effects, query, roles);
  // While an edit is made, only the effects may be of the edited pass.
  const pass = !edited ? '' : effects?.isEdited ? 'with the edit' : 'before the edit';
  return {
    name: `${trace.model} ${trace.revision}`,
    anatomy,
    read: (part) => ofPass(read(part), passOf(part, state, pass)),
    isAwaited: isAwaiting(trace, card, state, effects),
    pass,
    lit: new Set(litParts(anatomy, kind, state, trace, (head) => isShown(switches, state, head))),
    effects,
    role: roles?.role ?? '',
    feeds: feedsOf(state, place),
    open: { stack, layer: Math.min(state.layer, card.n_layers - 1) },
    viewsOf,
    theme: state.palette.theme,
  };
}

/** @type {string[]} */
const MEASURED = ['head', 'expert', 'network', 'stream'];

/** @param {Part} part @param {ViewState} state @param {string} pass of the effects */
function passOf({ kind }, { answers }, pass) {
  if (MEASURED.includes(kind)) return pass;
  return kind === 'logits' && answers?.next_edited?.trace ? 'with the edit' : '';
}

/** @param {Reading} reading @param {string} pass @returns {Reading} */
function ofPass(reading, pass) {
  return pass === '' ? reading : { ...reading, words: `${reading.words}, ${pass}` };
}

/**
 * Return true while the effects on the prediction are asked for, or are about to be.
 * @param {Trace} trace
 * @param {Card} card
 * @param {ViewState} state
 * @param {Effects|null} effects
 */
function isAwaiting(trace, card, { map, answers, isSaved }, effects) {
  if (effects || map !== 'effect' || !isPredicting(trace)) return false;
  const { next_why: why, next_edited: edited } = answers ?? {};
  if (why?.problem || edited?.problem) return false;
  const isOffered = ['reasons', 'logit_attribution'].every((id) => card.analyses?.includes(id));
  return why ? Boolean(why.isWaiting || edited?.isWaiting) : isOffered && !isSaved;
}

/** Create the key below the map: what its colours show, from least to most. */
function createKey() {
  const words = element('span');
  const ramp = element('span.map-ramp', { 'aria-hidden': 'true' });
  const key = element('p.map-key', words, ramp);

  return {
    element: key,

    /** @param {Shown} shown */
    show({ effects, theme, isAwaited, pass, role }) {
      const isSigned = effects !== null || isAwaited;
      const scale = isSigned ? diverging(theme) : sequential(theme);
      const stops = Array.from({ length: 9 }, (_, at) =>
        css(scale, isSigned ? signedLevel(at / 4 - 1) : computeLevel((at / 8) * DARKEST, 1)),
      );
      ramp.style.setProperty('--scale', `linear-gradient(to right, ${stops.join(', ')})`);
      const most = effects ? amount(effects.most, 2) : '';
      ramp.dataset.least = isAwaited ? '−' : effects ? `−${most}` : '0';
      ramp.dataset.most = isAwaited
        ? '+'
        : effects
          ? `+${most}`
          : role
            ? '100 %'
            : 'most of its layer';
      const said = isAwaited
        ? 'Logits added for the next word: being computed'
        : effects
          ? `Logits added for “${guessInWords(effects.token)}” against “${guessInWords(effects.against)}”`
          : role
            ? `Share of each head’s attention on ${role}`
            : 'Share of what is written';
      words.textContent = pass && !isAwaited ? `${said}, ${pass}` : said;
    },
  };
}

/** @param {number} effect −1 to 1 */
const signedLevel = (effect) => computeLevel((effect * STRONGEST + 1) / 2, 1);

/** @param {string} words */
const capital = (words) => words.charAt(0).toUpperCase() + words.slice(1);

/** @param {Placed} placed @param {Shown} shown */
function nodeOf({ part, x, y, width, height }, { viewsOf }) {
  const views = viewsOf(part);
  const attributes = {
    class: `map-part is-${part.kind}`,
    'data-part': part.id,
    'data-views': views.join(' '),
  };
  const node =
    views.length > 0
      ? element('button', { type: 'button', tabindex: -1, ...attributes })
      : element('span', attributes);
  node.append(element('span.map-label'), ' ', element('span.map-note'));
  const { style } = node;
  [style.left, style.top, style.width, style.height] = [x, y, width, height].map(
    (pixels) => `${pixels}px`,
  );
  node.classList.toggle('is-small', width < 20 || height < 14);
  node.classList.toggle('is-roomy', part.kind === 'head' && height > 30);
  return node;
}

/**
 * @param {HTMLElement} node
 * @param {Placed} placed
 * @param {Shown} shown
 * @param {boolean} isStrip
 */
function dress(
  node,
  { part, bars, isUnnumbered },
  { read, lit, theme, open, effects, isAwaited },
  isStrip,
) {
  const { level, effect = null, words, label, note = '', isOff = false } = read(part);
  const [first, second] = /** @type {HTMLCollectionOf<HTMLElement>} */ (node.children);
  const isShort = isStrip && SHORTENED.includes(part.kind);
  const isLit = lit.has(part.id);
  // Of the parts, those are named that do much: the first row numbers the others.
  const isHead = part.kind === 'head';
  const isNamed = !['head', 'expert', 'network'].includes(part.kind) || part.layer < 1 || isStrip;
  const isLoud = isLit || isOff || Math.abs(effect ?? 0) >= LOUD;
  first.textContent = isUnnumbered || !(isNamed || isLoud) ? '' : isShort ? note : label;
  second.textContent = isHead && isLoud && !isShort ? note : '';
  // Someone who says what is to be seen means this part (WCAG 2.5.3).
  const seen = [first, second]
    .map((each) => each.textContent ?? '')
    .filter(Boolean)
    .join(' ');
  const isSaid = words.toLowerCase().includes(seen.toLowerCase());
  node.setAttribute('aria-label', isSaid ? words : `${seen}: ${words}`);
  node.title = words;
  node.setAttribute('aria-current', String(isLit));
  node.classList.toggle('is-off', isOff);
  node.classList.toggle(
    'is-open',
    part.kind === 'layer' && part.layer === open.layer && part.stack === open.stack,
  );
  const { scale, at } = colourOf({ level, effect }, theme);
  // A part without an effect has no colour while the colours are effects.
  const isBare = effects || isAwaited ? effect === null : level === null;
  if (bars)
    node.style.setProperty('--bars', stripes(bars, read, theme, effects !== null || isAwaited));
  if (!TINTED.includes(part.kind) || isBare) {
    node.style.removeProperty('--tint');
    node.style.removeProperty('--tint-ink');
    return;
  }
  node.style.setProperty('--tint', css(scale, at));
  node.style.setProperty('--tint-ink', inkOn(scale, at));
}

/**
 * Return the scale of a reading, and its level on it.
 * @param {Pick<Reading, 'level'|'effect'>} reading
 * @param {Theme} theme
 */
function colourOf({ level, effect }, theme) {
  return effect === null || effect === undefined
    ? { scale: sequential(theme), at: computeLevel((level ?? 0) * DARKEST, 1) }
    : { scale: diverging(theme), at: signedLevel(effect) };
}

/** @type {string[]} */
const TINTED = ['head', 'expert', 'network'];
/** The share of the largest effect from which a head is named on the map. */
const LOUD = 0.25;
/** @type {string[]} */
const SHORTENED = [...['embedding', 'bridge', 'logits', 'network', 'expert', 'stream']];

/**
 * The heads of a folded layer as stripes of a background.
 * @param {Part[]} heads
 * @param {(part: Part) => Reading} read
 * @param {Theme} theme
 * @param {boolean} isEffect what the colours are
 */
function stripes(heads, read, theme, isEffect) {
  const step = 100 / heads.length;
  const stops = heads.map((head, index) => {
    const { level, effect } = read(head);
    const { scale, at } = colourOf({ level, effect: isEffect ? (effect ?? 0) : null }, theme);
    const colour = css(scale, at);
    return `${colour} ${index * step}% ${(index + 1) * step}%`;
  });
  return `linear-gradient(to right, ${stops.join(', ')})`;
}

/**
 * The residual stream, as wide as its norm, and the lines.
 * @param {SVGSVGElement} drawing
 * @param {MapLayout} layout
 * @param {Shown} shown
 */
function draw(drawing, { width, height, lines, stream, names = [] }, { read, lit }) {
  drawing.setAttribute('width', String(width));
  drawing.setAttribute('height', String(height));
  const drawn = lines.map(({ x0, y0, x1, y1, isCross }) =>
    svg('path', {
      d: `M${x0} ${y0}L${x1} ${y1}`,
      class: isCross ? 'map-line is-cross' : 'map-line',
    }),
  );
  let before = STREAM.least;
  const reaches = stream.map(({ x, y0, y1, part }) => {
    if (part.layer === 0) before = STREAM.least;
    const level = read(part).level;
    const after = level === null ? before : STREAM.least + (STREAM.most - STREAM.least) * level;
    const [wide, wider] = [before / 2, after / 2];
    before = after;
    return svg('path', {
      d: `M${x - wide} ${y0}L${x + wide} ${y0}L${x + wider} ${y1}L${x - wider} ${y1}Z`,
      class: lit.has(part.id) ? 'map-stream is-lit' : 'map-stream',
    });
  });
  const written = names.map(({ text, x, y, isEnd }) => {
    const anchor = isEnd ? 'end' : 'start';
    const node = svg('text', { x: `${x}`, y: `${y}`, class: 'map-name', 'text-anchor': anchor });
    node.textContent = text;
    return node;
  });
  drawing.replaceChildren(...drawn, ...reaches, ...written);
}

/** Return the heads that feed the open one; *This head* knows them. @param {ViewState} state @param {ReturnType<typeof choosePlace>} place */
function feedsOf({ answers, layer, head }, place) {
  if (!place) return [];
  const path = `${place.stack}.layers.${layer}.${place.ending}`;
  return feedersOf(answers?.card?.trace?.card, path, head).map(({ name, share }) => {
    const [, other, at] = /^(?:(encoder|cross)\.)?(\d+\.\d+)$/.exec(name) ?? [];
    const from = `head ${other ?? place.stack} ${(at ?? '').replace('.', ' ')}`;
    return { from, to: `head ${place.id} ${layer} ${head}`, share };
  });
}

/**
 * Draw an arrow from a head to the one that reads it; none where the map folds one of them.
 * @param {Shown['feeds'][number]} feed
 * @param {Placed[]} parts
 */
function arrowOf({ from, to, share }, parts) {
  const [start, end] = [from, to].map((id) => parts.find(({ part }) => part.id === id));
  if (!start || !end) return [];
  const [x0, x1] = [start, end].map((placed) => placed.x + placed.width / 2);
  const [y0, y1] = [start.y + start.height, end.y];
  const [across, down] = [x1 - x0, y1 - y0];
  const length = Math.hypot(across, down) || 1;
  const [x, y] = [(across / length) * 8, (down / length) * 8];
  const width = String(1 + 4 * share);
  return [
    svg('path', {
      d: `M${x0} ${y0}L${x1 - x} ${y1 - y}`,
      ...{ class: 'map-feed', 'stroke-width': width },
    }),
    svg('path', {
      d: `M${x1} ${y1}l${-x - y / 2} ${-y + x / 2}l${y} ${-x}Z`,
      class: 'map-feed is-end',
    }),
  ];
}

/** @param {string} tag @param {Record<string, string>} attributes */
function svg(tag, attributes) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

/**
 * Create the views of the part that is shown, to choose from; nothing if there is only one.
 * @param {HTMLElement} host
 * @param {{onChoose: (view: string) => void}} handlers
 */
export function createViewList(host, { onChoose }) {
  let offered = '';
  let isOpen = false;

  return {
    /** @param {{id: string, title: string, isMore?: boolean}[]} views `isMore`: behind a button @param {string} chosen */
    show(views, chosen) {
      host.hidden = views.length < 2;
      isOpen ||= views.some(({ id, isMore }) => isMore && id === chosen);
      const shown = views.filter(({ isMore }) => isOpen || !isMore);
      const wanted = shown.map(({ id, title }) => `${id} ${title}`).join();
      const open = () => {
        isOpen = true;
        this.show(views, chosen);
      };
      if (wanted !== offered)
        host.replaceChildren(
          ...shown.map(({ id, title }) =>
            element(
              'button',
              { type: 'button', 'data-view': id, onclick: () => onChoose(id) },
              title,
            ),
          ),
          ...(shown.length < views.length
            ? [element('button', { type: 'button', onclick: open }, 'More')]
            : []),
        );
      offered = wanted;
      for (const button of host.querySelectorAll('button'))
        button.setAttribute('aria-current', String(button.dataset.view === chosen));
    },
  };
}
