/**
 * What every drawing holds: words, numbers, table, spoken cells, link to the sentence, cursor, and its
 * ink. Recorded answers of tiny models of every kind are drawn by every view in all its settings and
 * keep the contract of views: the standard ones and those of two models at three widths, the rest at
 * the middle one. figures.json has digests of it. After a change that is meant:
 *
 *     HEADLIGHT_RENEW_FIGURES=1 node --test tests/js/plot/figures.test.js
 *
 * To read what a digest stands for: HEADLIGHT_FIGURE='name' node --test tests/js/plot/figures.test.js
 */

import { deepEqual, equal, ok } from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import '../browser.js';
import {
  fetchAnswer,
  fetchModels,
  readyModel,
  overviewAsk,
  request,
  bodyOf,
} from '../../../static/js/api/answers.js';
import { Writer, streamGeneration } from '../../../static/js/api/generation.js';
import { viewState, fieldsOf, normalized, standardsOf } from '../../../static/js/state/state.js';
import { walk } from '../../../static/js/ui/plot.js';
import { MAP } from '../../../static/js/ui/model_map/parts.js';
import { VIEWS } from '../../../static/js/views/view_registry.js';
import { answerFromRecord, keepRecord } from '../recorded.js';
import { PALETTE } from '../sample.js';
import { assertContract, assertFits, WIDTHS } from '../views/view_contract.js';
import { ARRAYS, resultOf } from '../views/experiments/results.js';

const FILE = new URL('figures.json', import.meta.url);
const DARK = { ...PALETTE, theme: 'dark', surface: '#000', ink: '#fff' };
const ASPECTS = ['words', 'numbers', 'table', 'cells', 'sentence', 'cursor'];
/** Of a grid, every cell up to this number, else evenly spread ones. */
const MOST_CELLS = 50;
const MODELS = {
  tiny: { text: 'the cat’s <b> “mat”', other: 'the mat’s <b> “cat”' },
  turning: { text: 'the cat sat on the cat', other: 'the cat sat on the mat' },
  slanted: { text: 'the cat sat on', other: 'the mat sat on' },
  filler: { text: 'the [MASK] sat', other: 'the [MASK] cat' },
  translator: { text: 'the cat reads', target: 'a light', other: 'the mat reads' },
  gpt2: { text: 'the cat sat', other: 'the mat sat' },
  t5: { text: 'the cat sat', target: 'a', other: 'the mat sat' },
};
/** Two models of one kind compare in one way. */
const COMPARED = ['tiny', 'translator', 'filler', 'gpt2'];
const AT_EVERY_WIDTH = ['tiny', 'translator'];
const STANDARD = {};
/** Settings that go together, beside each setting of a field by itself. */
const together = (other) => ({
  attention: [{ attention_which: 'layer' }, { attention_which: 'head', range: 'head' }],
  long: [{ long_cell: [3, 1] }],
  positions: [{ positions_show: 'rotation', positions_shift: 2, positions_pairs: [0, 1] }],
  stream: [{ stream_show: 'norms', stream_layer: 1 }],
  next_token: [{ next_token_temperature: 0.5, next_token_top_k: 3 }, { next_token_top_p: 0.5 }],
  word: [{ word_show: 'parts', token: 9, against: 12 }],
  translate: [{ translate_threshold: 0.2 }],
  why: [{ why_unscaled: true, why_temperature: 2 }],
  compare: [
    { compare_with: 'text', compare_text: other },
    { compare_with: 'model', compare_model: 'turning' },
    { compare_with: 'model', compare_model: 'slanted' },
    { compare_heads: [0, 1] },
    { compare_heads: [0], compare_layer: 1 },
    { compare_edit: 'experts', compare_experts: [0, 1] },
    { compare_edit: 'quantize', compare_bits: 2, compare_part: 'attention' },
    { compare_edit: 'temperature', compare_temperature: 4 },
  ],
});

answerFromRecord();
const { signal } = new AbortController();
const catalogue = await fetchModels(signal);
const STANDARDS = standardsOf(fieldsOf(VIEWS));
const IDS = VIEWS.map(({ id }) => id);

/** Settings of a view: its standard ones, other rows and heads, each value of a field, and some together. */
function settingsOf({ id, fields }, other) {
  const singles = Object.entries(fields ?? {}).flatMap(([name, { values = [], standard }]) => [
    ...values.filter((value) => value !== standard).map((value) => ({ [name]: value })),
    ...(typeof standard === 'boolean' ? [{ [name]: !standard }] : []),
  ]);
  const places = [
    STANDARD,
    { layer: 0, head: 1, query: 2, key: 1 },
    { where: 'encoder' },
    { where: 'cross' },
  ];
  return [...places, ...singles, ...(together(other)[id] ?? [])];
}

/** The answers that a view asks for, and those that they lead to. */
async function answersOf(view, trace, state) {
  const answers = {};
  for (let round = 0; round < 3; round += 1) {
    const asked = Object.entries(view.asks?.(trace, viewState({ ...state, answers })) ?? {});
    const missing = asked.filter(([name]) => !answers[name]);
    for (const [name, ask] of missing)
      answers[name] = await fetchAnswer(catalogue, bodyOf(ask, trace), signal).then(
        (found) => ({ trace: found }),
        (problem) => ({ problem }),
      );
  }
  return answers;
}

/** Some tokens written after a text, as the view of generated text shows them. */
async function written(trace) {
  const writer = new Writer({
    stream: streamGeneration,
    onChange: () => {},
    pause: async () => {},
  });
  const { model, text } = trace;
  writer.want({ model, text, sampling: { temperature: 0.8, top_p: 0.9, seed: 0 } }, []);
  await writer.write(4);
  writer.follow();
  return writer.state();
}

const round = (value) => (Number.isFinite(value) ? Number(value.toPrecision(5)) : `${value}`);
const COLOUR = /rgba?\([^)]*\)|#[0-9a-f]{3,8}\b/gi;
/** Plain data of a value: numbers to five digits, without functions and, unless it is ink, colours. */
function essence(value, isInk = false) {
  const each = (part) => essence(part, isInk);
  if (typeof value === 'number') return round(value);
  if (typeof value === 'string') return isInk ? value : value.replace(COLOUR, '');
  if (ArrayBuffer.isView(value) || Array.isArray(value)) return Array.from(value, each);
  if (typeof value !== 'object' || value === null) return value;
  const plain = {};
  for (const name of Object.keys(value).sort())
    if (typeof value[name] !== 'function') plain[name] = each(value[name]);
  return plain;
}

/** Up to `most` of the numbers below `count`, evenly spread. */
function some(count, most) {
  const step = Math.max(1, count / most);
  return Array.from({ length: Math.min(count, most) }, (_, at) => Math.floor(at * step));
}

/** @returns {Record<string, unknown>} by aspect */
function aspectsOf({ data, layout, grid, ...words }) {
  const ink = [data, layout];
  if (!grid) return { words, ink };
  const cells = some(grid.rows * grid.columns, MOST_CELLS).map((at) => [
    Math.floor(at / grid.columns),
    at % grid.columns,
  ]);
  const each = (read) => read && cells.map(([row, column]) => read(row, column));
  const rows = some(grid.rows, 40);
  const columns = some(grid.columns, 40);
  const { rowTitle, columnTitle, rowLabels, columnLabels, quantity } = grid;
  const { request: asks, before, made, call, ofRows = [] } = grid;
  const { sides, query, ceiling, isSigned, rest } = grid;
  const { chooseHint, note, chosen, picked, writes, isReadFromStart, pan } = grid;
  // The defaults of ui/plot.js.
  const { start = { row: 0, column: 0 }, kind = grid.columns > 1 ? 'heatmap' : 'bar chart' } = grid;
  return {
    words,
    ink,
    numbers: [
      grid.rows,
      grid.columns,
      each(grid.value),
      ofRows.map(({ value }) => rows.map(value)),
    ],
    table: [
      { rowTitle, columnTitle, rowLabels, columnLabels, quantity },
      { asks, before, made, call },
      each((row, column) => {
        const value = grid.value(row, column);
        return Number.isNaN(value) ? null : grid.format(value);
      }),
      each(grid.written),
      ofRows.map(({ label, value, format }) => [label, rows.map((row) => format(value(row)))]),
    ],
    cells: [each(grid.describe), each(grid.tip), each(grid.choose), each(grid.chosenWeight)],
    sentence: [
      { sides, query, ceiling, isSigned, rest },
      each(grid.tokens),
      each(grid.tint),
      grid.ofRow && rows.map(grid.ofRow),
      grid.ofColumn && columns.map(grid.ofColumn),
      grid.ofToken && [0, 1].map(grid.ofToken),
      grid.rowOf && [0, 1, 2].map(grid.rowOf),
      grid.columnOf && [0, 1, 2].map(grid.columnOf),
    ],
    cursor: [
      { chooseHint, note, chosen, picked, start, writes, kind, isReadFromStart },
      ['ArrowDown', 'End'].map((key) => walk(start, key, grid)),
      grid.move && ['+', '-', '0', 'Shift+ArrowUp'].map((key) => grid.move(key, start)),
      pan && [pan.box, pan.most, pan.least],
    ],
  };
}

const digest = (value, isInk) =>
  createHash('sha256')
    .update(JSON.stringify(essence(value, isInk)) ?? '')
    .digest('hex')
    .slice(0, 6);

/** Digests by name: of every aspect at each width, or once if they are the same, and of the ink. */
const made = {};
const [themes, broken] = [[], []];
/**
 * @param {string} name
 * @param {(frame: {width: number, palette: object}) => object[]} draw
 * @param {number[]} [widths]
 */
function add(name, draw, widths = WIDTHS) {
  const inks = [];
  const at = widths.map((width) => {
    const figures = draw({ width, palette: PALETTE });
    try {
      for (const figure of figures.filter(({ grid }) => grid))
        if (width === widths[0]) assertContract([figure], width);
        else assertFits(figure, width);
    } catch ({ message }) {
      broken.push(`${name}, ${width} pixels: ${message}`);
    }
    const aspects = figures.map(aspectsOf);
    inks.push(aspects.map(({ ink }) => ink));
    if (process.env.HEADLIGHT_FIGURE === name)
      console.log(JSON.stringify(essence(aspects), null, 1));
    if (width === WIDTHS[1]) {
      const dark = draw({ width, palette: DARK }).map(aspectsOf);
      if (digest(dark) !== digest(aspects)) themes.push(name);
      inks.push(dark.map(({ ink }) => ink));
    }
    return ASPECTS.map((aspect) => digest(aspects.map((each) => each[aspect]))).join(' ');
  });
  made[name] = [...(new Set(at).size === 1 ? [at[0]] : at), digest(inks, true)].join(', ');
}

for (const [model, { other, ...texts }] of Object.entries(MODELS)) {
  const short = catalogue.models.find(({ id }) => id === model);
  const card = await readyModel(short, signal, () => {});
  const asked = { model, ...texts };
  const fetched = await fetchAnswer(
    catalogue,
    { ...asked, ...request([...VIEWS, MAP], card) },
    signal,
  );
  const whole = { ...fetched, asked };
  const long = {
    ...(await fetchAnswer(catalogue, { ...asked, ...overviewAsk(card) }, signal)),
    asked,
  };
  for (const entry of VIEWS.filter(({ isOffered }) => isOffered?.(card) ?? true)) {
    if (entry.id === 'compare' && !COMPARED.includes(model)) continue;
    const view = await entry.load();
    const trace = entry.id === 'long' ? long : whole;
    for (const setting of settingsOf(entry, other)) {
      const page = {
        ...STANDARDS,
        where: '',
        words: '',
        layer: null,
        head: null,
        query: null,
        source: null,
        key: null,
        range: 'one',
        target: null,
        ...asked,
        ...setting,
        view: entry.id,
      };
      const frame = { palette: PALETTE, height: 600, cards: catalogue.models, answers: {} };
      const state = { ...normalized(page, trace, IDS), ...frame };
      if (entry.id === 'generate') {
        state.generation = await written(trace);
        state.generate_path = state.generation.steps.map(({ id }) => id);
      }
      await view.prepare?.(trace, viewState(state));
      state.answers = await answersOf(view, trace, state);
      const draw = (given) => {
        const drawn = viewState({ ...state, ...given });
        const panels = view.panels?.(trace, drawn) ?? [{ id: '', state: {} }];
        const { help, terms, answer } = view.wording?.(trace, drawn) ?? {};
        const places = [view.places?.(trace, drawn), view.place?.(trace, drawn)];
        return [
          {
            help,
            terms: terms && Object.entries(terms),
            answer,
            places,
            panels: panels.map(({ id }) => id),
            controls: view.controls?.(trace, drawn),
          },
          ...panels.map((panel) => view.figure(trace, { ...drawn, ...given, ...panel.state })),
        ];
      };
      const isAtEvery = setting === STANDARD || AT_EVERY_WIDTH.includes(model);
      const name = `${entry.id}, ${model}, ${JSON.stringify(setting)}`;
      add(name, draw, isAtEvery ? WIDTHS : [WIDTHS[1]]);
    }
  }
}
for (const id of Object.keys(ARRAYS)) {
  const { experiment } = await import(`../../../static/js/views/experiments/${id}.js`);
  for (const picture of experiment.pictures(resultOf(id)))
    add(`experiment ${id}, ${picture.id}`, (given) => [picture.draw({ ...given, height: 600 })]);
}
keepRecord();

test('every figure is as it was', () => {
  if (process.env.HEADLIGHT_RENEW_FIGURES)
    writeFileSync(FILE, `${JSON.stringify(made, null, 1)}\n`);
  const expected = JSON.parse(readFileSync(FILE, 'utf8'));
  const differences = Object.keys({ ...expected, ...made }).flatMap((name) => {
    const [now, then] = [made[name], expected[name]].map((digests = '') => {
      const at = digests.split(', ');
      return { ink: at.pop(), at };
    });
    const changed = WIDTHS.flatMap((width, index) => {
      const [one, other] = [now, then].map(({ at }) => (at[index] ?? at[0] ?? '').split(' '));
      const aspects = ASPECTS.filter((_, aspect) => one[aspect] !== other[aspect]);
      return aspects.length > 0 ? [`${name}, ${width} pixels: ${aspects.join(', ')}`] : [];
    });
    return now.ink === then.ink ? changed : [...changed, `${name}: ink`];
  });
  deepEqual(differences, []);
});

test('every figure keeps the contract of views', () => {
  deepEqual(broken, []);
});

test('a theme changes nothing but colours', () => {
  deepEqual(themes, []);
});

test('every view is drawn for a model', () => {
  const drawn = new Set(Object.keys(made).map((name) => name.split(', ')[0]));
  const isDrawn = (id) => drawn.has(id) || ['answer', 'choices', 'similar'].includes(id); // no model here has a vector, a score or an answer
  ok(IDS.every(isDrawn));
  equal(
    Object.keys(ARRAYS).every((id) => drawn.has(`experiment ${id}`)),
    true,
  );
});
