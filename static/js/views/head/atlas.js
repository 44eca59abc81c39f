/**
 * The corpus below the drawings of a head: sentences with the pair marked in place, and a search for
 * heads from some words to others.
 */

import { asProblem, atlasPath, fetchJson } from '../../api/calls.js';
import { noticeOf } from '../../api/answers.js';
import { KINDS, layerOf, partsOf, searchQuery, tagInWords } from '../../trace/atlas.js';
import { headInWords, choosePlace, findPlaces } from '../../trace/attention.js';
import { matrixAt, rowOf } from '../../trace/trace.js';
import { decimal, grouped, percent } from '../../words/numbers.js';
import { choosing, NOTHING_CHOSEN } from '../../state/state.js';
import { rowShown } from '../../state/written_rows.js';
import { inQuotes, quoted } from '../../words/tokens.js';
import { enumerated } from '../../words/lists.js';
import { visible } from '../../words/text.js';
import { button, element } from '../../ui/dom.js';

/** @import { AtlasFacts, AtlasPlace, Findings, Spread } from '../../trace/atlas.js' */

const MOST_HEADS = 12;
const SHORT = 8;
const FOUND = ['Head', 'Weights', 'Share', 'Above chance', '95 % interval', 'Held out'];

/** @typedef {{trace: Trace, onState: Handlers['onState']}} Page the text that is shown, and what a press changes */

/** @param {Handlers} handlers @returns {Overview} */
export function createAtlas({ onState, announce }) {
  /** @type {{trace: Trace, state: ViewState}|null} */
  let shown = null;
  let controller = new AbortController();
  /** The model and the search that are shown or awaited. */
  const asked = { model: '', search: '' };

  const about = element('p', { class: 'atlas-about' });
  const sentences = createSentences(onState);
  const tenths = createTenths(fetched);
  const notice = element('p', { class: 'panel-notice', role: 'status', hidden: true });
  const findings = element('div', { class: 'atlas-findings' });
  const like = createLike(fetched, onState);
  const form = createForm(onState, like.element);
  const block = element(
    'section',
    { class: 'atlas', 'aria-label': 'The corpus', hidden: true },
    element('h3', {}, 'In the corpus'),
    about,
    ...sentences.elements,
    tenths.element,
    element('h3', {}, 'Search the corpus'),
    ...[form.element, notice, findings],
  );

  /**
   * Fetch a part of the atlas; nothing is shown of an answer that has become old.
   * @template T
   * @param {AtlasAsk} ask
   * @param {(answer: T, page: Page) => void} show
   */
  async function fetched(ask, show) {
    const { signal } = controller;
    try {
      const answer = await fetchJson(atlasPath(ask), { signal });
      if (!signal.aborted && shown) show(answer, { ...shown, onState });
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
    Object.assign(asked, { model, search: '' });
    findings.replaceChildren();
    tell('');
    fetched({ model }, (/** @type {AtlasFacts} */ facts) => {
      about.textContent = `${grouped(facts.tokens)} tokens of ${grouped(facts.sentences)} sentences were read; the ${grouped(facts.edges)} weights of at least ${facts.threshold}, off the first token, are kept.`;
      form.element.hidden = facts.no_search !== null;
      if (facts.no_search) tell(`${facts.no_search}.`);
    });
  }

  /** @param {ViewState} state */
  function search({ head_from: from, head_to: to, head_same: isSame }) {
    const wanted = { from, to, isSame };
    form.show(wanted);
    const name = from || to || isSame ? JSON.stringify(wanted) : '';
    if (name === asked.search) return;
    asked.search = name;
    findings.replaceChildren(...(name === '' ? [] : [element('p', {}, 'Searching…')]));
    tell('');
    if (name === '') return;
    const query = searchQuery(wanted);
    fetched(
      { model: asked.model, part: 'search', query },
      (/** @type {Findings} */ answer, page) => {
        if (asked.search !== name) return;
        findings.replaceChildren(...foundIn(answer, page));
        announce(`${answer.heads.length} heads have such weights.`);
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
      sentences.show(trace, state);
      tenths.show(trace, state);
      like.show(trace, state);
      search(state);
    },
    leave() {
      controller.abort();
      asked.model = '';
    },
  };
}

/** @typedef {<T>(ask: AtlasAsk, show: (answer: T, page: Page) => void) => void} Fetch */

/** Create the tenths of the sentences, which are asked for once they are opened. @param {Fetch} fetched */
function createTenths(fetched) {
  const place = element('div', { class: 'atlas-findings' });
  /** @type {{trace: Trace, state: ViewState}|null} */
  let shown = null;
  let asked = '';
  const spread = element(
    'details',
    { class: 'atlas-spread', ontoggle: ask },
    element('summary', {}, 'From the sentences where it does least to those where it does most'),
    place,
  );

  function ask() {
    if (!spread.open || !shown) return;
    const { trace, state } = shown;
    const [attention, head, model] = [pathOf(trace, state), state.head, trace.model];
    const name = [model, attention, head].join(' ');
    if (asked === name) return;
    asked = name;
    place.replaceChildren(element('p', {}, 'Reading…'));
    fetched(
      { model, part: 'spread', query: { attention, head } },
      (/** @type {Spread} */ answer, page) => {
        if (asked === name) place.replaceChildren(...spreadIn(answer, attention, head, page));
      },
    );
  }

  return {
    element: spread,

    /** @param {Trace} trace @param {ViewState} state */
    show(trace, state) {
      shown = { trace, state };
      ask();
    },
  };
}

/**
 * Create the button that searches for what the head does in this text: from the kind of the chosen
 * word to that of the word it reads most.
 * @param {Fetch} fetched
 * @param {Handlers['onState']} onState
 */
function createLike(fetched, onState) {
  /** @type {AtlasAsk|null} */
  let ask = null;
  const like = button(
    '',
    () =>
      ask &&
      fetched(ask, (/** @type {{query: string, key: string}} */ { query, key }) =>
        onState({ head_from: query, head_to: key, head_same: false }),
      ),
    { hidden: true },
  );
  return {
    element: like,

    /** @param {Trace} trace @param {ViewState} state */
    show(trace, state) {
      const [query, key] = exampleIn(trace, state);
      like.hidden = !query;
      if (!query) return;
      const { text, model } = trace;
      /** @param {number} end */
      const count = (end) => [...text.slice(0, end)].length; // the server counts code points
      ask = {
        model,
        part: 'like',
        query: { text, query: count(query.start), key: count(key.start) },
      };
      like.textContent = `As from ${quoted(query)} to ${quoted(key)} here`;
    },
  };
}

/** Create the sentences of the head that is shown, a few at first. @param {Handlers['onState']} onState */
function createSentences(onState) {
  const list = element('ol', { class: 'atlas-sentences' });
  let items = /** @type {HTMLElement[]} */ ([]);
  /** @param {number} most */
  const showUpTo = (most) => {
    list.replaceChildren(...items.slice(0, most));
    more.hidden = items.length <= most;
  };
  const more = button('Show more sentences', () => showUpTo(Infinity));
  return {
    elements: [list, more],

    /** @param {Trace} trace @param {ViewState} state */
    show(trace, state) {
      const path = pathOf(trace, state);
      const answer = state.answers?.atlas;
      /** @type {AtlasHead|undefined} */
      const head = answer?.trace?.atlas;
      items = head
        ? head.sentences.map((each) => sentenceOf(each, path, state.head, { trace, onState }))
        : [element('li', {}, noticeOf(answer))];
      showUpTo(SHORT);
    },
  };
}

/**
 * Return the token of the chosen row and the one that the head reads most in it, off the first; empty:
 * the weights are not held, or are of two texts.
 * @param {Trace} trace
 * @param {ViewState} state
 */
function exampleIn(trace, state) {
  const weights = trace.tensors[`${pathOf(trace, state)}.weights`];
  const place = choosePlace(state, trace);
  if (!weights || !place || place.columns !== 'source' || place.rows !== 'source') return [];
  const query = rowShown(trace, place, state);
  if (query === null || query < 2) return [];
  const row = rowOf(matrixAt(weights, state.head), query);
  const key = row.indexOf(Math.max(...row.subarray(1, query)), 1);
  return [trace.tokens[query], trace.tokens[key]];
}

/** @param {Trace} trace @param {ViewState} state */
function pathOf(trace, state) {
  const place = choosePlace(state, trace);
  return place ? `${place.stack}.layers.${state.layer}.${place.ending}` : '';
}

/**
 * Return a sentence of each tenth, and the place of this text among them.
 * @param {Spread} spread
 * @param {string} path
 * @param {number} head
 * @param {Page} page
 */
function spreadIn({ sentences, silent, deciles, queries, keys }, path, head, page) {
  const here = strongestIn(page.trace, path, head);
  const at = deciles.findIndex(({ high }) => here <= high);
  const ofThis = Number.isNaN(here)
    ? ''
    : ` In this text its largest weight is ${percent(here, 0)}, as in tenth ${at < 0 ? deciles.length : at + 1}.`;
  const items = deciles.map(({ low, high, sentence }, tenth) => {
    const item = sentenceOf(sentence, path, head, page);
    item.prepend(
      element(
        'span',
        { class: 'atlas-tenth' },
        `Tenth ${tenth + 1}: ${low === 0 ? 'none kept' : percent(low, 0)} to ${percent(high, 0)}`,
      ),
    );
    return item;
  });
  return [
    element(
      'p',
      {},
      `The largest weight in each of ${grouped(sentences)} sentences, off the first token; in ${grouped(silent)} the head does nothing that is kept.${ofThis}`,
    ),
    element('ol', { class: 'atlas-sentences' }, ...items),
    element(
      'p',
      {},
      `Off the token itself, its kept weights are most often from ${wordsIn(queries)}; and to ${wordsIn(keys)}.`,
    ),
  ];
}

/** Return words with their shares, next to those of the corpus. @param {Spread['keys']} words */
function wordsIn(words) {
  /** @param {Spread['keys'][number]} word */
  const told = ({ word, tag, share, base }) =>
    `${inQuotes(visible(word))} (${tagInWords(tag)}, ${percent(share, 0)}, ${percent(base, 0)} of all tokens)`;
  return words.length > 0 ? enumerated(words.map(told)) : 'no word';
}

/** Return the largest weight off the first token; NaN: they are not held. @param {Trace} trace @param {string} path @param {number} head */
function strongestIn(trace, path, head) {
  const weights = trace.tensors[`${path}.weights`];
  if (!weights) return NaN;
  const { columns, data } = matrixAt(weights, head);
  return data.reduce(
    (most, each, index) => (index % columns === 0 ? most : Math.max(most, each)),
    0,
  );
}

/** Create the form of a search. @param {Handlers['onState']} onState @param {HTMLElement} like */
function createForm(onState, like) {
  const [from, to] = [input('from', 'pronoun'), input('to', 'noun')];
  const same = element('input', { type: 'checkbox', id: 'atlas-same' });
  /** @param {Event} event */
  const onsubmit = (event) => {
    event.preventDefault();
    onState({ head_from: from.value, head_to: to.value, head_same: same.checked });
  };
  const form = element(
    'form',
    { class: 'atlas-search', role: 'search', onsubmit },
    element('label', { for: 'atlas-from' }, 'Heads from'),
    from,
    element('label', { for: 'atlas-to' }, 'to'),
    to,
    element('label', { class: 'atlas-same' }, same, ' the same word'),
    element('button', { type: 'submit', class: 'button' }, 'Search'),
    like,
    element(
      'datalist',
      { id: 'atlas-kinds' },
      ...KINDS.map((kind) => element('option', { value: kind })),
    ),
  );
  return {
    element: form,

    /** @param {{from: string, to: string, isSame: boolean}} wanted */
    show(wanted) {
      [from.value, to.value, same.checked] = [wanted.from, wanted.to, wanted.isSame];
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

/** @param {string[]} titles @param {(string|HTMLElement)[][]} rows */
function tableOf(titles, rows) {
  return element(
    'table',
    { class: 'atlas-heads' },
    element('thead', {}, element('tr', {}, ...titles.map((title) => element('th', {}, title)))),
    element(
      'tbody',
      {},
      ...rows.map((row) => element('tr', {}, ...row.map((each) => element('td', {}, each)))),
    ),
  );
}

/** @param {Findings} answer @param {Page} page @returns {HTMLElement[]} */
function foundIn({ heads, sentences }, page) {
  if (heads.length === 0) return [element('p', {}, 'No head has such a strong weight.')];
  const rows = heads
    .slice(0, MOST_HEADS)
    .map((row) => [
      headButton(row.attention, row.head, page),
      `${grouped(row.count)} of ${grouped(row.of)}`,
      percent(row.share, 1),
      row.lift === null ? '–' : `${decimal(row.lift, 1)} ×`,
      row.lift_low === null || row.lift_high === null
        ? 'too few'
        : `${decimal(row.lift_low, 1)} to ${decimal(row.lift_high, 1)}`,
      row.held_out === null ? 'too few' : `${decimal(row.held_out, 1)} ×`,
    ]);
  const items = sentences.map((each) => sentenceOf(each, each.attention, each.head, page));
  const ranked = 'Ranked by every other sentence; held out: the same in those between.';
  return [
    tableOf(FOUND, rows),
    element('p', { class: 'atlas-tenth' }, ranked),
    element('ol', { class: 'atlas-sentences' }, ...items),
  ];
}

/** @param {string} path @param {number} head @param {Page} page */
function headButton(path, head, { trace, onState }) {
  const place = placeAt(path, trace);
  const layer = layerOf(path);
  const patch = { view: 'head', where: place?.id ?? '', layer, head };
  return button(headInWords(trace, place, layer, head), () => onState(patch), { class: 'link' });
}

/** @param {string} path @param {Trace} trace */
function placeAt(path, trace) {
  const [stack, , , ending] = path.split('.');
  return findPlaces(trace).find((at) => at.stack === stack && at.ending === ending) ?? null;
}

/**
 * Return a sentence with the pair marked, which opens on the page.
 * @param {AtlasPlace} place
 * @param {string} path
 * @param {number} head
 * @param {Page} page
 */
function sentenceOf(place, path, head, { trace, onState }) {
  const at = placeAt(path, trace);
  const isOfTarget = place.target !== '' && path.startsWith('decoder');
  const isCross = path.endsWith('cross_attention');
  const query = { span: place.query_span, role: /** @type {const} */ ('query') };
  const key = { span: place.key_span, role: /** @type {const} */ ('key') };
  const inText = isOfTarget ? (isCross ? [key] : []) : [query, key];
  const inTarget = isOfTarget ? (isCross ? [query] : [query, key]) : [];
  const onclick = () =>
    onState({
      ...NOTHING_CHOSEN,
      text: place.text,
      target: place.target || null,
      view: 'attention',
      where: at?.id ?? '',
      layer: layerOf(path),
      head,
      ...(at && choosing(trace, at.rows, place.query)),
    });
  return element(
    'li',
    {},
    element(
      'button',
      { type: 'button', class: 'atlas-sentence', onclick },
      element('span', { class: 'atlas-weight' }, percent(place.weight, 0)),
      ...marked(place.text, inText),
      ...(place.target ? [' — ', ...marked(place.target, inTarget)] : []),
    ),
  );
}

/** @param {string} text @param {Parameters<typeof partsOf>[1]} spans */
function marked(text, spans) {
  const kept = spans.filter(({ span }) => span.length > 0);
  return partsOf(text, kept).map((part) =>
    part.role ? element('mark', { class: `is-${part.role}` }, part.text) : part.text,
  );
}
