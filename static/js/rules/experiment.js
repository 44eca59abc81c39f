/**
 * An experiment as the API describes it: its parameters with their limits, and its result in
 * frames. Its link holds the parameters and the shown part of the result.
 */

import { capitalised } from '../words/lists.js';
import { ignored } from './experiment_run.js';

/** @import { ExperimentAnswer, TensorAnswer } from '../api/schemas' */

/** @typedef {ExperimentAnswer} Description */

/** @typedef {Record<string, any>} Schema a JSON Schema of one parameter */

/** @typedef {Pick<TensorAnswer, 'axes'|'shape'> & {dtype: string, data: any}} ResultArray nested lists; null: not finite */

/** @typedef {Record<string, ResultArray>} Arrays of a result, by name */

/**
 * @typedef {Object} Parameter
 * @property {string} name
 * @property {string} label
 * @property {string} help
 * @property {'integer'|'number'|'choice'|'flag'|'text'|'list'|'rows'} kind
 * @property {any} standard
 * @property {number} least -Infinity: no limit
 * @property {number} most
 * @property {number} multiple of a whole number; 1 if any will do
 * @property {string[]} options of a choice
 * @property {Record<string, string>} [titles] of the options, if these are not words
 * @property {number} longest of a text, in characters
 * @property {[number, number]} count of the numbers of a list
 * @property {boolean} isOptional null leaves it to the experiment
 */

/** @typedef {Record<string, any>} Values of parameters, by name */

const NAMES = new Map([
  ['d_model', 'Width d_model'],
  ['d_head', 'Width of a head'],
  ['n_kv_heads', 'Heads of keys'],
  ['top_k', 'Experts of a token'],
  ['is_tied', 'Tied weights'],
  ['n_clusters', 'Kinds of tokens'],
  ['n_hashes', 'Hash functions'],
  ['n_tokens', 'Tokens'],
  ['is_causal', 'Causal mask'],
  ['is_scaled', 'Divide by √d'],
  ['positional', 'Positions'],
  ['model', 'Network'],
  ['first', 'First text'],
  ['second', 'Second text'],
  ['unit', 'Shingles of'],
  ['shingle', 'Shingle length'],
  ['coefficient', 'Balance loss'],
  ['sgd_rate', 'Rate of SGD'],
  ['adam_rate', 'Rate of Adam'],
  ['x', 'Start x'],
  ['y', 'Start y'],
]);

/** @param {string} name @returns {string} `n_heads` → `Heads` */
export function labelOf(name) {
  return NAMES.get(name) ?? capitalised(name.replace(/^n_/, '').replaceAll('_', ' '));
}

/** @param {Description} description @returns {Parameter[]} */
export function parametersOf({ parameters: { properties } }) {
  return Object.entries(properties).map(([name, schema]) => parameterOf(name, schema));
}

/** @param {string} name @param {Schema} schema @returns {Parameter} */
function parameterOf(name, schema) {
  const isOptional = (schema.anyOf ?? []).some((/** @type {Schema} */ { type }) => type === 'null');
  const plain = isOptional
    ? { ...schema, ...schema.anyOf.find((/** @type {Schema} */ { type }) => type !== 'null') }
    : schema;
  const numbers = plain.type === 'array' ? (plain.items.items ?? plain.items) : plain;
  const isOpen = numbers.exclusiveMaximum !== undefined;
  return {
    name,
    label: labelOf(name),
    help: (schema.description ?? '').replace(/ null: .*$/, ''),
    kind: kindOf(plain),
    standard: schema.default,
    least: numbers.minimum ?? numbers.exclusiveMinimum ?? -Infinity,
    most: isOpen ? numbers.exclusiveMaximum - 1 : (numbers.maximum ?? Infinity),
    multiple: numbers.multipleOf ?? 1,
    options: plain.enum ?? [],
    longest: plain.maxLength ?? Infinity,
    count: [plain.minItems ?? 0, plain.maxItems ?? Infinity],
    isOptional,
  };
}

/** @param {Schema} schema @returns {Parameter['kind']} */
function kindOf({ type, enum: options, items }) {
  if (options) return 'choice';
  if (type === 'array') return items.type === 'number' ? 'list' : 'rows';
  return (
    /** @type {Record<string, Parameter['kind']>} */ ({
      boolean: 'flag',
      integer: 'integer',
      number: 'number',
    })[type] ?? 'text'
  );
}

/**
 * Read what was typed.
 * @param {Parameter} parameter
 * @param {string} typed
 * @returns {{value: any, problem: string}} an empty problem: the value may be sent
 */
export function readTyped(parameter, typed) {
  const { kind, count, longest, isOptional } = parameter;
  if (kind === 'text') {
    const isLong = [...typed].length > longest;
    return { value: typed, problem: isLong ? `at most ${longest} characters` : '' };
  }
  if (kind !== 'list') {
    const value = numberIn(typed);
    return { value, problem: problemOf(parameter, value) };
  }
  if (isOptional && typed.trim() === '') return { value: null, problem: '' };
  const value = typed
    .split(/[\s,;]+/)
    .filter(Boolean)
    .map(numberIn);
  const [fewest, most] = count;
  if (value.length < fewest || value.length > most)
    return { value, problem: `${fewest} to ${most} numbers` };
  return { value, problem: value.map((each) => problemOf(parameter, each)).find(Boolean) ?? '' };
}

/** @param {string} typed a true minus sign is one, too */
function numberIn(typed) {
  return typed.trim() === '' ? NaN : Number(typed.trim().replace(/^−/, '-'));
}

/**
 * Return the limit that a number breaks, in words.
 * @param {Parameter} parameter
 * @param {number} value
 */
function problemOf({ kind, least, most, multiple }, value) {
  const isBounded = Number.isFinite(least) && Number.isFinite(most);
  const limits = isBounded ? `, from ${written(least)} to ${written(most)}` : '';
  if (Number.isNaN(value)) return `a number is needed${limits}`;
  if (value < least) return `at least ${written(least)}`;
  if (value > most) return `at most ${written(most)}`;
  if (kind === 'integer' && !Number.isInteger(value)) return `a whole number is needed${limits}`;
  if (multiple !== 1 && value % multiple !== 0) return `a multiple of ${multiple}`;
  return '';
}

/** @param {number} value @returns {string} with groups, and a true minus sign */
export function written(value) {
  const text =
    Math.abs(value) >= 1e4 && Number.isInteger(value) ? value.toLocaleString('en') : String(value);
  return text.replace(/^-/, '−');
}

/** Steps of a slider; on a logarithmic one as many between its ends. */
const SLIDES = 100;

/** @typedef {{least: number, most: number, step: number, at: (value: number) => number, value: (at: number) => number}} Slide */

/**
 * Return the scale of a parameter's slider: logarithmic if its limits lie a factor of 100 apart.
 * @param {Parameter} parameter
 * @returns {Slide|null} null: it has none, its limits lie too far apart
 */
export function slideOf({ name, kind, least, most, multiple }) {
  if (name === 'seed' || !Number.isFinite(least) || !Number.isFinite(most)) return null;
  const isWhole = kind === 'integer';
  if (least > 0 && most / least >= 100) {
    const span = Math.log(most / least);
    return {
      least: 0,
      most: SLIDES,
      step: 1,
      at: (value) => (Math.log(value / least) / span) * SLIDES,
      value: (at) => {
        const exact = least * Math.exp((at / SLIDES) * span);
        const near = isWhole ? Math.round(exact) : Number(exact.toPrecision(2));
        return Math.min(most, Math.max(least, near));
      },
    };
  }
  const step = isWhole ? multiple : roundStep((most - least) / SLIDES);
  /** @param {number} value */
  const same = (value) => value;
  return { least, most, step, at: same, value: same };
}

/** @param {number} width @returns {number} 0.1 for 0.06 */
function roundStep(width) {
  const power = 10 ** Math.floor(Math.log10(width) + 1e-9);
  return Number(
    (([1, 2, 5].find((factor) => factor * power >= width * (1 - 1e-9)) ?? 10) * power).toPrecision(
      3,
    ),
  );
}

/**
 * Return the values that differ from the standard ones; null is left to the experiment.
 * @param {Parameter[]} parameters
 * @param {Values} values
 * @returns {Values}
 */
export function changed(parameters, values) {
  return Object.fromEntries(
    parameters.flatMap(({ name, standard }) => {
      const value = values[name];
      const isSame = JSON.stringify(value) === JSON.stringify(standard);
      return value === undefined || value === null || isSame ? [] : [[name, value]];
    }),
  );
}

/** @param {(number|null)[]} list @returns {number[]} null is NaN */
export function numbersIn(list) {
  return list.map((value) => value ?? NaN);
}

/** Return the parameters in words, for a caption. @param {Values} values */
export function valuesInWords(values) {
  return Object.entries(values)
    .filter(([, value]) => value !== null && !Array.isArray(value?.[0]))
    .map(([name, value]) => `${labelOf(name)} ${Array.isArray(value) ? value.join(', ') : value}`)
    .join('; ');
}

/**
 * @typedef {Object} Result of a run, as far as it has come
 * @property {Arrays} arrays
 * @property {Values} values all parameters
 * @property {number} at the frame that is shown
 * @property {boolean} isPreview only the first frame of a short run is shown
 * @property {number} total training steps of the whole run, if it has steps
 * @property {{name: string, arrays: Arrays, at: number}|null} beside a second run
 * @property {{row: number, column: number}|null} picked cell
 */

/**
 * @typedef {Object} Picture
 * @property {string} id
 * @property {boolean} [isWide] it takes the whole width
 * @property {(size: import('../plot/map.js').Size) => DrawnFigure} draw
 */

/** @typedef {{name: string, step: string, title: string, note: string, rows: string[], columns: string[], values: number[][], other?: {words: string, values: number[][]}, isGiven?: boolean, isEdited?: boolean, isOverride?: boolean}} Table of numbers that can be edited, if they are given */

/**
 * @typedef {Object} ExperimentView
 * @property {string} id
 * @property {string[]} main parameters that are always in sight
 * @property {string[]} [hidden] parameters that are set elsewhere
 * @property {Record<string, Record<string, string>>} [titles] of options, by parameter
 * @property {Record<string, string[]>} [following] tables computed from another, which replaces what was typed there
 * @property {(arrays: Arrays) => number[]} [pickable] rows and columns of the cells that can be chosen
 * @property {Values} [preview] of a run that a busy server takes too, if a whole one takes long
 * @property {boolean} [isMeasured] its numbers are those of this machine, so that it can be measured again
 * @property {{id: string, title: string, values: Values}[]} [besides] runs to compare with
 * @property {(arrays: Arrays) => number[]} [steps] of the frames, to go back and forth in
 * @property {string} [stepName] what a frame counts, if not training steps
 * @property {(result: Result) => string} finding the result in a sentence or two
 * @property {(result: Result) => Picture[]} pictures
 * @property {(result: Result) => Table[]} [tables]
 */

/** Names in a link that are not parameters; `run` is of older links. */
const RESERVED = ['experiment', 'run', 'frame', 'beside', 'picked', 'chapter', 'chapter_step'];

/**
 * Return the parameters that a link names; whatever it does not name, or means nothing by, is left
 * out.
 * @param {URLSearchParams} link
 * @param {Parameter[]} parameters
 * @returns {Values}
 */
export function valuesInLink(link, parameters) {
  /** @type {Values} */
  const values = {};
  for (const parameter of parameters) {
    const text = link.get(parameter.name);
    const value = text === null ? undefined : readInLink(parameter, text);
    if (value !== undefined) values[parameter.name] = value;
  }
  return values;
}

/**
 * Return the faults of the parts of a link that are left out, in words, by name.
 * @param {URLSearchParams} link
 * @param {Parameter[]} parameters
 * @param {Partial<ExperimentView>} view
 * @returns {Map<string, string>}
 */
export function problemsInLink(link, parameters, view) {
  const problems = new Map();
  for (const [name, text] of link) {
    const why = RESERVED.includes(name) ? problemOfName(name, text, view) : 'no such parameter';
    const isParameter = parameters.some((each) => each.name === name);
    if (isParameter || why === '') continue;
    const shown = RESERVED.includes(name) ? text : name;
    problems.set(name, ignored(shown, why));
  }
  for (const parameter of parameters) {
    const text = link.get(parameter.name);
    if (text === null || readInLink(parameter, text) !== undefined) continue;
    const { kind, options } = parameter;
    const why =
      kind === 'choice'
        ? `one of ${options.join(', ')}`
        : kind === 'flag'
          ? '0 or 1'
          : kind === 'rows'
            ? 'rows of numbers are needed'
            : readTyped(parameter, text).problem;
    problems.set(parameter.name, ignored(text, why));
  }
  return problems;
}

/**
 * @param {string} name of a part of a link that is not a parameter
 * @param {string} text
 * @param {Partial<ExperimentView>} view
 * @returns {string} empty: nothing is wrong
 */
function problemOfName(name, text, { besides, steps, pickable }) {
  if (name === 'frame') {
    if (!steps) return 'this experiment has no frames';
    return /^\d{1,6}$/.test(text) ? '' : 'a frame is a whole number from 0';
  }
  if (name === 'beside') {
    if (!besides) return 'this experiment has nothing to compare with';
    const known = besides.map(({ id }) => id);
    return known.includes(text) ? '' : `one of ${known.join(', ')}`;
  }
  if (name === 'picked') {
    if (!pickable) return 'no cell can be chosen in this experiment';
    return pickedIn(text) ? '' : 'a cell is a row and a column, like 2.3';
  }
  return '';
}

/** @param {string|null} text @returns {{row: number, column: number}|null} */
export function pickedIn(text) {
  const [, row, column] = text?.match(/^(\d{1,3})\.(\d{1,3})$/) ?? [];
  return row === undefined ? null : { row: Number(row), column: Number(column) };
}

/** @param {Parameter} parameter @param {string} text */
function readInLink(parameter, text) {
  const { kind, options } = parameter;
  if (kind === 'choice') return options.includes(text) ? text : undefined;
  if (kind === 'flag') return { 0: false, 1: true }[text];
  if (kind === 'rows') return rowsIn(text);
  const { value, problem } = readTyped(parameter, text);
  return problem === '' ? value : undefined;
}

/** @param {string} text @returns {unknown[]|undefined} */
function rowsIn(text) {
  try {
    const rows = JSON.parse(text);
    return Array.isArray(rows) ? rows : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Write the parameters that are not as they would be anyway.
 * @param {URLSearchParams} link
 * @param {Parameter[]} parameters
 * @param {Values} values
 */
export function writeInLink(link, parameters, values) {
  for (const [name, value] of Object.entries(changed(parameters, values))) {
    const { kind } = /** @type {Parameter} */ (parameters.find((each) => each.name === name));
    if (kind === 'flag') link.set(name, value ? '1' : '0');
    else if (kind === 'rows') link.set(name, JSON.stringify(value));
    else link.set(name, kind === 'list' ? value.join(',') : String(value));
  }
}
