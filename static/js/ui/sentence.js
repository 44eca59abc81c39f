/**
 * The sentence: one chip per token, for the source and the target, tinted and marked by what is
 * pointed at, and a line that says it in words. One chip is reached by Tab, and the arrow keys
 * walk. Of a part of a long text, the tokens are brought into sight, and all others are paler.
 */

import { hasTwoSides, tokensOf } from '../trace/attention.js';
import { readDirection, visible } from '../words/text.js';
import { asTyped, withDigits, writeByteRange } from '../words/tokens.js';
import { css, diverging, inkOn, computeLevel, sequential } from '../plot/colour.js';
import { findHighlight } from '../plot/grid.js';
import { createBlocks } from './chip_blocks.js';
import { element, partOf } from './dom.js';

/** @import { Side } from '../trace/attention.js' @import { Part } from '../words/tokens.js' */

/** @type {Side[]} */
const SIDES = ['source', 'target'];
const MASK_HINT =
  'Click a word, or press Enter on it, to mask it; do the same on a mask to restore the word.';

/**
 * @param {HTMLElement} host
 * @param {Object} handlers
 * @param {(side: Side, index: number) => void} handlers.onChoose walked to
 * @param {(side: Side, index: number) => void} handlers.onPress
 * @param {() => void} handlers.onPoint what is to be shown may be different now
 */
export function createSentence(host, { onChoose, onPress, onPoint }) {
  /** @param {string} name @returns {HTMLElement} */
  const find = (name) => partOf(host, `#${name}`, HTMLElement);
  const rows = { source: find('source'), target: find('target-row') };
  /** @type {{side: Side, index: number}|null} */
  let pointed = null;
  /** The finding above tells what the drawing shows. */
  let isTold = false;
  /** @param {Side} side @returns {ConstructorParameters<typeof Chips>[2]} */
  const handlersFor = (side) => ({
    onChoose: (index) => onChoose(side, index),
    onPress: (index) => onPress(side, index),
    onPoint: (index) => {
      pointed = index === null ? null : { side, index };
      onPoint();
    },
  });
  const strips = {
    source: new Chips(find('chips'), 'Tokens; the chosen one is the query', handlersFor('source')),
    target: new Chips(
      find('target-chips'),
      'Tokens of the target; the chosen one is the query',
      handlersFor('target'),
    ),
  };

  return {
    /** @param {Trace} trace */
    show(trace) {
      pointed = null;
      const isPair = hasTwoSides(trace);
      host.classList.toggle('is-pair', isPair);
      rows.target.hidden = !isPair;
      find('mask-hint').textContent = trace.card?.has_mask ? MASK_HINT : '';
      strips.source.show(trace.tokens, trace.text);
      if (isPair) strips.target.show(tokensOf(trace, 'target'), trace.target ?? '');
      else strips.target.show([], '');
    },

    /** @param {Side} side of the query @param {number|null} query */
    choose(side, query) {
      for (const name of SIDES) strips[name].choose(name === side ? query : null);
    },

    /**
     * Show the tokens of a part of a long text, and no others, as those that are drawn.
     * @param {Partial<Record<Side, [number, number][]>>} parts by their side; the first is brought into sight
     */
    follow(parts) {
      for (const side of SIDES) strips[side].follow(parts[side] ?? []);
    },

    /** @param {string} words on what the drawing shows; they give way to what is pointed at */
    explain(words) {
      isTold = words !== '';
    },

    /**
     * @param {Grid|null} grid of the open view
     * @param {PointedCell|null} cell a cell of a drawing that is pointed at
     * @param {{theme: 'light'|'dark'}} palette
     */
    mark(grid, cell, { theme }) {
      const shown = findHighlight(grid, cell ?? pointed);
      host.classList.toggle('is-pointing', Boolean(cell ?? pointed));
      host.classList.toggle('is-told', !cell && !pointed && isTold);
      for (const side of SIDES) {
        strips[side].mark(shown.marks[side]);
        strips[side].tint(
          shown.tints[side],
          (shown.isSigned ? diverging : sequential)(theme),
          shown.ceiling,
        );
      }
      find('readout').textContent = shown.readout;
    },
  };
}

const MARGIN = 5;
/** The chips of longer texts are on the page in blocks. */
const MOST_WHOLE = 1024;

/** The tokens of a text as chips, of which one is chosen and some are marked and tinted. */
export class Chips {
  /** Of a long text those near the visible part exist; the others are holes. @type {HTMLElement[]} */
  #chips = [];
  /** @type {ReturnType<typeof createBlocks>|null} */
  #blocks = null;
  /** @type {ChipsLook} */
  #look = { query: null, roving: 0, queries: [], keys: [], ceiling: 1, parts: [] };
  #host;

  /**
   * @param {HTMLElement} host
   * @param {string} label for screen readers
   * @param {Object} handlers
   * @param {(index: number) => void} handlers.onChoose walked to
   * @param {(index: number) => void} handlers.onPress clicked, or Enter pressed on it
   * @param {(index: number|null) => void} handlers.onPoint under the pointer or in focus; null: no longer
   */
  constructor(host, label, { onChoose, onPress, onPoint }) {
    this.#host = host;
    host.setAttribute('role', 'listbox');
    host.setAttribute('aria-label', label);
    host.setAttribute('aria-orientation', 'horizontal');
    new ResizeObserver(() => reveal(host, [this.#chipAt(this.#look.query ?? undefined)])).observe(
      host,
    );
    listen(host, (target) => this.#indexOf(target), {
      onPress,
      onPoint,
      onKey: (event, index) => {
        const to = step(event.key, index, this.#chips.length, host.dir);
        if (to === null) return;
        event.preventDefault();
        if (event.key === 'Enter' || event.key === ' ') {
          onPress(index);
          return;
        }
        onChoose(to);
        this.#chipAt(to)?.focus();
      },
    });
  }

  /** @param {EventTarget|null} target */
  #indexOf(target) {
    return this.#chips.findIndex((node) => target instanceof Node && node?.contains(target));
  }

  /** @param {number|undefined} index */
  #chipAt(index) {
    if (index === undefined) return undefined;
    this.#blocks?.need(index);
    return this.#chips[index];
  }

  /** @param {(node: HTMLElement, index: number, look: ChipsLook) => void} dress */
  #each(dress) {
    this.#chips.forEach((node, index) => dress(node, index, this.#look));
  }

  /** @param {Token[]} tokens @param {string} text */
  show(tokens, text) {
    const hadFocus = this.#chips.findIndex((node) => node && node === document.activeElement);
    this.#host.dir = readDirection(text);
    if (tokens.length !== this.#chips.length) this.#host.scrollTop = 0; // another sentence is read from its start
    Object.assign(this.#look, { parts: [], query: null });
    this.#blocks?.destroy();
    this.#blocks = null;
    if (tokens.length > MOST_WHOLE) {
      this.#showBlocks(tokens);
      return;
    }
    this.#chips = tokens.map(chip);
    this.#host.replaceChildren(...outlined(tokens, this.#chips));
    if (hadFocus >= 0) {
      const focused = Math.min(hadFocus, this.#chips.length - 1);
      this.#rove(focused);
      this.#chips[focused]?.focus();
    }
  }

  /** @param {number|null} query null: none of these tokens is the query */
  choose(query) {
    const isOther = this.#look.query !== query;
    this.#look.query = query;
    this.#rove(
      query ??
        Math.max(
          0,
          this.#chips.findIndex((node) => node && node === document.activeElement),
        ),
    );
    if (isOther) reveal(this.#host, [this.#chipAt(query ?? undefined)]);
  }

  /**
   * Mark what the pointer or the cell cursor is on.
   * @param {{query?: number|number[], key?: number|number[]}} [tokens] one, or the pieces of a word
   */
  mark({ query = [], key = [] } = {}) {
    const [queries, keys] = [[query].flat(), [key].flat()];
    const isOther = `${this.#look.queries} ${this.#look.keys}` !== `${queries} ${keys}`;
    Object.assign(this.#look, { queries, keys });
    this.#host.classList.toggle('is-pointed', queries.length + keys.length > 0);
    this.#each(mark);
    if (isOther) reveal(this.#host, [this.#chipAt(queries.at(-1)), this.#chipAt(keys.at(-1))]);
  }

  /** @param {[number, number][]} wanted the first token of each part, and the one after its last; none: all */
  follow(wanted) {
    if (String(wanted) === String(this.#look.parts)) return;
    this.#look.parts = wanted;
    this.#each(fade);
    const first = this.#chipAt(wanted[0]?.[0]);
    if (first) this.#host.scrollTop = first.offsetTop - MARGIN;
  }

  /**
   * @param {Float64Array|null|undefined} weights over the tokens
   * @param {Uint8Array} [scale] colours
   * @param {number} [ceiling] weight at the top of the scale
   */
  tint(weights, scale, ceiling = 1) {
    Object.assign(this.#look, { weights, scale, ceiling });
    this.#each(tint);
  }

  /** @param {Token[]} tokens of a long text */
  #showBlocks(tokens) {
    this.#chips = new Array(tokens.length);
    this.#host.replaceChildren();
    this.#blocks = createBlocks(this.#host, {
      count: tokens.length,
      build: (first, last) => {
        const nodes = tokens.slice(first, last).map((token, at) => chip(token, first + at));
        nodes.forEach((node, at) => {
          this.#chips[first + at] = node;
          for (const dress of [select, mark, tint, fade]) dress(node, first + at, this.#look);
        });
        return outlined(tokens.slice(first, last), nodes);
      },
      drop: (first, last) => {
        for (let at = first; at < last; at += 1) delete this.#chips[at];
      },
    });
  }

  /** Make one of the chips reachable by Tab. @param {number} to */
  #rove(to) {
    this.#look.roving = to;
    this.#chipAt(to);
    this.#each(select);
  }
}

/**
 * @typedef {Object} ChipsLook
 * @property {number|null} query
 * @property {number} roving the chip that Tab leads to
 * @property {number[]} queries that are pointed at
 * @property {number[]} keys
 * @property {Float64Array|null} [weights]
 * @property {Uint8Array} [scale]
 * @property {number} ceiling
 * @property {[number, number][]} parts the tokens that are drawn, if not all
 */

/** @param {HTMLElement} node @param {number} index @param {ChipsLook} look */
function select(node, index, { query, roving }) {
  node.setAttribute('aria-selected', String(index === query));
  node.tabIndex = index === roving ? 0 : -1;
}

/** @param {HTMLElement} node @param {number} index @param {ChipsLook} look */
function mark(node, index, { queries, keys }) {
  node.classList.toggle('is-query', queries.includes(index));
  node.classList.toggle('is-key', keys.includes(index));
}

/** @param {HTMLElement} node @param {number} index @param {ChipsLook} look */
function tint(node, index, { weights, scale, ceiling }) {
  tintChip(node, weights?.[index], scale, ceiling);
}

/** @param {HTMLElement} node @param {number} index @param {ChipsLook} look */
function fade(node, index, { parts }) {
  const isInside = parts.some(([from, to]) => from <= index && index < to);
  node.classList.toggle('is-outside', parts.length > 0 && !isInside);
}

/**
 * @param {HTMLElement} host
 * @param {(target: EventTarget|null) => number} indexOf −1: no chip
 * @param {{onPress: (index: number) => void, onPoint: (index: number|null) => void, onKey: (event: KeyboardEvent, index: number) => void}} handlers
 */
function listen(host, indexOf, { onPress, onPoint, onKey }) {
  /** @param {(index: number) => void} act @returns {(event: Event) => void} */
  const onChip = (act) => (event) => {
    const index = indexOf(event.target);
    if (index >= 0) act(index);
  };
  host.addEventListener('click', onChip(onPress));
  host.addEventListener('focusin', onChip(onPoint));
  host.addEventListener('focusout', () => onPoint(null));
  host.addEventListener('keydown', (event) => onKey(event, indexOf(event.target)));
  host.addEventListener('pointerover', (event) => {
    if (event.pointerType !== 'touch') onChip(onPoint)(event);
  });
  host.addEventListener('pointerleave', ({ pointerType }) => {
    if (pointerType !== 'touch') onPoint(null);
  });
}

/**
 * Scroll a long sentence, and nothing else, to these chips; where they lie too far apart, to the
 * first.
 * @param {HTMLElement} host
 * @param {(HTMLElement|undefined)[]} wanted
 */
function reveal(host, wanted) {
  const present = wanted.filter((node) => node !== undefined);
  if (present.length === 0 || host.scrollHeight <= host.clientHeight) return;
  /** @param {HTMLElement[]} nodes */
  const extent = (nodes) => [
    Math.min(...nodes.map((node) => node.offsetTop)) - MARGIN,
    Math.max(...nodes.map((node) => node.offsetTop + node.offsetHeight)) + MARGIN,
  ];
  const both = extent(present);
  const [top, bottom] = both[1] - both[0] <= host.clientHeight ? both : extent(present.slice(0, 1));
  if (top < host.scrollTop) host.scrollTop = top;
  else if (bottom > host.scrollTop + host.clientHeight) host.scrollTop = bottom - host.clientHeight;
}

/**
 * The pieces of one character share an outline, and the character is before them.
 * @param {Token[]} tokens
 * @param {HTMLSpanElement[]} nodes
 */
function outlined(tokens, nodes) {
  /** @type {HTMLElement[]} */
  const parts = [];
  tokens.forEach(({ part }, index) => {
    if (!part) parts.push(nodes[index]);
    else if (part.from === 1) parts.push(outline(part.whole, nodes[index]));
    else if (parts.length > 0) parts.at(-1)?.append(nodes[index]);
    else parts.push(nodes[index]); // its character began in an earlier block
  });
  return parts;
}

/** @param {string} whole @param {...HTMLElement} nodes */
function outline(whole, ...nodes) {
  const shown = visible(whole);
  return element(
    'span.character',
    { role: 'group', 'aria-label': `Bytes of ${shown}` },
    element('bdi.character-whole', { 'aria-hidden': 'true' }, pieces(shown)),
    nodes,
  );
}

/** @param {Token} token @param {number} index */
function chip(token, index) {
  const node = element('span', {
    class: `chip${token.is_special ? ' is-special' : ''}${token.part ? ' is-bytes' : ''}`,
    role: 'option',
    tabindex: -1,
    'data-role': token.role,
    'aria-label': spoken(token, index),
    title: titleOf(token, index),
  });
  node.append(element('bdi', pieces(textOf(token))));
  return node;
}

/** @param {Token} token */
function textOf({ text, part }) {
  return visible(part ? withDigits(text) : asTyped(text));
}

/** Split a text so that symbols for invisible characters can be paler. @param {string} text */
function pieces(text) {
  return text
    .split(/([·↵⇥⍽◌]+|‹[^›]*›)/)
    .filter(Boolean)
    .map((part) => (/^([·↵⇥⍽◌]+|‹.*›)$/.test(part) ? element('span.blank', part) : part));
}

/** @param {Token} token @param {number} index */
function spoken({ text, is_special: isSpecial, part, role }, index) {
  const kind = `${role ? `${role}, ` : ''}${isSpecial ? 'special token' : 'token'}`;
  return `${kind} ${index}: ${part ? partInWords(part) : asTyped(text).trim() || visible(text)}`;
}

/** @param {Token} token @param {number} index */
function titleOf({ id, is_special: isSpecial, part, role }, index) {
  return `${isSpecial ? 'Special token' : 'Token'} ${index}, id ${id}${role ? `, ${role}` : ''}${part ? `, ${partInWords(part)}` : ''}`;
}

/** @param {Part} part */
function partInWords(part) {
  return `${writeByteRange(part)} of ${visible(part.whole)}`;
}

/**
 * @param {HTMLElement} node
 * @param {number|undefined} weight
 * @param {Uint8Array|undefined} scale
 * @param {number} ceiling
 */
function tintChip(node, weight, scale, ceiling) {
  const isTinted = weight !== undefined && !Number.isNaN(weight);
  node.toggleAttribute('data-tinted', isTinted);
  if (!isTinted || !scale) {
    node.style.removeProperty('--tint');
    node.style.removeProperty('--tint-ink');
    return;
  }
  const level = computeLevel(weight, ceiling);
  node.style.setProperty('--tint', css(scale, level));
  node.style.setProperty('--tint-ink', inkOn(scale, level));
}

/** @param {string} key @param {number} from @param {number} count @param {string} direction */
function step(key, from, count, direction) {
  const forwards = direction === 'rtl' ? -1 : 1;
  /** @type {Record<string, number>} */
  const steps = { ArrowRight: forwards, ArrowLeft: -forwards, ArrowDown: 1, ArrowUp: -1 };
  if (from < 0) return null;
  if (key === 'Home') return 0;
  if (key === 'End') return count - 1;
  if (key === 'Enter' || key === ' ') return from;
  return key in steps ? Math.max(0, Math.min(count - 1, from + steps[key])) : null;
}
