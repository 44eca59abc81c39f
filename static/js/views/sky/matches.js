/**
 * The heads of another model next to those of this one: each joined to its match by a line, how alike
 * they are, and where the two models part most, by head and by text.
 */

import { noticeOf } from '../../api/answers.js';
import { headInWords } from '../../trace/attention.js';
import { overSentences } from '../../trace/head_measures.js';
import { counted } from '../../words/lists.js';
import { percent, share } from '../../words/numbers.js';
import { shortened } from '../../words/text.js';
import { dot, rule } from '../../plot/marks/decorations.js';
import { axesOf } from '../../plot/marks/mark.js';
import { NOTHING_CHOSEN } from '../../state/state.js';

/**
 * @import { AtlasMatchesAnswer } from '../../api/schemas'
 * @import { Place } from '../../trace/attention.js'
 * @import { Measure, Measured } from '../../trace/head_measures.js'
 */

const [MOST_TEXTS, LETTERS] = [3, 60];
const MATCHED = 'matched by profile; too few sentences are cut alike to compare attention';

/** @param {Trace} trace @param {ViewState} state @returns {Record<string, Ask>} */
export function asksForMatches({ model }, { sky_with: other }) {
  const matches = { atlas: { model, part: /** @type {const} */ ('matches'), query: { other } } };
  return other ? { matches, theirs: { card: other } } : {};
}

/** @param {ViewState} state @returns {Partial<AtlasMatchesAnswer>} */
const answerIn = ({ answers }) => answers?.matches?.trace?.atlas ?? {};

/** @param {LabelledHead[]} heads @param {Place} place @param {ViewState} state */
function matchesOf(heads, { stack, ending }, state) {
  const { matches = [] } = answerIn(state);
  const by = new Map(matches.map((match) => [`${match.attention} ${match.head}`, match]));
  return heads.map(({ layer, head }) => by.get(`${stack}.layers.${layer}.${ending} ${head}`));
}

/** Return how alike each head and its match are, as measures. @param {LabelledHead[]} heads @param {Place} place @param {ViewState} state @returns {Measure[]} */
export function measuresOf(heads, place, state) {
  const { other, n_texts: n = 0 } = answerIn(state);
  const of = matchesOf(heads, place, state);
  /** @param {'similarity'|'moved'} id @param {'similar_by_chance'|'by_chance'} control @param {string} title @param {string} over */
  const measure = (id, control, title, over) => ({
    ...{ id, title, over, write: (/** @type {number} */ value) => share(value, 3) },
    values: of.map((match) => match?.[id] ?? NaN),
    controls: of.map((match) => match?.[control] ?? NaN),
  });
  const over = `over ${counted(n, 'sentence')}`;
  return [
    measure('similarity', 'similar_by_chance', `similarity to the match in ${other}`, 'by profile'),
    measure('moved', 'by_chance', `attention that is elsewhere in ${other}`, over),
  ].filter(({ values }) => !values.every(Number.isNaN));
}

/**
 * Return the matches as rings, each at the end of a line from its head; none where a measure is of
 * this text only.
 * @param {Place} place
 * @param {Measured & {x: Measure, y: Measure, holds: (at: number) => boolean}} shown
 * @param {ViewState} state
 * @returns {Mark<any>[]}
 */
export function matchMarks(place, { heads, x, y, holds }, state) {
  const profiles = state.answers.theirs?.trace?.card?.heads;
  const of = matchesOf(heads, place, state);
  const theirs = of.map(
    (match) => match && profiles?.attentions[match.other_attention]?.[match.other_head],
  );
  const measures = profiles ? overSentences(theirs, profiles) : [];
  const [across, up] = [x, y].map(({ id }) => measures.find((each) => each.id === id)?.values);
  if (!across || !up) return [];
  const ends = [...of.keys()]
    .filter((at) => of[at] && holds(at))
    .map((at) => ({
      from: { x: x.values[at], y: y.values[at] },
      to: { x: across[at], y: up[at] },
    }));
  const rings = dot(ends, { x: ({ to }) => to.x, y: ({ to }) => to.y, isRing: true });
  const lines = rule(ends, { from: ({ from }) => from, to: ({ to }) => to });
  const name = `match in ${answerIn(state).other}`;
  const names = [{ name, colour: state.palette.ink, glyph: '○' }];
  const reach = axesOf(ends.map(({ to }) => to));
  return [lines, { ...rings, reach, names, namesAt: 'above' }];
}

/** Return how much of the attention is elsewhere in the other model, and of which head most. @param {Trace} trace @param {Measured} measured @param {Place} place @param {ViewState} state @returns {string[][]} */
export function partingFacts(trace, { heads, measures }, place, { sky_with: other, answers }) {
  const moved = measures.find(({ id }) => id === 'moved');
  if (other && !moved) return [[`Against ${other}`, noticeOf(answers?.matches) || MATCHED]];
  if (!moved) return [];
  const { values, controls = [], over } = moved;
  const known = [...values.keys()].filter((at) => !Number.isNaN(values[at]));
  const [most] = known.sort((a, b) => values[b] - values[a]);
  /** @param {number[]} of heads */
  const told = (of) => {
    const [value, control] = [values, controls].map(
      (each) => of.reduce((sum, at) => sum + each[at], 0) / of.length,
    );
    return `${percent(value, 0)} (${percent(control, 0)} by chance)`;
  };
  const where = headInWords(trace, place, heads[most].layer, heads[most].head);
  const words = `${told(known)} ${over}; most of ${where}: ${told([most])}`;
  return [[`Attention elsewhere in ${other}`, words]];
}

/** Return buttons to the texts where the two models part most. @param {ViewState} state */
export function partingTexts(state) {
  const { texts = [], other: model = '' } = answerIn(state);
  const compare = { view: 'compare', compare_with: 'model', compare_model: model };
  const shown = texts.slice(0, MOST_TEXTS);
  return shown.map(({ text, moved, by_chance: chance }) => ({
    label: `${percent(moved, 0)} (${percent(chance, 0)} by chance) elsewhere in “${shortened(text, LETTERS)}”`,
    patch: { ...NOTHING_CHOSEN, text, ...compare },
  }));
}
