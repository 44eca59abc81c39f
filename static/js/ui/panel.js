/**
 * One figure with its heading, what it can be saved as, and the table behind it.
 */

import { READING } from '../api/request_cache.js';
import { element } from './element.js';
import { createExports } from './exports.js';
import { formulaLines } from './formula.js';
import { createPlot } from './plot.js';
import { createTable } from './table.js';

/**
 * @param {string} name for saved files: `attention`, `experts-layer-1`
 * @param {{onCell: Function, onChoose: Function, onState: Function, announce: (message: string) => void}} handlers
 */
export function createPanel(name, handlers) {
  let trace = null;
  let figure = null;
  let around = { cards: [], help: '' };
  const heading = element('h2', {});
  const formula = element('div', { class: 'panel-formula', hidden: true });
  const help = element('p', { class: 'panel-help', hidden: true });
  const facts = element('dl', { class: 'panel-facts', hidden: true });
  const actions = element('div', { class: 'panel-actions', hidden: true });
  const notice = element('p', { class: 'panel-notice', hidden: true });
  const plot = createPlot(handlers);
  const table = createTable();
  const exports = createExports(
    () => ({ trace, figure, plot, name: fileName(name, figure), ...around }),
    handlers.announce,
  );
  const head = element('div', { class: 'panel-head' }, heading, exports.element);
  const words = element('div', { class: 'panel-words' }, formula, help, facts);
  const body = element(
    'div',
    { class: 'panel-body' },
    notice,
    plot.element,
    actions,
    table.element,
  );
  const panel = element('section', { class: 'panel' }, head, words, body);

  function tell(message, isFailure) {
    notice.textContent = message;
    notice.hidden = message === '';
    notice.classList.toggle('is-failure', isFailure);
    for (const part of [exports.element, plot.element, table.element]) part.hidden = message !== '';
  }

  /** What stands around the drawing; an action that stays the same keeps its button, and its focus. */
  function surround({
    formula: lines = [],
    help: said = '',
    facts: found = [],
    actions: offered = [],
  }) {
    formula.replaceChildren(...formulaLines(lines));
    formula.hidden = lines.length === 0;
    help.textContent = said;
    help.hidden = said === '';
    facts.replaceChildren(
      ...found.map(([term, value]) =>
        element('div', {}, element('dt', {}, term), element('dd', {}, value)),
      ),
    );
    facts.hidden = found.length === 0;
    actions.hidden = offered.length === 0;
    while (actions.children.length > offered.length) actions.lastChild.remove();
    offered.forEach(({ label, patch }, index) => {
      const button =
        actions.children[index] ??
        actions.appendChild(element('button', { type: 'button', class: 'button' }));
      button.textContent = label;
      button.onclick = () => handlers.onState(patch);
    });
  }

  return {
    element: panel,
    width: () => body.clientWidth,

    /**
     * @param {import('../data/trace.js').Trace} of
     * @param {import('../plot/figure.js').Figure} wanted
     * @param {{cards: Object[], help: string}} setting of all models, and what the view shows in a sentence
     */
    show(of, wanted, setting) {
      const isPaled = Boolean((wanted.isWaiting || wanted.notice === READING) && figure?.grid);
      panel.classList.toggle('is-stale', isPaled);
      if (isPaled) return;
      exports.quiet();
      trace = of;
      figure = wanted;
      around = { cards: setting.cards, help: wanted.help ?? setting.help };
      heading.textContent = wanted.title;
      panel.setAttribute('aria-label', wanted.title);
      surround(wanted);
      tell(wanted.notice ?? '', false);
      if (wanted.notice) return;
      table.show(wanted.grid);
      plot.draw(wanted).catch((error) => {
        tell(error.message, true);
        table.element.hidden = false;
      });
    },

    /** @param {string} message */
    fail(message) {
      panel.classList.remove('is-stale');
      surround({});
      tell(message, true);
    },

    destroy: plot.destroy,
  };
}

function fileName(name, { title }) {
  const words = `${name} ${title}`
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');
  return `headlight-${words}`;
}
