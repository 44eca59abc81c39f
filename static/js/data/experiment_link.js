/**
 * An experiment's link: its parameters, and what of its result is shown.
 */

import { changed, readTyped } from './experiment.js';

/** @import { ExperimentView, Parameter, Values } from './experiment.js' */

/** Names in a link that are not parameters; `run` is of older links. */
const NAMES = ['experiment', 'run', 'frame', 'beside', 'picked'];

/**
 * The parameters that a link names; whatever it does not name, or means nothing by, is left out.
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
 * The faults of the parts of a link that are left out, in words, by name.
 * @param {URLSearchParams} link
 * @param {Parameter[]} parameters
 * @param {Partial<ExperimentView>} view
 * @returns {Map<string, string>}
 */
export function problemsInLink(link, parameters, view) {
  const problems = new Map();
  for (const [name, text] of link) {
    const why = NAMES.includes(name) ? problemOfName(name, text, view) : 'no such parameter';
    const isParameter = parameters.some((each) => each.name === name);
    if (isParameter || why === '') continue;
    const shown = NAMES.includes(name) ? text : name;
    problems.set(name, `“${shortened(shown)}” in the link is not used: ${why}`);
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
    problems.set(parameter.name, `“${shortened(text)}” in the link is not used: ${why}`);
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

/** @param {string} text */
function shortened(text) {
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}

/** @param {string|null} text @returns {{row: number, column: number}|null} */
export function pickedIn(text) {
  const [, row, column] = text?.match(/^(\d{1,3})\.(\d{1,3})$/) ?? [];
  return row === undefined ? null : { row: Number(row), column: Number(column) };
}

/**
 * @param {Parameter} parameter
 * @param {string} text
 */
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
 * Writes the parameters that are not as they would be anyway.
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
