/**
 * The rotation from one position to another, recomputed and compared with the captured values:
 * R(k)·PE(p) = PE(p + k) for a sinusoidal encoding, a query rotated by p for rotary positions. Each
 * pair of dimensions is a point on a circle: where it starts, its arc, and where it ends.
 */

import { anglesOf, blocksOf, checked, turned, wavesOf } from '../../data/arithmetic.js';
import { amount, counted, signed, small, speedFacts, quoted } from '../../data/format.js';
import { matrixAt, rowOf } from '../../data/trace.js';
import { isNarrow, baseLayout } from '../../plot/figure.js';
import { choosingModel, queryOf } from '../../state/state.js';
import { dimensionMap } from './maps.js';
import { noPairs, rotationOf, turnSites } from './schemes.js';
import { chosenPairs, pairsControl } from './waves.js';

/**
 * @import { Pairs } from '../../data/arithmetic.js'
 * @import { Matrix, Rotation, Trace } from '../../data/trace.js'
 * @import { Figure, Frame, Layout, Palette, PlotlyTrace, ViewState } from '../../plot/figure.js'
 * @import { Geometry, Grid } from '../../plot/grid.js'
 * @import { Patch } from '../../state/state.js'
 * @import { Control } from '../../ui/controls.js'
 * @import { Part, Subject } from './maps.js'
 */

/** Arcs of one step are hard to see. */
const STANDARD_SHIFT = 3;
const MOST_HEIGHT = 480;
const ENTRIES = ['cos', 'sin', '−sin', 'cos'];
const TURNED_ENTRIES = ['cos', '−sin', 'sin', 'cos'];

/** @type {Part} */
export const ROTATION = { controls, panels, figure };

/** @type {Record<string, string>} */
const NOTHING_TURNS = {
  learned:
    'A learned encoding has an independent vector for each position, so there is no rotation from one to the next.',
  alibi:
    'ALiBi lowers scores by distance; it rotates nothing, so there is no rotation from one position to another.',
  relative: 'This model adds a learned number for each distance to the scores; it rotates nothing.',
  none: 'This model has no positional encoding, so there is no rotation between positions.',
};

/** @param {Subject} subject @param {ViewState} state @param {Trace} trace */
function panels(subject, state, trace) {
  return turnOf(trace, state, subject) ? ['circles', 'blocks'] : ['circles'];
}

/** @param {Trace} trace @param {ViewState} state @param {Subject} subject @returns {Control[]} */
function controls(trace, state, subject) {
  const turn = turnOf(trace, state, subject);
  if (!turn) return [];
  const most = subject.tokens.length - 1;
  const shift = {
    kind: 'number',
    name: 'positions_shift',
    label: 'k',
    least: 1,
    most,
    step: 1,
    value: turn.shift,
    shown: counted(turn.shift, 'position'),
  };
  return [
    ...(turn.isAdded && most > 1 ? [shift] : []),
    pairsControl(state, turn.pairs.speeds.length),
  ];
}

/** @param {Trace} trace @param {ViewState} state @param {Subject} subject @returns {Figure} */
function figure(trace, state, subject) {
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
  return (state.plot === 'blocks' ? blocks : circles)(state, { ...subject, turn });
}

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
  const pairs = wavesOf(encoding);
  const angles = anglesOf(shift, pairs.speeds);
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
  const rotation = rotationOf(trace, trace.tensors[sites.before]);
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
    angles: (position) => anglesOf(-position, rotation.speeds),
    sites: [sites.before, sites.after],
  };
}

/**
 * @param {ViewState} state
 * @param {Subject & {turn: Turn}} subject
 * @returns {Figure}
 */
function circles(state, subject) {
  const { turn, tokens } = subject;
  const found = checked(turn.before, turn.after, turn);
  const pairs = chosenPairs(state, turn.pairs.speeds.length);
  const rows = pairs.map((pair) => numbersOf(turn, pair));
  const { geometry, ...drawing } = circlesDrawing(
    pairs.map((pair, row) => circleOf(turn, pair, rows[row])),
    state,
  );
  const [one, other] = [quoted(tokens[turn.from]), quoted(tokens[turn.from + turn.shift])];
  return {
    title: turn.isAdded
      ? `R(${turn.shift}) carries position ${turn.from} to ${turn.from + turn.shift}`
      : `The query at position ${turn.from} is rotated`,
    help: turn.isAdded
      ? `Blue: PE(${turn.from}) as captured, of ${one}. Ring: the same, rotated here by k times the speed of its pair. Green: PE(${turn.from + turn.shift}) as captured, of ${other}. Grey: all other positions.`
      : `Blue: the query of ${one} before. Ring: the same, rotated here by ${turn.from} times the speed of its pair. Green: the rotated query as captured, of layer 0, head ${state.head}.`,
    summary: `${pairs.length} pairs of dimensions as points on circles, each rotated by its angle; computed and captured values differ by at most ${small(found.greatest)}.`,
    facts: [
      ['Greatest difference from the captured values', small(found.greatest)],
      [
        'over',
        `${counted(found.count, 'position')} × ${counted(turn.pairs.speeds.length, 'pair')}`,
      ],
      ...(turn.rotation ? speedFacts(turn.rotation) : []),
    ],
    ...drawing,
    grid: circlesGrid(state, subject, { pairs, rows, geometry }),
  };
}

/**
 * The two numbers of a pair before the rotation, computed and captured; and the greatest difference
 * of the last two.
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
  /** @type {(a: number, b: number) => [number, number]} */
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
 * @param {ViewState} state
 * @param {Subject & {turn: Turn}} subject
 * @param {{pairs: number[], rows: number[][], geometry: Geometry}} drawn
 * @returns {Grid}
 */
function circlesGrid(state, { turn, side }, { pairs, rows, geometry }) {
  const end = turn.from + turn.shift;
  const [first, second] = turn.isAdded ? ['sin', 'cos'] : ['first', 'second'];
  const [from, computed, captured] = turn.isAdded
    ? [`PE(${turn.from})`, 'rotated', `PE(${end})`]
    : ['query', 'rotated here', 'rotated query'];
  const columns = [
    ...[from, computed, captured].flatMap((name) => [`${name}, ${first}`, `${name}, ${second}`]),
    'difference',
  ];
  /** @type {Grid['value']} */
  const value = (row, column) => rows[row][column];
  /** @param {number} row @param {number} at */
  const words = (row, at) => `(${signed(value(row, at))}, ${signed(value(row, at + 1))})`;
  const { speeds } = turn.pairs;
  return {
    rows: pairs.length,
    columns: columns.length,
    kind: 'circles',
    sides: { rows: side, columns: side },
    rowTitle: 'pair',
    columnTitle: 'number',
    rowLabels: pairs.map(String),
    columnLabels: columns,
    quantity: turn.isAdded
      ? `pairs of the encoding rotated from position ${turn.from} to ${end}`
      : `pairs of the query at position ${turn.from}, layer 0, head ${state.head}`,
    request: { capture: turn.sites, ...(!turn.isAdded && { heads: [state.head] }) },
    value,
    format: numberOrDifference,
    describe: (row) =>
      `Pair ${pairs[row]}: ${from} ${words(row, 0)}, rotated by ${angleInWords(speeds[pairs[row]] * turn.steps)}, is ${words(row, 2)}; the captured value is ${words(row, 4)}, at most ${small(value(row, 6))} away`,
    tip: (row, column) => [
      `pair ${pairs[row]}: ${columns[column]}`,
      column === 6 ? small(value(row, 6)) : words(row, column - (column % 2)),
    ],
    tokens: () => (turn.isAdded ? { query: turn.from, key: end } : { query: turn.from }),
    start: { row: 0, column: 0 },
    geometry,
  };
}

/** @param {number} number */
function numberOrDifference(number) {
  return number !== 0 && Math.abs(number) < 1e-4 ? small(Math.abs(number)) : signed(number, 4);
}

/**
 * On a narrow page the labels omit the speeds.
 * @param {string[]} labels
 * @param {number} width
 */
function rowsFor(labels, width) {
  return isNarrow(width)
    ? { labels: labels.map((_, pair) => String(pair)), rows: 'pair' }
    : { labels, rows: 'pair · speed' };
}

/**
 * @param {ViewState} state
 * @param {Subject & {turn: Turn}} subject
 * @returns {Figure}
 */
function blocks(state, subject) {
  const { turn, side } = subject;
  const angles = turn.angles(turn.from);
  const matrix = blocksOf(angles);
  const { speeds } = turn.pairs;
  const labels = Array.from(speeds, (speed, pair) => `${pair} · ${amount(speed, 2)}`);
  const names = turn.isAdded ? ENTRIES : TURNED_ENTRIES;
  /** @type {Grid['value']} */
  const value = (row, column) => matrix.data[row * 4 + column];
  return {
    title: `R(${turn.steps}), block by block`,
    help: 'R is block-diagonal: one 2 × 2 block for each pair, shown as a row; next to the pair is its speed in radians per position.',
    summary: `The four numbers of the blocks of ${speeds.length} pairs, for a rotation by ${counted(turn.steps, 'position')}.`,
    ...dimensionMap(
      matrix,
      {
        ...rowsFor(labels, state.width),
        dimensions: names,
        axis: 'entry of the block',
        reach: 1,
        quantity: 'entry of R',
      },
      { ...state, height: Math.min(state.height, MOST_HEIGHT) },
    ),
    grid: {
      rows: matrix.rows,
      columns: matrix.columns,
      sides: { rows: side, columns: side },
      rowTitle: 'pair · speed',
      columnTitle: 'entry',
      rowLabels: labels,
      columnLabels: [
        'cos: first to first',
        'second to first',
        'first to second',
        'cos: second to second',
      ],
      quantity: `blocks of the rotation by ${counted(turn.steps, 'position')}`,
      request: { capture: turn.sites },
      value,
      format: (number) => signed(number, 4),
      describe: (row, column) =>
        `Pair ${row} is rotated by ${angleInWords(speeds[row] * turn.steps)}: the entry ${names[column]} of its block is ${signed(value(row, column))}`,
      tip: (row, column) => [`pair ${row}: ${names[column]}`, signed(value(row, column), 4)],
      tokens: () => ({}),
      start: { row: 0, column: 0 },
    },
  };
}

const RADIUS = 0.36;
const LARGEST = 240;
const HEADROOM = 0.12;
const FULL = 2 * Math.PI;
/** The radii of an arc, relative to the circle: more than one turn becomes a spiral. */
const ARC = { inner: 0.3, outer: 0.68 };
const SHARED = { type: 'scatter', hoverinfo: 'none', cliponaxis: false };

/** @typedef {[number, number]} Point to the right and up, in lengths of the radius */

/** @typedef {(index: number, point: Point) => [number, number]} PlaceOf of a point of a circle, in the coordinates of the axes */

/**
 * @typedef {Object} Circle
 * @property {string} title
 * @property {number} angle of the whole turn, in radians, counted against the clock
 * @property {Point} from
 * @property {Point} computed
 * @property {Point} captured
 * @property {Point[]} others
 */

/**
 * @param {Circle[]} circles
 * @param {Frame} state
 * @returns {{data: PlotlyTrace[], layout: Layout, geometry: Geometry}}
 */
export function circlesDrawing(circles, state) {
  const { palette, width } = state;
  const across = Math.min(circles.length, isNarrow(width) ? 2 : 3);
  const down = Math.ceil(circles.length / across);
  const side = Math.min(LARGEST, Math.floor(width / across));
  /** @param {number} index */
  const centre = (index) => [
    (index % across) + 0.5,
    Math.floor(index / across) + 0.5 + HEADROOM / 2,
  ];
  /** @type {PlaceOf} */
  const at = (index, [x, y]) => [centre(index)[0] + x * RADIUS, centre(index)[1] - y * RADIUS];
  return {
    data: marksOf(circles, at, palette),
    layout: {
      ...baseLayout(palette, {
        width: side * across,
        height: side * down,
        margin: { l: 0, r: 0, t: 0, b: 0 },
      }),
      annotations: circles.map(({ title }, index) => ({
        text: title,
        x: centre(index)[0],
        y: centre(index)[1] - RADIUS,
        yanchor: 'bottom',
        yshift: 8,
        showarrow: false,
        font: { size: 12, color: palette.muted },
      })),
      xaxis: { ...HIDDEN, range: [0, across] },
      yaxis: { ...HIDDEN, range: [down, 0] },
    },
    geometry: geometryOf(circles, { at, across, centre }),
  };
}

const HIDDEN = { visible: false, showgrid: false, zeroline: false };

/** @param {Circle[]} circles @param {PlaceOf} at @param {Palette} palette */
function marksOf(circles, at, palette) {
  /** @param {(number|null)[][]} points */
  const placed = (points) => ({
    ...SHARED,
    x: points.map(([x]) => x),
    y: points.map(([, y]) => y),
  });
  /**
   * @param {(circle: Circle) => Point[]} pick
   * @param {{size: number, color: string, opacity?: number, line?: {color: string, width: number}}} marker
   */
  const dots = (pick, marker) => {
    const points = circles.flatMap((circle, index) =>
      pick(circle).map((point) => at(index, point)),
    );
    return { ...placed(points), mode: 'markers', marker };
  };
  /** @param {(circle: Circle) => Point[][]} paths @param {{color: string, width: number}} line */
  const lines = (paths, line) => {
    const points = circles.flatMap((circle, index) =>
      paths(circle).flatMap((path) => [...path.map((point) => at(index, point)), [null, null]]),
    );
    return { ...placed(points), mode: 'lines', line };
  };
  return [
    lines(() => [roundFrom(0, FULL, 1, 1)], { color: palette.line, width: 1.5 }),
    dots(({ others }) => others, { size: 4, color: palette.muted, opacity: 0.4 }),
    lines(
      ({ from, computed }) => [
        [[0, 0], from],
        [[0, 0], computed],
      ],
      { color: palette.line, width: 1 },
    ),
    lines(({ from, angle }) => [arcOf(from, angle)], { color: palette.beam, width: 2 }),
    dots(({ computed }) => [computed], {
      size: 17,
      color: palette.surface,
      line: { color: palette.beam, width: 2 },
    }),
    dots(({ captured }) => [captured], { size: 9, color: palette.key }),
    dots(({ from }) => [from], { size: 9, color: palette.query }),
  ];
}

/** @param {Point} from @param {number} angle */
function arcOf([x, y], angle) {
  const isSpiral = Math.abs(angle) > FULL;
  return roundFrom(Math.atan2(y, x), angle, isSpiral ? ARC.inner : ARC.outer, ARC.outer);
}

/**
 * @param {number} start
 * @param {number} angle
 * @param {number} inner
 * @param {number} outer
 * @returns {Point[]}
 */
function roundFrom(start, angle, inner, outer) {
  const steps = Math.max(2, Math.ceil(Math.abs(angle) / 0.08));
  return Array.from({ length: steps + 1 }, (_, step) => {
    const radius = inner + ((outer - inner) * step) / steps;
    const turned = start + (angle * step) / steps;
    return [Math.cos(turned) * radius, Math.sin(turned) * radius];
  });
}

/**
 * Columns: the two coordinates of the start, of the computed and of the captured point, and the
 * difference.
 */
/** @type {('from'|'computed'|'captured'|null)[]} */
const PLACES = ['from', 'from', 'computed', 'computed', 'captured', 'captured', null];
const NEAR = 0.09;

/**
 * @param {Circle[]} circles
 * @param {{at: PlaceOf, across: number, centre: (index: number) => number[]}} placed
 * @returns {Geometry}
 */
function geometryOf(circles, { at, across, centre }) {
  /** @param {number[]} point @param {number} half */
  const boxAround = ([x, y], half) => ({ x0: x - half, x1: x + half, y0: y - half, y1: y + half });
  return {
    box(row, column) {
      if (row === undefined) return null;
      const place = PLACES[column ?? PLACES.length - 1];
      return place
        ? boxAround(at(row, circles[row][place]), NEAR * 0.7)
        : boxAround(centre(row), RADIUS + 0.04);
    },
    at(x, y) {
      const row = Math.floor(y) * across + Math.floor(x);
      if (row < 0 || row >= circles.length) return null;
      const near = [0, 2].find((column) => {
        const place = PLACES[column];
        if (!place) return false;
        const [px, py] = at(row, circles[row][place]);
        return Math.hypot(x - px, y - py) < NEAR;
      });
      return { row, column: near ?? PLACES.length - 1 };
    },
  };
}
