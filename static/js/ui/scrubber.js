/** A slider over the frames of a run, and a button that plays them. */

import { button, element } from './dom.js';

/** Milliseconds of a frame that is played. */
const PLAYED = 140;

/**
 * @param {string} id of the experiment
 * @param {(at: number|null, isPlayed: boolean) => void} onFrame null: the last there is
 */
export function createScrubber(id, onFrame) {
  const slider = element('input', { type: 'range', min: 0, max: 0, step: 1, id: `${id}-frame` });
  const label = element('output', { for: `${id}-frame` });
  const play = button('Play', () => (playing === 0 ? start() : rest()));
  const name = element('label.unseen', { for: `${id}-frame` }, 'Step that is shown');
  const host = element('div.scrubber', { hidden: true }, play, name, slider, label);
  let playing = 0;
  /** @param {number} at */
  const frameAt = (at) => (at >= Number(slider.max) ? null : at);
  slider.addEventListener('input', rest);

  /** Stop at the frame of the slider. */
  function rest() {
    stop();
    onFrame(frameAt(Number(slider.value)), false);
  }

  /** Play from the frame that is shown, or from the first if that is the last. */
  function start() {
    let at = frameAt(Number(slider.value)) ?? 0;
    playing = setInterval(() => {
      at += 1;
      const shown = frameAt(at);
      if (shown === null) stop();
      onFrame(shown, shown !== null);
    }, PLAYED);
    onFrame(at, true);
  }

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
     * @param {string} [unit] of a step
     */
    show(steps, at, total, unit = 'step') {
      host.hidden = steps.length < 2;
      slider.max = String(steps.length - 1);
      slider.value = String(at);
      const words = `${unit} ${steps[at]} of ${total}`;
      label.textContent = words;
      slider.setAttribute('aria-valuetext', words);
      play.textContent = playing === 0 ? 'Play' : 'Pause';
    },
  };
}
