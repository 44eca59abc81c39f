/**
 * An experiment on the page: its parameters, its run, its pictures, and what there is to see.
 */

import { messageOf } from '../../api/calls.js';
import { createRun, streamExperiment } from '../../api/experiments.js';
import {
  changed,
  labelOf,
  parametersOf,
  pickedIn,
  problemsInLink,
  valuesInLink,
  valuesInWords,
  writeInLink,
} from '../../rules/experiment.js';
import { counted } from '../../words/lists.js';
import { element, palette, withSymbols } from '../dom.js';
import { painted } from '../../plot/renderer.js';
import { spokenPowers, withPowers } from '../formula.js';
import { createForm } from './form.js';
import { createPictures, createProblem, createScrubber } from './results.js';
import { createTables } from './tables.js';

/**
 * @import { RunState } from '../../api/experiments.js'
 * @import { Description, ExperimentView, Result, Values } from '../../rules/experiment.js'
 * @import { Patch } from '../../state/state.js'
 */

/** A slider that is moved asks when it rests. */
const REST = 120;
/** Milliseconds before a result is announced, so that a moved slider does not announce each. */
const ANNOUNCED = 700;
const BUSY = 503;

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
  /** Errors of the parts of a link, by name; cleared when a value is set. @type {Map<string, string>} */
  let linkProblems = new Map();
  let besideId = '';
  /** @type {number|null} null: the last frame there is */
  let pinned = null;
  /** @type {{row: number, column: number}|null} */
  let picked = null;
  let isPreview = false; // the server was too busy for a long run
  let isAsked = false; // the run was asked for by the button
  let isOpen = false;
  let resting = 0;
  let announcing = 0;
  let isDrawing = false;
  let isStale = false; // there is more to draw than is being drawn

  const makeRun = (/** @type {() => void} */ onChange) =>
    createRun({
      stream: (wanted, signal) => streamExperiment(id, wanted, signal),
      growing: description.growing,
      onChange,
    });
  const run = makeRun(() => ranOn());
  const secondRun = makeRun(() => draw());
  const form = createForm(view, parameters, {
    onValue: (name, value, isTyped) => set({ [name]: value }, isTyped),
    onBeside: (chosen) => {
      besideId = chosen;
      secondRun.stop();
      onLink();
      startBeside();
      draw();
    },
    onRun: () => (view.preview && isRunning() ? stop() : runAgain()),
    onReset: () => {
      values = { ...standards };
      besideId = '';
      picked = null;
      set({}, false);
    },
  });
  const { fields } = form;
  const scrubber = createScrubber(id, {
    onFrame: (at, isPlayed) => {
      pinned = at;
      if (!isPlayed) onLink();
      draw();
    },
  });
  const tables = createTables({
    onRows: (name, rows) => {
      const again = (view.following?.[name] ?? []).map((each) => [each, null]);
      set({ ...Object.fromEntries(again), [name]: rows }, false);
    },
  });
  const pictures = createPictures(description, { onChoose: choose, onRedraw: draw, announce });
  const finding = element('p', { class: 'finding' });
  const problem = createProblem(fields, start);
  const linkNotice = element('p', { class: 'link-notice', role: 'status' });
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
        linkNotice,
        finding,
        problem.element,
        scrubber.element,
        tables.element,
        pictures.element,
      ),
    ),
    reading(description),
  );

  new ResizeObserver(() =>
    section.style.setProperty('--knobs', `${form.knobs.offsetHeight}px`),
  ).observe(form.knobs);

  /**
   * Change parameters, and run with them.
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
    linkNotice.textContent = '';
    isAsked = false;
    pinned = null;
    if ('example' in patch) picked = null;
    form.update(values, besideId);
    onLink();
    clearTimeout(resting);
    resting = setTimeout(start, isTyped ? REST : 0);
  }

  /** Say what of the link is not used, at its field too if it has one, and correct the address. */
  function tellLink() {
    for (const name of linkProblems.keys()) form.reveal(name);
    linkNotice.textContent = [...linkProblems]
      .map(([name, why]) => (name in standards ? `${labelOf(name)}: ${why}.` : `${why}.`))
      .join(' ');
    onLink();
  }

  function start() {
    clearTimeout(resting);
    scrubber.stop();
    secondRun.stop();
    isPreview = false;
    for (const [name, field] of fields) field.fail(linkProblems.get(name) ?? '');
    run.start(changed(parameters, values));
  }

  function runAgain() {
    isAsked = true;
    pinned = null;
    onLink();
    start();
  }

  function startBeside() {
    const option = besideOption();
    if (!option || isPreview || run.state().status !== 'done') return;
    secondRun.start(changed(parameters, { ...values, ...option.values }));
  }

  function besideOption() {
    return view.besides?.find((option) => option.id === besideId);
  }

  function ranOn() {
    const { status, problem: failure, isBroken } = run.state();
    if (view.preview && failure?.status === BUSY && !isBroken && !isAsked && !isPreview) {
      isPreview = true;
      run.start({ ...changed(parameters, values), ...view.preview });
      return;
    }
    if (status === 'done') {
      checkPlaces();
      startBeside();
      clearTimeout(announcing);
      announcing = setTimeout(() => {
        const current = result();
        if (current && isOpen) announce(spokenPowers(view.finding(current)));
      }, ANNOUNCED);
    }
    problem.show(run.state());
    if (status === 'waiting')
      showNumbers(); // the pictures stay those of the run before
    else draw();
  }

  /** Say that the link asks for a frame or a cell that there is not. */
  function checkPlaces() {
    const { arrays } = run.state();
    const last = (view.steps?.(arrays).length ?? 1) - 1;
    if (pinned !== null && !isPreview && pinned > last) {
      tellPlace('frame', String(pinned), `the last frame of this run is ${last}`);
      pinned = null;
    }
    const [rows, columns] = view.pickable?.(arrays) ?? [Infinity, Infinity];
    if (picked && (picked.row >= rows || picked.column >= columns)) {
      const why = `its last row is ${rows - 1} and its last column ${columns - 1}`;
      tellPlace('picked', `${picked.row}.${picked.column}`, why);
      picked = null;
    }
    if (linkProblems.has('frame') || linkProblems.has('picked')) tellLink();
  }

  /**
   * @param {string} name of a part of the link
   * @param {string} text
   * @param {string} why
   */
  function tellPlace(name, text, why) {
    linkProblems.set(name, `“${text}” in the link is ignored: ${why}`);
  }

  /** @returns {Result|null} null: nothing has arrived yet */
  function result() {
    const { arrays, values: known } = run.state();
    if (Object.keys(arrays).length === 0) return null;
    const steps = view.steps?.(arrays) ?? [];
    const last = Math.max(0, steps.length - 1);
    const at = isPreview ? 0 : Math.min(pinned ?? last, last);
    const option = besideOption();
    const second = secondRun.state().arrays;
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

  /**
   * Show the words and numbers at once, and after the next paint the pictures; of a run that goes on,
   * both together, so that they are of one step.
   */
  async function draw() {
    const isGoingOn = isRunning();
    if (!isGoingOn) showNumbers();
    isStale = isDrawing;
    if (isDrawing) return;
    isDrawing = true;
    section.classList.add('is-drawing');
    await painted();
    if (isGoingOn) showNumbers();
    await showPictures();
    isDrawing = false;
    if (isStale) draw();
    else section.classList.remove('is-drawing');
  }

  function showNumbers() {
    if (!isOpen) return;
    form.show(values, { isRunning: isRunning(), words: view.preview ? statusOf() : '' });
    const current = result();
    const isFirst = !current && isBusy(run.state());
    section.classList.toggle('is-waiting', run.state().status === 'waiting' && current !== null);
    section.setAttribute('aria-busy', String(isFirst));
    finding.hidden = !current && !isFirst;
    if (isFirst) finding.textContent = queueWords() || 'Computing…';
    if (!current) return;
    try {
      const steps = isPreview ? [] : (view.steps?.(current.arrays) ?? []);
      scrubber.show(steps, current.at, current.total || steps.at(-1) || 0, view.stepName);
      finding.replaceChildren(...withPowers(view.finding(current)));
      tables.show(view.tables?.(current) ?? [], palette().theme);
    } catch (error) {
      fail(error);
    }
  }

  async function showPictures() {
    const current = result();
    if (!isOpen || !current) return;
    try {
      await pictures.show(
        view.pictures(current),
        `${description.title}: ${valuesInWords(values)}`,
        changed(parameters, values),
        isRunning(),
      );
    } catch (error) {
      fail(error);
    }
  }

  /** @param {unknown} error */
  function fail(error) {
    console.warn(error);
    finding.textContent = `This experiment failed: ${messageOf(error)}`;
  }

  /** @param {Patch} patch */
  function choose(patch) {
    const chosen = pickedIn(String(patch.picked ?? ''));
    if (!chosen) return;
    picked = chosen;
    onLink();
    draw();
    const current = result();
    if (current) announce(spokenPowers(view.finding(current)));
  }

  const isBusy = (/** @type {RunState} */ { status }) =>
    status === 'waiting' || status === 'running';

  function isRunning() {
    return !isPreview && (isBusy(run.state()) || isBusy(secondRun.state()));
  }

  function stop() {
    run.stop();
    secondRun.stop();
    draw();
  }

  /** @returns {string} empty: it waits for no other run */
  function queueWords() {
    const { ahead } = run.state();
    return ahead > 0 ? `Waiting for its turn: ${counted(ahead, 'run')} ahead…` : '';
  }

  function statusOf() {
    const { status, arrays } = run.state();
    const step = view.steps?.(arrays).at(-1) ?? 0;
    if (isPreview) return 'The server is busy, so nothing is trained yet. Press Run to try again.';
    if (status === 'waiting') return queueWords() || 'Building the network…';
    if (values.steps === undefined) return isBusy(run.state()) ? 'Computing…' : '';
    if (isBusy(run.state())) return `Step ${step} of ${values.steps}…`;
    if (isBusy(secondRun.state())) {
      const second = view.steps?.(secondRun.state().arrays).at(-1) ?? 0;
      return `For comparison: step ${second} of ${values.steps}…`;
    }
    if (secondRun.state().problem && besideOption())
      return `The second run failed: ${secondRun.state().problem?.message}. Run again.`;
    if (status === 'stopped') return `Stopped at step ${step}.`;
    return status === 'done' ? `All ${values.steps} steps are done.` : '';
  }

  return {
    element: section,

    /** Open the panel; at first sight it runs. */
    open() {
      isOpen = true;
      const { status } = run.state();
      const isUnseen = status === 'stopped' && (!view.preview || result() === null);
      if (status === 'idle' || status === 'failed' || isUnseen) start();
      else draw();
    },

    /** Leave the panel and end its runs, on the server too. */
    leave() {
      isOpen = false;
      clearTimeout(resting);
      clearTimeout(announcing);
      scrubber.stop();
      run.stop();
      secondRun.stop();
    },

    redraw: draw,

    /** @param {URLSearchParams} link */
    restore(link) {
      values = { ...standards, ...valuesInLink(link, parameters) };
      linkProblems = problemsInLink(link, parameters, view);
      besideId = linkProblems.has('beside') ? '' : (link.get('beside') ?? '');
      pinned = link.has('frame') && !linkProblems.has('frame') ? Number(link.get('frame')) : null;
      picked = linkProblems.has('picked') ? null : pickedIn(link.get('picked'));
      isAsked = false;
      linkNotice.textContent = '';
      form.update(values, besideId);
      if (isOpen) start();
      if (linkProblems.size > 0) tellLink();
    },

    /** @param {URLSearchParams} link is written to */
    write(link) {
      writeInLink(link, parameters, values);
      if (besideId) link.set('beside', besideId);
      if (pinned !== null) link.set('frame', String(pinned));
      if (picked) link.set('picked', `${picked.row}.${picked.column}`);
    },
  };
}

/** @param {Description} description */
function reading({ field, sources }) {
  return element(
    'div',
    { class: 'reading' },
    element('div', {}, element('h2', {}, 'Current research'), element('p', {}, field)),
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
