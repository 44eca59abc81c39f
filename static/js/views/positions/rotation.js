/**
 * The rotation from one position to another, recomputed and compared with the captured values:
 * R(k)·PE(p) = PE(p + k) for a sinusoidal encoding, a query rotated by p for rotary positions. Each
 * pair of dimensions is a point on a circle: where it starts, its arc, and where it ends.
 */

import { computeAngles, checked, turned, findWaves, speedFacts } from '../../trace/arithmetic.js';
import { counted } from '../../words/lists.js';
import { amount, signed, small } from '../../words/numbers.js';
import { quoted } from '../../words/tokens.js';
import { matrixAt, rowOf } from '../../trace/trace.js';
import { choosingModel, queryOf } from '../../state/state.js';
import { circlesChart } from './circles.js';
import { noPairs, readRotation, turnSites } from './inside_attention.js';
import { control, numbered } from '../../ui/controls.js';

/**
 * @import { Pairs } from '../../trace/arithmetic.js'
 * @import { Circle, Point } from './circles.js'
 * @import { Part, Subject } from './maps.js'
 */

/** Arcs of one step are hard to see. */
const STANDARD_SHIFT = 3;
/** Circles that are drawn unless others are chosen. */
const MOST_PAIRS = 6;

/** @type {Part} */
export const ROTATION = {
  controls(trace, state, subject) {
    const turn = turnOf(trace, state, subject);
    if (!turn) return [];
    const most = subject.tokens.length - 1;
    const shift = control('number', 'positions_shift', 'k', turn.shift, {
      least: 1,
      most,
      step: 1,
      shown: counted(turn.shift, 'position'),
    });
    return [
      ...(turn.isAdded && most > 1 ? [shift] : []),
      pairsControl(state, turn.pairs.speeds.length),
    ];
  },

  panels: () => ['circles'],

  figure(trace, state, subject) {
    const turn = turnOf(trace, state, subject);
    if (!turn)
      return {
        title: 'Rotation',
        notice: noticeFor(trace, subject),
        actions: turningModel(state).map((patch) => ({
          label: 'Open a model with rotary positions',
          patch,
        })),
      };
    return circles(state, { ...subject, turn });
  },
};

/** @param {ViewState} state @param {number} count */
function pairsControl(state, count) {
  const offered = [...new Set([0, ...powersBelow(count), count - 1])];
  return control('counts', 'positions_pairs', 'Pairs', chosenPairs(state, count), {
    options: numbered(offered, 'pair'),
  });
}

/** Return the chosen pairs that exist, or the slowest ones and the fastest. @param {ViewState} state @param {number} count */
function chosenPairs({ positions_pairs: chosen }, count) {
  const there = [...new Set(chosen)].filter((pair) => pair < count).sort((a, b) => a - b);
  return there.length > 0 ? there : [0, ...powersBelow(count).slice(1 - MOST_PAIRS)];
}

/** @param {number} count */
function powersBelow(count) {
  const powers = [];
  for (let power = 1; power < count; power *= 2) powers.push(power);
  return powers;
}

/** @type {Record<string, string>} */
const NOTHING_TURNS = {
  learned:
    'A learned encoding has an independent vector for each position, so there is no rotation from one to the next.',
  alibi:
    'ALiBi lowers scores by distance; it rotates nothing, so there is no rotation from one position to another.',
  relative: 'This model adds a learned number for each distance to the scores; it rotates nothing.',
  none: 'This model has no positional encoding, so there is no rotation between positions.',
};

/** @param {Trace} trace @param {Subject} subject */
function noticeFor(trace, { scheme, encoding }) {
  const { card } = trace;
  if (encoding && card?.positional === 'sinusoidal')
    return 'A text of one token has no second position to rotate to.';
  if (scheme === 'rotary') return noPairs(trace);
  return NOTHING_TURNS[scheme || (card?.positional ?? '')] ?? NOTHING_TURNS.learned;
}

/** @param {ViewState} state @returns {Patch[]} none if there is no such model */
function turningModel({ cards }) {
  const card =
    cards.find(
      ({ id, positional }) => id.startsWith('positions-') && positional === 'sinusoidal',
    ) ?? cards.find(({ positional }) => positional === 'sinusoidal');
  return card ? [choosingModel(card.id)] : [];
}

/**
 * @typedef {Object} Turn
 * @property {boolean} isAdded whether PE(p) is carried to PE(p + k), or a query to its turned self
 * @property {Matrix} before
 * @property {Matrix} after
 * @property {number} from position that is drawn
 * @property {number} shift from a row of `before` to the row of `after` that it becomes
 * @property {number} steps positions by which the drawn row is turned
 * @property {Pairs} pairs
 * @property {Rotation} [rotation] of queries
 * @property {(position: number) => Float64Array} angles by which the row of a position is turned, by pair, as `rotation.js` counts them
 * @property {string[]} sites
 */

/**
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {Subject} subject
 * @returns {Turn|null} null: nothing turns here
 */
function turnOf(trace, state, subject) {
  if (subject.scheme === 'rotary') return turnOfQueries(trace, state, subject);
  return subject.encoding && trace.card?.positional === 'sinusoidal'
    ? turnOfEncoding(trace, state, { ...subject, encoding: subject.encoding })
    : null;
}

/**
 * @param {Trace} trace
 * @param {ViewState} state
 * @param {Subject & {encoding: Matrix}} subject
 * @returns {Turn|null}
 */
function turnOfEncoding(trace, state, { encoding, side, site }) {
  if (encoding.rows < 2) return null;
  const shift = Math.max(1, Math.min(state.positions_shift ?? STANDARD_SHIFT, encoding.rows - 1));
  const pairs = findWaves(encoding);
  const angles = computeAngles(shift, pairs.speeds);
  const from = Math.min(queryOf(state, trace, side), encoding.rows - 1 - shift);
  return {
    isAdded: true,
    before: encoding,
    after: encoding,
    from,
    shift,
    steps: shift,
    pairs,
    angles: () => angles,
    sites: [site],
  };
}

/** @param {Trace} trace @param {ViewState} state @param {Subject} subject @returns {Turn|null} */
function turnOfQueries(trace, state, { stack, side }) {
  const sites = turnSites(stack);
  const rotation = readRotation(trace, trace.tensors[sites.before]);
  if (!trace.tensors[sites.before] || !trace.tensors[sites.after] || !rotation) return null;
  const [before, after] = [sites.before, sites.after].map((site) =>
    matrixAt(trace.tensors[site], state.head),
  );
  const from = queryOf(state, trace, side);
  return {
    isAdded: false,
    before,
    after,
    from,
    shift: 0,
    steps: from,
    pairs: rotation,
    rotation,
    angles: (position) => computeAngles(-position, rotation.speeds),
    sites: [sites.before, sites.after],
  };
}

/** @param {ViewState} state @param {Subject & {turn: Turn}} subject @returns {Figure} */
function circles(state, subject) {
  const { turn, tokens } = subject;
  const { isAdded, from, shift } = turn;
  const { greatest, count } = checked(turn.before, turn.after, turn);
  const pairs = chosenPairs(state, turn.pairs.speeds.length);
  const numbers = pairs.map((pair) => numbersOf(turn, pair));
  const [start, end] = [quoted(tokens[from]), quoted(tokens[from + shift])];
  return {
    title: isAdded
      ? `R(${shift}) carries position ${from} to ${from + shift}`
      : `The query at position ${from} is rotated`,
    help: isAdded
      ? `Blue: PE(${from}) as captured, of ${start}. Ring: the same, rotated here by k times the speed of its pair. Green: PE(${from + shift}) as captured, of ${end}. Grey: all other positions.`
      : `Blue: the query of ${start} before. Ring: the same, rotated here by ${from} times the speed of its pair. Green: the rotated query as captured, of layer 0, head ${state.head}.`,
    summary: `${pairs.length} pairs of dimensions as points on circles, each rotated by its angle; computed and captured values differ by at most ${small(greatest)}.`,
    facts: [
      ['Greatest difference from the captured values', small(greatest)],
      ['over', `${counted(count, 'position')} × ${counted(turn.pairs.speeds.length, 'pair')}`],
      ...(turn.rotation ? speedFacts(turn.rotation) : []),
    ],
    ...circlesChart(
      pairs.map((pair, row) => circleOf(turn, pair, numbers[row])),
      {
        ...saidOf(state, turn, { pairs, numbers }),
        sentence: { sides: { rows: subject.side, columns: subject.side } },
      },
      state,
    ),
  };
}

/**
 * Return the two numbers of a pair before the rotation, computed and captured; and the greatest
 * difference of the last two.
 * @param {Turn} turn
 * @param {number} pair
 */
function numbersOf(turn, pair) {
  const [first, second] = [turn.pairs.first[pair], turn.pairs.second[pair]];
  /** @param {Float64Array} vector */
  const part = (vector) => [vector[first], vector[second]];
  const from = part(rowOf(turn.before, turn.from));
  const computed = part(turned(rowOf(turn.before, turn.from), turn.angles(turn.from), turn.pairs));
  const captured = part(rowOf(turn.after, turn.from + turn.shift));
  const difference = Math.max(
    Math.abs(computed[0] - captured[0]),
    Math.abs(computed[1] - captured[1]),
  );
  return [...from, ...computed, ...captured, difference];
}

/** @param {Turn} turn @param {number} pair @param {number[]} numbers @returns {Circle} */
function circleOf(turn, pair, numbers) {
  const speed = turn.pairs.speeds[pair];
  const length = Math.hypot(numbers[0], numbers[1]) || 1;
  const { factor = 1 } = turn.pairs;
  // An encoding is (sin, cos), a query (first, second); the angle is counted from the right, against the clock.
  /** @type {(a: number, b: number) => Point} */
  const point = (a, b) => (turn.isAdded ? [b / length, a / length] : [a / length, b / length]);
  const others = turn.isAdded
    ? Array.from({ length: turn.before.rows }, (_, row) =>
        point(
          turn.before.data[row * turn.before.columns + turn.pairs.first[pair]],
          turn.before.data[row * turn.before.columns + turn.pairs.second[pair]],
        ),
      )
    : [];
  return {
    title: `pair ${pair}: ${angleInWords(speed * turn.steps)}`,
    angle: speed * turn.steps,
    from: point(numbers[0], numbers[1]),
    computed: point(numbers[2] / factor, numbers[3] / factor),
    captured: point(numbers[4] / factor, numbers[5] / factor),
    others,
  };
}

/** @param {number} angle */
function angleInWords(angle) {
  return `${amount(angle)} rad`;
}

/**
 * Name the seven numbers of each circle.
 * @param {ViewState} state
 * @param {Turn} turn
 * @param {{pairs: number[], numbers: number[][]}} of
 * @returns {Meaning<{row: number, column: number}> & Pick<Chart, 'table'>}
 */
function saidOf(state, turn, { pairs, numbers }) {
  const { isAdded, steps } = turn;
  const end = turn.from + turn.shift;
  const [first, second] = isAdded ? ['sin', 'cos'] : ['first', 'second'];
  const [from, computed, captured] = isAdded
    ? [`PE(${turn.from})`, 'rotated', `PE(${end})`]
    : ['query', 'rotated here', 'rotated query'];
  const columns = [
    ...[from, computed, captured].flatMap((name) => [`${name}, ${first}`, `${name}, ${second}`]),
    'difference',
  ];
  /** @param {number} row @param {number} at */
  const words = (row, at) => `(${signed(numbers[row][at])}, ${signed(numbers[row][at + 1])})`;
  const { speeds } = turn.pairs;
  return {
    value: ({ row, column }) => numbers[row][column],
    format: (number) =>
      number !== 0 && Math.abs(number) < 1e-4 ? small(Math.abs(number)) : signed(number, 4),
    say: ({ row }) =>
      `Pair ${pairs[row]}: ${from} ${words(row, 0)}, rotated by ${angleInWords(speeds[pairs[row]] * steps)}, is ${words(row, 2)}; the captured value is ${words(row, 4)}, at most ${small(numbers[row][6])} away`,
    name: ({ row, column }) => `pair ${pairs[row]}: ${columns[column]}`,
    number: ({ row, column }) =>
      column === 6 ? small(numbers[row][6]) : words(row, column - (column % 2)),
    tokens: () => (isAdded ? { query: turn.from, key: end } : { query: turn.from }),
    table: {
      rows: { title: 'pair', labels: pairs.map(String) },
      columns: { title: 'number', labels: columns },
      quantity: isAdded
        ? `pairs of the encoding rotated from position ${turn.from} to ${end}`
        : `pairs of the query at position ${turn.from}, layer 0, head ${state.head}`,
      request: { capture: turn.sites, ...(!isAdded && { heads: [state.head] }) },
    },
  };
}
