/**
 * The page of experiments: one panel for each, opened by its tab; the link holds which, and its
 * parameters.
 */

import { advice, asProblem, askWhenRefused, isWorthRetrying } from './api/calls.js';
import { fetchExperiment } from './api/experiments.js';
import { keepPlace, placeIn } from './rules/chapter.js';
import { asSentence } from './words/lists.js';
import { button, watchTheme, element, partOf } from './ui/dom.js';
import { createExperiment } from './ui/experiment/experiment.js';
import { createSkip } from './ui/page.js';

/** @import { ExperimentView } from './rules/experiment.js' */

/** @param {string} id */
const byId = (id) => partOf(document, `#${id}`, HTMLElement);

/** @typedef {{id: string, title: string, group: string, load: () => Promise<{experiment: ExperimentView}>}} Entry */

/** @typedef {[Awaited<ReturnType<typeof fetchExperiment>>, {experiment: ExperimentView}]} Parts */

/** The server's experiments in the order of their tabs, by group. @type {Entry[]} */
const ENTRIES = [
  {
    id: 'by_hand',
    title: 'By hand',
    group: 'Attention',
    load: () => import('./views/experiments/by_hand.js'),
  },
  {
    id: 'projections',
    title: 'Why three projections',
    group: 'Attention',
    load: () => import('./views/experiments/projections.js'),
  },
  {
    id: 'softmax',
    title: 'Why softmax',
    group: 'Attention',
    load: () => import('./views/experiments/softmax.js'),
  },
  {
    id: 'scaling',
    title: 'Why √d',
    group: 'Attention',
    load: () => import('./views/experiments/scaling.js'),
  },
  {
    id: 'order',
    title: 'Order',
    group: 'Attention',
    load: () => import('./views/experiments/order.js'),
  },
  {
    id: 'flash',
    title: 'Block by block',
    group: 'Attention',
    load: () => import('./views/experiments/flash.js'),
  },
  {
    id: 'recurrence',
    title: 'Why not recurrence',
    group: 'The network',
    load: () => import('./views/experiments/recurrence.js'),
  },
  {
    id: 'depth',
    title: 'Why residuals',
    group: 'The network',
    load: () => import('./views/experiments/depth.js'),
  },
  {
    id: 'initialisation',
    title: 'Initialisation',
    group: 'The network',
    load: () => import('./views/experiments/initialisation.js'),
  },
  {
    id: 'feed_forward',
    title: 'Feed-forward',
    group: 'The network',
    load: () => import('./views/experiments/feed_forward.js'),
  },
  {
    id: 'norms',
    title: 'Norms',
    group: 'The network',
    load: () => import('./views/experiments/norms.js'),
  },
  {
    id: 'balance',
    title: 'Balance',
    group: 'The network',
    load: () => import('./views/experiments/balance.js'),
  },
  {
    id: 'learn_task',
    title: 'Watch it learn',
    group: 'Learning',
    load: () => import('./views/experiments/learn_task.js'),
  },
  {
    id: 'warm_up',
    title: 'Warm-up',
    group: 'Learning',
    load: () => import('./views/experiments/warm_up.js'),
  },
  {
    id: 'thinking',
    title: 'More thinking',
    group: 'Learning',
    load: () => import('./views/experiments/thinking.js'),
  },
  {
    id: 'tokenizer',
    title: 'Tokenizer',
    group: 'Around the model',
    load: () => import('./views/experiments/tokenizer.js'),
  },
  {
    id: 'cost',
    title: 'What it costs',
    group: 'Around the model',
    load: () => import('./views/experiments/cost.js'),
  },
  {
    id: 'minhash',
    title: 'MinHash',
    group: 'Data and optimizers',
    load: () => import('./views/experiments/minhash.js'),
  },
  {
    id: 'schedule',
    title: 'Schedules',
    group: 'Data and optimizers',
    load: () => import('./views/experiments/schedule.js'),
  },
];

/** The requests for each experiment, by id. @type {Map<string, Promise<Parts>>} */
const preparing = new Map();
/** @type {Map<string, ReturnType<typeof createExperiment>>} */
const opened = new Map();
/** The panels' state that was not opened yet is the link's. */
let link = linkNow();
let current = '';
let controller = new AbortController();
let width = 0;
const notice = byId('notice');
const tabs = createTabs(byId('tabs'), ENTRIES, { onChoose: choose, onNear: prepared });

watchTheme(byId('theme'), () => opened.get(current)?.redraw());
askWhenRefused(async (hadKey) => (await import('./ui/dialogs.js')).askForKey(hadKey));
createSkip(partOf(document, '.skip', HTMLAnchorElement), () =>
  byId(byId('views').hidden ? 'tabs' : 'views'),
);
window.addEventListener('popstate', follow);
new ResizeObserver(([{ contentRect }]) => {
  if (contentRect.width === width) return;
  width = contentRect.width;
  opened.get(current)?.redraw();
}).observe(byId('main'));
open(idIn(link)).then(tellUnknown);
if (placeIn(location.hash))
  import('./ui/chapter.js').then(({ openFromAddress }) => openFromAddress(announce));

/** @param {URLSearchParams} of */
function idIn(of) {
  const wanted = of.get('experiment');
  return (ENTRIES.find(({ id }) => id === wanted) ?? ENTRIES[0]).id;
}

/**
 * Return the description and the view of an experiment, asked for once; after a failure again.
 * @param {string} id
 * @returns {Promise<Parts>}
 */
function prepared(id) {
  const known = preparing.get(id);
  if (known) return known;
  const entry = ENTRIES.find((each) => each.id === id);
  if (!entry) return Promise.reject(new Error(`there is no experiment ${id}`));
  const asked = Promise.all([fetchExperiment(id), entry.load()]);
  asked.catch(() => preparing.delete(id));
  preparing.set(id, asked);
  return asked;
}

function linkNow() {
  return new URLSearchParams(location.hash.replace(/^#/, ''));
}

/** @param {string} id of a pressed tab: a step of the history */
function choose(id) {
  if (id === current) return;
  const chosen = new URLSearchParams({ experiment: id });
  keepPlace(linkNow(), chosen);
  history.pushState(null, '', `#${chosen}`);
  link = linkNow();
  open(id).then(rewrite);
}

/** Follow the address: the browser went back, or another link was opened. */
function follow() {
  link = linkNow();
  const id = idIn(link);
  if (id === current) {
    opened.get(id)?.restore(link);
    tellUnknown();
  } else open(id, true).then(tellUnknown);
}

/** Say that the link names no experiment, and correct the address. */
function tellUnknown() {
  const wanted = link.get('experiment');
  if (wanted === null || wanted === current || !opened.has(current) || !notice.hidden) return;
  if (ENTRIES.some(({ id }) => id === wanted)) return;
  const shown = wanted.length > 40 ? `${wanted.slice(0, 40)}…` : wanted;
  notice.hidden = false;
  notice.replaceChildren(
    element('p', { class: 'notice-title' }, `There is no experiment “${shown}”`),
    element(
      'p',
      {},
      `${ENTRIES.find(({ id }) => id === current)?.title} is shown. The tabs have them all.`,
    ),
  );
  rewrite();
}

/**
 * Open a panel; the one before is left, and its run ends.
 * @param {string} id
 * @param {boolean} [isRestored] its parameters are those of the link, although it was opened before
 */
async function open(id, isRestored = false) {
  opened.get(current)?.leave();
  current = id;
  controller.abort();
  controller = new AbortController();
  const { signal } = controller;
  tabs.choose(id);
  for (const [known, panel] of opened) panel.element.hidden = known !== id;
  notice.hidden = true;
  const known = opened.get(id);
  wait(!known);
  if (known) {
    if (isRestored) known.restore(link);
    known.open();
    return;
  }
  try {
    const [description, { experiment }] = await prepared(id);
    if (signal.aborted) return;
    const panel = createExperiment(description, experiment, { onLink: rewrite, announce });
    opened.set(id, panel);
    byId('views').append(panel.element);
    panel.restore(link);
    panel.open();
  } catch (error) {
    if (!signal.aborted) fail(error, () => open(id));
  } finally {
    if (!signal.aborted) wait(false);
  }
}

/** @param {boolean} isWaiting for the parts of an experiment */
function wait(isWaiting) {
  byId('main').setAttribute('aria-busy', String(isWaiting));
  byId('loading').hidden = !isWaiting;
}

/** Write what is set into the address, without a step of the history. */
function rewrite() {
  const now = new URLSearchParams({ experiment: current });
  keepPlace(linkNow(), now);
  opened.get(current)?.write(now);
  history.replaceState(null, '', `#${now}`);
}

/** @param {unknown} error @param {() => void} onRetry */
function fail(error, onRetry) {
  const problem = asProblem(error);
  notice.hidden = false;
  notice.replaceChildren(
    element('p', { class: 'notice-title' }, problem.message),
    element('p', {}, asSentence(problem.detail)),
    element('p', { class: 'notice-advice' }, advice(problem)),
    ...(isWorthRetrying(problem)
      ? [
          button('Try again', () => {
            notice.hidden = true;
            onRetry();
          }),
        ]
      : []),
  );
}

/** @param {string} message */
function announce(message) {
  byId('announcer').textContent = message;
}

/**
 * @param {HTMLElement} host a tablist
 * @param {{id: string, title: string, group: string}[]} views
 * @param {Object} handlers
 * @param {(id: string) => void} handlers.onChoose
 * @param {(id: string) => Promise<unknown>} handlers.onNear the pointer comes to a tab
 */
function createTabs(host, views, { onChoose, onNear }) {
  const tabs = views.map(({ id, title }) =>
    element(
      'button',
      {
        type: 'button',
        role: 'tab',
        id: `tab-${id}`,
        'aria-controls': `view-${id}`,
        onclick: () => onChoose(id),
        onpointerenter: () => onNear(id).catch(() => {}),
      },
      title,
    ),
  );
  const groups = [...new Set(views.map(({ group }) => group))];
  host.append(
    ...groups.map((group) =>
      element(
        'div',
        { class: 'tab-group', role: 'presentation' },
        element('span', { class: 'tab-group-name', 'aria-hidden': 'true' }, group),
        ...tabs.filter((_, at) => views[at].group === group),
      ),
    ),
  );
  host.addEventListener('keydown', (event) => {
    const index = next(
      event.key,
      tabs.indexOf(/** @type {any} */ (document.activeElement)),
      tabs.length,
    );
    if (index === null) return;
    event.preventDefault();
    tabs[index].focus();
    onChoose(views[index].id);
  });
  return {
    /** @param {string} id */
    choose(id) {
      tabs.forEach((tab, index) => {
        const isOpen = views[index].id === id;
        if (isOpen && tab.getAttribute('aria-selected') !== 'true') reveal(host, tab);
        tab.setAttribute('aria-selected', String(isOpen));
        tab.tabIndex = isOpen ? 0 : -1;
      });
    },
  };
}

/**
 * Scroll a tab to the middle if the tabs do not fit; nothing else scrolls.
 * @param {HTMLElement} host
 * @param {HTMLButtonElement} tab
 */
function reveal(host, tab) {
  host.scrollLeft = tab.offsetLeft - host.offsetLeft - (host.clientWidth - tab.offsetWidth) / 2;
}

/** @param {string} key @param {number} from @param {number} count */
function next(key, from, count) {
  if (from < 0) return null;
  if (key === 'Home') return 0;
  if (key === 'End') return count - 1;
  if (key === 'ArrowRight') return (from + 1) % count;
  if (key === 'ArrowLeft') return (from + count - 1) % count;
  return null;
}
