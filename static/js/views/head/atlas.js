/**
 * The corpus below the drawings of a head: sentences with the pair marked in place, a search for
 * heads from some words to others, and the heads of another model that do the same.
 */

import { asProblem, atlasPath, fetchJson } from '../../api/calls.js';
import { noticeOf } from '../../api/answers.js';
import { KINDS, layerOf, partsOf, searchQuery } from '../../trace/atlas.js';
import { headInWords, choosePlace, findPlaces } from '../../trace/attention.js';
import { decimal, grouped, percent } from '../../words/numbers.js';
import { choosing, choosingModel, NOTHING_CHOSEN } from '../../state/state.js';
import { button, element } from '../../ui/dom.js';

/**
 * @import { AtlasFacts, AtlasHead, AtlasPlace, Findings, Match } from '../../trace/atlas.js'
 * @import { Place } from '../../trace/attention.js'
 * @import { Trace } from '../../trace/trace.js'
 * @import { Overview, ViewState } from '../../plot/figure.js'
 * @import { Handlers } from '../../ui/view_section.js'
 */

const MOST_HEADS = 12;
const SHORT = 8;

/** @param {Handlers} handlers @returns {Overview} */
export function createAtlas({ onState, announce }) {
  /** @type {{trace: Trace, state: ViewState}|null} */
  let shown = null;
  let controller = new AbortController();
  /** The model, the search and the comparison that are shown or awaited. */
  const asked = { model: '', search: '', other: '', head: '' };

  const about = element('p', { class: 'atlas-about' });
  const sentences = element('ol', { class: 'atlas-sentences' });
  const more = button('Show more sentences', () => showSentences(Infinity));
  const from = input('from', 'pronoun');
  const to = input('to', 'noun');
  const same = element('input', { type: 'checkbox', id: 'atlas-same' });
  const form = element(
    'form',
    { class: 'atlas-search', role: 'search', onsubmit: submit },
    element('label', { for: 'atlas-from' }, 'Heads from'),
    from,
    element('label', { for: 'atlas-to' }, 'to'),
    to,
    element('label', { class: 'atlas-same' }, same, ' the same word'),
    element('button', { type: 'submit', class: 'button' }, 'Search'),
    element(
      'datalist',
      { id: 'atlas-kinds' },
      ...KINDS.map((kind) => element('option', { value: kind })),
    ),
  );
  const notice = element('p', { class: 'panel-notice', role: 'status', hidden: true });
  const findings = element('div', { class: 'atlas-findings' });
  const models = element('select', { id: 'atlas-other', onchange: () => compare(models.value) });
  const comparing = element(
    'p',
    { class: 'atlas-compare' },
    element('label', { for: 'atlas-other' }, 'Heads of another model that do the same'),
    models,
  );
  const matches = element('div', {});
  const block = element(
    'section',
    { class: 'atlas', 'aria-label': 'The corpus', hidden: true },
    element('h3', {}, 'In the corpus'),
    about,
    sentences,
    more,
    element('h3', {}, 'Search the corpus'),
    form,
    notice,
    findings,
    comparing,
    matches,
  );

  /** @param {Event} event */
  function submit(event) {
    event.preventDefault();
    onState({ head_from: from.value, head_to: to.value, head_same: same.checked });
  }

  /**
   * Fetch a part of the atlas; nothing is shown of an answer that has become old.
   * @template T
   * @param {Parameters<typeof atlasPath>[0]} ask
   * @param {(answer: T) => void} show
   */
  async function fetched(ask, show) {
    const { signal } = controller;
    try {
      const answer = await fetchJson(atlasPath(ask), { signal });
      if (!signal.aborted) show(answer);
    } catch (error) {
      if (!signal.aborted) tell(asProblem(error).detail || asProblem(error).title);
    }
  }

  /** @param {string} words of what went wrong; empty: nothing did */
  function tell(words) {
    notice.textContent = words;
    notice.hidden = words === '';
  }

  /** @param {string} model */
  function begin(model) {
    controller.abort();
    controller = new AbortController();
    Object.assign(asked, { model, search: '', other: '', head: '' });
    findings.replaceChildren();
    matches.replaceChildren();
    tell('');
    fetched({ model }, (/** @type {AtlasFacts} */ facts) => {
      about.textContent = `${grouped(facts.tokens)} tokens of ${grouped(facts.sentences)} sentences were read; the ${grouped(facts.edges)} weights of at least ${facts.threshold}, off the first token, are kept.`;
      form.hidden = facts.no_search !== null;
      if (facts.no_search) tell(`${facts.no_search}.`);
    });
  }

  /** @param {ViewState} state */
  function search(state) {
    const wanted = { from: state.head_from, to: state.head_to, isSame: state.head_same };
    [from.value, to.value, same.checked] = [wanted.from, wanted.to, wanted.isSame];
    const name = wanted.from || wanted.to || wanted.isSame ? JSON.stringify(wanted) : '';
    if (name === asked.search) return;
    asked.search = name;
    findings.replaceChildren();
    tell('');
    if (name === '') return;
    findings.replaceChildren(element('p', {}, 'Searching…'));
    const query = searchQuery(wanted);
    fetched({ model: asked.model, part: 'search', query }, (/** @type {Findings} */ answer) => {
      if (asked.search !== name) return;
      findings.replaceChildren(...foundIn(answer));
      announce(`${answer.heads.length} heads have such weights.`);
    });
  }

  /** @param {Findings} answer @returns {HTMLElement[]} */
  function foundIn({ heads, sentences: places }) {
    if (heads.length === 0) return [element('p', {}, 'No head has such a strong weight.')];
    const rows = heads
      .slice(0, MOST_HEADS)
      .map((row) =>
        element(
          'tr',
          {},
          element('td', {}, headButton(row.attention, row.head)),
          element('td', {}, `${grouped(row.count)} of ${grouped(row.of)}`),
          element('td', {}, percent(row.share, 1)),
          element('td', {}, row.lift === null ? '–' : `${decimal(row.lift, 1)} ×`),
          element(
            'td',
            {},
            row.lift_low === null || row.lift_high === null
              ? 'too few'
              : `${decimal(row.lift_low, 1)} to ${decimal(row.lift_high, 1)}`,
          ),
        ),
      );
    const titles = ['Head', 'Weights', 'Share', 'Above chance', '95 % interval'];
    return [
      element(
        'table',
        { class: 'atlas-heads' },
        element('thead', {}, element('tr', {}, ...titles.map((title) => element('th', {}, title)))),
        element('tbody', {}, ...rows),
      ),
      element(
        'ol',
        { class: 'atlas-sentences' },
        ...places.map((place) => sentence(place, place.attention, place.head)),
      ),
    ];
  }

  /** @param {string} path @param {number} head @param {string} [model] another one */
  function headButton(path, head, model) {
    const place = placeAt(path);
    const layer = layerOf(path);
    const name =
      shown && !model ? headInWords(shown.trace, place, layer, head) : `${layer}.${head}`;
    const patch = { view: 'head', where: place?.id ?? '', layer, head };
    return button(
      model ? `${model}, layer ${layer}, head ${head}` : name,
      () => onState(model ? { ...choosingModel(model), ...patch } : patch),
      { class: 'link' },
    );
  }

  /** @param {string} path @returns {Place|null} */
  function placeAt(path) {
    const [stack, , , ending] = path.split('.');
    return (
      (shown && findPlaces(shown.trace).find((at) => at.stack === stack && at.ending === ending)) ??
      null
    );
  }

  /**
   * Return a sentence with the pair marked, which opens on the page.
   * @param {AtlasPlace} place
   * @param {string} path
   * @param {number} head
   */
  function sentence(place, path, head) {
    const at = placeAt(path);
    const isOfTarget = place.target !== '' && path.startsWith('decoder');
    const isCross = path.endsWith('cross_attention');
    const query = { span: place.query_span, role: /** @type {const} */ ('query') };
    const key = { span: place.key_span, role: /** @type {const} */ ('key') };
    const inText = isOfTarget ? (isCross ? [key] : []) : [query, key];
    const inTarget = isOfTarget ? (isCross ? [query] : [query, key]) : [];
    const trace = shown?.trace;
    const open = () =>
      onState({
        ...NOTHING_CHOSEN,
        text: place.text,
        target: place.target || null,
        view: 'attention',
        where: at?.id ?? '',
        layer: layerOf(path),
        head,
        ...(trace && at && choosing(trace, at.rows, place.query)),
      });
    return element(
      'li',
      {},
      element(
        'button',
        { type: 'button', class: 'atlas-sentence', onclick: open },
        element('span', { class: 'atlas-weight' }, percent(place.weight, 0)),
        ...marked(place.text, inText),
        ...(place.target ? [' — ', ...marked(place.target, inTarget)] : []),
      ),
    );
  }

  /** @param {string} text @param {Parameters<typeof partsOf>[1]} spans */
  function marked(text, spans) {
    return partsOf(text, spans).map((part) =>
      part.role ? element('mark', { class: `is-${part.role}` }, part.text) : part.text,
    );
  }

  /** @param {number} most */
  function showSentences(most) {
    if (!shown) return;
    const { trace, state } = shown;
    const place = choosePlace(state, trace);
    const answer = state.answers?.atlas;
    /** @type {AtlasHead|undefined} */
    const head = answer?.trace?.atlas;
    const path = place ? `${place.stack}.layers.${state.layer}.${place.ending}` : '';
    const items = head?.sentences ?? [];
    sentences.replaceChildren(
      ...(head
        ? items.slice(0, most).map((each) => sentence(each, path, state.head))
        : [element('li', {}, noticeOf(answer))]),
    );
    more.hidden = items.length <= most;
  }

  /** Offer the models that have an atlas. @param {ViewState} state */
  function offerModels({ cards }) {
    const others = cards.filter((card) => card.has_atlas && card.id !== asked.model);
    comparing.hidden = others.length === 0;
    const names = ['', ...others.map(({ id }) => id)];
    if (names.join() === [...models.options].map(({ value }) => value).join()) return;
    models.replaceChildren(
      ...names.map((id) => element('option', { value: id }, id === '' ? 'choose a model' : id)),
    );
  }

  /** @param {string} other */
  function compare(other) {
    asked.other = other;
    matches.replaceChildren();
    if (other === '') return;
    const { model } = asked;
    fetched(
      { model, part: 'matches', query: { other } },
      (/** @type {{matches: Match[]}} */ answer) => {
        if (asked.other !== other) return;
        const titles = [model, other, 'Alike'];
        matches.replaceChildren(
          element(
            'table',
            { class: 'atlas-heads' },
            element(
              'thead',
              {},
              element('tr', {}, ...titles.map((each) => element('th', {}, each))),
            ),
            element(
              'tbody',
              {},
              ...answer.matches.map((pair) =>
                element(
                  'tr',
                  {},
                  element('td', {}, headButton(pair.attention, pair.head)),
                  element('td', {}, headButton(pair.other_attention, pair.other_head, other)),
                  element('td', {}, percent(pair.similarity, 0)),
                ),
              ),
            ),
          ),
        );
      },
    );
  }

  return {
    element: block,
    show(trace, state) {
      shown = { trace, state };
      block.hidden = !trace.card?.has_atlas;
      if (block.hidden) return;
      if (asked.model !== trace.model) begin(trace.model);
      showSentences(SHORT);
      search(state);
      offerModels(state);
    },
    leave() {
      controller.abort();
      asked.model = '';
    },
  };
}

/** @param {'from'|'to'} side @param {string} placeholder */
function input(side, placeholder) {
  return element('input', {
    id: `atlas-${side}`,
    list: 'atlas-kinds',
    maxlength: 100,
    placeholder,
    autocomplete: 'off',
    spellcheck: 'false',
  });
}
