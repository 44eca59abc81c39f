/**
 * An experiment on the page: its parameters, its run, its pictures, and what there is to see.
 */

import { createRun, experimentPath, streamExperiment } from '../api/experiments.js';
import { advice, isWorthRetrying, messageOf } from '../api/calls.js';
import {
  changed,
  labelOf,
  parametersOf,
  problemsInLink,
  valuesInLink,
  valuesInWords,
  writeInLink,
} from '../data/experiment.js';
import { asSentence } from '../data/text.js';
import { plotHeight } from '../plot/figure.js';
import { element, palette, withSymbols } from './dom.js';
import { createField } from './fields.js';
import { createTables } from './number_tables.js';
import { createPanel } from './panel.js';

/**
 * @import { RunState } from '../api/experiments.js'
 * @import { Description, ExperimentView, Picture, Result, Values } from '../data/experiment.js'
 * @import { Trace } from '../data/trace.js'
 * @import { Patch } from '../state/state.js'
 */

/** A slider that is moved asks when it rests. */
const REST = 220;
/** Milliseconds of a frame that is played. */
const PLAYED = 140;
/** Milliseconds before a result is announced, so that a moved slider does not announce each. */
const ANNOUNCED = 700;

/**
 * @param {Description} description
 * @param {ExperimentView} view
 * @param {Object} handlers
 * @param {() => void} handlers.onLink the link that restores it has changed
 * @param {(message: string) => void} handlers.announce
 */
export function createExperiment(description, view, { onLink, announce }) {
  const { id } = view;
  const parameters = parametersOf(description);
  const standards = Object.fromEntries(parameters.map(({ name, standard }) => [name, standard]));
  /** @type {Values} */
  let values = { ...standards };
  /** Errors of the values in a link, by parameter; cleared when a value is set. @type {Map<string, string>} */
  let linkProblems = new Map();
  let besideId = '';
  /** @type {number|null} null: the last frame there is */
  let pinned = null;
  /** @type {{row: number, column: number}|null} */
  let picked = null;
  let isPreview = false;
  let isWanted = false; // a whole run was asked for with these parameters
  let isOpen = false;
  let resting = 0;
  let playing = 0;
  let announcing = 0;
  let drawing = 0;

  const run = createRun({
    stream: (wanted, signal) => streamExperiment(id, wanted, signal),
    growing: description.growing,
    onChange: () => ranOn(),
  });
  const other = createRun({
    stream: (wanted, signal) => streamExperiment(id, wanted, signal),
    growing: description.growing,
    onChange: () => draw(),
  });

  const fields = new Map(
    parameters
      .filter(({ name }) => !(view.hidden ?? []).includes(name))
      .map((parameter) => [
        parameter.name,
        createField(parameter, id, (value, isTyped) => set({ [parameter.name]: value }, isTyped)),
      ]),
  );
  const form = createForm();
  const finding = element('p', { class: 'finding' });
  const problem = element('div', { class: 'notice', role: 'alert', hidden: true });
  const linkNotice = element('p', { class: 'notice', role: 'alert', hidden: true });
  const tables = createTables({ onRows: (name, rows) => set({ [name]: rows }, false) });
  const scrubber = createScrubber();
  const stage = element('div', { class: 'panels is-bench' });
  /** @type {{id: string, panel: ReturnType<typeof createPanel>}[]} */
  let panels = [];
  const section = element(
    'section',
    {
      class: 'view experiment',
      id: `view-${id}`,
      role: 'tabpanel',
      'aria-labelledby': `tab-${id}`,
      tabindex: -1,
    },
    element('h2', { class: 'experiment-title' }, description.title),
    element('p', { class: 'see' }, ...withSymbols(description.see)),
    element(
      'div',
      { class: 'bench' },
      form.element,
      element(
        'div',
        { class: 'bench-stage' },
        finding,
        problem,
        linkNotice,
        scrubber.element,
        tables.element,
        stage,
      ),
    ),
    reading(description),
  );

  /**
   * Changes parameters; a cheap experiment runs at once, any other is shown untrained.
   * @param {Values} patch
   * @param {boolean} isTyped
   */
  function set(patch, isTyped) {
    const given = Object.entries(patch);
    values = {
      ...values,
      ...Object.fromEntries(given.map(([name, value]) => [name, value ?? standards[name]])),
    };
    if ('example' in patch)
      for (const name of view.hidden ?? []) if (name !== 'seed') values[name] = standards[name];
    linkProblems = new Map();
    linkNotice.hidden = true;
    isWanted = false;
    pinned = null;
    if ('example' in patch) picked = null;
    showValues();
    onLink();
    clearTimeout(resting);
    resting = setTimeout(start, isTyped ? REST : 0);
  }

  function showValues() {
    for (const [name, field] of fields) field.update(values[name]);
    form.show();
  }

  /** Says what of the link is not used, at its field if it has one, and corrects the address. */
  function tellLink() {
    const unplaced = [...linkProblems].filter(([name]) => !fields.has(name));
    linkNotice.hidden = unplaced.length === 0;
    linkNotice.textContent = unplaced.map(([name, why]) => `${labelOf(name)}: ${why}.`).join(' ');
    for (const name of linkProblems.keys())
      fields.get(name)?.element.closest('details')?.setAttribute('open', '');
    onLink();
  }

  /** Runs with the current parameters; only a short preview, if a whole run was not asked for. */
  function start() {
    clearTimeout(resting);
    stopPlaying();
    other.stop();
    isPreview = Boolean(view.preview) && !isWanted;
    for (const [name, field] of fields) field.fail(linkProblems.get(name) ?? '');
    run.start({ ...changed(parameters, values), ...(isPreview && view.preview) });
  }

  /** A whole run, as the button asks for. */
  function runWhole() {
    isWanted = true;
    pinned = null;
    onLink();
    start();
  }

  function startBeside() {
    const option = besideOption();
    if (!option || isPreview || run.state().status !== 'done') return;
    other.start(changed(parameters, { ...values, ...option.values }));
  }

  function besideOption() {
    return view.besides?.find((option) => option.id === besideId);
  }

  function ranOn() {
    const { status } = run.state();
    if (status === 'done') {
      startBeside();
      clearTimeout(announcing);
      announcing = setTimeout(() => announce(finding.textContent ?? ''), ANNOUNCED);
    }
    tellProblem(run.state());
    draw();
  }

  /** @param {RunState} state */
  function tellProblem({ problem: found, isBroken }) {
    problem.hidden = !found;
    if (!found) {
      problem.replaceChildren();
      return;
    }
    const unplaced = found.errors.filter(({ field, message }) => {
      const input = fields.get(field.split('.')[0]);
      input?.fail(message);
      return !input;
    });
    const isPlaced = found.errors.length > 0 && unplaced.length === 0;
    problem.hidden = isPlaced;
    const lines = isBroken
      ? [
          'The run broke off',
          `${asSentence(found.detail || found.message)} The pictures show how far it came.`,
        ]
      : [
          found.message,
          asSentence(unplaced.map(({ message }) => message).join('; ') || found.detail),
        ];
    const isRetry = isBroken || isWorthRetrying(found);
    problem.replaceChildren(
      element('p', { class: 'notice-title' }, lines[0]),
      element('p', {}, lines[1]),
      ...(isRetry
        ? [
            element('p', { class: 'notice-advice' }, advice(found)),
            element('button', { type: 'button', class: 'button', onclick: start }, 'Try again'),
          ]
        : []),
    );
  }

  /** @returns {Result|null} null: nothing has arrived yet */
  function result() {
    const { arrays, values: known } = run.state();
    if (Object.keys(arrays).length === 0) return null;
    const steps = view.steps?.(arrays) ?? [];
    const last = Math.max(0, steps.length - 1);
    const at = isPreview ? 0 : Math.min(pinned ?? last, last);
    const option = besideOption();
    const second = other.state().arrays;
    const isBeside = option && !isPreview && view.steps && (view.steps(second)?.length ?? 0) > 0;
    return {
      arrays,
      values: { ...values, ...known, ...(isPreview && { steps: values.steps }) },
      at,
      isPreview,
      total: values.steps ?? 0,
      beside: isBeside
        ? {
            name: option.title,
            arrays: second,
            at: Math.min(at, (view.steps?.(second).length ?? 1) - 1),
          }
        : null,
      picked,
    };
  }

  /** Draws once for all that arrives before the next paint. */
  function draw() {
    if (drawing !== 0) return;
    drawing = requestAnimationFrame(() => {
      drawing = 0;
      show();
    });
  }

  function show() {
    if (!isOpen) return;
    form.show();
    const found = result();
    section.classList.toggle('is-waiting', run.state().status === 'waiting' && found !== null);
    finding.hidden = !found;
    if (!found) return;
    guarded(() => {
      scrubber.show(found);
      finding.textContent = view.finding(found);
      tables.show(view.tables?.(found) ?? [], palette().theme);
      arrange(view.pictures(found));
      drawPanels(found);
    });
  }

  /** @param {Picture[]} pictures */
  function arrange(pictures) {
    const isSame =
      panels.length === pictures.length && panels.every((each, at) => each.id === pictures[at].id);
    if (isSame) return;
    const kept = new Map(panels.map((each) => [each.id, each]));
    panels = pictures.map(
      (picture) =>
        kept.get(picture.id) ?? {
          id: picture.id,
          panel: createPanel(`${id}`, {
            onCell: (cell, grid, isKeyboard) => {
              if (cell && isKeyboard) announce(grid.describe(cell.row, cell.column));
            },
            onChoose: (cell, grid) => choose(grid.choose?.(cell.row, cell.column) ?? {}),
            onState: choose,
            onGoingOn: choose,
            onRedraw: draw,
            announce,
          }),
        },
    );
    for (const [known, { panel }] of kept)
      if (!panels.some((each) => each.id === known)) {
        panel.destroy();
        panel.element.remove();
      }
    panels.forEach(({ panel }, at) => {
      panel.element.classList.toggle('is-wide', Boolean(pictures[at].isWide));
      if (stage.children[at] !== panel.element)
        stage.insertBefore(panel.element, stage.children[at] ?? null);
    });
  }

  /** @param {Result} found */
  function drawPanels(found) {
    const size = { height: plotHeight(window.innerHeight), palette: palette() };
    const body = changed(parameters, values);
    const trace = subject(`${description.title}: ${valuesInWords(values)}`);
    view.pictures(found).forEach((picture, at) => {
      const { panel } = panels[at];
      try {
        const figure = picture.draw({ ...size, width: Math.max(220, panel.width()) });
        const grid = { ...figure.grid, call: { path: experimentPath(id), body } };
        panel.show(trace, { ...figure, grid }, { cards: [], help: description.see });
      } catch (error) {
        console.warn(error);
        panel.fail(`This picture failed: ${messageOf(error)}`);
      }
    });
  }

  /** @param {Patch} patch */
  function choose(patch) {
    const [row, column] = String(patch.picked ?? '')
      .split('.')
      .map(Number);
    if (!Number.isInteger(row) || !Number.isInteger(column)) return;
    picked = { row, column };
    onLink();
    show();
    announce(finding.textContent ?? '');
  }

  /** @param {() => void} act */
  function guarded(act) {
    try {
      act();
    } catch (error) {
      console.warn(error);
      finding.textContent = `This experiment failed: ${messageOf(error)}`;
    }
  }

  function createForm() {
    const status = element('p', { class: 'run-status', role: 'status' });
    const button = element('button', { type: 'button', class: 'button is-run' }, 'Run');
    button.addEventListener('click', () => (isRunning() ? stop() : runWhole()));
    const reset = element('button', { type: 'button', class: 'button' }, 'Reset');
    reset.addEventListener('click', () => {
      values = { ...standards };
      besideId = '';
      picked = null;
      beside?.show();
      set({}, false);
    });
    const beside = createBeside();
    const main = view.main.flatMap((name) => fields.get(name)?.element ?? []);
    const rest = [...fields].filter(([name]) => !view.main.includes(name));
    const more = element(
      'details',
      { class: 'settings-more', hidden: rest.length === 0 },
      element('summary', {}, 'More settings'),
      ...rest.map(([, field]) => field.element),
    );
    const row = element('div', { class: 'run-row' }, view.preview ? button : null, reset);
    const formElement = element(
      'form',
      { class: 'settings', 'aria-label': 'Parameters' },
      ...(view.preview ? [row, status] : []),
      ...main,
      beside?.element ?? null,
      more,
      ...(view.preview ? [] : [row]), // it appears with the first change, so it moves nothing
    );
    formElement.addEventListener('submit', (event) => {
      event.preventDefault();
      if (view.preview) runWhole();
      else start();
    });

    return {
      element: formElement,
      show() {
        beside?.show();
        const text = isRunning() ? 'Stop' : 'Run';
        if (button.textContent !== text) button.textContent = text;
        reset.hidden = Object.keys(changed(parameters, values)).length === 0;
        more.querySelector('summary')?.classList.toggle(
          'is-set',
          rest.some(([name]) => JSON.stringify(values[name]) !== JSON.stringify(standards[name])),
        );
        const words = view.preview ? statusOf() : '';
        if (status.textContent !== words) status.textContent = words;
      },
    };
  }

  function createBeside() {
    if (!view.besides) return null;
    const select = element(
      'select',
      { id: `${id}-beside` },
      element('option', { value: '' }, 'nothing'),
      ...view.besides.map((option) => element('option', { value: option.id }, option.title)),
    );
    select.addEventListener('change', () => {
      besideId = select.value;
      other.stop();
      onLink();
      startBeside();
      draw();
    });
    return {
      element: element(
        'div',
        { class: 'field' },
        element(
          'div',
          { class: 'field-head' },
          element('label', { for: `${id}-beside` }, 'Beside it'),
          select,
        ),
        element(
          'p',
          { class: 'field-help' },
          'A second network that learns the same task, for comparison.',
        ),
      ),
      show: () => {
        select.value = besideId;
      },
    };
  }

  const isBusy = (/** @type {RunState} */ { status }) =>
    status === 'waiting' || status === 'running';

  function isRunning() {
    return !isPreview && (isBusy(run.state()) || isBusy(other.state()));
  }

  function stop() {
    run.stop();
    other.stop();
    draw();
  }

  function statusOf() {
    const { status, arrays } = run.state();
    const step = view.steps?.(arrays).at(-1) ?? 0;
    if (isPreview)
      return status === 'waiting' ? 'Making the network…' : 'Not trained yet. Run it and watch.';
    if (isBusy(run.state())) return `Step ${step} of ${values.steps}…`;
    if (isBusy(other.state())) {
      const second = view.steps?.(other.state().arrays).at(-1) ?? 0;
      return `Beside it: step ${second} of ${values.steps}…`;
    }
    if (other.state().problem && besideOption())
      return `The second run failed: ${other.state().problem?.message}. Run again.`;
    if (status === 'stopped') return `Stopped at step ${step}.`;
    return status === 'done' ? `All ${values.steps} steps are made.` : '';
  }

  /** A slider over the frames of a run, and a button that plays them. */
  function createScrubber() {
    const slider = element('input', { type: 'range', min: 0, max: 0, step: 1, id: `${id}-frame` });
    const label = element('output', { for: `${id}-frame` });
    const play = element('button', { type: 'button', class: 'button' }, 'Play');
    const host = element(
      'div',
      { class: 'scrubber', hidden: true },
      play,
      element('label', { class: 'unseen', for: `${id}-frame` }, 'Training step that is shown'),
      slider,
      label,
    );
    slider.addEventListener('input', () => {
      stopPlaying();
      const at = Number(slider.value);
      pinned = at === Number(slider.max) ? null : at;
      onLink();
      draw();
    });
    play.addEventListener('click', () => {
      if (playing !== 0) {
        stopPlaying();
        draw();
        return;
      }
      const last = Number(slider.max);
      if (Number(slider.value) === last) pinned = 0;
      playing = setInterval(() => {
        pinned = (pinned ?? last) + 1;
        if (pinned >= last) {
          pinned = null;
          stopPlaying();
        }
        draw();
      }, PLAYED);
      draw();
    });

    return {
      element: host,
      /** @param {Result} found */
      show({ arrays, at, total }) {
        const steps = view.steps?.(arrays) ?? [];
        host.hidden = isPreview || steps.length < 2;
        slider.max = String(steps.length - 1);
        slider.value = String(at);
        const words = `step ${steps[at]} of ${total}`;
        label.textContent = words;
        slider.setAttribute('aria-valuetext', words);
        play.textContent = playing === 0 ? 'Play' : 'Pause';
      },
    };
  }

  function stopPlaying() {
    clearInterval(playing);
    playing = 0;
  }

  return {
    element: section,

    /** Opens the panel; at first sight it runs. */
    open() {
      isOpen = true;
      const { status } = run.state();
      const isUnseen = status === 'stopped' && (isPreview || !view.preview);
      if (status === 'idle' || status === 'failed' || isUnseen) start();
      else draw();
    },

    /** The panel is left: what runs ends, on the server too. */
    leave() {
      isOpen = false;
      clearTimeout(resting);
      clearTimeout(announcing);
      stopPlaying();
      run.stop();
      other.stop();
    },

    redraw: draw,

    /** @param {URLSearchParams} link */
    restore(link) {
      values = { ...standards, ...valuesInLink(link, parameters) };
      const asked = link.get('beside') ?? '';
      besideId = view.besides?.some((option) => option.id === asked) ? asked : '';
      isWanted = link.get('run') === '1';
      const frame = Number(link.get('frame') ?? NaN);
      pinned = Number.isInteger(frame) && frame >= 0 ? frame : null;
      picked = pickedIn(link.get('picked'));
      linkProblems = problemsInLink(link, parameters);
      showValues();
      if (isOpen) start();
      if (linkProblems.size > 0) tellLink();
    },

    /** @param {URLSearchParams} link is written to */
    write(link) {
      writeInLink(link, parameters, values);
      if (besideId) link.set('beside', besideId);
      if (isWanted && view.preview) link.set('run', '1');
      if (pinned !== null) link.set('frame', String(pinned));
      if (picked) link.set('picked', `${picked.row}.${picked.column}`);
    },
  };
}

/** @param {string|null} text */
function pickedIn(text) {
  const [, row, column] = text?.match(/^(\d{1,3})\.(\d{1,3})$/) ?? [];
  return row === undefined ? null : { row: Number(row), column: Number(column) };
}

/**
 * The stand-in for a trace that captions and exports read their text from.
 * @param {string} text
 * @returns {Trace}
 */
function subject(text) {
  return {
    id: '',
    model: '',
    revision: '',
    text,
    tokens: [],
    target: null,
    target_tokens: null,
    tensors: {},
    analyses: {},
    timings: {},
  };
}

/** @param {Description} description */
function reading({ field, sources }) {
  return element(
    'div',
    { class: 'reading' },
    element('div', {}, element('h2', {}, 'Where the field stands'), element('p', {}, field)),
    element(
      'div',
      {},
      element('h2', {}, 'Sources'),
      element(
        'ul',
        {},
        ...sources.map(({ title, url }) =>
          element('li', {}, element('a', { href: url, rel: 'noreferrer' }, title)),
        ),
      ),
    ),
  );
}
