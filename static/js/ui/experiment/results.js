/**
 * The results of a run: pictures with their exports, a slider over its frames, tables of its numbers,
 * and its errors.
 */

import { experimentPath } from '../../api/experiments.js';
import { advice, isWorthRetrying, messageOf } from '../../api/calls.js';
import { plotHeight, button, element, palette } from '../dom.js';
import { createPanel } from '../panel.js';
import { asSentence } from '../../words/lists.js';

/**
 * @import { RunState } from '../../api/experiments.js'
 * @import { Description, Picture, Table, Values } from '../../rules/experiment.js'
 * @import { Trace } from '../../trace/trace.js'
 * @import { Theme } from '../../plot/colour.js'
 * @import { Patch } from '../../state/state.js'
 * @import { Field } from './form.js'
 */

/**
 * @param {Description} description
 * @param {Object} handlers
 * @param {(patch: Patch) => void} handlers.onChoose
 * @param {() => void} handlers.onRedraw
 * @param {(message: string) => void} handlers.announce
 */
export function createPictures(description, { onChoose, onRedraw, announce }) {
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

  /** @param {Picture[]} pictures @returns {boolean} are their panels there already? */
  function areArranged(pictures) {
    return (
      panels.length === pictures.length && panels.every((each, at) => each.id === pictures[at].id)
    );
  }

  /** Keep the panels of pictures that stay. @param {Picture[]} pictures */
  function arrange(pictures) {
    if (areArranged(pictures)) return;
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
      panel.element.dataset.picture = pictures[at].id;
      if (host.children[at] !== panel.element)
        host.insertBefore(panel.element, host.children[at] ?? null);
    });
  }

  return {
    element: host,

    /**
     * Draw the pictures in turn, so that the page answers between two of them. Those of an unfinished
     * run are drawn at once, so that all show one step.
     * @param {Picture[]} pictures
     * @param {string} text the experiment and its parameters in words
     * @param {Values} body of the request that gives these numbers
     * @param {boolean} isGoingOn
     */
    async show(pictures, text, body, isGoingOn) {
      const isAtOnce = isGoingOn && areArranged(pictures);
      arrange(pictures);
      const size = { height: plotHeight(window.innerHeight), palette: palette() };
      for (const [at, picture] of pictures.entries()) {
        const { panel } = panels[at];
        if (at > 0 && !isAtOnce) await pause();
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
 * Return the stand-in for a trace that captions and exports read their text from.
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

/** Let the page answer what has happened meanwhile. @returns {Promise<void>} */
function pause() {
  return new Promise((resolve) => {
    setTimeout(resolve);
  });
}

/** Milliseconds of a frame that is played. */
const PLAYED = 140;

/**
 * Make a slider over the frames of a run, and a button that plays them.
 * @param {string} id of the experiment
 * @param {Object} handlers
 * @param {(at: number|null, isPlayed: boolean) => void} handlers.onFrame null: the last there is
 */
export function createScrubber(id, { onFrame }) {
  const slider = element('input', { type: 'range', min: 0, max: 0, step: 1, id: `${id}-frame` });
  const label = element('output', { for: `${id}-frame` });
  const play = element('button', { type: 'button', class: 'button' }, 'Play');
  const host = element(
    'div',
    { class: 'scrubber', hidden: true },
    play,
    element('label', { class: 'unseen', for: `${id}-frame` }, 'Step that is shown'),
    slider,
    label,
  );
  let playing = 0;
  /** @param {number} at */
  const frameAt = (at) => (at >= Number(slider.max) ? null : at);

  slider.addEventListener('input', () => {
    stop();
    onFrame(frameAt(Number(slider.value)), false);
  });
  play.addEventListener('click', () => {
    if (playing !== 0) {
      stop();
      onFrame(frameAt(Number(slider.value)), false);
      return;
    }
    let at = frameAt(Number(slider.value)) ?? 0;
    playing = setInterval(() => {
      at += 1;
      const shown = frameAt(at);
      if (shown === null) stop();
      onFrame(shown, shown !== null);
    }, PLAYED);
    onFrame(at, true);
  });

  function stop() {
    clearInterval(playing);
    playing = 0;
  }

  return {
    element: host,
    stop,

    /**
     * @param {number[]} steps of the frames
     * @param {number} at
     * @param {number} total
     * @param {string} [name] of a step
     */
    show(steps, at, total, name = 'step') {
      host.hidden = steps.length < 2;
      slider.max = String(steps.length - 1);
      slider.value = String(at);
      const words = `${name} ${steps[at]} of ${total}`;
      label.textContent = words;
      slider.setAttribute('aria-valuetext', words);
      play.textContent = playing === 0 ? 'Play' : 'Pause';
    },
  };
}

/**
 * Show the errors of a run: at the field of a wrong parameter, or as a notice with a button.
 * @param {Map<string, Field>} fields by parameter
 * @param {() => void} onRetry
 */
export function createProblem(fields, onRetry) {
  const host = element('div', { class: 'notice', role: 'alert', hidden: true });
  return {
    element: host,

    /** @param {RunState} state */
    show({ problem, isBroken }) {
      host.hidden = !problem;
      if (!problem) {
        host.replaceChildren();
        return;
      }
      const unplaced = problem.errors.filter(({ field, message }) => {
        const input = fields.get(field.split('.')[0]);
        input?.fail(message);
        return !input;
      });
      host.hidden = problem.errors.length > 0 && unplaced.length === 0;
      const lines = isBroken
        ? [
            'The run broke off',
            `${asSentence(problem.detail || problem.message)} The pictures show how far it came.`,
          ]
        : [
            problem.message,
            asSentence(unplaced.map(({ message }) => message).join('; ') || problem.detail),
          ];
      host.replaceChildren(
        element('p', { class: 'notice-title' }, lines[0]),
        element('p', {}, lines[1]),
        ...(isBroken || isWorthRetrying(problem)
          ? [
              element('p', { class: 'notice-advice' }, advice(problem)),
              button('Try again', onRetry),
            ]
          : []),
      );
    },
  };
}
