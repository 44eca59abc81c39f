/**
 * The form of an experiment: a field for each parameter, the run to compare with, and the buttons.
 */

import { changed } from '../../data/experiment.js';
import { element } from '../dom.js';
import { createField } from '../fields.js';

/** @import { ExperimentView, Parameter, Values } from '../../data/experiment.js' */

/**
 * @param {ExperimentView} view
 * @param {Parameter[]} parameters
 * @param {Object} handlers
 * @param {(name: string, value: any, isTyped: boolean) => void} handlers.onValue
 * @param {(id: string) => void} handlers.onBeside
 * @param {() => void} handlers.onRun the button of a long run, or the enter key
 * @param {() => void} handlers.onReset
 */
export function createKnobs(view, parameters, { onValue, onBeside, onRun, onReset }) {
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
  const button = element(
    'button',
    { type: 'button', class: 'button is-run', onclick: onRun },
    'Run',
  );
  const reset = element('button', { type: 'button', class: 'button', onclick: onReset }, 'Reset');
  const buttons = element('div', { class: 'run-row' }, isLong ? button : null, reset);
  const beside = view.besides ? createBeside(view.besides, id, onBeside) : null;
  const rest = [...fields].filter(([name]) => !view.main.includes(name));
  const more = element(
    'details',
    { class: 'settings-more', hidden: rest.length === 0 },
    element('summary', {}, 'More settings'),
    ...rest.map(([, field]) => field.element),
  );
  const host = element(
    'form',
    { class: 'settings', 'aria-label': 'Parameters' },
    element(
      'div',
      { class: 'knobs' }, // on a phone one line that stays in sight
      isLong ? element('div', { class: 'run-box' }, buttons, status) : null,
      ...view.main.flatMap((name) => fields.get(name)?.element ?? []),
      beside?.element ?? null,
    ),
    more,
    isLong ? null : buttons, // it appears with the first change, so it moves nothing
  );
  host.addEventListener('submit', (event) => {
    event.preventDefault();
    onRun();
  });

  return {
    element: host,
    fields,

    /** Opens the part of the form that a parameter is in. @param {string} name */
    reveal: (name) => fields.get(name)?.element.closest('details')?.setAttribute('open', ''),

    /**
     * @param {Values} values
     * @param {string} besideId
     */
    update(values, besideId) {
      for (const [name, field] of fields) field.update(values[name]);
      beside?.update(besideId);
    },

    /**
     * @param {Values} values
     * @param {{isRunning: boolean, words: string}} run
     */
    show(values, { isRunning, words }) {
      const text = isRunning ? 'Stop' : 'Run';
      if (button.textContent !== text) button.textContent = text;
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
