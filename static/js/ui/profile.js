/**
 * The measurement of a model's heads, started by a button where the model has no profile: its
 * progress, how to cancel it, or the reason why the server does not do it. Loaded with a head's view.
 */

import { asProblem, BASE, fetchJson } from '../api/calls.js';
import { streamEvents } from '../api/generation.js';
import { asSentence } from '../words/lists.js';
import { button, element } from './dom.js';

const OFFLINE = 'A saved page cannot measure one; open the model on a server.';
/** More than the server's own text has: it reads all of it. */
const SENTENCES = 300;

/**
 * @param {Pick<Handlers, 'announce'>} handlers
 * @param {() => void} [onMeasured] shows the page with the profile
 * @returns {Overview}
 */
export function createProfile({ announce }, onMeasured = () => window.location.reload()) {
  /** The model that the part is about; '': none without a profile. */
  let model = '';
  /** @type {AbortController|null} */
  let going = null;
  const why = element('p');
  const said = element('p.share-said', { role: 'status' });
  const bar = element('progress', { 'aria-label': 'Measuring the heads', max: 1, value: 0 });
  const begins = button('Measure its heads', measure, { class: 'button is-primary' });
  const cancels = button('Cancel', () => going?.abort());
  const line = element('div.share-line', bar, cancels);
  const part = element(
    'section.profile',
    { 'aria-label': 'Measure the heads' },
    why,
    begins,
    line,
    said,
  );
  part.hidden = true;
  show();

  function show() {
    line.hidden = going === null;
    begins.disabled = going !== null;
  }

  /** Ask whether the server measures the model. */
  async function offer() {
    why.textContent = said.textContent = '';
    begins.hidden = true;
    const asked = model;
    try {
      const { reason } = await fetchJson(`${pathOf(asked)}`);
      if (asked !== model) return;
      begins.hidden = reason !== '';
      why.textContent =
        reason ||
        `The server reads its sample of sentences once for every head and keeps the result next to the model. You can go on reading meanwhile. “headlight profile ${asked} --text FILE” reads a text of yours.`;
    } catch (error) {
      if (asked === model) why.textContent = asSentence(asProblem(error).title);
    }
  }

  async function measure() {
    going = new AbortController();
    const { signal } = going;
    bar.value = 0;
    show();
    cancels.focus();
    announce('Measuring the heads');
    try {
      const body = { sentences: SENTENCES };
      for await (const { event, data } of streamEvents(pathOf(model), body, signal)) {
        if (event === 'progress') tell(data.share);
        if (event === 'end') {
          said.textContent = 'Measured. The page is loaded again.';
          onMeasured();
        }
      }
    } catch (error) {
      said.textContent = signal.aborted ? 'Cancelled.' : reasonOf(error);
    }
    const isFocused = line.contains(document.activeElement);
    going = null;
    show();
    if (isFocused) begins.focus();
  }

  /** @param {number} share */
  function tell(share) {
    bar.value = share;
    const percent = Math.floor(100 * share);
    const words = share > 0 ? `Measuring: ${percent - (percent % 10)} %` : 'Loading the model…';
    if (said.textContent !== words) said.textContent = words;
  }

  return {
    element: part,
    isFirst: true,

    /** @param {Trace} trace @param {ViewState} state */
    show(trace, { answers }) {
      const card = answers?.card?.trace?.card;
      const lacking = card && !card.heads ? card.id : '';
      part.hidden = lacking === '' && going === null;
      if (lacking === '' || lacking === model || going !== null) return;
      model = lacking;
      if (!document.body.classList.contains('is-saved')) {
        offer();
        return;
      }
      begins.hidden = true;
      why.textContent = OFFLINE;
    },
  };
}

/** @param {string} model */
function pathOf(model) {
  return `${BASE}/models/${encodeURIComponent(model)}/profile`;
}

/** @param {unknown} error */
function reasonOf(error) {
  const { title, detail } = asProblem(error);
  return asSentence(detail || title);
}
