/**
 * Positions as lines: single dimensions over the positions, and similarity by distance. For schemes
 * that add nothing: the rotation of pairs, and the bias of the scores.
 */

import { findWaves } from '../../trace/arithmetic.js';
import { signed, small, tick } from '../../words/numbers.js';
import { named, positionLabels, quoted } from '../../words/tokens.js';
import { columnOf, matrixAt, range } from '../../trace/trace.js';
import { control, numbered } from '../../ui/controls.js';
import { COLUMN_SPACE, distanceChart, outwards, stripsChart } from './line_plots.js';
import { byDistance, positionBand, findReach, restOf, computeSimilarity } from './maps.js';
import { noPairs, readRotation, turnSites, measureTurns } from './inside_attention.js';

/**
 * @import { Pairs } from '../../trace/arithmetic.js'
 * @import { Matrix, Token, Trace } from '../../trace/trace.js'
 * @import { Figure, ViewState } from '../../plot/figure.js'
 * @import { Strip } from './line_plots.js'
 * @import { Part, Subject } from './maps.js'
 */

const MOST_STRIPS = 6;
/** The default dimension. */
const FOLLOWED = 4;
/** Points of a curve between two positions: the fastest wave advances by one radian there. */
const STEPS = 8;

/** @type {Part} */
export const WAVES = {
  controls(trace, state, subject) {
    if (subject.scheme === 'rotary') {
      const rotation = readRotation(trace, trace.tensors[turnSites(subject.stack).before]);
      return rotation ? [pairsControl(state, rotation.speeds.length)] : [];
    }
    if (!subject.encoding) return [];
    const { columns } = subject.encoding;
    return [
      control(
        'counts',
        'positions_dimensions',
        'Dimensions',
        chosenOf(state.positions_dimensions, columns),
        { options: numbered(spaced(columns), 'dimension') },
      ),
      ...(columns > 1
        ? [
            control('number', 'positions_dimension', 'and dimension', followed(state, columns), {
              least: 0,
              most: columns - 1,
              step: 1,
              shown: String(followed(state, columns)),
            }),
          ]
        : []),
    ];
  },

  panels({ scheme }) {
    return scheme === '' ? ['waves', 'distance'] : ['waves'];
  },

  figure(trace, state, subject) {
    const { encoding, scheme } = subject;
    if (encoding)
      return (state.plot === 'distance' ? distances : waves)(trace, state, {
        ...subject,
        encoding,
      });
    if (scheme === 'rotary') return turns(trace, state, subject);
    if (scheme === 'alibi' || scheme === 'relative') return lowering(trace, state, subject);
    return {
      title: 'Waves',
      notice: 'This model adds no positional encoding, so there are no waves to draw.',
    };
  },
};

/**
 * Return the drawn pairs; one choice for waves and circles.
 * @param {ViewState} state
 * @param {number} pairs
 */
export function pairsControl(state, pairs) {
  return control('counts', 'positions_pairs', 'Pairs', chosenOf(state.positions_pairs, pairs), {
    options: numbered(spaced(pairs), 'pair'),
  });
}

/** @param {ViewState} state @param {number} pairs */
export function chosenPairs(state, pairs) {
  return chosenOf(state.positions_pairs, pairs);
}

/** @param {Record<string, any>} state @param {number} columns @returns {number} */
function followed({ positions_dimension: dimension }, columns) {
  return Math.min(dimension ?? FOLLOWED, columns - 1);
}

/** @typedef {Subject & {encoding: Matrix}} Encoded a subject whose model adds an encoding */

/** @param {Trace} trace @param {ViewState} state @param {Encoded} subject @returns {Figure} */
function waves(trace, state, subject) {
  const { encoding, tokens } = subject;
  const most = followed(state, encoding.columns);
  const dimensions = [
    ...new Set([...chosenOf(state.positions_dimensions, encoding.columns), most]),
  ].sort((a, b) => a - b);
  const isFormula = trace.card?.positional === 'sinusoidal';
  const pairs = findWaves(encoding);
  const strips = dimensions.map((dimension) => ({
    label: String(dimension),
    values: columnOf(encoding, dimension),
    isChosen: dimension === most,
    ...(isFormula && { curve: curveOf(waveOf(dimension, pairs), encoding.rows) }),
  }));
  const reach = isFormula
    ? 1
    : outwards(findReach(Float64Array.from(strips.flatMap(({ values }) => [...values]))));
  const off = isFormula ? offOf(strips, dimensions, pairs) : null;
  return {
    title: 'Single dimensions',
    help: isFormula
      ? 'The line is the formula, a sine or cosine; the dots are the captured values at the tokens of this sentence.'
      : 'The dots are the captured values at the tokens of this sentence; a learned encoding has no formula, so the lines only join them.',
    summary: `${strips.length} dimensions of the encoding over ${encoding.rows} positions, between ${tick(-reach)} and ${tick(reach)}.`,
    facts: off === null ? [] : [['Greatest difference from the formula', small(off)]],
    ...positionStrips(
      strips,
      {
        rows: 'dimension',
        domain: [-reach, reach],
        say: ({ row, column, value }) =>
          `Dimension ${dimensions[row]} is ${signed(value)} at position ${column}, ${quoted(tokens[column])}`,
        name: ({ row, column }) => `dimension ${dimensions[row]}, position ${column}`,
        table: { quantity: 'positional encoding', request: { capture: [subject.site] } },
      },
      { trace, state, subject },
    ),
  };
}

/**
 * Draw strips over positions: a point of them marks its token in the sentence and chooses it.
 * @param {Strip[]} strips
 * @param {Omit<Parameters<typeof stripsChart>[1], 'x'>} channels
 * @param {{trace: Trace, state: ViewState, subject: Subject}} of
 */
function positionStrips(strips, { table, ...channels }, { trace, state, subject }) {
  const { tokens } = subject;
  const { columns = { title: 'position', labels: positionLabels(tokens) } } = table;
  return stripsChart(
    strips,
    {
      x: positionBand(trace, state, subject, {
        labels: numbersOf(tokens),
        space: COLUMN_SPACE,
        title: columns.title,
      }),
      table: { ...table, columns },
      sentence: { rest: restOf(trace, state, subject) },
      ...channels,
    },
    state,
  );
}

/** @param {Token[]} tokens */
function numbersOf(tokens) {
  return range(tokens.length).map(String);
}

/**
 * Return the wave of a dimension: a sine if it is the first of its pair, else a cosine.
 * @param {number} dimension
 * @param {Pairs} pairs
 * @returns {(x: number) => number}
 */
function waveOf(dimension, { first, second, speeds }) {
  const pair = first.indexOf(dimension);
  if (pair !== -1) return (x) => Math.sin(x * speeds[pair]);
  const speed = speeds[second.indexOf(dimension)];
  return (x) => Math.cos(x * speed);
}

/** @param {(x: number) => number} wave @param {number} count @returns {[number, number][]} */
function curveOf(wave, count) {
  return Array.from({ length: (count - 1) * STEPS + 1 }, (_, step) => [
    step / STEPS,
    wave(step / STEPS),
  ]);
}

/** @param {Strip[]} strips @param {number[]} dimensions @param {Pairs} pairs */
function offOf(strips, dimensions, pairs) {
  const off = strips.flatMap(({ values }, row) =>
    Array.from(values, (value, position) =>
      Math.abs(value - waveOf(dimensions[row], pairs)(position)),
    ),
  );
  return Math.max(...off);
}

/** @param {Trace} trace @param {ViewState} state @param {Subject} subject @returns {Figure} */
function turns(trace, state, subject) {
  const { before, after } = turnSites(subject.stack);
  const turned = measureTurns(trace, state.head, subject.stack);
  if (!turned) return { title: 'Rotation of each pair', notice: noPairs(trace) };
  const { cosines } = turned;
  const pairs = chosenPairs(state, cosines.columns);
  const { speeds } = turned.rotation;
  const { tokens } = subject;
  const strips = pairs.map((pair) => ({
    label: String(pair),
    values: columnOf(cosines, pair),
    curve: curveOf((x) => Math.cos(x * speeds[pair]), cosines.rows),
  }));
  return {
    title: 'Rotation of each pair',
    help: `The line is the formula, the cosine of position × speed; the dots are the measured rotation of the queries of layer 0, head ${state.head}.`,
    summary: `Cosine of the rotation of ${pairs.length} pairs over ${cosines.rows} positions.`,
    ...positionStrips(
      strips,
      {
        rows: 'pair',
        domain: [-1, 1],
        say: ({ row, column, value }) =>
          `Pair ${pairs[row]} of the query of ${quoted(tokens[column])} at position ${column} is rotated by an angle whose cosine is ${signed(value)}`,
        name: ({ row, column }) => `pair ${pairs[row]}, position ${column}`,
        table: {
          quantity: `cosine of the rotation, layer 0, head ${state.head}`,
          request: { capture: [before, after], heads: [state.head] },
        },
      },
      { trace, state, subject },
    ),
  };
}

/**
 * Return the ALiBi bias of the last query; other queries have the same line, shifted.
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {Subject} subject
 * @returns {Figure}
 */
function lowering(trace, state, subject) {
  const site = `${subject.stack}.layers.0.self_attention.bias`;
  const { tokens } = subject;
  const last = tokens.length - 1;
  const strips = Array.from({ length: trace.tensors[site].shape[0] }, (_, head) => ({
    label: String(head),
    values: Float64Array.from(
      matrixAt(trace.tensors[site], head).data.subarray(last * tokens.length),
    ).reverse(),
    isChosen: head === state.head,
  }));
  const numbers = strips.flatMap(({ values }) => [...values]);
  const ends = [Math.min(...numbers, 0), Math.max(...numbers, 0)];
  const [least, most] = ends.map(outwards);
  const labels = numbersOf(tokens);
  return {
    title: 'Bias by distance',
    help:
      subject.scheme === 'alibi'
        ? 'The number that each head adds to a score, by distance: a straight line; the steeper it is, the closer the head attends.'
        : 'The number that each head adds to a score, by the distance from the last token back to the key.',
    summary: `Bias of ${strips.length} heads at distances from 0 to ${last}, from ${ends.map(tick).join(' to ')}.`,
    ...positionStrips(
      strips,
      {
        rows: 'head',
        domain: [least || -1, most],
        say: ({ row, column, value }) =>
          `Head ${row} changes the score of ${named(tokens, last - column)}, ${column} before the last token, by ${signed(value)}`,
        name: ({ row, column }) => `head ${row}, ${column} back`,
        tokens: ({ column }) => ({ query: last, key: last - column }),
        choose: ({ row }) => ({ head: row }),
        table: {
          columns: { title: 'distance', labels },
          quantity: 'bias',
          request: { capture: [site] },
        },
        cursor: { chooseHint: 'Enter makes the head the chosen one', chosen: { row: state.head } },
      },
      { trace, state, subject },
    ),
  };
}

/** @param {Trace} _ @param {ViewState} state @param {Encoded} subject @returns {Figure} */
function distances(_, state, { tokens, encoding, side, site }) {
  const similarity = byDistance(computeSimilarity(encoding));
  const names = ['mean', 'least', 'greatest'];
  const widest = similarity.most.reduce(
    (most, value, distance) => Math.max(most, value - similarity.least[distance]),
    0,
  );
  return {
    title: 'Similarity by distance',
    help: 'The line is the mean over all pairs of positions at this distance; the band goes from the least to the greatest.',
    summary: `Cosine similarity of two positions by their distance, from 0 to ${encoding.rows - 1}, computed from the captured encoding.`,
    facts: [['Greatest width of the band', small(widest)]],
    ...distanceChart(
      similarity,
      {
        say: ({ row, column, value }) =>
          `Two positions ${column} apart: the ${names[row]} of their cosine similarities is ${signed(value)}, over ${tokens.length - column} pairs`,
        name: ({ row, column }) => `${names[row]}, ${column} apart`,
        table: {
          rows: { title: 'of all pairs' },
          columns: { title: 'distance' },
          quantity: 'cosine similarity by distance',
          request: { capture: [site] },
        },
        sentence: { sides: { rows: side, columns: side } },
        cursor: { kind: 'lines' },
      },
      state,
    ),
  };
}

/**
 * @param {number} count
 * @returns {number[]} 0, the powers of two below count, and the last, ascending
 */
function spaced(count) {
  return [...new Set([0, ...powersBelow(count), count - 1])];
}

/** @param {number} count */
function powersBelow(count) {
  const powers = [];
  for (let power = 1; power < count; power *= 2) powers.push(power);
  return powers;
}

/**
 * Return the chosen items that exist, or the most informative ones.
 * @param {number[]} chosen
 * @param {number} count
 * @returns {number[]} ascending, none twice
 */
function chosenOf(chosen, count) {
  const there = [...new Set(chosen)].filter((index) => index < count).sort((a, b) => a - b);
  return there.length > 0 ? there : [0, ...powersBelow(count).slice(1 - MOST_STRIPS)];
}
