/**
 * An experiment on the page: a view whose figures are those of a run, with a switch for each
 * parameter. Its link holds the parameters and the shown part of the result.
 */

import { messageOf, Problem } from '../api/calls.js';
import { createRun, experimentPath, streamExperiment } from '../api/experiments.js';
import { painted } from '../plot/renderer.js';
import {
  changed,
  labelOf,
  parametersOf,
  pickedIn,
  problemsInLink,
  readTyped,
  slideOf,
  valuesInLink,
  valuesInWords,
  writeInLink,
  written,
} from '../rules/experiment.js';
import {
  besideOf,
  isBusy,
  isGoingOn,
  problemsOfPlaces,
  queueWords,
  resultOf,
  statusOf,
} from '../rules/experiment_run.js';
import { asSentence } from '../words/lists.js';
import { SEGMENTS } from './controls.js';
import { element, palette, plotHeight } from './dom.js';
import { createTables } from './experiment_tables.js';
import { spokenPowers, withPowers } from './formula.js';
import { createNotice } from './page.js';
import { createScrubber } from './scrubber.js';
import { createViewSection } from './view_section.js';

/**
 * @import { Parameter, Picture } from '../rules/experiment.js'
 * @import { Bench } from '../rules/experiment_run.js'
 */

/** A slider that is moved asks when it rests. */
const REST = 120;
/** Milliseconds before a result is announced, so that a moved slider does not announce each. */
const ANNOUNCED = 700;
const BUSY = 503;
/** Narrower pictures cannot be read. */
const LEAST_WIDTH = 220;

export class Experiment {
  #isAsked = false; // the run was asked for by the button
  #isOpen = false;
  #isDrawing = false;
  #isStale = false; // there is more to draw than is being drawn
  #resting = 0;
  #announcing = 0;
  #pinned = /** @type {number|null} */ (null);
  #picked = /** @type {{row: number, column: number}|null} */ (null);
  #besideId = '';
  #isPreview = false;
  #isRestored = false; // from a link, while it was not open
  /** Errors of parameters and of the parts of a link, by name. @type {Map<string, string>} */
  #problems = new Map();
  /** @type {Picture[]} */
  #pictures = [];

  /**
   * @param {Description} description
   * @param {ExperimentView} view
   * @param {Object} handlers
   * @param {() => void} handlers.onLink the link that restores it has changed
   * @param {(message: string) => void} handlers.announce
   */
  constructor(description, view, { onLink, announce }) {
    this.description = description;
    this.view = view;
    this.parameters = parametersOf(description);
    this.standards = Object.fromEntries(
      this.parameters.map(({ name, standard }) => [name, standard]),
    );
    /** @type {Values} */
    this.values = { ...this.standards };
    this.onLink = onLink;
    this.announce = announce;
    this.run = this.#makeRun(() => this.#ranOn());
    this.second = this.#makeRun(() => this.draw());
    this.scrubber = createScrubber(view.id, (at, isPlayed) => {
      this.#pinned = at;
      if (!isPlayed) onLink();
      this.draw();
    });
    this.tables = createTables({
      onRows: (name, rows) => {
        const again = (view.following?.[name] ?? []).map((each) => [each, null]);
        this.#set({ ...Object.fromEntries(again), [name]: rows }, false);
      },
    });
    this.linkNotice = element('p.link-notice', { role: 'status' });
    this.status = element('p.run-status', { role: 'status', hidden: !view.preview });
    this.finding = element('p.finding');
    const alert = element('div.notice', { role: 'alert', hidden: true });
    this.notice = createNotice(alert, { onRetry: () => this.#start(), onOffer: () => {} });
    this.section = this.#makeSection();
    this.element = this.section.element;
    const { finding, linkNotice, status } = this;
    const parts = [linkNotice, status, finding, alert, this.scrubber.element, this.tables.element];
    const stage = element('div.bench', parts);
    this.element.querySelector('.view-body')?.before(stage);
    this.element.append(sourcesOf(description));
    this.#introduce();
  }

  #makeSection() {
    const take = this.#take.bind(this);
    const section = createViewSection(
      { id: this.view.id, title: this.description.title, switches: 'Parameters' },
      {
        onCell: (cell, grid, isKeyboard) => {
          if (cell && isKeyboard) this.announce(grid.describe(cell.row, cell.column));
        },
        onChoose: (cell, grid) => take(grid.choose?.(cell.row, cell.column) ?? {}),
        onState: take,
        onGoingOn: take,
        onRedraw: () => this.draw(),
        announce: this.announce,
      },
    );
    section.element.classList.add('experiment');
    section.element.setAttribute('role', 'tabpanel');
    section.element.setAttribute('aria-labelledby', `tab-${this.view.id}`);
    section.element.hidden = false;
    return section;
  }

  /** @param {() => void} onChange */
  #makeRun(onChange) {
    return createRun({
      stream: (wanted, signal) => streamExperiment(this.view.id, wanted, signal),
      growing: this.description.growing,
      onChange,
    });
  }

  /** @returns {Bench} */
  get bench() {
    return {
      values: this.values,
      besideId: this.#besideId,
      pinned: this.#pinned,
      picked: this.#picked,
      isPreview: this.#isPreview,
      run: this.run.state(),
      second: this.second.state(),
    };
  }

  /** Take what a switch, a cell or a button sets. @param {Patch} patch @param {boolean} [isTyped] */
  #take(patch, isTyped = false) {
    if ('act' in patch) this.#act(patch.act);
    else if ('beside' in patch) this.#compare(patch.beside);
    else if ('picked' in patch) this.#choose(pickedIn(String(patch.picked)));
    else if (Object.keys(patch).length > 0) this.#set(patch, isTyped);
  }

  /** @param {'reset'|'run'|'stop'} wanted */
  #act(wanted) {
    if (wanted === 'stop') {
      this.run.stop();
      this.second.stop();
      this.draw();
    } else if (wanted === 'reset') {
      this.values = { ...this.standards };
      this.#besideId = '';
      this.#picked = null;
      this.#set({}, false);
    } else {
      this.#isAsked = true;
      this.#pinned = null;
      this.onLink();
      this.#start();
    }
  }

  /** @param {string} id of the run to compare with */
  #compare(id) {
    this.#besideId = id;
    this.second.stop();
    this.onLink();
    this.#startSecond();
    this.draw();
  }

  /** @param {{row: number, column: number}|null} cell */
  #choose(cell) {
    if (!cell) return;
    this.#picked = cell;
    this.onLink();
    this.draw();
    const result = resultOf(this.view, this.bench);
    if (result) this.announce(spokenPowers(this.view.finding(result)));
  }

  /** Change parameters, and run with them. @param {Values} patch @param {boolean} isTyped */
  #set(patch, isTyped) {
    for (const [name, value] of Object.entries(patch))
      this.values = { ...this.values, [name]: value ?? this.standards[name] };
    if ('example' in patch) {
      this.#picked = null;
      for (const name of this.view.hidden ?? [])
        if (name !== 'seed') this.values[name] = this.standards[name];
    }
    this.#problems = new Map();
    this.linkNotice.textContent = '';
    this.#isAsked = false;
    this.#pinned = null;
    this.onLink();
    clearTimeout(this.#resting);
    this.#resting = setTimeout(() => this.#start(), isTyped ? REST : 0);
  }

  /** Say what of the link is not used, and correct the address. */
  #tellLink() {
    this.linkNotice.textContent = [...this.#problems]
      .map(([name, why]) => (name in this.standards ? `${labelOf(name)}: ${why}.` : `${why}.`))
      .join(' ');
    this.onLink();
  }

  #start() {
    clearTimeout(this.#resting);
    this.scrubber.stop();
    this.second.stop();
    this.#isPreview = this.#isRestored = false;
    this.run.start(changed(this.parameters, this.values));
  }

  #startSecond() {
    const option = besideOf(this.view, this.bench);
    if (!option || this.#isPreview || this.run.state().status !== 'done') return;
    this.second.start(changed(this.parameters, { ...this.values, ...option.values }));
  }

  #ranOn() {
    const { preview } = this.view;
    const { status, problem, isBroken } = this.run.state();
    const isRefused = problem?.status === BUSY && !isBroken;
    if (preview && isRefused && !this.#isAsked && !this.#isPreview) {
      this.#isPreview = true;
      this.run.start({ ...changed(this.parameters, this.values), ...preview });
      return;
    }
    if (status === 'done') this.#end();
    this.#showProblem(problem, isBroken);
    if (status === 'waiting')
      this.#showNumbers(); // the pictures stay those of the run before
    else this.draw();
  }

  /** Check the frame and the cell of the link, start the second run, and announce the result. */
  #end() {
    const problems = problemsOfPlaces(this.view, this.bench);
    if (problems.has('frame')) this.#pinned = null;
    if (problems.has('picked')) this.#picked = null;
    this.#problems = new Map([...this.#problems, ...problems]);
    if (problems.size > 0) this.#tellLink();
    this.#startSecond();
    clearTimeout(this.#announcing);
    this.#announcing = setTimeout(() => {
      const result = resultOf(this.view, this.bench);
      if (result && this.#isOpen) this.announce(spokenPowers(this.view.finding(result)));
    }, ANNOUNCED);
  }

  /** Show an error at the switch of a wrong parameter, or as a notice. @param {Problem|null} problem @param {boolean} isBroken */
  #showProblem(problem, isBroken) {
    if (!problem) {
      this.notice.clear();
      return;
    }
    const placed = problem.errors.filter(({ field }) => this.#isShown(field.split('.')[0]));
    for (const { field, message } of placed) this.#problems.set(field.split('.')[0], message);
    if (problem.errors.length > 0 && placed.length === problem.errors.length) {
      this.notice.clear();
      return;
    }
    const others = problem.errors.filter((each) => !placed.includes(each));
    const detail = others.map(({ message }) => message).join('; ') || problem.detail;
    const broken = `${asSentence(problem.detail || problem.message)} The pictures show how far it came.`;
    const told = isBroken
      ? new Problem({ title: 'The run broke off', detail: broken, status: 500 })
      : Object.assign(new Problem({ ...problem, detail }), { elsewhere: problem.elsewhere });
    this.notice.show(told, false);
  }

  /** @param {string} name of a parameter */
  #isShown(name) {
    return name in this.standards && !(this.view.hidden ?? []).includes(name);
  }

  /**
   * Show the words and numbers at once, and after the next paint the pictures; of a run that goes on,
   * both together, so that they are of one step.
   */
  async draw() {
    if (!isGoingOn(this.bench)) this.#showNumbers();
    this.#isStale = this.#isDrawing;
    if (this.#isDrawing) return;
    this.#isDrawing = true;
    this.element.classList.add('is-drawing');
    await painted();
    this.#showNumbers();
    this.#showPictures();
    this.#isDrawing = false;
    if (this.#isStale) this.draw();
    else this.element.classList.remove('is-drawing');
  }

  #introduce() {
    this.section.introduce(this.#viewNow(), this.#controls());
  }

  #showNumbers() {
    if (!this.#isOpen) return;
    const { view, bench } = this;
    const result = resultOf(view, bench);
    this.#introduce();
    const status = view.preview ? statusOf(view, bench) : '';
    if (this.status.textContent !== status) this.status.textContent = status;
    const isFirst = !result && isBusy(bench.run);
    this.element.classList.toggle('is-waiting', bench.run.status === 'waiting' && result !== null);
    this.element.setAttribute('aria-busy', String(isFirst));
    this.finding.hidden = !result && !isFirst;
    if (isFirst) this.finding.textContent = queueWords(bench.run) || 'Computing…';
    if (!result) return;
    this.#guarded(() => {
      const steps = result.isPreview ? [] : (view.steps?.(result.arrays) ?? []);
      this.scrubber.show(steps, result.at, result.total || steps.at(-1) || 0, view.stepName);
      this.finding.replaceChildren(...withPowers(view.finding(result)));
      this.tables.show(view.tables?.(result) ?? [], palette().theme);
    });
  }

  #showPictures() {
    const result = resultOf(this.view, this.bench);
    if (!this.#isOpen || !result) return;
    this.#guarded(() => {
      this.#pictures = this.view.pictures(result);
      const text = `${this.description.title}: ${valuesInWords(this.values)}`;
      this.section.show(this.#viewNow(), subject(text), /** @type {any} */ ({ cards: [] }));
    });
  }

  /** Return the experiment as a view of the page. @returns {View} */
  #viewNow() {
    const { id } = this.view;
    const { title, see } = this.description;
    const call = { path: experimentPath(id), body: changed(this.parameters, this.values) };
    const pictures = this.#pictures;
    return /** @type {any} */ ({
      id,
      title,
      help: see,
      terms: [],
      arrangement: 'bench',
      controls: () => this.#controls(),
      panels: () =>
        pictures.map((picture) => ({
          id: picture.id,
          isWide: picture.isWide,
          state: { picture: picture.id },
        })),
      /** @param {Trace} _ @param {ViewState} state */
      figure(_, { picture: wanted, width, palette: colours = palette() }) {
        const picture = /** @type {Picture} */ (pictures.find((each) => each.id === wanted));
        const height = plotHeight(window.innerHeight);
        const figure = picture.draw({
          height,
          palette: colours,
          width: Math.max(LEAST_WIDTH, width),
        });
        return { ...figure, grid: { ...figure.grid, call } };
      },
    });
  }

  /** @returns {Control[]} */
  #controls() {
    const { view, values, parameters } = this;
    const isRunning = isGoingOn(this.bench);
    const isSame = Object.keys(changed(parameters, values)).length === 0;
    const shown = parameters.filter(({ name }) => this.#isShown(name));
    const order = (/** @type {Parameter} */ { name }) => view.main.indexOf(name);
    const runs = view.isMeasured
      ? [{ kind: 'button', name: 'run', label: 'Measure again', patch: { act: 'run' } }]
      : [runControl(isRunning)];
    const besides = [{ id: '', title: 'nothing' }, ...(view.besides ?? [])];
    const help = 'A second network that learns the same task.';
    const compare = { kind: 'menu', name: 'beside', label: 'Compare with', help };
    return [
      ...(view.preview || view.isMeasured ? runs : []),
      ...shown
        .sort((a, b) => order(a) - order(b))
        .map((each) => controlOf(each, view, values[each.name], this.#problems.get(each.name))),
      ...(view.besides ? [{ ...compare, options: besides, value: this.#besideId }] : []),
      {
        kind: 'button',
        label: 'Reset',
        patch: { act: 'reset' },
        disabled: isSame && !this.#besideId,
      },
    ];
  }

  /** @param {() => void} act */
  #guarded(act) {
    try {
      act();
    } catch (error) {
      console.warn(error);
      this.finding.textContent = `This experiment failed: ${messageOf(error)}`;
    }
  }

  /** Open the panel; at first sight it runs. */
  open() {
    this.#isOpen = true;
    const { status } = this.run.state();
    const result = resultOf(this.view, this.bench);
    const isUnseen = status === 'stopped' && (!this.view.preview || result === null);
    if (status === 'idle' || status === 'failed' || isUnseen || this.#isRestored) this.#start();
    else this.draw();
  }

  /** Leave the panel and end its runs, on the server too. */
  leave() {
    this.#isOpen = false;
    clearTimeout(this.#resting);
    clearTimeout(this.#announcing);
    this.scrubber.stop();
    this.run.stop();
    this.second.stop();
  }

  /** @param {URLSearchParams} link */
  restore(link) {
    this.values = { ...this.standards, ...valuesInLink(link, this.parameters) };
    this.#problems = problemsInLink(link, this.parameters, this.view);
    /** @param {string} name */
    const given = (name) => (this.#problems.has(name) ? null : link.get(name));
    const frame = given('frame');
    this.#besideId = given('beside') ?? '';
    this.#pinned = frame === null ? null : Number(frame);
    this.#picked = pickedIn(given('picked'));
    this.#isAsked = false;
    this.linkNotice.textContent = '';
    this.#isRestored = !this.#isOpen;
    this.#introduce();
    if (this.#isOpen) this.#start();
    if (this.#problems.size > 0) this.#tellLink();
  }

  /** @param {URLSearchParams} link is written to */
  write(link) {
    writeInLink(link, this.parameters, this.values);
    if (this.#besideId) link.set('beside', this.#besideId);
    if (this.#pinned !== null) link.set('frame', String(this.#pinned));
    if (this.#picked) link.set('picked', `${this.#picked.row}.${this.#picked.column}`);
  }
}

/** @param {boolean} isRunning @returns {Control} */
function runControl(isRunning) {
  const act = isRunning ? 'stop' : 'run';
  return { kind: 'button', name: 'run', label: isRunning ? 'Stop' : 'Run', patch: { act } };
}

const AS_GIVEN = [
  { id: null, title: 'as given' },
  { id: true, title: 'yes' },
  { id: false, title: 'no' },
];
/** Options that are longer together are a menu. */
const LETTERS = 24;

/**
 * Return the switch of a parameter.
 * @param {Parameter} parameter
 * @param {ExperimentView} view
 * @param {any} value
 * @param {string} [problem] what is wrong with it
 * @returns {Control}
 */
function controlOf(parameter, { main, titles }, value, problem = '') {
  const { name, label, help, kind, standard, isOptional } = parameter;
  const isSet = JSON.stringify(value) !== JSON.stringify(standard);
  const isMore = !main.includes(name);
  const common = { name, label, help, value, problem, isMore, isSet, fold: 'More settings' };
  if (kind === 'flag' && !isOptional) return { kind, ...common };
  if (kind === 'flag' || kind === 'choice') {
    const options =
      kind === 'flag'
        ? AS_GIVEN
        : parameter.options.map((id) => ({
            id,
            title: titles?.[name]?.[id] ?? id.replaceAll('_', ' '),
          }));
    const letters = options.reduce((sum, { title }) => sum + title.length, 0);
    const isMenu = options.length >= SEGMENTS || letters > LETTERS;
    return { kind: isMenu ? 'menu' : 'choice', options, ...common };
  }
  return {
    kind: 'entry',
    read: (typed) => readTyped(parameter, typed),
    write: (held) => (kind === 'list' ? (held ?? []).join(', ') : String(held)),
    words: written,
    slide: kind === 'list' || kind === 'text' ? null : slideOf(parameter),
    isLong: kind === 'text',
    ...common,
  };
}

/** @param {Description} description */
function sourcesOf({ field, sources }) {
  const links = sources.map(({ title, url }) =>
    element('li', element('a', { href: url, rel: 'noreferrer' }, title)),
  );
  return element(
    'div.reading',
    element('div', element('h2', 'Current research'), element('p', field)),
    element('div', element('h2', 'Sources'), element('ul', links)),
  );
}

/** Return the stand-in for a trace that captions and exports read their text from. @param {string} text @returns {Trace} */
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
