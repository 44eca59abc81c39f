/**
 * The vectors of a head over many sentences: each token a point on the two axes along which they
 * differ most, coloured by its part of speech, and named where there is room.
 */

import { noticeOf } from '../../api/answers.js';
import { atlasPath } from '../../api/calls.js';
import { counted } from '../../words/lists.js';
import { decimal, grouped, percent, signed } from '../../words/numbers.js';
import { inQuotes, tokenName } from '../../words/tokens.js';
import { chart } from '../../plot/chart.js';
import { KINDS } from '../../plot/colour.js';
import { dot, SHAPES } from '../../plot/marks/dot.js';
import { text } from '../../plot/marks/decorations.js';
import { labelWidth, linear } from '../../plot/scales.js';
import { choosing, NOTHING_CHOSEN } from '../../state/state.js';
import { tagInWords } from '../../trace/atlas.js';
import { asksForAtlas } from './atlas_figures.js';

/**
 * @import { HeadSpace, SpacePoint } from '../../trace/atlas.js'
 * @import { Place } from '../../trace/attention.js'
 */

/** The panel, where a kind of vectors is chosen. */
export const SPACE = 'space';

/** @type {Record<string, [title: string, help: string]>} */
const VECTORS = {
  reads: [
    'Queries and keys',
    'What each token asks for and what it offers, each about its mean and before a rotation by position: a query scores keys in its own direction high.',
  ],
  values: [
    'Values',
    'What the head would write if it attended to a token alone: its value times W_O.',
  ],
  outputs: ['Outputs', 'What the head writes at each token: its values, weighted, times W_O.'],
};
export const SPACES = [
  { id: '', title: 'None' },
  ...Object.entries(VECTORS).map(([id, [title]]) => ({ id, title })),
];

/** Parts of speech of one colour and shape; the others are muted. @type {Record<string, string[]>} */
const GROUPS = {
  noun: ['NOUN'],
  name: ['PROPN'],
  pronoun: ['PRON'],
  verb: ['VERB', 'AUX'],
  'adjective, adverb': ['ADJ', 'ADV'],
  'function word': ['ADP', 'DET', 'CCONJ', 'SCONJ', 'PART'],
  other: [],
};
const [HEIGHT, LETTERS] = [460, 12];

/** @param {Trace} trace @param {Place} place @param {ViewState} state @returns {Figure} */
export function spaceFigure(trace, place, state) {
  const [title, help] = VECTORS[state.head_space];
  const answer = state.answers?.space;
  /** @type {HeadSpace|undefined} */
  const space = answer?.trace?.atlas;
  if (!space) return { title, notice: noticeOf(answer), isWaiting: !answer?.problem };
  const { points, sentences, n_vectors: n } = space;
  /** @param {number} part @param {number} control */
  const told = (part, control) => `${percent(part, 0)} (shuffled ${percent(control, 0)})`;
  return {
    title,
    help: `${help} Each point is a token of a sentence.`,
    summary: `${counted(points.length, 'point')} on the two axes along which ${grouped(n)} vectors differ most.`,
    facts: [
      ['Variance across', told(space.shares[0], space.controls[0])],
      ['Variance up', told(space.shares[1], space.controls[1])],
      ['Told by part of speech', told(space.by_tag, space.by_tag_control)],
      ['Read', `${grouped(n)} vectors of ${sentences.length} of the project’s own sentences`],
    ],
    ...spaceChart(trace, place, space, state),
  };
}

/** @param {Trace} trace @param {Place} place @param {HeadSpace} space @param {ViewState} state */
function spaceChart(trace, place, space, state) {
  const { points, shares } = space;
  const [x, y] = shares.map((share, at) =>
    linear(`axis ${at + 1}, ${percent(share, 0)} of the variance`, { hasGrid: true }),
  );
  const words = roomyPoints(points, state.width);
  return chart(
    {
      x,
      y,
      marks: [
        pointsOf(trace, place, space, state),
        text(words, { x: at('x'), y: at('y'), text: wordOf, size: LETTERS, at: 'top center' }),
      ],
      size: { height: HEIGHT },
      table: {
        rows: { title: 'token', labels: points.map(nameOf) },
        columns: { title: '', labels: ['axis 2'] },
        quantity: 'places of tokens on the principal axes of a head’s vectors',
        call: { path: atlasPath(asksForAtlas(trace, place, state).space.atlas) },
        ofRows: [
          { label: 'axis 1', value: (row) => points[row].x, format: (of) => decimal(of, 2) },
        ],
      },
      sentence: { sides: place, query: null, rowOf: () => -1 },
      cursor: {
        chooseHint: 'Enter opens the sentence',
        note: 'Press a point to open its sentence.',
      },
    },
    state,
  );
}

/** @param {'x'|'y'} axis */
const at = (axis) => (/** @type {SpacePoint} */ point) => point[axis];

/** @param {Trace} trace @param {Place} place @param {HeadSpace} space @param {ViewState} state */
function pointsOf(trace, place, { points, sentences, targets }, state) {
  const { palette, layer, head } = state;
  const isReading = state.head_space === 'reads';
  const colours = [...KINDS, palette.muted];
  const groups = Object.keys(GROUPS).map((name, group) => ({
    ...{ name, colour: colours[group] },
    ...(isReading ? { isSwatch: true } : { glyph: SHAPES[group][1] }),
  }));
  const sides = ['query', 'key'].map((name, side) => ({
    ...{ name, colour: palette.ink, glyph: SHAPES[side][1] },
  }));
  /** @param {SpacePoint} point */
  const groupOf = ({ tag }) => {
    const group = Object.values(GROUPS).findIndex((tags) => tags.includes(tag));
    return group < 0 ? groups.length - 1 : group;
  };
  return dot(points, {
    x: at('x'),
    y: at('y'),
    fill: (point) => colours[groupOf(point)],
    radius: () => 3.5,
    shape: (point) => SHAPES[isReading ? Number(point.side === 'key') : groupOf(point)][0],
    opacity: () => 0.6,
    names: [...groups, ...(isReading ? sides : [])],
    value: at('y'),
    name: nameOf,
    number: numbersOf,
    say: (point) => `${nameOf(point)}: ${numbersOf(point)}. ${sentences[point.sentence]}`,
    choose: ({ sentence, token, side }) => ({
      ...NOTHING_CHOSEN,
      text: sentences[sentence],
      target: targets[sentence] || null,
      ...{ view: 'attention', where: place.id, layer, head },
      ...(side === 'query' ? choosing(trace, place.rows, token) : { key: token }),
    }),
  });
}

/** @param {{word: string}} point */
const wordOf = ({ word }) => tokenName({ text: word });

/** @param {string} word */
const wordQuoted = (word) => inQuotes(wordOf({ word }));

/** @param {SpacePoint} point */
const numbersOf = ({ x, y, read, ...of }) =>
  read
    ? `scores ${wordQuoted(read)} highest, ${signed(of.score, 1)}, ${decimal(of.distance, 1)} away; the mean of what it can read is ${signed(of.mean_score, 1)}, ${decimal(of.mean_distance, 1)} away`
    : `${signed(x, 1)} across, ${signed(y, 1)} up`;

/** @param {SpacePoint} point */
const nameOf = ({ word, tag, side }) => `${wordQuoted(word)}, ${tagInWords(tag)}, ${side}`;

/** Return the points whose words do not touch each other, from the outermost inwards. @param {SpacePoint[]} points @param {number} width of the drawing */
function roomyPoints(points, width) {
  const [across, up] = /** @type {const} */ (['x', 'y']).map((axis) => {
    const values = points.map(at(axis));
    return Math.max(...values) - Math.min(...values) || 1;
  });
  /** @type {{x: number, y: number, half: number}[]} */
  const taken = [];
  const outermost = [...points].sort((a, b) => Math.hypot(b.x, b.y) - Math.hypot(a.x, a.y));
  return outermost.filter((point) => {
    const half = labelWidth([wordOf(point)], { size: LETTERS, letters: 40 }) / 2 + 2;
    const [x, y] = [(point.x / across) * width, (point.y / up) * HEIGHT];
    const isFree = taken.every(
      (other) => Math.abs(other.x - x) > other.half + half || Math.abs(other.y - y) > 1.6 * LETTERS,
    );
    if (isFree) taken.push({ x, y, half });
    return isFree;
  });
}
