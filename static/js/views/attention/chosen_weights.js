/**
 * The subject of the Attention view: the numbers selected by its switches, and their name. Tokens
 * are merged into words first, then heads are combined, then tokens are hidden: merging sums and
 * averages, which is not meaningful after a maximum over heads.
 */

import {
  choosePlace,
  findPlaces,
  isPair,
  restOnFirst,
  tokensOf,
  weightsAt,
} from '../../trace/attention.js';
import { matrixAt, range, withoutFuture, buildMatrix, valueIn } from '../../trace/trace.js';
import { enumerated } from '../../words/lists.js';
import { chooseCell, rowWith } from '../../rules/prediction.js';
import { wordUnits } from '../../trace/word_names.js';
import { alone, merged, someOf } from '../../trace/words.js';
import { readSwitches, QUANTITIES, ROLLOUT, chooseScale } from '../../state/attention_switches.js';
import { areNamedByWritten, rowShown } from '../../state/written_rows.js';
import { createMemo } from '../../state/state.js';

/**
 * @import { Place, Side } from '../../trace/attention.js'
 * @import { Request } from '../../plot/grid.js'
 * @import { Hidden, Quantity, Scale, What } from '../../state/attention_switches.js'
 */

const memo = createMemo();

/**
 * @typedef {Object} Subject
 * @property {Place} place
 * @property {Switches} switches
 * @property {Quantity} quantity
 * @property {Scale} scale
 * @property {boolean} isWritten rows are named by the token that is written from them
 * @property {string} name which heads of which layer
 * @property {string} details what was done to their numbers, each after a comma; '' for nothing
 * @property {Matrix} matrix rows by columns; NaN if masked
 * @property {Unit[]} rows
 * @property {Unit[]} columns
 * @property {Request} request what of the API’s trace holds these numbers
 * @property {string} [made] their derivation, if the answer does not hold them
 */

/**
 * Return the place, layer and switches of the view.
 * @param {Trace} trace
 * @param {ViewState} state
 * @returns {{place: Place, site: string, nHeads: number, isWritten: boolean, switches: Switches}|null} null: there is no attention there
 */
export function readSetting(trace, state) {
  const place = choosePlace(state, trace);
  const site = weightsAt(place, trace).find(({ layer }) => layer === state.layer)?.site;
  if (!place || !site) return null;
  const [nHeads] = trace.tensors[site].shape;
  const isWritten = areNamedByWritten(trace, place, state);
  const chosen = readSwitches(state, { placeId: place.id, nHeads });
  const switches = { ...chosen, pair: isPair(trace) ? chosen.pair : null };
  // A chosen cell of the first token is not left out.
  const isOpen =
    switches.hidden !== 'auto' || !switches.isShare || state.key === 0 || switches.pair;
  const resting =
    isOpen || switches.which === 'rollout'
      ? 0
      : restOnFirst(trace, site, trace.tensors[site], headsOf(state, nHeads, switches));
  return { place, site, nHeads, isWritten, switches: { ...switches, resting } };
}

/** @param {ViewState} state @param {number} nHeads @param {Switches} switches */
function headsOf({ head }, nHeads, { which, heads }) {
  if (which === 'head') return [head];
  return which === 'heads' ? heads : range(nHeads);
}

/**
 * Return the other arrays that the current switches need.
 * @param {Trace} trace
 * @param {ViewState} state
 * @returns {Record<string, Ask>}
 */
export function asks(trace, state) {
  const setting = readSetting(trace, state);
  if (!setting) return {};
  const { site, switches } = setting;
  if (switches.which === 'rollout') return { attention: { analyses: ['rollout'] } };
  if (switches.what === 'scores') return { attention: { capture: [scoresOf(site)] } };
  if (switches.what === 'value_weighted')
    return { attention: { analyses: ['value_weighted'], layers: [state.layer] } };
  return {};
}

/** @param {string} site */
const pathOf = (site) => site.replace(/\.weights$/, '');
/** @param {string} site */
const scoresOf = (site) => `${pathOf(site)}.scores`;

/**
 * @param {Trace} trace
 * @param {ViewState} state whose answers are here
 * @param {NonNullable<ReturnType<typeof readSetting>>} setting
 * @returns {Subject}
 */
export function selectWeights(trace, state, setting) {
  const { layer, head, range } = state;
  const { place, isWritten, switches } = setting;
  const { weight, weight_fixed: isFixed } = state;
  const cell = weight === null ? null : [state.query, state.source, state.key, weight, isFixed];
  const wish = JSON.stringify({ place: place.id, layer, head, range, isWritten, switches, cell });
  return memo([trace, state.answers?.attention?.trace, wish], () => worked(trace, state, setting));
}

/**
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {NonNullable<ReturnType<typeof readSetting>>} setting
 */
function worked(trace, state, setting) {
  const { place, isWritten, switches } = setting;
  const { array, heads, request } = sourceOf(trace, state, setting);
  const named = unitsOf(trace, place.rows, switches);
  const units = {
    // The first token is given, not written.
    rows: isWritten ? named.slice(1) : named,
    columns: unitsOf(trace, place.columns, switches),
  };
  const each = heads.map((head) =>
    byUnit(
      seen(withWeight(matrixAt(array, head), trace, state, setting), setting.site),
      units,
      setting,
    ),
  );
  const { matrix, rows, columns } = withoutHidden(
    combined(each, switches.which === 'max' ? 'max' : 'mean'),
    units,
    place,
    switches,
  );
  return {
    place,
    switches,
    quantity:
      switches.which === 'rollout'
        ? {
            ...ROLLOUT,
            ...(switches.what === 'log' && { note: `${ROLLOUT.note} ${QUANTITIES.log.note}` }),
          }
        : QUANTITIES[switches.what],
    scale: chooseScale(switches.what, matrix, {
      range: switches.resting > 0 ? 'head' : state.range,
      most: mostOf(array, switches.what),
    }),
    isWritten,
    name: nameOf(trace, state, setting, heads),
    details: detailsOf(switches),
    matrix,
    rows,
    columns,
    request,
    made: madeOf(state, setting),
  };
}

/**
 * Return the array that holds the numbers, and the selected heads.
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {NonNullable<ReturnType<typeof readSetting>>} setting
 */
function sourceOf(trace, state, { place, site, nHeads, switches }) {
  const { which, what } = switches;
  if (which === 'rollout') {
    return {
      array: answerTrace(state)?.analyses.rollout[place.stack],
      heads: [state.layer],
      request: { capture: [], analyses: ['rollout'] },
    };
  }
  const heads = headsOf(state, nHeads, switches);
  const some = heads.length < nHeads ? { heads } : {};
  if (what === 'scores')
    return {
      array: answerTrace(state)?.tensors[scoresOf(site)],
      heads,
      request: { capture: [scoresOf(site)], ...some },
    };
  if (what === 'value_weighted') {
    return {
      array: answerTrace(state)?.analyses.value_weighted[pathOf(site)],
      heads,
      request: { capture: [], analyses: ['value_weighted'], layers: [state.layer], ...some },
    };
  }
  return { array: trace.tensors[site], heads, request: { capture: [site], ...some } };
}

/**
 * Return the derivation of the drawn numbers; none if they are one whole head, as the API returns it.
 * @param {ViewState} state
 * @param {NonNullable<ReturnType<typeof readSetting>>} setting
 */
function madeOf({ layer }, { isWritten, switches }) {
  const { which, heads, isWords } = switches;
  const hidden = hiddenBy(switches);
  const isMean = which === 'mean' || (which === 'heads' && heads.length > 1);
  const done = [
    which === 'rollout' && `the rollout up to layer ${layer} is taken`,
    isWritten && 'each row is named by the token that is written from it',
    isWords && 'pieces are merged into words',
    isMean && 'the mean of the heads is taken',
    which === 'max' && 'the largest of the heads is taken',
    hidden !== 'nothing' &&
      `${hidden === 'first' ? 'the first token is' : 'special tokens are'} hidden`,
    switches.pair && `only ${switches.pair.title} is kept`,
  ].filter((words) => typeof words === 'string');
  return done.length === 0 ? undefined : `From the response: ${enumerated(done)}`;
}

/**
 * Return the weights of a head with the one that is set by hand.
 * @param {Matrix} matrix
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {NonNullable<ReturnType<typeof readSetting>>} setting
 */
function withWeight(matrix, trace, state, { place, switches: { which, what } }) {
  const isOne = which === 'head' && (what === 'weights' || what === 'log');
  const cell =
    isOne && state.weight !== null ? chooseCell(trace, state, rowShown(trace, place, state)) : null;
  if (!cell || state.weight === null) return matrix;
  const data = matrix.data.slice();
  const row = rowWith(cell.row, cell.key, state.weight, state.weight_fixed);
  data.set(row, cell.query * matrix.columns);
  return { ...matrix, data };
}

/** @param {ViewState} state */
const answerTrace = ({ answers }) => answers.attention.trace;

/** @param {Trace} trace @param {Side} side @param {Switches} switches */
function unitsOf(trace, side, { isWords }) {
  return isWords ? wordUnits(trace, side) : alone(tokensOf(trace, side));
}

/**
 * Masked cells, the future of a decoder, are NaN rather than 0 or −∞.
 * @param {Matrix} matrix
 * @param {string} site
 */
function seen(matrix, site) {
  const { data } = matrix;
  for (let at = 0; at < data.length; at += 1) if (!Number.isFinite(data[at])) data[at] = NaN;
  return withoutFuture(matrix, site);
}

/** Return the tokens from which those of a unit are written. @param {Unit} unit @returns {Unit} */
function readBefore(unit) {
  return { ...unit, first: unit.first - 1, last: unit.last - 1 };
}

/**
 * @param {Matrix} matrix
 * @param {{rows: Unit[], columns: Unit[]}} units
 * @param {{isWritten: boolean, switches: Switches}} setting
 */
function byUnit(matrix, { rows, columns }, { isWritten, switches: { isWords } }) {
  if (isWords) return merged(matrix, isWritten ? rows.map(readBefore) : rows, columns);
  if (!isWritten) return matrix;
  return { ...matrix, rows: rows.length, data: matrix.data.slice(0, rows.length * matrix.columns) };
}

/**
 * A hidden token is dropped as a key, and as a query if both are of the same text.
 * @param {Matrix} matrix
 * @param {{rows: Unit[], columns: Unit[]}} units
 * @param {Place} place
 * @param {Switches} switches
 */
function withoutHidden(matrix, units, place, switches) {
  const { pair } = switches;
  const hidden = hiddenBy(switches);
  if (hidden === 'nothing' && !pair) return { matrix, ...units };
  const columns = left(units.columns, hidden, pair?.to);
  const rows =
    place.rows === place.columns
      ? left(units.rows, hidden, pair?.from)
      : units.rows.map((_, index) => index);
  const value = valueIn(matrix);
  return {
    matrix: buildMatrix(rows.length, columns.length, (row, column) =>
      value(rows[row], columns[column]),
    ),
    rows: someOf(units.rows, rows),
    columns: someOf(units.columns, columns),
  };
}

/**
 * Return the largest value of all heads, so that colours are comparable between heads; weights end
 * at 1.
 * @param {NamedArray} array of all heads
 * @param {What} what
 */
function mostOf({ data, scale }, what) {
  if (what !== 'scores' && what !== 'value_weighted') return 1;
  let most = 0;
  for (let at = 0; at < data.length; at += 1) {
    const size = Math.abs(data[at]);
    if (size > most && size < Infinity) most = size;
  }
  return most * scale;
}

/**
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {NonNullable<ReturnType<typeof readSetting>>} setting
 * @param {number[]} heads
 */
function nameOf(trace, { layer }, { place, switches }, heads) {
  const where = findPlaces(trace).length > 1 ? `${place.name}, ` : '';
  return (
    where +
    {
      head: `layer ${layer}, head ${heads[0]}`,
      heads:
        heads.length === 1
          ? `layer ${layer}, head ${heads[0]}`
          : `layer ${layer}, mean of heads ${enumerated(heads)}`,
      mean: `layer ${layer}, mean of all heads`,
      max: `layer ${layer}, largest of all heads`,
      rollout: `rollout up to layer ${layer}`,
    }[switches.which]
  );
}

/** Return the tokens that are left out. @param {Switches} switches */
export function hiddenBy({ hidden, resting }) {
  if (hidden !== 'auto') return hidden;
  return resting > 0 ? 'first' : 'nothing';
}

/** @param {Switches} switches */
function detailsOf(switches) {
  const hidden = hiddenBy(switches);
  const done = [
    switches.isWords && 'by word',
    hidden === 'first' && 'first token hidden',
    hidden === 'special' && 'special tokens hidden',
    switches.pair?.title,
  ];
  return done
    .filter(Boolean)
    .map((part) => `, ${part}`)
    .join('');
}

/**
 * Combine heads cell by cell; a cell masked in one head is masked in the result. Means of rows that
 * sum to 1 sum to 1; maxima sum to 1 or more.
 * @param {Matrix[]} heads of one shape, at least one
 * @param {'mean'|'max'} way
 * @returns {Matrix}
 */
function combined(heads, way) {
  const [first, ...others] = heads;
  const data = first.data.slice();
  for (const head of others) (way === 'max' ? raise : add)(data, head.data);
  if (way === 'mean') for (let at = 0; at < data.length; at += 1) data[at] /= heads.length;
  return { ...first, data };
}

/** @param {Float64Array} data @param {Float64Array} addend */
function add(data, addend) {
  for (let at = 0; at < data.length; at += 1) data[at] += addend[at];
}

/** @param {Float64Array} data @param {Float64Array} rival */
function raise(data, rival) {
  for (let at = 0; at < data.length; at += 1) data[at] = Math.max(data[at], rival[at]);
}

/**
 * @param {Unit[]} units
 * @param {Hidden} hidden
 * @param {string} [only] the role of those that may stay
 * @returns {number[]} those that stay, by their index
 */
function left(units, hidden, only) {
  return units.flatMap(({ is_special: isSpecial, role }, index) =>
    (hidden === 'first' && index === 0) ||
    (hidden === 'special' && isSpecial) ||
    (only && role !== only)
      ? []
      : [index],
  );
}
