/**
 * The switches of a view. A view says as plain data what there is to set; what is set goes into the
 * page's state. Controls that stay the same keep their elements, and with them the focus.
 */

import { capitalised } from '../words/lists.js';
import { positionLabels } from '../words/tokens.js';
import { range } from '../trace/trace.js';
import { button, createHelp, element, segment } from './dom.js';

/**
 * @typedef {Object} Control
 * @property {string} kind `choice`, `menu`, `flag`, `number`, `integer`, `entry`, `counts`, `text` or `button`
 * @property {string} [name] of the field it sets
 * @property {string} label
 * @property {any} [value]
 * @property {{id: any, title: string, help?: string}[]} [options] of a choice or of counts
 * @property {string} [help]
 * @property {number} [least] of a number that is slid, or of an integer that is typed, unless its field says it
 * @property {number} [most]
 * @property {number} [step]
 * @property {string} [shown] the number in words
 * @property {boolean} [isTyped] of a number that is slid: it can be typed as well
 * @property {string} [placeholder]
 * @property {(typed: string) => {value: any, problem: string}} [read] of an entry: an empty problem lets the value be set
 * @property {(value: any) => string} [write] of an entry, as it is typed
 * @property {(value: any) => string} [words] of an entry, as it is spoken
 * @property {import('../rules/experiment.js').Slide|null} [slide] of an entry: the scale of its slider
 * @property {boolean} [isLong] of an entry: it has several lines
 * @property {string} [problem] what is wrong with the value
 * @property {Patch} [patch] what a button sets
 * @property {boolean} [disabled]
 * @property {boolean} [isMore] seldom wanted: it is behind “More”
 * @property {string} [fold] of these, what they are behind, if it is not how things are displayed
 * @property {boolean} [isSet] of these, one that is not as it would be anyway is never out of sight
 */

/**
 * @param {string} kind
 * @param {string} name of the field it sets
 * @param {string} label
 * @param {any} value
 * @param {Partial<Control>} [more]
 * @returns {Control}
 */
export function control(kind, name, label, value, more) {
  return { kind, name, label, value, ...more };
}

/**
 * @param {string} name of the field it sets
 * @param {string} label
 * @param {any} value
 * @param {NonNullable<Control['options']>} options
 * @param {Partial<Control>} [more]
 * @returns {Control}
 */
export function choice(name, label, value, options, more) {
  return { kind: 'choice', name, label, value, options, ...more };
}

/**
 * Return options that are numbers.
 * @param {ArrayLike<number>} ids
 * @param {string} [noun] what they count, for the help
 */
export function numbered(ids, noun) {
  return Array.from(ids, (id) => ({
    id,
    title: String(id),
    ...(noun && { help: `${noun} ${id}` }),
  }));
}

/** Return options that are the tokens of a text. @param {Token[]} tokens */
export function tokenOptions(tokens) {
  return positionLabels(tokens).map((title, id) => ({ id, title }));
}

/**
 * Return the choices of a layer and of a head, which the whole page shares.
 * @param {{layer: number, site: string}[]} layers with attention weights
 * @param {Trace} trace that holds them
 * @param {{layer: number, head: number}} state
 */
export function headControls(layers, { tensors }, { layer, head }) {
  const heads = range(tensors[layers[0].site].shape[0]);
  return [
    choice('layer', 'Layer', layer, numbered(layers.map((of) => of.layer))),
    choice('head', 'Head', head, numbered(heads)),
  ];
}

/** @typedef {{element: HTMLElement, update: (control: Control) => void}} Drawn a control on the page */
/** @typedef {(patch: Patch, isTyped?: boolean) => void} OnState */

/** More options than this are a menu. */
export const SEGMENTS = 5;
const PAUSE = 300;

/**
 * @param {string} id of the view
 * @param {(patch: Patch, isTyped?: boolean) => void} onState
 * @param {string} [name] of all switches
 */
export function createControls(id, onState, name = 'Display options') {
  const host = element('div.controls', { role: 'group', 'aria-label': name, hidden: true });
  /** @type {Map<string, Drawn>} */
  let drawn = new Map();
  const fold = element('span');
  const count = element('span');
  const row = element('div.controls-row');
  const rest = element('div.controls-rest');
  const more = element(
    'details.controls-more',
    element('summary', fold, count),
    element('div.controls-menu', rest),
  );
  const help = createHelp('What the switches do');
  let layout = '';

  /**
   * Put controls where they belong; those that stay where they are keep the focus.
   * @param {Control[]} controls
   */
  function arrange(controls) {
    const places = JSON.stringify(
      controls.map((control) => [keyOf(control), Boolean(control.isMore)]),
    );
    if (places === layout) return;
    layout = places;
    /** @param {boolean} isMore */
    const parts = (isMore) =>
      controls
        .filter((control) => Boolean(control.isMore) === isMore)
        .flatMap((control) => drawn.get(keyOf(control))?.element ?? []);
    const behind = parts(true);
    replace(rest, behind);
    replace(row, parts(false));
    replace(host, behind.length > 0 ? [row, more] : [row]);
    const home = behind.length > 0 ? more.lastElementChild : row;
    if (home && help.element.parentElement !== home) home.append(help.element);
  }

  return {
    element: host,
    /** @param {Control[]} controls */
    show(controls) {
      host.hidden = controls.length === 0;
      const now = new Map();
      for (const control of controls) {
        const key = keyOf(control);
        now.set(
          key,
          drawn.get(key) ??
            KINDS[control.kind](control, `${id}-${control.name ?? control.label}`, onState),
        );
        now.get(key).update(control);
      }
      drawn = now;
      arrange(controls);
      help.show(explainedOf(controls));
      fold.textContent = controls.find(({ fold: title }) => title)?.fold ?? 'Display';
      const nSet = controls.filter(({ isMore, isSet }) => isMore && isSet).length;
      count.textContent = nSet > 0 ? `: ${nSet} set` : '';
    },
  };
}

/**
 * Take out what is gone and put in what is new; a node that is moved would lose the focus.
 * @param {HTMLDivElement} host
 * @param {Element[]} wanted
 */
function replace(host, wanted) {
  for (const node of [...host.children]) if (!wanted.includes(node)) node.remove();
  wanted.forEach((node, index) => {
    if (host.children[index] !== node) host.insertBefore(node, host.children[index] ?? null);
  });
}

/** @param {Control} control @returns {string} its identity: a button with a name may change its label */
function keyOf({ kind, name, label, options = [], least, most, step }) {
  const shown = kind === 'button' && name ? '' : label;
  return JSON.stringify([kind, name, shown, options, least, most, step]);
}

/** @type {Record<string, (control: Control, id: string, onState: OnState) => Drawn>} */
const KINDS = {
  choice: (control, id, onState) => {
    const { length } = control.options ?? [];
    return (length > SEGMENTS ? menu : length === 1 ? single : segments)(control, id, onState);
  },
  menu,
  flag,
  number,
  integer,
  entry,
  counts,
  text,
  button: action,
};

/** @param {Control} control @param {string} id @param {OnState} onState @returns {Drawn} */
function segments({ name = '', label, options = [] }, id, onState) {
  const radios = options.map((of) => segment(id, of.id, of.title, { title: of.help }));
  const box = element(
    'fieldset.control',
    element('legend.unseen', label),
    element('span.control-label', { 'aria-hidden': 'true' }, label),
    element('div.segmented', radios),
  );
  box.addEventListener('change', ({ target }) =>
    onState({ [name]: valueOf(options, /** @type {HTMLInputElement} */ (target).value) }),
  );
  return {
    element: box,
    update: ({ value }) => {
      for (const radio of box.querySelectorAll('input'))
        radio.checked = radio.value === String(value);
    },
  };
}

/** Show a choice without an alternative as text. @param {Control} control @returns {Drawn} */
function single({ label, options = [] }) {
  const name = element('span.control-label', label);
  return { element: element('p.control', name, options[0].title), update: () => {} };
}

/** @param {Control} control @param {string} id @param {OnState} onState @returns {Drawn} */
function menu({ name = '', label, options = [] }, id, onState) {
  const select = element(
    'select',
    { id },
    options.map(({ id: value, title }) => element('option', { value: String(value) }, title)),
  );
  select.addEventListener('change', () => onState({ [name]: valueOf(options, select.value) }));
  return {
    element: labelled(label, id, select),
    update: ({ value }) => {
      select.value = String(value);
    },
  };
}

/**
 * Return an option's own value: what the element holds is text.
 * @param {NonNullable<Control['options']>} options
 * @param {string} written
 */
function valueOf(options, written) {
  return options.find(({ id }) => String(id) === written)?.id;
}

/** @param {Control} control @param {string} id @param {OnState} onState @returns {Drawn} */
function flag({ name = '', label, help }, id, onState) {
  const box = element('input', { type: 'checkbox', id });
  box.addEventListener('change', () => onState({ [name]: box.checked }));
  return {
    element: element('div.control', { title: help }, box, element('label', { for: id }, label)),
    update: ({ value }) => {
      box.checked = Boolean(value);
    },
  };
}

/** @param {Control} control @param {string} id @param {OnState} onState @returns {Drawn} */
function number({ name = '', label, least, most, step, isTyped = false }, id, onState) {
  const bounds = { min: least, max: most, step };
  const slider = element('input', { type: 'range', id, ...bounds });
  const output = isTyped
    ? element('input', { type: 'number', 'aria-label': `${label}, typed`, ...bounds })
    : element('output', { for: id });
  if (output instanceof HTMLInputElement)
    output.addEventListener('change', () => {
      if (output.value !== '' && output.validity.valid) onState({ [name]: Number(output.value) });
      else output.value = slider.value;
    });
  slider.addEventListener('input', () => onState({ [name]: Number(slider.value) }, true));
  return {
    element: labelled(label, id, slider, output),
    update: ({ value, shown }) => {
      if (document.activeElement !== slider || Number(slider.value) !== value)
        slider.value = String(value);
      if (output instanceof HTMLInputElement) output.value = String(value);
      else output.textContent = shown ?? String(value);
      slider.setAttribute('aria-valuetext', shown ?? String(value));
    },
  };
}

/**
 * Return a typed whole number. Any other input, or one out of range, restores the last value.
 * @param {Control} control
 * @param {string} id
 * @param {OnState} onState
 * @returns {Drawn}
 */
function integer({ name = '', label, least, most }, id, onState) {
  const box = element('input', {
    type: 'number',
    id,
    min: least,
    max: most,
    step: 1,
    inputmode: 'numeric',
    autocomplete: 'off',
  });
  let timer = 0;
  let set = least;
  const isInteger = () => box.value !== '' && box.validity.valid;
  const submit = () => {
    clearTimeout(timer);
    timer = 0;
    if (isInteger() && Number(box.value) !== set) onState({ [name]: Number(box.value) }, true);
  };
  box.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(submit, PAUSE);
  });
  box.addEventListener('change', () => {
    submit();
    if (!isInteger()) box.value = String(set);
  });
  return {
    element: labelled(label, id, box),
    update: ({ value }) => {
      set = value;
      const isBeingTyped = timer !== 0 || (document.activeElement === box && !isInteger());
      const isShown = isInteger() && Number(box.value) === value;
      if (!isBeingTyped && !isShown) box.value = String(value);
    },
  };
}

/**
 * Return a box whose text is read as it is typed, with a slider if its numbers have limits. A text
 * that means nothing is said to be ignored, and stays until there is another value.
 * @param {Control} control
 * @param {string} id
 * @param {OnState} onState
 * @returns {Drawn}
 */
function entry(control, id, onState) {
  const { name = '', label, help, slide, isLong = false } = control;
  const {
    read = (typed) => ({ value: typed, problem: '' }),
    write = String,
    words = String,
  } = control;
  const wrong = element('p.control-problem', { id: `${id}-problem`, 'aria-live': 'polite' });
  const attributes = { id, spellcheck: 'false', autocomplete: 'off', 'aria-describedby': wrong.id };
  const box = isLong
    ? element('textarea', { ...attributes, rows: 3, dir: 'auto' })
    : element('input', { ...attributes, type: 'text', inputmode: 'decimal' });
  const slider = slide && element('input', { type: 'range', 'aria-label': label });
  if (slider) Object.assign(slider, { min: slide.least, max: slide.most, step: slide.step });
  let known = '';

  /** @param {string} message */
  function tell(message) {
    if (wrong.textContent !== message) wrong.textContent = message;
    box.setAttribute('aria-invalid', String(message !== ''));
  }
  /** @param {any} value @param {HTMLElement} [from] where it was set */
  function set(value, from) {
    known = JSON.stringify(value);
    tell('');
    if (from !== box) box.value = write(value);
    if (!slider) return;
    if (from !== slider) slider.value = String(slide.at(value));
    slider.setAttribute('aria-valuetext', words(value));
  }
  box.addEventListener('input', () => {
    const { value, problem } = read(box.value);
    if (problem) return tell(`“${box.value.slice(0, 40)}” is ignored: ${problem}`);
    set(value, box);
    return onState({ [name]: value }, true);
  });
  slider?.addEventListener('input', () => {
    const value = slide?.value(Number(slider.value));
    set(value, slider);
    onState({ [name]: value }, true);
  });
  const host = labelled(label, id, box, ...(slider ? [slider] : []), wrong);
  host.title = help ?? '';
  return {
    element: host,
    update({ value, problem = '' }) {
      if (JSON.stringify(value) !== known) set(value);
      if (problem) tell(problem);
    },
  };
}

/** @param {Control} control @param {string} id @param {OnState} onState @returns {Drawn} */
function counts({ name = '', label, options = [] }, id, onState) {
  /** @type {unknown[]} */
  let chosen = [];
  const toggle = (/** @type {unknown} */ value) =>
    onState({
      [name]: options
        .map((option) => option.id)
        .filter((each) => (each === value) !== chosen.includes(each)),
    });
  const buttons = options.map(({ id: value, title, help }) =>
    element(
      'button',
      {
        type: 'button',
        title: help,
        'aria-label': help ?? `${label} ${title}`,
        onclick: () => toggle(value),
      },
      title,
    ),
  );
  return {
    element: element(
      'div.control',
      { role: 'group', 'aria-label': label },
      element('span.control-label', { 'aria-hidden': 'true' }, label),
      element('div.segmented.is-set', buttons),
    ),
    update: ({ value }) => {
      chosen = value;
      buttons.forEach((node, index) =>
        node.setAttribute('aria-pressed', String(value.includes(options[index].id))),
      );
    },
  };
}

/** @param {Control} control @param {string} id @param {OnState} onState @returns {Drawn} */
function text({ name = '', label, placeholder }, id, onState) {
  const box = element('input', {
    type: 'text',
    id,
    placeholder,
    dir: 'auto',
    spellcheck: 'false',
    autocomplete: 'off',
  });
  let timer = 0;
  /** @param {boolean} isTyped */
  const submit = (isTyped) => {
    clearTimeout(timer);
    onState({ [name]: box.value }, isTyped);
  };
  box.addEventListener('input', (event) => {
    clearTimeout(timer);
    if (!event.isComposing) timer = setTimeout(() => submit(true), PAUSE);
  });
  box.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.isComposing) return;
    event.preventDefault();
    submit(false);
  });
  return {
    element: labelled(label, id, box),
    update: ({ value }) => {
      if (document.activeElement !== box && box.value !== (value ?? '')) box.value = value ?? '';
    },
  };
}

/** @param {Control} control @param {string} _ @param {OnState} onState @returns {Drawn} */
function action({ label, help }, _, onState) {
  /** @type {Patch} */
  let patch = {};
  const node = button(label, () => onState(patch), { title: help });
  return {
    element: node,
    update: (control) => {
      patch = control.patch ?? {};
      node.disabled = Boolean(control.disabled);
      if (node.textContent !== control.label) node.textContent = control.label;
    },
  };
}

/** @param {string} label @param {string} id @param {...HTMLElement} parts */
function labelled(label, id, ...parts) {
  return element('div.control', element('label.control-label', { for: id }, label), parts);
}

/** @typedef {{title: string, parts: string[][]}} Explained words that belong together, each with its meaning */

/** An option that is only a number of something explains itself. */
const COUNTED = /^\S+ \d+$/;

/** @param {Control[]} controls @returns {Explained[]} only of those that have something to say */
function explainedOf(controls) {
  return controls
    .map(({ label, help, options = [] }) => {
      const said = options.flatMap(({ title, help: meaning }) =>
        meaning && !COUNTED.test(meaning) ? [[title, capitalised(meaning)]] : [],
      );
      const ofAll = help ? [[label, capitalised(help)]] : [];
      return { title: said.length > 0 ? label : '', parts: [...ofAll, ...said] };
    })
    .filter(({ parts }) => parts.length > 0);
}
