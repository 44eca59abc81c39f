/** Says what the views say of a text: above their drawings, under a title, and in the cell they open with. */

import { capitalised } from '../../static/js/words/lists.js';
import { fieldsOf, standardsOf, viewState } from '../../static/js/state/state.js';
import { choosePlace, findPlaces } from '../../static/js/trace/attention.js';
import { rowShown } from '../../static/js/state/written_rows.js';
import { headToOpen } from '../../static/js/rules/head_insight.js';
import { lookAt } from '../../static/js/ui/looking.js';
import { buildAnatomy, readParts } from '../../static/js/ui/model_map/parts.js';
import { VIEWS, viewsFor } from '../../static/js/views/view_registry.js';
import { PALETTE } from '../js/sample.js';

const STANDARD = standardsOf(fieldsOf(VIEWS));
/** Rounds of requests that follow from answers. */
const ROUNDS = 3;
/** Cells of a drawing whose sentences are said. */
const CELLS = 3;
/** States of a view to open, after the one that it opens with. */
const otherOf = (text) =>
  text.replace(/\d|\w+(?=\W*$)/u, (word) => (word === '7' ? '3' : /\d/.test(word) ? '7' : 'and'));
const MORE = {
  compare: ({ text }) =>
    [text, otherOf(text)].map((other) => ({ compare_with: 'text', compare_text: `${other} too` })),
  word: () => [{ word_show: 'saliency' }, { word_show: 'thread' }],
  circuit: ({ text }) => [{ circuit_text: otherOf(text) }],
  stream: () => [{ stream_show: 'norms' }],
};

/** Some cells of a drawing that can be pointed at: an even share of them, and the last. */
function someCells(grid) {
  if (!grid) return [];
  const [rows, columns] = [grid.rows, grid.columns];
  const cells = Array.from({ length: CELLS }, (_, at) => {
    const cell = Math.floor(((at + 1) * rows * columns - 1) / CELLS);
    return [Math.floor(cell / columns), cell % columns];
  });
  return cells.filter(([row, column]) => row >= 0 && grid.value(row, column) !== null);
}

/** The sentences of a view in one state. */
async function* ofView(trace, view, state, fetchMore) {
  const page = { ...state, palette: PALETTE, height: 600, isSaved: false, answers: {} };
  for (let round = 0; round < ROUNDS; round += 1) {
    const asks = view.asks?.(trace, viewState(page)) ?? {};
    const left = Object.entries(asks).filter(([name]) => !page.answers[name]);
    page.asked = asks;
    if (left.length === 0) break;
    for (const [name, ask] of left) {
      const answer = await fetchMore(ask).then(
        (found) => ({ trace: found }),
        (problem) => ({ problem }),
      );
      page.answers = { ...page.answers, [name]: answer };
    }
  }
  const shown = viewState(page);
  const of = { view: view.id, where: state.where, layer: shown.layer, head: shown.head };
  const { answer = [], help = '' } = view.wording?.(trace, shown) ?? {};
  const [word] = Object.values(page.answers.parts?.trace?.analyses ?? {}).filter(
    ({ against }) => against,
  );
  const about = {
    ...of,
    edits: page.asked?.first?.edits,
    key: page.asked?.parts?.score_attribution?.key,
    ...(page.asked?.after && { b: page.asked.after }),
    query: rowShown(trace, choosePlace(state, trace), state),
    state: shown.word_show,
    other: shown.circuit_text,
    asks: page.asked?.circuit,
    ...(word && { position: word.position, ids: [word.token.id, word.against.id] }),
  };
  for (const said of answer) yield { kind: 'answer', ...about, said };
  if (/\d/.test(help)) yield { kind: 'help', ...about, said: help };
  for (const panel of view.panels?.(trace, shown) ?? [{ id: '', state: {} }]) {
    const figure = view.figure(trace, { ...shown, ...panel.state, width: 600 });
    const in_ = { ...about, panel: panel.id };
    const { grid } = figure;
    if (grid?.rest?.readout) yield { kind: 'readout', ...in_, said: grid.rest.readout };
    for (const [row, column] of someCells(grid))
      yield {
        ...{ kind: 'cell', ...in_, row, column, value: grid.value(row, column) },
        said: grid.describe(row, column),
      };
    if (figure.summary) yield { kind: 'summary', ...in_, said: figure.summary };
    if (/[\d“]/.test(figure.help ?? ''))
      yield { kind: 'help', ...about, panel: panel.id, said: figure.help };
  }
}

/** @param trace @param {{cards: any, effects: any, about: any, fetchMore: any, without: string[]}} by `effects` on the prediction that they are `about` */
export async function ofEveryView(trace, { cards, effects, about, fetchMore, without }) {
  const said = [];
  const read = readParts(trace.card, trace, () => false, effects);
  for (const { layers } of buildAnatomy(trace.card).stacks)
    for (const { heads, cross, network, stream } of layers)
      for (const part of [...heads, ...cross, network, stream])
        said.push({ kind: 'part', ...about, of: part, said: read(part).words });
  said.push({ kind: 'part', of: { kind: 'logits' }, said: read({ kind: 'logits' }).label });
  const state = { ...STANDARD, model: trace.model, text: trace.text, target: null, cards };
  for (const entry of VIEWS.filter(({ id }) => !without.includes(id))) {
    if (!viewsFor(entry.of, trace.card).includes(entry) || entry.isListed?.(trace) === false)
      continue;
    const view = await entry.load();
    const place = findPlaces(trace).at(-1) ?? null;
    const { layer, head } = headToOpen(trace, place);
    const opened = { ...state, view: entry.id, where: place?.id ?? '', layer, head };
    for (const more of [{}, ...(MORE[entry.id]?.(trace) ?? [])]) {
      const look = lookAt(trace, { ...opened, ...more }, entry.of);
      for await (const each of ofView(trace, view, look.state, fetchMore)) said.push(each);
    }
  }
  return said.map((each) => ({ ...each, said: capitalised(each.said) }));
}
