/**
 * The page of experiments: one view for each, opened by its tab; the link holds which, and its
 * parameters. The tabs are in the page, each with the address of its code.
 */

import { asProblem, askWhenRefused } from './api/calls.js';
import { fetchExperiment } from './api/experiments.js';
import { keepPlace, placeIn } from './rules/chapter.js';
import { element, partOf, watchTheme } from './ui/dom.js';
import { Experiment } from './ui/experiment.js';
import { createNotice, createSkip } from './ui/page.js';
import { createRoving } from './ui/roving.js';

/** @param {string} id */
const byId = (id) => partOf(document, `#${id}`, HTMLElement);
const tabs = [...document.querySelectorAll('[role="tab"]')].filter(
  (tab) => tab instanceof HTMLElement,
);
/** @param {HTMLElement} tab */
const idOf = (tab) => tab.id.replace('tab-', '');

/** The requests for each experiment, by id. @type {Map<string, Promise<Experiment>>} */
const preparing = new Map();
/** @type {Map<string, Experiment>} */
const opened = new Map();
/** The panels' state that was not opened yet is the link's. */
let link = linkNow();
let current = '';
let width = 0;
const notice = createNotice(byId('notice'), { onRetry: () => open(current), onOffer: () => {} });

for (const tab of tabs) {
  tab.addEventListener('click', () => choose(idOf(tab)));
  tab.addEventListener('focus', () => choose(idOf(tab)));
  tab.addEventListener('pointerenter', () => prepared(idOf(tab)).catch(() => {}));
}
createRoving(byId('tabs'), '[aria-selected="true"]');
watchTheme(byId('theme'), () => opened.get(current)?.draw());
askWhenRefused(async (hadKey) => (await import('./ui/dialogs.js')).askForKey(hadKey));
createSkip(partOf(document, '.skip', HTMLAnchorElement), () =>
  byId(byId('views').hidden ? 'tabs' : 'views'),
);
window.addEventListener('popstate', follow);
new ResizeObserver(([{ contentRect }]) => {
  if (contentRect.width === width) return;
  width = contentRect.width;
  opened.get(current)?.draw();
}).observe(byId('main'));
open(idIn(link)).then(tellUnknown);
if (placeIn(location.hash))
  import('./ui/chapter.js').then(({ drawBy, openFromAddress }) => {
    drawBy(() => import('./on_paper.js'));
    openFromAddress(announce);
  });

/** @param {URLSearchParams} of */
function idIn(of) {
  const wanted = of.get('experiment');
  return idOf(tabs.find((tab) => idOf(tab) === wanted) ?? tabs[0]);
}

/** Return an experiment, asked for once; after a failure again. @param {string} id */
function prepared(id) {
  const known = preparing.get(id);
  if (known) return known;
  const { module = '' } = byId(`tab-${id}`).dataset;
  const asked = Promise.all([fetchExperiment(id), import(module)]).then(
    ([description, { experiment }]) =>
      new Experiment(description, experiment, { onLink: rewrite, announce }),
  );
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
  opened.get(idIn(link))?.restore(link);
  if (idIn(link) === current) tellUnknown();
  else open(idIn(link)).then(tellUnknown);
}

/** Say that the link names no experiment, and correct the address. */
function tellUnknown() {
  const wanted = link.get('experiment');
  const host = byId('notice');
  if (wanted === null || wanted === current || !opened.has(current) || !host.hidden) return;
  const shown = wanted.length > 40 ? `${wanted.slice(0, 40)}…` : wanted;
  const title = byId(`tab-${current}`).textContent;
  host.hidden = false;
  host.replaceChildren(
    element('p.notice-title', `There is no experiment “${shown}”`),
    element('p', `${title} is shown. The tabs have them all.`),
  );
  rewrite();
}

/** Open an experiment; the one before is left, and its run ends. @param {string} id */
async function open(id) {
  opened.get(current)?.leave();
  current = id;
  for (const tab of tabs) select(tab, idOf(tab) === id);
  for (const [known, panel] of opened) panel.element.hidden = known !== id;
  notice.clear();
  wait(!opened.has(id));
  try {
    const panel = await prepared(id);
    if (current !== id) return;
    if (!opened.has(id)) {
      opened.set(id, panel);
      byId('views').append(panel.element);
      panel.restore(link);
    }
    panel.open();
  } catch (error) {
    if (current === id) notice.show(asProblem(error), false);
  } finally {
    if (current === id) wait(false);
  }
}

/** Mark a tab; an open one is pushed to the middle if the tabs do not fit. @param {HTMLElement} tab @param {boolean} isOpen */
function select(tab, isOpen) {
  const host = byId('tabs');
  if (isOpen && tab.getAttribute('aria-selected') !== 'true')
    host.scrollLeft = tab.offsetLeft - host.offsetLeft - (host.clientWidth - tab.offsetWidth) / 2;
  tab.setAttribute('aria-selected', String(isOpen));
  tab.tabIndex = isOpen ? 0 : -1;
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

/** @param {string} message */
function announce(message) {
  byId('announcer').textContent = message;
}
