/**
 * A view on the page: its sentence of help, its words, its figures. A view that throws says so here.
 */

import { element } from './element.js';
import { createHeadsBlock } from './heads_block.js';
import { createPanel } from './panel.js';

const OVERVIEWS = { heads: createHeadsBlock };
const ONE_PANEL = () => [{ id: '', state: {} }];

/**
 * @param {import('../core/figure.js').View} view
 * @param {{onCell: Function, onChoose: Function, onState: Function, announce: Function}} handlers
 */
export function createViewSection(view, handlers) {
  const overview = view.overview ? OVERVIEWS[view.overview](handlers) : null;
  const stage = element('div', { class: view.arrangement === 'pair' ? 'panels is-pair' : 'panels' });
  const body = element('div', { class: overview ? 'view-body has-overview' : 'view-body' }, overview?.element ?? null, stage);
  const section = element('section', { class: 'view', id: `view-${view.id}`, role: 'tabpanel', 'aria-labelledby': `tab-${view.id}`, hidden: true },
    element('p', { class: 'help' }, view.help), termList(view.terms), body,
  );
  let panels = [];

  function arrange(wanted) {
    if (panels.length === wanted.length && panels.every(({ id }, index) => id === wanted[index].id)) return;
    for (const { panel } of panels) panel.destroy();
    panels = wanted.map(({ id }) => ({ id, panel: createPanel([view.id, id].filter(Boolean).join(' '), handlers) }));
    stage.replaceChildren(...panels.map(({ panel }) => panel.element));
  }

  /** Runs a part of the view; what it throws is told in the view's own place. */
  function guarded(part, act) {
    try {
      act();
    } catch (error) {
      console.warn(error);
      const message = `The view “${view.title}” failed: ${error.message}`;
      if (part) part.fail(message);
      else stage.replaceChildren(element('p', { class: 'panel-notice is-failure' }, message));
    }
  }

  return {
    element: section,

    /**
     * @param {import('../core/trace.js').Trace} trace
     * @param {Object} state
     * @returns {import('../core/figure.js').Grid|null} the grid of the first figure
     */
    show(trace, state) {
      let grid = null;
      guarded(null, () => {
        const wanted = (view.panels ?? ONE_PANEL)(trace);
        arrange(wanted);
        overview?.show(trace, state);
        wanted.forEach((request, index) => {
          const { panel } = panels[index];
          guarded(panel, () => {
            const figure = view.figure(trace, { ...state, ...request.state, width: panel.width() });
            grid ??= figure.grid ?? null;
            panel.show(trace, figure);
          });
        });
      });
      return grid;
    },
  };
}

function termList(terms) {
  return element('dl', { class: 'terms' }, ...terms.map(([word, meaning]) =>
    element('div', {}, element('dt', { class: `is-${word.replace(/\W/g, '-')}` }, word), element('dd', {}, meaning)),
  ));
}
