/** A slider over the frames of a run, and a button that plays them. */

import { element } from '../dom.js';

/** Milliseconds of a frame that is played. */
const PLAYED = 140;

/**
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
    element('label', { class: 'unseen', for: `${id}-frame` }, 'Training step that is shown'),
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
     */
    show(steps, at, total) {
      host.hidden = steps.length < 2;
      slider.max = String(steps.length - 1);
      slider.value = String(at);
      const words = `step ${steps[at]} of ${total}`;
      label.textContent = words;
      slider.setAttribute('aria-valuetext', words);
      play.textContent = playing === 0 ? 'Play' : 'Pause';
    },
  };
}
