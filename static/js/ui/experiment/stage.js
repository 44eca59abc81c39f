/** The pictures of an experiment, a panel each, with their exports. */

import { experimentPath } from '../../api/experiments.js';
import { messageOf } from '../../api/calls.js';
import { plotHeight } from '../../plot/figure.js';
import { element, palette } from '../dom.js';
import { createPanel } from '../panel.js';

/**
 * @import { Description, Picture, Values } from '../../data/experiment.js'
 * @import { Trace } from '../../data/trace.js'
 * @import { Patch } from '../../state/state.js'
 */

/**
 * @param {Description} description
 * @param {Object} handlers
 * @param {(patch: Patch) => void} handlers.onChoose
 * @param {() => void} handlers.onRedraw
 * @param {(message: string) => void} handlers.announce
 */
export function createStage(description, { onChoose, onRedraw, announce }) {
  const { id } = description;
  const host = element('div', { class: 'panels is-bench' });
  /** @type {{id: string, panel: ReturnType<typeof createPanel>}[]} */
  let panels = [];

  function makePanel() {
    return createPanel(id, {
      onCell: (cell, grid, isKeyboard) => {
        if (cell && isKeyboard) announce(grid.describe(cell.row, cell.column));
      },
      onChoose: (cell, grid) => onChoose(grid.choose?.(cell.row, cell.column) ?? {}),
      onState: onChoose,
      onGoingOn: onChoose,
      onRedraw,
      announce,
    });
  }

  /** Keeps the panels of pictures that stay. @param {Picture[]} pictures */
  function arrange(pictures) {
    const isSame =
      panels.length === pictures.length && panels.every((each, at) => each.id === pictures[at].id);
    if (isSame) return;
    const kept = new Map(panels.map((each) => [each.id, each]));
    panels = pictures.map(
      (picture) => kept.get(picture.id) ?? { id: picture.id, panel: makePanel() },
    );
    for (const [known, { panel }] of kept)
      if (!panels.some((each) => each.id === known)) {
        panel.destroy();
        panel.element.remove();
      }
    panels.forEach(({ panel }, at) => {
      panel.element.classList.toggle('is-wide', Boolean(pictures[at].isWide));
      if (host.children[at] !== panel.element)
        host.insertBefore(panel.element, host.children[at] ?? null);
    });
  }

  return {
    element: host,

    /**
     * Draws the pictures in turn, so that the page answers between two of them.
     * @param {Picture[]} pictures
     * @param {string} text the experiment and its parameters in words
     * @param {Values} body of the request that gives these numbers
     */
    async show(pictures, text, body) {
      arrange(pictures);
      const size = { height: plotHeight(window.innerHeight), palette: palette() };
      for (const [at, picture] of pictures.entries()) {
        const { panel } = panels[at];
        if (at > 0) await pause();
        try {
          const figure = picture.draw({ ...size, width: Math.max(220, panel.width()) });
          const grid = { ...figure.grid, call: { path: experimentPath(id), body } };
          panel.show(subject(text), { ...figure, grid }, { cards: [], help: description.see });
        } catch (error) {
          console.warn(error);
          panel.fail(`This picture failed: ${messageOf(error)}`);
        }
      }
    },
  };
}

/**
 * The stand-in for a trace that captions and exports read their text from.
 * @param {string} text
 * @returns {Trace}
 */
function subject(text) {
  return {
    id: '',
    model: '',
    revision: '',
    text,
    tokens: [],
    target: null,
    target_tokens: null,
    tensors: {},
    analyses: {},
    timings: {},
  };
}

/** Lets the page answer what has happened meanwhile. @returns {Promise<void>} */
function pause() {
  return new Promise((resolve) => {
    setTimeout(resolve);
  });
}
