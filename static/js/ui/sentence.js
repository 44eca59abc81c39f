/**
 * The sentence that stays in sight: the source, below it the target where there is one, tinted and
 * marked by what is pointed at, and a line that says it in words.
 */

import { diverging, sequential } from '../plot/colour.js';
import { hasTwoSides, tokensOf } from '../data/places.js';
import { highlightOf } from './sentence_highlight.js';
import { createChips } from './chips.js';

const SIDES = ['source', 'target'];
const MASK_HINT =
  'Click a word, or press Enter on it, to mask it; on a mask the same brings its word back.';

/**
 * @param {HTMLElement} host
 * @param {Object} handlers
 * @param {(side: import('../data/places.js').Side, index: number) => void} handlers.onChoose walked to
 * @param {(side: import('../data/places.js').Side, index: number) => void} handlers.onPress
 * @param {() => void} handlers.onPoint what is to be shown may be different now
 */
export function createSentence(host, { onChoose, onPress, onPoint }) {
  const find = (name) => host.querySelector(`#${name}`);
  const rows = { source: find('source'), target: find('target-row') };
  /** @type {{side: import('../data/places.js').Side, index: number}|null} */
  let pointed = null;
  const handlersFor = (side) => ({
    onChoose: (index) => onChoose(side, index),
    onPress: (index) => onPress(side, index),
    onPoint: (index) => {
      pointed = index === null ? null : { side, index };
      onPoint();
    },
  });
  const strips = {
    source: createChips(
      find('chips'),
      'Tokens; the chosen one is the query',
      handlersFor('source'),
    ),
    target: createChips(
      find('target-chips'),
      'Tokens of the target; the chosen one is the query',
      handlersFor('target'),
    ),
  };

  return {
    /** @param {import('../data/trace.js').Trace} trace */
    show(trace) {
      pointed = null;
      const isPair = hasTwoSides(trace);
      host.classList.toggle('is-pair', isPair);
      rows.target.hidden = !isPair;
      find('mask-hint').textContent = trace.card?.has_mask ? MASK_HINT : '';
      strips.source.show(trace.tokens, trace.text);
      if (isPair) strips.target.show(tokensOf(trace, 'target'), trace.target);
      else strips.target.show([], '');
    },

    /**
     * @param {import('../data/places.js').Side} side of the query
     * @param {number} query
     * @param {boolean} isRevealed whether a long sentence is scrolled to it
     */
    choose(side, query, isRevealed) {
      for (const name of SIDES) strips[name].choose(name === side ? query : null, isRevealed);
    },

    /**
     * @param {import('../plot/grid.js').Grid|null} grid of the open view
     * @param {import('./sentence_highlight.js').PointedCell|null} cell a cell of a drawing that is pointed at
     * @param {{theme: 'light'|'dark'}} palette
     */
    mark(grid, cell, { theme }) {
      const shown = highlightOf(grid, cell ?? pointed);
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
