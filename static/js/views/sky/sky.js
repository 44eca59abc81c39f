/**
 * All heads of an attention as points: any two measures, coloured by what a head does or by its layer,
 * as large as a third. A filter, typed or drawn with the mouse, selects; a press opens the head.
 */

import {
  ATTENTIONS,
  choosePlace,
  describeRole,
  headInWords,
  ROLE_WORDS,
  tokensOf,
} from '../../trace/attention.js';
import { controlInWords, measureHeads, readFilter } from '../../trace/head_measures.js';
import { cardPath } from '../../api/calls.js';
import { countedTexts, textsInWords } from '../../trace/card.js';
import { capitalised, counted } from '../../words/lists.js';
import { readEffects } from '../../rules/prediction.js';
import { rolesIn } from '../../plot/roles.js';
import { chart } from '../../plot/chart.js';
import { css, KINDS, LEVELS, sequential } from '../../plot/colour.js';
import { dot, SHAPES } from '../../plot/marks/dot.js';
import { linear } from '../../plot/scales.js';
import { createMemo } from '../../state/state.js';
import { rowShown } from '../../state/written_rows.js';
import { choice, control, tokenOptions } from '../../ui/controls.js';
import { picturesOf, keyOf } from '../../ui/heads.js';
import * as matching from './matches.js';

/**
 * @import { Place } from '../../trace/attention.js'
 * @import { Measure, Measured } from '../../trace/head_measures.js'
 */

const RADIUS = { least: 3.5, most: 11, plain: 5.5, small: 2.5 };
/** From so many heads on they are drawn small. */
const MANY = 1500;
const TITLE = 'All heads as points';
/** Measures that open, the first that is known. */
const OPENS = {
  x: ['sink', 'sink_here', 'first_here', 'monotonic_here', 'layer'],
  y: ['entropy', 'broad_here', 'layer'],
};

/** @type {ViewCode} */
export const sky = {
  help: 'Each point is a head. Choose what is measured, drag over points to select some, and press one to open it.',
  terms: {
    control: 'what the measure would be if every query attended evenly to all tokens it sees',
    'cost when off': 'how many more bits per byte the model needs if the head writes nothing',
    'effect on a word': 'the logits that the head adds to the predicted word against its rival',
  },
  ...ATTENTIONS,
  asks: (trace, state) => ({
    card: { card: trace.model },
    ...matching.asksForMatches(trace, state),
  }),
  /** Load what measures the heads of a model that has no profile. */
  loadOverview: async () => (await import('../../ui/profile.js')).createProfile,

  controls(trace, state) {
    const place = choosePlace(state, trace);
    if (!place) return [];
    const { measures } = measured(trace, place, state);
    const options = measures.map(({ id, title }) => ({ id, title: capitalised(title) }));
    const { x, y, size } = shownIn(measures, state);
    const keys = tokenOptions(tokensOf(trace, place.columns));
    return [
      control('menu', 'sky_x', 'Across', x.id, { options }),
      control('menu', 'sky_y', 'Up', y.id, { options }),
      control('menu', 'sky_size', 'Size', size?.id ?? '', {
        options: [{ id: '', title: 'All alike' }, ...options],
      }),
      choice('sky_colour', 'Colour', state.sky_colour, [
        { id: 'label', title: 'Label' },
        { id: 'layer', title: 'Layer' },
      ]),
      control('entry', 'sky_only', 'Only', state.sky_only, {
        help: `Conditions, as “${x.id} >= 0.5, ${y.id} < 2” or “label = induction”`,
        placeholder: 'all heads',
        read: (typed) => ({
          value: typed,
          problem: readFilter(typed, measured(trace, place, state)).problem,
        }),
      }),
      control('menu', 'key', 'Reading', state.key ?? null, {
        options: [{ id: null, title: 'any token' }, ...keys],
        help: 'Rank heads by their weight from the chosen row to this token',
      }),
      control('menu', 'sky_with', 'Against', state.sky_with, {
        options: [
          { id: '', title: 'No other model' },
          ...state.cards
            .filter(({ id, head_labels: of }) => id !== trace.model && Object.keys(of ?? {}).length)
            .map(({ id, title }) => ({ id, title })),
        ],
        help: 'Join each head to the head of another model that does the most alike',
      }),
    ];
  },

  figure(trace, state) {
    const place = choosePlace(state, trace);
    if (!place) return { title: TITLE, notice: 'This trace holds no attention weights.' };
    const all = measured(trace, place, state);
    const { x, y, size } = shownIn(all.measures, state);
    const { holds } = readFilter(state.sky_only ?? '', all);
    const n = all.heads.filter((_, at) => holds(at)).length;
    const shown = [x, y, ...(size ? [size] : [])];
    return {
      title: TITLE,
      help: helpOf(trace, state),
      summary: `${counted(n, 'head')} of ${all.heads.length}: ${x.title} across, ${y.title} up.`,
      facts: [
        ['Selected', `${n} of ${counted(all.heads.length, 'head')}`],
        ...shown.map((each) => [capitalised(each.title), `${each.over}; ${controlInWords(each)}`]),
        ...matching.partingFacts(trace, all, place, state),
      ],
      actions: [
        ...matching.partingTexts(state),
        ...(state.answers?.card?.trace?.card?.heads && !state.isSaved
          ? [{ label: 'Save as Parquet', file: `${cardPath(trace.model)}/heads.parquet` }]
          : []),
      ],
      ...skyChart(trace, place, { ...all, x, y, size, holds }, state),
    };
  },
};

/** @param {Trace} trace @param {ViewState} state */
function helpOf(trace, { answers }) {
  const profiles = answers?.card?.trace?.card?.heads;
  return profiles
    ? `Over ${countedTexts(profiles)} of ${textsInWords(profiles.text)}; “here” is this text.`
    : `The heads of ${trace.model} have no profile over many sentences, so all measures are of this text only: too little to say what a head does.`;
}

const memo = createMemo();

/** @param {Trace} trace @param {Place} place @param {ViewState} state @returns {Measured} */
function measured(trace, place, state) {
  const { answers = {}, key } = state;
  const profiles = answers.card?.trace?.card?.heads ?? null;
  const effects = readEffects(trace, { ...state, map: 'effect' });
  const query = rowShown(trace, place, state);
  const tokens = tokensOf(trace, place.columns);
  const isPair = key !== null && key < tokens.length;
  const known = [answers.next_why, answers.next_edited, answers.matches?.trace, query, key];
  return memo([trace, place.id, profiles, ...known], () => {
    const { heads, measures } = measureHeads(trace, place, profiles, {
      roles: Object.fromEntries(
        rolesIn(trace).map((role) => [role, tokens.map((token) => token.role === role)]),
      ),
      effects: effects?.heads ?? null,
      token: effects?.token ?? '',
      pair: isPair ? { query, key } : null,
    });
    return { heads, measures: [...measures, ...matching.measuresOf(heads, place, state)] };
  });
}

/** @param {Measure[]} measures @param {ViewState} state */
function shownIn(measures, { sky_x: x, sky_y: y, sky_size: size }) {
  /** @param {string[]} ids */
  const first = (ids) =>
    ids.map((each) => measures.find(({ id }) => id === each)).find(Boolean) ?? measures[0];
  return {
    x: first([x, ...OPENS.x]),
    y: first([y, ...OPENS.y]),
    size: measures.find(({ id }) => id === size),
  };
}

/** @typedef {Measured & {x: Measure, y: Measure, size: Measure|undefined, holds: (at: number) => boolean}} Shown */

/** @param {Trace} trace @param {Place} place @param {Shown} shown @param {ViewState} state */
function skyChart(trace, place, shown, state) {
  const { heads, measures, x, y, holds } = shown;
  const look = lookOf(shown, state);
  const at = new Map(heads.map((head, index) => [head, index]));
  /** @param {LabelledHead} head */
  const indexOf = (head) => at.get(head) ?? 0;
  /** @param {LabelledHead} head */
  const nameOf = (head) =>
    [headInWords(trace, place, head.layer, head.head), describeRole(head)]
      .filter(Boolean)
      .join(', ');
  /** @param {LabelledHead} head */
  const numbersOf = (head) =>
    [x, y, ...(shown.size ? [shown.size] : [])]
      .map((each) => `${each.title} ${valueIn(each, indexOf(head))}`)
      .join('; ');
  const chosen = heads.findIndex(({ layer, head }) => layer === state.layer && head === state.head);
  return chart(
    {
      x: linear(x.title, { hasGrid: true }),
      y: linear(y.title, { hasGrid: true }),
      marks: [
        ...matching.matchMarks(place, shown, state),
        dot(heads, {
          x: (_, index) => x.values[index],
          y: (_, index) => y.values[index],
          ...look,
          format: (value) => y.write(value),
          name: (head) => capitalised(nameOf(head)),
          number: numbersOf,
          say: (head) => `${capitalised(nameOf(head))}: ${numbersOf(head)}.`,
          choose: ({ layer, head }) => ({ view: 'head', layer, head }),
          value: (head) => y.values[indexOf(head)],
        }),
      ],
      size: { height: Math.min(520, Math.max(300, state.height - 160)) },
      table: {
        rows: { title: 'head', labels: heads.map(({ layer, head }) => `${layer}.${head}`) },
        columns: { title: '', labels: [y.title] },
        quantity: `measures of heads, as layer.head, ${y.title} ${y.over}`,
        ...(!state.answers?.card?.trace?.card?.heads
          ? { request: { capture: [], analyses: ['head_labels'] } }
          : { call: { path: cardPath(trace.model) } }),
        made: 'Means over many sentences are those of the model’s card; those of this text are made of its weights.',
        ofRows: columnsOf([x, ...measures.filter((measure) => measure !== x && measure !== y)]),
      },
      sentence: { sides: place, query: null, rowOf: () => -1 },
      cursor: {
        picked: chosen >= 0 ? { row: chosen, column: 0 } : null,
        start: { row: Math.max(chosen, 0), column: 0 },
        chooseHint: 'Enter opens the head',
        note: 'Press a point to open the head, drag to select points.',
        isOpen: true,
        only: heads.map((_, index) => index).filter(holds),
        picture: (row) =>
          picturesOf(trace, place, state, heads[row].layer).get(keyOf(heads[row])) ?? null,
        brush: ({ x0, x1, y0, y1 }) => ({
          sky_only: [x, y]
            .flatMap(({ id }, axis) => {
              const [least, most] = axis === 0 ? [x0, x1] : [y0, y1];
              return [`${id} >= ${rounded(least)}`, `${id} <= ${rounded(most)}`];
            })
            .join(', '),
        }),
      },
    },
    state,
  );
}

/** @param {number} value */
const rounded = (value) => Number(value.toPrecision(4));

/** @param {Measure} measure @param {number} at */
function valueIn({ values, controls, write }, at) {
  if (Number.isNaN(values[at])) return 'not known';
  const control = controls?.[at] ?? NaN;
  return `${write(values[at])}${Number.isNaN(control) ? '' : ` (control ${write(control)})`}`;
}

/** Return the columns of the table: each measure with its control, in a column of its own if heads differ in it. @param {Measure[]} measures */
function columnsOf(measures) {
  return measures.flatMap((measure) => {
    const { title, values, controls, write } = measure;
    /** @param {string} label @param {number[]} numbers */
    const column = (label, numbers) => ({
      label,
      value: (/** @type {number} */ row) => numbers[row],
      format: write,
    });
    if (!controls) return [column(title, values)];
    if (new Set(controls.map(write)).size > 1)
      return [column(title, values), column(`control of ${title}`, controls)];
    return [column(`${title} (${controlInWords(measure)})`, values)];
  });
}

/** Return colour, size and shape of each head. @param {Shown} shown @param {ViewState} state */
function lookOf({ heads, size, holds }, { palette, sky_colour: colour }) {
  const roles = ['', ...ROLE_WORDS];
  const present = new Set(heads.map(describeRole));
  const isByLabel = colour !== 'layer' && present.size > 1;
  const layers = Math.max(...heads.map(({ layer }) => layer), 1);
  const ramp = sequential(palette.theme);
  /** @param {number} layer */
  const ofLayer = (layer) => css(ramp, Math.round((0.15 + 0.8 * (layer / layers)) * (LEVELS - 1)));
  /** @param {number} kind of `roles` */
  const ofKind = (kind) => (kind === 0 ? palette.muted : KINDS[kind - 1]);
  /** @param {LabelledHead} head */
  const kindOf = (head) => roles.indexOf(describeRole(head));
  const [least, most] = endsOf(size?.values ?? []);
  const plain = heads.length > MANY ? RADIUS.small : RADIUS.plain;
  return {
    /** @param {LabelledHead} head */
    fill: (head) => (isByLabel ? ofKind(kindOf(head)) : ofLayer(head.layer)),
    /** @param {LabelledHead} _ @param {number} at */
    radius(_, at) {
      if (!size) return plain;
      const level = Math.sqrt((size.values[at] - least) / (most - least)) || 0;
      return RADIUS.least + level * (RADIUS.most - RADIUS.least);
    },
    /** @param {LabelledHead} head */
    shape: (head) => SHAPES[isByLabel ? kindOf(head) : 0][0],
    /** @param {LabelledHead} _ @param {number} at */
    opacity: (_, at) => (holds(at) ? 0.85 : 0.12),
    names: isByLabel
      ? roles.flatMap((role, kind) =>
          present.has(role)
            ? [{ name: role || 'no clear label', colour: ofKind(kind), glyph: SHAPES[kind][1] }]
            : [],
        )
      : [0, layers].map((layer) => ({
          name: `layer ${layer}`,
          colour: ofLayer(layer),
          glyph: SHAPES[0][1],
        })),
  };
}

/** @param {number[]} values */
function endsOf(values) {
  const known = values.filter((value) => !Number.isNaN(value));
  return [Math.min(...known, Infinity), Math.max(...known, -Infinity)];
}
