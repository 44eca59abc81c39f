/**
 * The form of an experiment: a field for each parameter, the run to compare with, and the buttons.
 */

import { changed, readTyped, slideOf, written } from '../../rules/experiment.js';
import { button, element, withSymbols, segment } from '../dom.js';

/** @import { ExperimentView, Parameter, Values } from '../../rules/experiment.js' */

/**
 * @param {ExperimentView} view
 * @param {Parameter[]} parameters
 * @param {Object} handlers
 * @param {(name: string, value: any, isTyped: boolean) => void} handlers.onValue
 * @param {(id: string) => void} handlers.onBeside
 * @param {() => void} handlers.onRun the button of a long run, or the enter key
 * @param {() => void} handlers.onReset
 */
export function createForm(view, parameters, { onValue, onBeside, onRun, onReset }) {
  const { id, titles = {} } = view;
  const standards = Object.fromEntries(parameters.map(({ name, standard }) => [name, standard]));
  const fields = new Map(
    parameters
      .filter(({ name }) => !(view.hidden ?? []).includes(name))
      .map((parameter) => [
        parameter.name,
        createField({ ...parameter, titles: titles[parameter.name] }, id, (value, isTyped) =>
          onValue(parameter.name, value, isTyped),
        ),
      ]),
  );
  const isLong = Boolean(view.preview);
  const status = element('p', { class: 'run-status', role: 'status' });
  const run = button('Run', onRun, { class: 'button is-run' });
  const reset = button('Reset', onReset);
  const hasRun = isLong || view.isMeasured;
  const buttons = element('div', { class: 'run-row' }, hasRun ? run : null, reset);
  const beside = view.besides ? createBeside(view.besides, id, onBeside) : null;
  const rest = [...fields].filter(([name]) => !view.main.includes(name));
  const more = element(
    'details',
    { class: 'settings-more', hidden: rest.length === 0 },
    element('summary', {}, 'More settings'),
    ...rest.map(([, field]) => field.element),
  );
  const knobs = element(
    'div',
    { class: 'knobs' }, // on a phone they stay in sight
    isLong ? element('div', { class: 'run-box' }, buttons, status) : null,
    ...view.main.flatMap((name) => fields.get(name)?.element ?? []),
    beside?.element ?? null,
  );
  const host = element(
    'form',
    { class: 'settings', 'aria-label': 'Parameters' },
    knobs,
    more,
    isLong ? null : buttons, // it appears with the first change, so it moves nothing
  );
  host.addEventListener('submit', (event) => {
    event.preventDefault();
    onRun();
  });

  return {
    element: host,
    /** Its height on a phone is how far below the top other things stay in sight. */
    knobs,
    fields,

    /** Open the part of the form that a parameter is in. @param {string} name */
    reveal: (name) => fields.get(name)?.element.closest('details')?.setAttribute('open', ''),

    /** @param {Values} values @param {string} besideId */
    update(values, besideId) {
      for (const [name, field] of fields) field.update(values[name]);
      beside?.update(besideId);
    },

    /** @param {Values} values @param {{isRunning: boolean, words: string}} run */
    show(values, { isRunning, words }) {
      const text = view.isMeasured ? 'Measure again' : isRunning ? 'Stop' : 'Run';
      if (run.textContent !== text) run.textContent = text;
      reset.hidden = Object.keys(changed(parameters, values)).length === 0;
      more.querySelector('summary')?.classList.toggle(
        'is-set',
        rest.some(([name]) => JSON.stringify(values[name]) !== JSON.stringify(standards[name])),
      );
      if (status.textContent !== words) status.textContent = words;
    },
  };
}

/**
 * @param {NonNullable<ExperimentView['besides']>} options
 * @param {string} id of the experiment
 * @param {(id: string) => void} onChoice
 */
function createBeside(options, id, onChoice) {
  const select = element(
    'select',
    { id: `${id}-beside` },
    element('option', { value: '' }, 'nothing'),
    ...options.map((option) => element('option', { value: option.id }, option.title)),
  );
  select.addEventListener('change', () => onChoice(select.value));
  return {
    element: element(
      'div',
      { class: 'field' },
      element(
        'div',
        { class: 'field-head' },
        element('label', { for: `${id}-beside` }, 'Compare with'),
        select,
      ),
      element(
        'p',
        { class: 'field-help' },
        'A second network that learns the same task, for comparison.',
      ),
    ),
    /** @param {string} value */
    update: (value) => {
      select.value = value;
    },
  };
}

/**
 * @typedef {Object} Field
 * @property {HTMLElement} element
 * @property {(value: any) => void} update
 * @property {(message: string) => void} fail an empty message: nothing is wrong
 */

/** @typedef {(value: any, isTyped: boolean) => void} OnValue */

/** More options than this, or longer ones, are a menu. */
const SEGMENTS = 4;
const LETTERS = 24;

/**
 * @param {Parameter} parameter
 * @param {string} prefix of its ids
 * @param {OnValue} onValue a value that may be sent
 * @returns {Field}
 */
function createField(parameter, prefix, onValue) {
  const id = `${prefix}-${parameter.name}`;
  const problem = element('p', {
    class: 'field-problem',
    id: `${id}-problem`,
    'aria-live': 'polite',
  });
  const help = element(
    'p',
    { class: 'field-help', id: `${id}-help` },
    ...withSymbols(parameter.help),
  );
  const described = `${id}-help ${id}-problem`;
  /** @type {HTMLElement[]} */
  let inputs = [];
  /** @param {string} message */
  const fail = (message) => {
    problem.textContent = message;
    for (const input of inputs) input.setAttribute('aria-invalid', String(message !== ''));
  };
  /** @type {OnValue} */
  const send = (value, isTyped) => {
    fail('');
    onValue(value, isTyped);
  };
  const make = isChoice(parameter) ? choice : KINDS[parameter.kind];
  const { parts, update } = make(parameter, { id, described, send, fail });
  inputs = parts
    .flatMap((part) => [part, ...part.querySelectorAll('input')])
    .filter((part) => part.matches('input:not([type=range]), textarea, select'));
  return {
    element: element('div', { class: `field is-${parameter.kind}` }, ...parts, help, problem),
    update,
    fail,
  };
}

/** @param {Parameter} parameter */
function isChoice({ kind, isOptional }) {
  return kind === 'choice' || (kind === 'flag' && isOptional);
}

/** @typedef {{id: string, described: string, send: OnValue, fail: (message: string) => void}} Wiring */
/** @typedef {{parts: HTMLElement[], update: (value: any) => void}} Made */

/** @type {Record<string, (parameter: Parameter, wiring: Wiring) => Made>} */
const KINDS = { integer: number, number, flag, text, list: text };

/**
 * Return a slider next to a box; both hold the number.
 * @param {Parameter} parameter
 * @param {Wiring} wiring
 * @returns {Made}
 */
function number(parameter, { id, described, send, fail }) {
  const slide = slideOf(parameter);
  const label = element('label', { for: id, id: `${id}-label` }, parameter.label);
  const box = element('input', {
    id,
    type: 'text',
    inputmode: 'decimal',
    autocomplete: 'off',
    'aria-describedby': described,
  });
  const slider =
    slide &&
    element('input', {
      type: 'range',
      min: slide.least,
      max: slide.most,
      step: slide.step,
      'aria-labelledby': `${id}-label`,
    });
  const limits = slide ? `${written(parameter.least)} to ${written(parameter.most)}` : '';
  if (slider) slider.title = limits;
  slider?.addEventListener('input', () => {
    const value = slide?.value(Number(slider.value)) ?? NaN;
    show(value);
    send(value, true);
  });
  box.addEventListener('input', () => {
    const { value, problem } = readTyped(parameter, box.value);
    if (problem) {
      fail(`“${box.value.slice(0, 40)}” is ignored: ${problem}`);
      return;
    }
    if (slider && slide) slider.value = String(slide.at(value));
    send(value, true);
  });

  /** @param {number} value */
  function show(value) {
    if (document.activeElement !== box || readTyped(parameter, box.value).value !== value)
      box.value = String(value);
    if (slider && slide) {
      if (document.activeElement !== slider) slider.value = String(slide.at(value));
      slider.setAttribute('aria-valuetext', written(value));
    }
  }

  return {
    parts: [element('div', { class: 'field-head' }, label, box), ...(slider ? [slider] : [])],
    update: show,
  };
}

/** @param {Parameter} parameter @param {Wiring} wiring @returns {Made} */
function choice(parameter, { id, described, send }) {
  const options =
    parameter.kind === 'flag'
      ? [
          { value: null, title: 'as given' },
          { value: true, title: 'yes' },
          { value: false, title: 'no' },
        ]
      : parameter.options.map((value) => ({
          value,
          title: parameter.titles?.[value] ?? value.replaceAll('_', ' '),
        }));
  const letters = options.reduce((sum, { title }) => sum + title.length, 0);
  if (options.length > SEGMENTS || letters > LETTERS) {
    const select = element(
      'select',
      { id, 'aria-describedby': described, ...(parameter.titles && { class: 'is-long' }) },
      ...options.map(({ value, title }) => element('option', { value: String(value) }, title)),
    );
    select.addEventListener('change', () => send(options[select.selectedIndex].value, false));
    return {
      parts: [
        element(
          'div',
          { class: 'field-head' },
          element('label', { for: id }, parameter.label),
          select,
        ),
      ],
      update: (value) => {
        select.value = String(value);
      },
    };
  }
  const radios = options.map(({ value, title }) => segment(id, value, title));
  const box = element(
    'fieldset',
    { class: 'field-head', 'aria-describedby': described },
    element('legend', { class: 'unseen' }, parameter.label),
    element('span', { 'aria-hidden': 'true' }, parameter.label),
    element('div', { class: 'segmented' }, ...radios),
  );
  box.addEventListener('change', ({ target }) => {
    const chosen = /** @type {HTMLInputElement} */ (target).value;
    send(options.find(({ value }) => String(value) === chosen)?.value, false);
  });
  return {
    parts: [box],
    update: (value) => {
      for (const radio of box.querySelectorAll('input'))
        radio.checked = radio.value === String(value);
    },
  };
}

/** @param {Parameter} parameter @param {Wiring} wiring @returns {Made} */
function flag({ label }, { id, described, send }) {
  const box = element('input', { type: 'checkbox', id, 'aria-describedby': described });
  box.addEventListener('change', () => send(box.checked, false));
  return {
    parts: [element('div', { class: 'field-head' }, element('label', { for: id }, label), box)],
    update: (value) => {
      box.checked = Boolean(value);
    },
  };
}

/**
 * Return a text, or numbers with commas between them.
 * @param {Parameter} parameter
 * @param {Wiring} wiring
 * @returns {Made}
 */
function text(parameter, { id, described, send, fail }) {
  const isList = parameter.kind === 'list';
  const attributes = {
    id,
    spellcheck: 'false',
    autocomplete: 'off',
    'aria-describedby': described,
  };
  const box = isList
    ? element('input', { ...attributes, type: 'text', inputmode: 'decimal' })
    : element('textarea', { ...attributes, rows: 3, dir: 'auto' });
  box.addEventListener('input', () => {
    const { value, problem } = readTyped(parameter, box.value);
    if (problem) fail(problem);
    else send(value, true);
  });
  return {
    parts: [element('label', { for: id }, parameter.label), box],
    update: (value) => {
      if (document.activeElement !== box) box.value = isList ? (value ?? []).join(', ') : value;
    },
  };
}
