/**
 * The corpus below the drawings of a head: sentences with the pair marked in place, and a search for
 * heads from some words to others.
 */

import { noticeOf } from '../../api/answers.js';
import { KINDS, layerOf, partsOf, tagInWords } from '../../trace/atlas.js';
import { headInWords, findPlaces } from '../../trace/attention.js';
import { matrixAt } from '../../trace/trace.js';
import { decimal, grouped, percent } from '../../words/numbers.js';
import { choosing, NOTHING_CHOSEN } from '../../state/state.js';
import { inQuotes, quoted } from '../../words/tokens.js';
import { enumerated } from '../../words/lists.js';
import { visible } from '../../words/text.js';
import { button, element, tableParts } from '../../ui/dom.js';
import { exampleIn, pathOf } from './atlas_figures.js';

/** @import { Answer } from '../../api/answers.js' @import { AtlasAnswer, AtlasSearchAnswer, AtlasSentenceAnswer, AtlasSpreadAnswer } from '../../api/schemas' */

const MOST_HEADS = 12;
const SHORT = 8;
const FOUND = ['Head', 'Weights', 'Share', 'Above chance', '95 % interval', 'Held out'];

/** @typedef {{trace: Trace, onState: Handlers['onState']}} Page the text that is shown, and what a press changes */

/** @param {Handlers} handlers @returns {Overview} */
export function createAtlas({ onState, announce }) {
  let isOpen = false;
  /** @type {{query: string, key: string}|undefined} */
  let kinds;
  const about = element('p.atlas-about');
  const sentences = createSentences(onState);
  const tenths = createPart();
  const findings = createPart();
  const spread = element(
    'details.atlas-spread',
    { ontoggle: () => spread.open !== isOpen && onState({ head_tenths: spread.open }) },
    element('summary', 'From the sentences where it does least to those where it does most'),
    tenths.element,
  );
  const like = button(
    '',
    () => kinds && onState({ head_from: kinds.query, head_to: kinds.key, head_same: false }),
  );
  const form = createForm(onState, like);
  const block = element(
    'section.atlas',
    { 'aria-label': 'The corpus', hidden: true },
    element('h3', 'In the corpus'),
    about,
    ...sentences.elements,
    spread,
    element('h3', 'Search the corpus'),
    ...[form.element, findings.element],
  );

  return {
    element: block,
    show(trace, state) {
      block.hidden = !trace.card?.has_atlas;
      if (block.hidden) return;
      const { head, answers: { corpus, spread: parts, like: alike, found } = {} } = state;
      const [page, path] = [{ trace, onState }, pathOf(trace, state)];
      /** @type {AtlasAnswer|undefined} */
      const facts = corpus?.trace?.atlas;
      about.textContent = facts ? factsInWords(facts) : noticeOf(corpus);
      sentences.show(trace, state);
      isOpen = Boolean(state.head_tenths);
      spread.open = isOpen;
      tenths.show(parts, trace, (/** @type {AtlasSpreadAnswer} */ of) =>
        spreadIn(of, path, head, page),
      );
      kinds = alike?.trace?.atlas;
      like.hidden = !kinds;
      like.textContent = `As from ${exampleIn(trace, state).map(quoted).join(' to ')} here`;
      form.show(state);
      form.element.hidden = Boolean(facts?.no_search);
      findings.show(found, trace, (/** @type {AtlasSearchAnswer} */ of) => {
        announce(`${of.heads.length} heads have such weights.`);
        return foundIn(of, page);
      });
    },
  };
}

/** @param {AtlasAnswer} facts */
function factsInWords({ tokens, sentences, edges, threshold, no_search: lacking }) {
  return `${grouped(tokens)} tokens of ${grouped(sentences)} sentences were read; the ${grouped(edges)} weights of at least ${threshold}, off the first token, are kept.${lacking ? ` ${lacking}.` : ''}`;
}

/** Create a part that is written only once of an answer, so that a press keeps its focus. */
function createPart() {
  const part = element('div.atlas-findings');
  /** @type {unknown[]} */
  let shown = [];
  return {
    element: part,

    /** @param {Answer|undefined} answer @param {Trace} trace @param {(of: any) => Node[]} write */
    show(answer, trace, write) {
      if (shown[0] === answer && shown[1] === trace) return;
      shown = [answer, trace];
      part.replaceChildren(
        ...(answer?.trace ? write(answer.trace.atlas) : []),
        answer && !answer.trace ? noticeOf(answer) : '',
      );
    },
  };
}

/** Create the sentences of the head that is shown, a few at first. @param {Handlers['onState']} onState */
function createSentences(onState) {
  const list = element('ol.atlas-sentences');
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
        : [element('li', noticeOf(answer))];
      showUpTo(SHORT);
    },
  };
}

/**
 * Return a sentence of each tenth, and the place of this text among them.
 * @param {AtlasSpreadAnswer} spread
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
        'span.atlas-tenth',
        `Tenth ${tenth + 1}: ${low === 0 ? 'none kept' : percent(low, 0)} to ${percent(high, 0)}`,
      ),
    );
    return item;
  });
  return [
    element(
      'p',
      `The largest weight in each of ${grouped(sentences)} sentences, off the first token; in ${grouped(silent)} the head does nothing that is kept.${ofThis}`,
    ),
    element('ol.atlas-sentences', ...items),
    element(
      'p',
      `Off the token itself, its kept weights are most often from ${wordsIn(queries)}; and to ${wordsIn(keys)}.`,
    ),
  ];
}

/** Return words with their shares, next to those of the corpus. @param {AtlasSpreadAnswer['keys']} words */
function wordsIn(words) {
  /** @param {AtlasSpreadAnswer['keys'][number]} word */
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
    'form.atlas-search',
    { role: 'search', onsubmit },
    element('label', { for: 'atlas-from' }, 'Heads from'),
    from,
    element('label', { for: 'atlas-to' }, 'to'),
    to,
    element('label.atlas-same', same, ' the same word'),
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

    /** @param {ViewState} state */
    show(state) {
      [from.value, to.value, same.checked] = [state.head_from, state.head_to, state.head_same];
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

/** @param {AtlasSearchAnswer} answer @param {Page} page @returns {HTMLElement[]} */
function foundIn({ heads, sentences }, page) {
  if (heads.length === 0) return [element('p', 'No head has such a strong weight.')];
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
    element(
      'table.atlas-heads',
      tableParts(
        FOUND.map((title) => element('th', title)),
        rows.map((row) => row.map((each) => element('td', each))),
      ),
    ),
    element('p.atlas-tenth', ranked),
    element('ol.atlas-sentences', ...items),
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
 * @param {AtlasSentenceAnswer} place
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
    element(
      'button',
      { type: 'button', class: 'atlas-sentence', onclick },
      element('span.atlas-weight', percent(place.weight, 0)),
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
