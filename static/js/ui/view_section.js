/**
 * A view on the page: its help, terms, switches and panels. A view that throws reports it here.
 */

import { messageOf } from '../api/calls.js';
import { viewState } from '../state/state.js';
import { createControls } from './controls.js';
import { element, heightCovered, segment, withSymbols } from './dom.js';
import { painted } from '../plot/renderer.js';
import { createPanel } from './panel.js';

/** @import { Cell } from '../plot/grid.js' */

const ONE_PANEL = () => [{ id: '', state: {} }];

/**
 * @typedef {Object} Handlers
 * @property {(cell: Cell|null, grid: Grid, isKeyboard: boolean) => void} onCell the cell under the cursor, or none
 * @property {(cell: Cell, grid: Grid) => void} onChoose
 * @property {(patch: Patch, isTyped?: boolean) => void} onState
 * @property {(patch: Patch) => void} onGoingOn without a new step of the history
 * @property {() => void} onRedraw
 * @property {(message: string) => void} announce
 * @property {() => void} [onSight] brings the first drawing of the view into sight
 */

/** @typedef {Pick<ViewEntry, 'id'|'title'|'overview'|'fields'> & {switches?: string}} Entry of a view; `switches`: what its switches are called */
/** @typedef {ReturnType<typeof createPanel>} Panel */

/** @param {Entry} entry of the view @param {Handlers} handlers */
export function createViewSection(entry, handlers) {
  const stage = element('div.panels');
  const words = createWords(entry);
  const places = createPlaces(`where-${entry.id}`, (where) =>
    handlers.onState({ where, layer: null, head: null, key: null }),
  );
  const controls = createControls(entry.id, handlers.onState, entry.switches);
  const body = element(
    'div',
    { class: entry.overview ? `view-body has-overview is-${entry.overview}` : 'view-body' },
    stage,
  );
  const section = element(
    'section.view',
    { id: `view-${entry.id}`, 'aria-labelledby': words.heading.id, hidden: true },
    element('div.lead', words.heading, places.element, controls.element),
    words.answer,
    body,
    words.how,
  );
  const panels = createPanels(stage, entry, handlers);
  const { guarded, fail } = panels;
  /** @type {Overview|null} */
  let overview = null;
  let isLoading = false;

  /** @param {(handlers: Handlers) => Overview} create */
  function build(create) {
    overview = create({ ...handlers, onSight: bringDrawing });
    if (entry.overview === 'generation' || overview.isFirst) body.prepend(overview.element);
    else body.append(overview.element);
  }

  /** Load the code of the overview and build it, after the first drawing. @param {View} view */
  async function buildLater(view) {
    if (overview || isLoading || !view.loadOverview) return;
    isLoading = true;
    try {
      await painted();
      build(await view.loadOverview());
      handlers.onRedraw();
    } catch (error) {
      fail(error);
    }
  }

  /** Bring the first drawing into sight, if it is out of it. */
  function bringDrawing() {
    bring(stage, heightCovered());
  }

  return {
    element: section,

    /**
     * Bring the top of the view into sight, below what covers the page, and its heading into focus.
     * @param {number} cover pixels
     */
    reveal(cover) {
      bring(section, cover);
      words.heading.focus({ preventScroll: true });
    },

    bringDrawing,

    /**
     * Show help and switches before there is anything to draw.
     * @param {View} view
     * @param {import('./controls.js').Control[]} switches
     */
    introduce(view, switches) {
      words.show(view, /** @type {any} */ ({}), /** @type {any} */ ({}));
      controls.show(switches);
    },

    /** Leave the view and cancel the pending requests of its overview. */
    leave: () => overview?.leave?.(),

    /** Report that the view could not be loaded. @param {unknown} error */
    fail,

    /** Say why the model gives the view nothing to draw. @param {string} reason */
    lacks: panels.lacks,

    /**
     * @param {View} view
     * @param {Trace} trace
     * @param {PageState} page
     * @returns {Grid|null} the grid of the first figure
     */
    show(view, trace, page) {
      const state = viewState(page);
      /** @type {Grid|null} */
      let grid = null;
      guarded(null, () => {
        if (!overview && view.createOverview) build(view.createOverview);
        words.show(view, trace, state);
        places.show(view.places?.(trace, state) ?? [], view.place?.(trace, state));
        controls.show(view.controls?.(trace, state) ?? []);
        overview?.show(trace, state);
        const shown = panels.show(view, trace, {
          state,
          whole: { ...state, ...overview?.state?.() },
          help: words.help(),
        });
        grid = shown.grid;
        Promise.all(shown.drawings).then(() => {
          buildLater(view);
        });
      });
      return grid;
    },
  };
}

/**
 * Create the panels of a view; one that throws reports it in its place.
 * @param {HTMLElement} stage
 * @param {Entry} entry
 * @param {Handlers} handlers
 */
function createPanels(stage, entry, handlers) {
  /** @type {{id: string, panel: Panel}[]} */
  let panels = [];

  /**
   * Make the panels these, in their order; one whose id stays keeps its element.
   * @param {{id: string, isWide?: boolean}[]} [wanted]
   */
  function arrange(wanted = []) {
    const nameOf = (/** @type {string} */ id) => [entry.id, id].filter(Boolean).join(' ');
    const before = new Map(panels.map((each) => [each.id, each.panel]));
    panels = wanted.map(({ id, isWide = false }) => {
      const panel = before.get(id) ?? createPanel(nameOf(id), handlers);
      before.delete(id);
      panel.element.dataset.picture = id;
      panel.element.classList.toggle('is-wide', isWide);
      return { id, panel };
    });
    for (const panel of before.values()) panel.destroy();
    const elements = panels.map(({ panel }) => panel.element);
    for (const child of [...stage.children])
      if (!elements.includes(/** @type {HTMLElement} */ (child))) child.remove();
    elements.forEach((host, index) => {
      if (stage.children[index] !== host) stage.insertBefore(host, stage.children[index] ?? null);
    });
  }

  /** @param {unknown} error @param {Panel|null} [part] in whose place it is told */
  function fail(error, part = null) {
    console.warn(error);
    const message = `The view “${entry.title}” failed: ${messageOf(error)}`;
    if (part) part.fail(message);
    else stage.replaceChildren(element('p.panel-notice.is-failure', message));
  }

  /** @param {Panel|null} part @param {() => void} act */
  function guarded(part, act) {
    try {
      act();
    } catch (error) {
      fail(error, part);
    }
  }

  return {
    guarded,
    fail: (/** @type {unknown} */ error) => fail(error),

    /** @param {string} reason */
    lacks(reason) {
      arrange();
      stage.append(element('p.panel-notice', reason));
    },

    /**
     * @param {View} view
     * @param {Trace} trace
     * @param {{state: ViewState, whole: ViewState, help: string}} of `whole`: with the state of the overview
     */
    show(view, trace, { state, whole, help }) {
      const wanted = (view.panels ?? ONE_PANEL)(trace, whole);
      arrange(wanted);
      view
        .prepare?.(trace, state)
        ?.then(handlers.onRedraw, (error) => fail(error, panels[0].panel));
      stage.className = classOf(arrangementOf(view, trace, whole));
      /** @type {Grid|null} */
      let grid = null;
      /** @type {(Promise<void>|undefined)[]} */
      const drawings = [];
      wanted.forEach((request, index) => {
        const { panel } = panels[index];
        const own = { ...whole, ...request.state };
        guarded(panel, () => {
          const figure = view.figure(trace, { ...own, width: panel.width() });
          if (figure.grid && figure.held) figure.grid.held = figure.held;
          grid ??= figure.grid ?? null;
          const redraw = (/** @type {Partial<ViewState>} */ patch) =>
            view.figure(
              trace,
              /** @type {ViewState} */ ({ ...own, pageWidth: panel.width(), ...patch }),
            );
          drawings.push(panel.show(trace, figure, { cards: state.cards, help, redraw }));
        });
      });
      return { grid: /** @type {Grid|null} */ (grid), drawings };
    },
  };
}

/**
 * Create the words of a view: its heading, the answer, help and terms, written where they changed.
 * @param {Entry} entry
 */
function createWords({ id, title }) {
  const heading = element('h2.view-title', { id: `title-${id}`, tabindex: -1 }, title);
  const answer = element('div.answer', { hidden: true });
  const help = element('p.help');
  const terms = createTerms();
  let told = '';

  return {
    heading,
    answer,
    how: element('div.how', help, terms.element),
    help: () => help.textContent ?? '',

    /** @param {View} view @param {Trace} trace @param {ViewState} state */
    show(view, trace, state) {
      if (trace.card && view.titleFor) heading.textContent = view.titleFor(trace.card);
      /** @type {{help: string, terms: Record<string, string>, answer?: string[]}} */
      const said = { help: view.help, terms: view.terms, ...view.wording?.(trace, state) };
      if (JSON.stringify(said) === told) return;
      told = JSON.stringify(said);
      help.replaceChildren(...withSymbols(said.help));
      const [headline, ...sentences] = said.answer ?? [];
      answer.hidden = headline === undefined;
      answer.replaceChildren(
        element('p.answer-headline', headline ?? ''),
        ...(sentences.length > 0 ? [element('p', sentences.join(' '))] : []),
      );
      terms.show(said.terms);
    },
  };
}

/**
 * Scroll so that the top of a part is below what covers the page, unless it is in sight already.
 * @param {HTMLElement} part
 * @param {number} cover pixels
 */
function bring(part, cover) {
  const { top } = part.getBoundingClientRect();
  if (top < cover || top > window.innerHeight / 2) window.scrollBy(0, top - cover - 8);
}

/** @param {View} view @param {Trace} trace @param {ViewState} state */
function arrangementOf({ arrangement }, trace, state) {
  return typeof arrangement === 'function' ? arrangement(trace, state) : arrangement;
}

/** @param {string|undefined} arrangement */
function classOf(arrangement) {
  return arrangement ? `panels is-${arrangement}` : 'panels';
}

/** @param {string} name of the radios @param {(id: string) => void} onChoose */
function createPlaces(name, onChoose) {
  const radios = element('div.segmented');
  const control = element(
    'fieldset.where',
    { hidden: true },
    element('legend.unseen', 'Where in the model'),
    element('span', { 'aria-hidden': 'true' }, 'Where'),
    radios,
  );
  let offered = '';
  control.addEventListener('change', ({ target }) =>
    onChoose(/** @type {HTMLInputElement} */ (target).value),
  );

  return {
    element: control,

    /**
     * @param {{id: string, title: string}[]} places nothing to choose from: the control is gone
     * @param {string} [chosen]
     */
    show(places, chosen) {
      control.hidden = places.length === 0;
      const wanted = places.map(({ id }) => id).join(' ');
      if (wanted !== offered)
        radios.replaceChildren(...places.map(({ id, title }) => segment(name, id, title)));
      offered = wanted;
      const current = radios.querySelector(`[value="${chosen}"]`);
      if (current instanceof HTMLInputElement) current.checked = true;
    },
  };
}

/** The address and the name of the source that has a term’s formula. @type {Record<string, [address: string, source: string]>} */
const FORMULAS = {
  ...named(
    ['https://arxiv.org/abs/1706.03762', 'Vaswani et al. 2017, section 3.2'],
    ['query', 'key', 'value', 'head', 'attention weight'],
  ),
  ...named(
    ['https://transformer-circuits.pub/2021/framework/index.html', 'Elhage et al. 2021'],
    [
      'stream',
      'residual stream',
      'frozen scale',
      'direct',
      'what it writes',
      'what it looks for',
      'copying',
    ],
  ),
  dimension: ['https://arxiv.org/abs/1706.03762', 'Vaswani et al. 2017, section 3.5'],
  logit: ['https://en.wikipedia.org/wiki/Logit', 'Wikipedia'],
  softmax: ['https://en.wikipedia.org/wiki/Softmax_function', 'Wikipedia'],
  temperature: ['https://en.wikipedia.org/wiki/Softmax_function', 'Wikipedia'],
  probability: ['https://en.wikipedia.org/wiki/Softmax_function', 'Wikipedia'],
  entropy: ['https://en.wikipedia.org/wiki/Entropy_(information_theory)', 'Wikipedia'],
  'router entropy': ['https://en.wikipedia.org/wiki/Entropy_(information_theory)', 'Wikipedia'],
  loss: ['https://en.wikipedia.org/wiki/Cross-entropy', 'Wikipedia'],
  'bits per byte': ['https://en.wikipedia.org/wiki/Cross-entropy', 'Wikipedia'],
  ...named(
    ['https://en.wikipedia.org/wiki/Kullback–Leibler_divergence', 'Wikipedia'],
    ['KL', 'Kullback–Leibler'],
  ),
  'total variation': [
    'https://en.wikipedia.org/wiki/Total_variation_distance_of_probability_measures',
    'Wikipedia',
  ],
  'cosine similarity': ['https://en.wikipedia.org/wiki/Cosine_similarity', 'Wikipedia'],
  cosine: ['https://en.wikipedia.org/wiki/Cosine_similarity', 'Wikipedia'],
  rollout: ['https://arxiv.org/abs/2005.00928', 'Abnar and Zuidema 2020'],
  'logit lens': ['https://arxiv.org/abs/2303.08112', 'Belrose et al. 2023, section 2'],
  rotation: ['https://arxiv.org/abs/2104.09864', 'Su et al. 2021, section 3.2'],
  slope: ['https://arxiv.org/abs/2108.12409', 'Press et al. 2021'],
  'balance loss': ['https://arxiv.org/abs/2101.03961', 'Fedus et al. 2021, section 2.2'],
  'top-k': ['https://arxiv.org/abs/1904.09751', 'Holtzman et al. 2020'],
  'top-p': ['https://arxiv.org/abs/1904.09751', 'Holtzman et al. 2020'],
  'share of the change': ['https://arxiv.org/abs/2404.15255', 'Heimersheim and Nanda 2024'],
  edge: ['https://arxiv.org/abs/2211.00593', 'Wang et al. 2022, section 3.1'],
  gradient: ['https://arxiv.org/abs/1605.01713', 'Shrikumar et al. 2016'],
};

/**
 * @param {[address: string, source: string]} formula
 * @param {string[]} words
 * @returns {Record<string, [address: string, source: string]>}
 */
function named(formula, words) {
  return Object.fromEntries(words.map((word) => [word, formula]));
}

/** Return a link to the formula of a term, if it has one. @param {string} word */
function formulaOf(word) {
  if (!(word in FORMULAS)) return [];
  const [href, source] = FORMULAS[word];
  const attributes = { href, title: source, 'aria-label': `formula of ${word}` };
  return [' ', element('a', { ...attributes, target: '_blank', rel: 'noreferrer' }, 'formula')];
}

function createTerms() {
  const narrow = matchMedia('(max-width: 40rem)');
  const list = element('dl.terms');
  const details = element('details.terms-block', element('summary', 'Terms'), list);
  const fold = () => {
    details.open = !narrow.matches;
  };
  narrow.addEventListener('change', fold);
  fold();

  return {
    element: details,

    /** @param {Record<string, string>} terms */
    show(terms) {
      details.hidden = Object.keys(terms).length === 0;
      list.replaceChildren(
        ...Object.entries(terms).map(([word, meaning]) =>
          element(
            'div',
            element('dt', { class: `is-${word.replace(/\W/g, '-')}` }, word),
            element('dd', meaning, formulaOf(word)),
          ),
        ),
      );
    },
  };
}
