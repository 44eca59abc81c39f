/**
 * The signs that something is on its way: a beam at once, and where it takes longer than people
 * wait without wondering, for how long it has been and a button that gives it up.
 */

const PATIENCE = 1000;

/**
 * @param {{beam: HTMLElement, main: HTMLElement, cancel: HTMLElement, elapsed: HTMLElement}} parts
 * @param {{onCancel: () => void}} handlers
 */
export function createWaiting({ beam, main, cancel, elapsed }, { onCancel }) {
  let since = 0;
  let timer = 0;
  cancel.addEventListener('click', onCancel);

  function tell() {
    cancel.hidden = elapsed.hidden = false;
    elapsed.textContent = `${Math.round((performance.now() - since) / 1000)} s`;
    timer = setTimeout(tell, PATIENCE);
  }

  /** @param {boolean} isWaiting */
  return (isWaiting) => {
    beam.hidden = !isWaiting;
    main.setAttribute('aria-busy', String(isWaiting));
    if (isWaiting === since > 0) return;
    clearTimeout(timer);
    since = isWaiting ? performance.now() : 0;
    if (isWaiting) timer = setTimeout(tell, PATIENCE);
    else cancel.hidden = elapsed.hidden = true;
  };
}
