/**
 * Says what the page says of some texts, by the page's own rules: `node say.js URL < requests`.
 *
 * A request is a line of JSON, `{model, text, every, is_full, without}`: `every` 5 says a fifth
 * of the rows, `is_full` also the scene and the views, but for some. For each, a line is written: the sentences, each with
 * its kind and what it is about, or the problem. `truth.py` judges them.
 */

import { createInterface } from 'node:readline';
import { bodyOf, fetchAnswer, fetchModels, request } from '../../static/js/api/answers.js';
import { writeFinding } from '../../static/js/rules/finding.js';
import { introduce, offerFor } from '../../static/js/rules/sentences/introduction.js';
import { explainLabel } from '../../static/js/rules/sentences/label.js';
import { explainRow } from '../../static/js/rules/sentences/row.js';
import {
  findPlaces,
  labelledHeads,
  predictingSide,
  tokensOf,
} from '../../static/js/trace/attention.js';
import { INITIAL } from '../../static/js/state/state.js';
import { partId, readEffects } from '../../static/js/rules/prediction.js';
import { sceneOf } from '../../static/js/rules/scene.js';
import { lookAt, pageAsks } from '../../static/js/ui/looking.js';
import { MAP, readParts } from '../../static/js/ui/model_map/parts.js';
import { ofEveryView } from './say_views.js';
import { VIEWS } from '../../static/js/views/view_registry.js';

const { signal } = new AbortController();
const [, , url] = process.argv;
const ask = globalThis.fetch;
globalThis.fetch = (path, ...rest) => ask(new URL(path, url), ...rest);

/** Every row of every head, its label, and the words of the head on the map. */
function* ofHeads(trace, every) {
  let count = 0;
  const read = readParts(trace.card, trace);
  for (const place of findPlaces(trace))
    for (const { layer, heads } of labelledHeads(trace, place))
      for (const { head } of heads) {
        const of = { where: place.id, layer, head };
        const stack = place.id === 'cross' ? 'decoder' : place.id;
        const part = { kind: 'head', id: '', stack, place: place.id, layer, index: head };
        const { note: map } = read(part);
        yield { kind: 'map', ...of, said: map };
        for (let query = 0; query < tokensOf(trace, place.rows).length; query += 1) {
          count += 1;
          if (count % every) continue;
          yield { kind: 'row', ...of, query, said: explainRow(trace, of, query) };
          yield { kind: 'label', ...of, query, map, said: explainLabel(trace, of, query) };
        }
      }
}

/** The introduction, and the findings of the other views at every place and in every layer. */
function* ofViews(trace) {
  yield { kind: 'introduction', said: introduce(trace) };
  const offer = offerFor(trace, catalogue.models);
  yield { kind: 'offer', model: offer?.patch.model, said: offer?.label ?? '' };
  if (trace.analyses.reward) {
    yield { kind: 'reward', said: writeFinding(trace, '', { query: null, layer: null }) };
    return;
  }
  const count = tokensOf(trace, predictingSide(trace)).length;
  for (let query = 0; query < count; query += 1)
    yield { kind: 'next', query, said: writeFinding(trace, 'next_token', { query, layer: null }) };
  for (let layer = 0; layer < trace.card.n_layers; layer += 1)
    yield { kind: 'experts', layer, said: writeFinding(trace, 'experts', { query: null, layer }) };
}

/** The scene: the page's own finding, those on two opened heads, and each with the part taken away. */
async function ofScene(trace, fetchMore, without) {
  const look = lookAt(trace, { ...INITIAL, layer: 0, head: 0 }, 'model');
  const { next_why: why } = pageAsks(trace, look);
  const answers = why ? { next_why: { trace: await fetchMore(why) } } : {};
  const effects = readEffects(trace, { ...look.state, answers });
  const reasons = answers.next_why?.trace.analyses.reasons;
  const { position } = look;
  const about = reasons && { position, ids: [reasons.token.id, reasons.against.id] };
  const by = { cards: catalogue.models, effects, about, fetchMore, without };
  const views = await ofEveryView(trace, by);
  if (!why) return views;
  const told = (state, isChosen, isSaved) =>
    sceneOf(trace, { ...look.state, answers, ...state }, { position, isChosen, isSaved, edit: '' });
  const scenes = [{ scene: told({}, false, false), saved: told({}, false, true) }];
  for (const reason of reasons.reasons.filter(({ head }) => head !== null).slice(0, 2)) {
    const [, where] = partId(reason).split(' ');
    const opened = { where, layer: reason.layer, head: reason.head };
    scenes.push({ scene: told(opened, true, false), saved: told(opened, true, true) });
  }
  const said = views;
  for (const { scene, saved } of scenes) {
    const off = scene.part?.id ?? '';
    const tried = reasons.reasons.filter(({ head }) => head !== null).map(partId);
    said.push({ kind: 'scene', ...about, off, tried, said: scene.finding });
    said.push({ kind: 'outcome', ...about, off, said: saved.more });
    if (!off) continue;
    const state = { ...look.state, off };
    const { next_edited: edited } = pageAsks(trace, { ...look, state }, answers);
    const all = { ...answers, next_edited: { trace: await fetchMore(edited) } };
    const { finding, more } = told({ off, answers: all }, false, false);
    said.push({ kind: 'without', ...about, off, said: `${finding} ${more}` });
  }
  return said;
}

const catalogue = await fetchModels(signal);
const fullCards = {};
for await (const line of createInterface({ input: process.stdin })) {
  const { model, text, every, is_full: isFull, without = [] } = JSON.parse(line);
  const card = catalogue.models.find(({ id }) => id === model);
  const wanted = { ...request([...VIEWS, MAP], card), model, text };
  const trace = await fetchAnswer(catalogue, wanted, signal).catch((problem) => ({ problem }));
  if (trace.problem) {
    process.stdout.write(`${JSON.stringify({ model, text, problem: trace.problem.message })}\n`);
    continue;
  }
  fullCards[model] ??= (await fetchAnswer(catalogue, { card: model }, signal)).card;
  trace.card = fullCards[model];
  const fetchMore = (ask) => fetchAnswer(catalogue, bodyOf(ask, trace), signal);
  const said = [
    ...ofHeads(trace, every),
    ...ofViews(trace),
    ...(isFull ? await ofScene(trace, fetchMore, without) : []),
  ].filter(({ said }) => said !== '');
  process.stdout.write(`${JSON.stringify({ text, target: trace.target ?? '', said })}\n`);
}
