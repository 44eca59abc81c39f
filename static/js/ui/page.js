/**
 * The page around the views: skip link, status line, notices, waiting, retrying and keys.
 */

import { counted, asSentence } from '../words/lists.js';
import { grouped, inBytes } from '../words/numbers.js';
import { advice, isWorthRetrying, mayHurry, pauseBefore } from '../api/calls.js';
import { button, element, keep, kept } from './dom.js';
import { createReading } from './reading.js';

/** @import { Progress } from '../api/answers.js' @import { Problem } from '../api/calls.js' */

/**
 * @param {(id: string) => HTMLElement} byId
 * @param {{onRetry: () => void, onOffer: (patch: Patch) => void, onCancel: () => void}} handlers
 */
export function createPageStatus(byId, { onRetry, onOffer, onCancel }) {
  const [results, nothing, status] = ['results', 'empty', 'status'].map(byId);
  const notice = createNotice(byId('notice'), { onRetry, onOffer });
  const { signal, tell } = createWaiting(
    { beam: byId('beam'), main: byId('main'), cancel: byId('cancel'), elapsed: byId('elapsed') },
    { onCancel },
  );
  const reading = createReading(results);
  const waiting = { forTrace: false, forAnswers: false };
  /** How much was read, which comes back after the progress of what a view asks for besides. */
  let read = '';

  /** @param {HTMLElement|null} part @param {string} words */
  function show(part, words) {
    results.hidden = part !== results;
    nothing.hidden = part !== nothing;
    if (part === nothing) byId('finding').hidden = true;
    sayRead(words, part === results);
  }

  /** Say how much was read: to screen readers, and in sight where it is near a limit. @param {string} words @param {boolean} isRead */
  function sayRead(words, isRead) {
    status.classList.toggle('is-read', isRead && !words.includes(' of '));
    status.textContent = words;
  }

  /** @param {boolean} isStale what is shown is of the text before */
  function pale(isStale) {
    for (const part of [results, byId('translation'), byId('finding')])
      part.classList.toggle('is-stale', isStale);
  }

  return {
    /** @param {string} words how much was read */
    showResults(words) {
      notice.clear();
      read = words;
      show(results, words);
    },

    showNothing() {
      notice.clear();
      show(nothing, '');
    },

    /**
     * @param {Problem} problem
     * @param {boolean} goesOn the page asks again on its own
     * @param {boolean} isKept what was shown before stays, paler
     */
    showProblem(problem, goesOn, isKept) {
      show(
        isKept ? results : null,
        isKept ? 'The results below are those of the previous text.' : '',
      );
      pale(isKept);
      notice.show(problem, goesOn);
    },

    /** @param {string} words @param {boolean} [isStale] what is shown is of the text before */
    say(words, isStale = false) {
      status.textContent = words;
      status.classList.add('is-loading'); // a sentence takes a line of its own on a phone
      pale(isStale);
    },

    /** Show the progress of loading until the text is read. @param {Card} card */
    load({ id, title, progress = 0, memory_bytes: bytes = 0 }) {
      const share = progress > 0 ? `: ${Math.round(100 * progress)} %` : '';
      status.textContent = `Loading ${title || id}${share}. It needs ${inBytes(bytes)} of memory.`;
      status.classList.add('is-loading');
    },

    /**
     * Make the numbers of the earlier text paler while the new text is read; if it is long, they
     * cannot be used either.
     * @param {boolean} isWaiting
     * @param {boolean} [isLong]
     */
    waitForTrace(isWaiting, isLong = false) {
      reading.end();
      results.inert = isWaiting && isLong;
      waiting.forTrace = isWaiting;
      signal(waiting.forTrace || waiting.forAnswers);
      pale(isWaiting);
      status.classList.remove('is-loading');
      if (isWaiting) status.classList.remove('is-read');
      if (isWaiting && byId('notice').hidden) status.textContent = 'Reading…';
    },

    /** @param {boolean} isWaiting for what a view asks for besides */
    waitForAnswers(isWaiting) {
      waiting.forAnswers = isWaiting;
      signal(waiting.forTrace || waiting.forAnswers);
      if (isWaiting || waiting.forTrace || !reading.end()) return;
      status.classList.remove('is-loading');
      sayRead(read, true);
    },

    /**
     * Tell how far a long text is read, and show the maps so far in place of the results.
     * @param {Progress} progress
     * @param {Ask} body what is read
     * @param {number} count tokens of the text, if they are known
     */
    tell(progress, body, count) {
      const told = reading.take(progress, body, { count, isWhole: waiting.forTrace });
      if (!told) return;
      tell(told.share, told.words);
      if (status.textContent === told.words) return;
      status.textContent = told.words;
      status.classList.add('is-loading');
    },
  };
}

/**
 * @param {HTMLElement} host an alert
 * @param {{onRetry: () => void, onOffer: (patch: Patch) => void}} handlers
 */
export function createNotice(host, { onRetry, onOffer }) {
  let told = '';

  return {
    /** @param {Problem} problem @param {boolean} goesOn the page asks again on its own */
    show(problem, goesOn) {
      // A button takes the place of the way out, which is written for callers of the API.
      const hasWayOut = problem.offer || problem.further;
      const detail = hasWayOut ? problem.detail.split(';')[0] : problem.detail;
      const lines = [problem.message, asSentence(detail), advice(problem, goesOn)];
      const said = [...lines, problem.offer?.label ?? '', problem.further?.label ?? ''].join('\n');
      host.hidden = false;
      // Writing an alert again announces it again and takes the focus from its button.
      if (told === said) return;
      told = said;
      host.replaceChildren(
        element('p.notice-title', lines[0]),
        element('p', lines[1]),
        element('p.notice-advice', lines[2]),
      );
      if (problem.elsewhere) {
        const { label, href } = problem.elsewhere;
        host.append(element('a.button', { href }, label));
      }
      if (isWorthRetrying(problem)) host.append(button('Try again', onRetry));
      for (const offer of [problem.offer, problem.further])
        if (offer) host.append(button(offer.label, () => onOffer(offer.patch)));
    },
    clear() {
      told = '';
      host.hidden = true;
      host.replaceChildren();
    },
  };
}

const PATIENCE = 1000;

/**
 * @param {{beam: HTMLElement, main: HTMLElement, cancel: HTMLElement, elapsed: HTMLElement}} parts
 * @param {{onCancel: () => void}} handlers
 */
function createWaiting({ beam, main, cancel, elapsed }, { onCancel }) {
  let since = 0;
  let timer = 0;
  let shown = '';
  cancel.addEventListener('click', onCancel);

  function count() {
    cancel.hidden = elapsed.hidden = false;
    elapsed.textContent = `${shown}${Math.round((performance.now() - since) / 1000)} s`;
    timer = setTimeout(count, PATIENCE);
  }

  /**
   * @param {number|null} share of the work that is done; null: not known
   * @param {string} [words] on the work
   */
  function tell(share, words = '') {
    beam.classList.toggle('is-measured', share !== null);
    if (share === null) {
      for (const name of ['role', 'aria-label', 'aria-valuenow']) beam.removeAttribute(name);
      shown = '';
      return;
    }
    const percent = Math.floor(100 * share);
    shown = `${percent} %, `;
    beam.style.setProperty('--share', String(share));
    beam.setAttribute('role', 'progressbar');
    beam.setAttribute('aria-label', words);
    beam.setAttribute('aria-valuenow', String(percent));
  }

  return {
    tell,

    /** @param {boolean} isWaiting */
    signal(isWaiting) {
      beam.hidden = !isWaiting;
      main.setAttribute('aria-busy', String(isWaiting));
      if (isWaiting === since > 0) return;
      clearTimeout(timer);
      since = isWaiting ? performance.now() : 0;
      tell(null);
      if (isWaiting) timer = setTimeout(count, PATIENCE);
      else cancel.hidden = elapsed.hidden = true;
    },
  };
}

/** @param {() => void} act */
export function createRetrier(act) {
  let attempt = 0;
  let timer = 0;
  /** @type {{isDue: boolean, mayHurry: boolean}|null} */
  let waiting = null;

  function actIfDue(isNewChance = false) {
    if (!waiting || document.hidden || !(waiting.isDue || (isNewChance && waiting.mayHurry)))
      return;
    clearTimeout(timer);
    waiting = null;
    attempt += 1;
    act();
  }
  function fallDue() {
    if (waiting) waiting.isDue = true;
    actIfDue();
  }
  document.addEventListener('visibilitychange', () => actIfDue(true));
  window.addEventListener('online', () => actIfDue(true));

  return {
    /**
     * @param {Problem} problem what came of the attempt before
     * @returns {boolean} will it ask again?
     */
    after(problem) {
      clearTimeout(timer);
      waiting = null;
      const pause = pauseBefore(problem, attempt);
      if (pause === null) return false;
      waiting = { isDue: false, mayHurry: mayHurry(problem) };
      timer = setTimeout(fallDue, pause);
      return true;
    },

    stop() {
      clearTimeout(timer);
      waiting = null;
      attempt = 0;
    },
  };
}

/** @param {HTMLAnchorElement} link @param {() => HTMLElement} target takes the focus */
export function createSkip(link, target) {
  link.addEventListener('click', (event) => {
    event.preventDefault();
    target().focus();
  });
}

/** Less of a part than this share is not in sight. */
const LEAST_SEEN = 0.6;

/**
 * Mark a part that sticks to the top, once what is before it or holds it is scrolled past.
 * @param {HTMLElement} part
 * @param {HTMLElement} [sentinel] keeps its height
 */
export function watchSticky(part, sentinel = element('div', { 'aria-hidden': 'true' })) {
  if (!sentinel.isConnected) part.before(sentinel);
  const look = (/** @type {IntersectionObserverEntry[]} */ [entry]) => {
    const { top, height } = entry.boundingClientRect;
    const isStuck = entry.intersectionRatio < LEAST_SEEN && top < 0;
    part.classList.toggle('is-stuck', isStuck);
    if (isStuck) sentinel.style.setProperty('--kept', `${height}px`);
  };
  const watcher = new IntersectionObserver(look, { threshold: LEAST_SEEN });
  watcher.observe(sentinel);
  // A part that appears above the screen crosses no threshold; observe it again to look once.
  new ResizeObserver(() => {
    watcher.unobserve(sentinel);
    watcher.observe(sentinel);
  }).observe(sentinel);
}

/** Act once, when a part comes into sight. @param {HTMLElement} part @param {() => void} act */
export function whenSeen(part, act) {
  const watcher = new IntersectionObserver(([{ isIntersecting }]) => {
    if (!isIntersecting) return;
    watcher.disconnect();
    act();
  });
  watcher.observe(part);
}

/**
 * Create a button for something that loads at the first press.
 * @param {HTMLElement} button
 * @param {() => Promise<{open: (from: HTMLElement) => void}>} load
 */
export function createLater(button, load) {
  /** @type {Promise<{open: (from: HTMLElement) => void}>|null} */
  let loading = null;
  button.addEventListener('click', async () => {
    loading ??= load();
    (await loading).open(button);
  });
}

/** Close the menu of the page once something of it is chosen. @param {HTMLElement} menu */
export function createSiteMenu(menu) {
  menu.addEventListener('click', ({ target }) => {
    const isChosen = target instanceof Element && target.closest('button, a');
    if (isChosen && menu.matches(':popover-open')) menu.hidePopover();
  });
}

/** @typedef {{onStep: (what: 'head'|'layer', by: number) => void, onText: () => void, onMap: () => void, onDrawing: () => void, onWalk: (by: number) => boolean}} KeyHandlers `onWalk`: false if nothing is walked through */

const KEYS_KEPT = 'headlight.keys';

/**
 * Create the keys of the whole page. Letters act by themselves, so they can be switched off (WCAG
 * 2.1.4), and they never act while something is typed.
 * @param {HTMLElement} button opens the list
 * @param {KeyHandlers} handlers
 */
export function createKeys(button, { onStep, onText, onMap, onDrawing, onWalk }) {
  let isOn = kept(KEYS_KEPT) !== 'off';
  /** @type {HTMLDialogElement|null} */
  let list = null;
  /** False: the key is not used. @type {Record<string, () => unknown>} */
  const acts = {
    ArrowLeft: () => onWalk(-1),
    ArrowRight: () => onWalk(1),
    h: () => onStep('head', -1),
    l: () => onStep('head', 1),
    k: () => onStep('layer', -1),
    j: () => onStep('layer', 1),
    m: onMap,
    d: onDrawing,
    '/': onText,
    '?': open,
  };

  async function open() {
    const { createKeysDialog } = await import('./dialogs.js');
    list ??= createKeysDialog(isOn, (chosen) => {
      isOn = chosen;
      keep(KEYS_KEPT, chosen ? 'on' : 'off');
    });
    if (!list.open) list.showModal();
  }
  button.addEventListener('click', open);
  document.addEventListener('keydown', (event) => {
    const { key, target, altKey, ctrlKey, metaKey, isComposing } = event;
    if (altKey || ctrlKey || metaKey || isComposing || event.defaultPrevented) return;
    if (!isOn || !acts[key] || isTypedIn(target) || document.querySelector('dialog[open]')) return;
    if (acts[key]() !== false) event.preventDefault();
  });
}

/** @param {EventTarget|null} target */
function isTypedIn(target) {
  return (
    target instanceof Element &&
    target.closest(
      'textarea, select, [role="menu"], input:not([type="radio"], [type="checkbox"])',
    ) !== null
  );
}

/** The share of what a model can read from which a reader is told the limit. */
const NEAR = 0.8;
/** Milliseconds from which a reader is told the time. */
const SLOW = 1000;

/**
 * Return how much was read; how much could be once it is near, and the time once it is long.
 * @param {Trace} trace
 */
export function readInWords({ tokens, target_tokens: target, card, timings, resolution }) {
  const count = tokens.length;
  const both = target ? `${grouped(count)} + ${grouped(target.length)} tokens` : '';
  const most = card && !card.is_endless && !resolution ? card.max_tokens : Infinity;
  const isNear = Math.max(count, target?.length ?? 0) > NEAR * most;
  const limit = isNear ? ` of ${grouped(most)}${target ? ' each' : ''}` : '';
  const total = Object.values(timings).reduce((sum, milliseconds) => sum + milliseconds, 0);
  const time = total > SLOW ? `, ${(total / 1000).toFixed(1)} s` : '';
  return `${both || counted(count, 'token')}${limit}${time}`;
}
