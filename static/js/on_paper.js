/** The drawings of a chapter's steps for paper, made without opening the steps. */

import { bodyOf, fetchAnswer, fetchModels, request } from './api/answers.js';
import { cardOf } from './api/calls.js';
import { createRun, fetchExperiment, streamExperiment } from './api/experiments.js';
import { paperPicture, pixelsAcross } from './plot/picture.js';
import { plotly } from './plot/renderer.js';
import { changed, parametersOf, valuesInLink } from './rules/experiment.js';
import { resultOf } from './rules/experiment_run.js';
import { fieldsOf, normalized, readFragment, standardsOf, viewState } from './state/state.js';
import { element, palette } from './ui/dom.js';
import { lookAt } from './ui/looking.js';
import { loadView, VIEWS } from './views/view_registry.js';

/** @import { Step } from './api/schemas' */

const SIZE = { mm: 120, points: 8 };
const HEIGHT = 420;
/** An answer may lead to more requests. */
const MOST_ROUNDS = 3;

/** @typedef {{picture: HTMLElement, rows: string[], columns: string[]}} OnPaper a drawing, and its labels */

/**
 * Return what draws the steps of one chapter; each request is made once.
 * @returns {(step: Step) => Promise<OnPaper>}
 */
export function createDrawings() {
  const { signal } = new AbortController(); // a sheet that is closed and opened again has what came
  const frame = { palette: palette('light'), height: HEIGHT, width: pixelsAcross(SIZE) };
  /** @type {Map<string, Promise<any>>} */
  const known = new Map();
  /** @template T @param {any} key @param {() => Promise<T>} ask @returns {Promise<T>} */
  const once = (key, ask) => {
    const name = JSON.stringify(key);
    known.set(name, known.get(name) ?? ask());
    return /** @type {Promise<T>} */ (known.get(name));
  };
  const catalogue = () => once('models', () => fetchModels(signal));
  /** @param {Ask} body @returns {Promise<Trace>} */
  const read = (body) => once(body, async () => fetchAnswer(await catalogue(), body, signal));

  /** @param {Step} step @returns {Promise<Figure>} */
  async function ofText({ link, picture }) {
    const fields = fieldsOf(VIEWS);
    const written = { ...standardsOf(fields), ...readFragment(link.split('#')[1] ?? '', fields) };
    const listed = await catalogue();
    const card = cardOf(listed, written.model);
    if (!card || written.text === null) throw new Error('the step opens no text');
    const view = await loadView(written.view);
    const texts = { model: card.id, text: written.text, target: written.target ?? undefined };
    const trace = await read({ ...texts, ...request([view], card) });
    const ids = VIEWS.map(({ id }) => id);
    const { state } = lookAt(trace, normalized(/** @type {any} */ (written), trace, ids), view.of);
    let page = viewState({ ...state, ...frame, cards: listed.models, answers: {} });
    for (let round = 0; round < MOST_ROUNDS; round += 1) {
      const asks = Object.entries(view.asks?.(trace, page) ?? {});
      const answers = await Promise.all(asks.map(([, ask]) => read(bodyOf(ask, trace))));
      const named = asks.map(([name], at) => [name, { trace: answers[at] }]);
      page = { ...page, answers: Object.fromEntries(named) };
    }
    await view.prepare?.(trace, page);
    const panels = view.panels?.(trace, page) ?? [];
    const panel = panels.find(({ id }) => id === picture) ?? panels[0];
    return view.figure(trace, { ...viewState({ ...page, ...panel?.state }), ...frame });
  }

  /** @param {Step} step @returns {Promise<Figure>} */
  async function ofExperiment({ link, opens, picture }) {
    const id = /** @type {string} */ (opens.experiment);
    const module = `./views/experiments/${id}.js`;
    const [{ experiment: view }, description] = await Promise.all([
      import(module),
      once(id, () => fetchExperiment(id)),
    ]);
    const parameters = parametersOf(description);
    const given = valuesInLink(new URLSearchParams(link.split('#')[1]), parameters);
    const standards = parameters.map(({ name, standard }) => [name, standard]);
    const values = { ...Object.fromEntries(standards), ...given };
    const run = await once([id, given], async () => {
      const { start, state } = createRun({
        stream: (wanted, ending) => streamExperiment(id, wanted, ending),
        growing: description.growing,
        onChange: () => {},
      });
      await start(changed(parameters, values));
      return state();
    });
    const none = { pinned: null, picked: null, besideId: '', isPreview: false };
    const result = run.status === 'done' && resultOf(view, { ...none, values, run, second: run });
    if (!result) throw new Error('the run did not end');
    const pictures = view.pictures(result);
    return (pictures.find((/** @type {any} */ each) => each.id === picture) ?? pictures[0]).draw(
      frame,
    );
  }

  return async (step) => {
    const figure = await (step.opens.experiment ? ofExperiment(step) : ofText(step));
    if (!figure.grid || !figure.data) throw new Error(figure.notice || 'there is no drawing');
    const drawn = /** @type {DrawnFigure} */ (figure);
    const size = { mm: SIZE.mm, format: 'svg' };
    const { url, width } = await paperPicture(await plotly(), drawn, '', size, frame.palette);
    const picture = element('img', { src: url, alt: figure.title, style: `width: ${width}mm` });
    await picture.decode();
    const { rowLabels: rows, columnLabels: columns, geometry } = figure.grid;
    return { picture, rows, columns: geometry ? [] : columns };
  };
}
