import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { positions } from '../../../../static/js/views/positions/positions.js';
import { figuresOf, FRAME, near, sampleTrace, schemeTrace, tensor, TOKENS } from '../../sample.js';
import { assertReadable } from '../view_contract.js';

const COUNT = TOKENS.length;
const CARD = {
  id: 'tiny',
  kind: 'decoder',
  positional: 'sinusoidal',
  d_model: 4,
  n_heads: 2,
  n_layers: 2,
};
const sinusoidal = () => ({ ...sampleTrace(), card: CARD, asked: { model: 'tiny', text: 'it' } });
const withCard = (trace) => ({ ...trace, card: { ...CARD, ...trace.card } });
const show = (part, more = {}) => ({ positions_show: part, ...more });

const twin = (positional, more = {}) => ({
  ...CARD,
  id: `positions-${positional}`,
  positional,
  max_tokens: 64,
  ...more,
});
const TWINS = ['alibi', 'learned', 'rotary', 'sinusoidal'].map((positional) => twin(positional));
const CARDS = [CARD, ...TWINS];

const flat = (rows, columns, value) => tensor(['position', 'd_model'], [rows, columns], value);
const BIAS = tensor(
  ['head', 'query', 'key'],
  [2, COUNT, COUNT],
  (at) => -Math.abs((Math.floor(at / COUNT) % COUNT) - (at % COUNT)) / 2,
);
const ENCODINGS = {
  sinusoidal: { trace: { tensors: { encoding: flat(COUNT, 4, 0.5) } } },
  learned: { trace: { tensors: { encoding: flat(COUNT, 6, 2) } } },
  rotary: { trace: { tensors: { cos: flat(COUNT, 1, 1) } } },
  alibi: { trace: { tensors: { bias: BIAS } } },
};

test('an encoding of one dimension, and a text of one token', () => {
  const card = { ...CARD, positional: 'learned', d_model: 1, n_heads: 1 };
  const trace = { ...sinusoidal(), card };
  trace.tensors['decoder.embedding.positional'] = flat(COUNT, 1, 1);
  equal(figuresOf(positions, trace, show('encoding'))[0].grid.columns, 1);
  const single = { ...sinusoidal(), tokens: TOKENS.slice(0, 1) };
  figuresOf(positions, single, show('encoding')).forEach(assertReadable);
  ok(figuresOf(positions, single, show('rotation'))[0].notice);
});

test('rotation: R(k)·PE(p) is PE(p + k), and the page says how exactly', () => {
  const state = show('rotation', { positions_shift: 2, query: 1, positions_pairs: [0, 1] });
  const [circles] = figuresOf(positions, sinusoidal(), state);
  equal(circles.title, 'R(2) carries position 1 to 3');
  near(circles.grid.value(0, 2), Math.sin(3));
  near(circles.grid.value(0, 3), Math.cos(3));
  ok(circles.grid.value(0, 6) < 1e-6);
  match(circles.facts[0][1], /·10⁻[⁷⁸⁹]$/);
  equal(circles.facts[1][1], '3 positions × 2 pairs');
  for (const [positions_shift, to] of Object.entries({ 99: 4, 0: 1 })) {
    const clamped = show('rotation', { positions_shift: Number(positions_shift), query: 0 });
    match(figuresOf(positions, sinusoidal(), clamped)[0].title, new RegExp(`0 to ${to}$`));
  }
});

test('rotation: every number of a circle has its place, and points are found where they are drawn', () => {
  const [{ grid }] = figuresOf(
    positions,
    sinusoidal(),
    show('rotation', { positions_pairs: [0, 1] }),
  );
  for (let row = 0; row < grid.rows; row += 1) {
    for (const column of [0, 2, 6]) {
      const { x0, x1, y0, y1 } = grid.geometry.box(row, column);
      const found = grid.geometry.at((x0 + x1) / 2, (y0 + y1) / 2);
      deepEqual(found, { row, column: row === 0 ? column : found.column });
    }
  }
  equal(grid.geometry.at(-1, 0.5), null);
});

test('without a scheme nothing rotates', () => {
  const [{ notice }] = figuresOf(positions, withCard(schemeTrace('none')), show('rotation'));
  ok(notice);
});

test('rotation of rotary: queries are turned as captured, by the position they stand at', () => {
  const state = show('rotation', { query: 3, positions_pairs: [0] });
  const [circles] = figuresOf(positions, withCard(schemeTrace('rotary')), state);
  const { value } = circles.grid;
  near(value(0, 0), 2);
  near(value(0, 2), 2 * Math.cos(3));
  near(value(0, 4), 2 * Math.cos(3));
  ok(value(0, 6) < 1e-6);
  deepEqual(circles.grid.request.heads, [0]);
});

test('rotation of another model: its own pairs, speeds and factor, with the formula', () => {
  const trace = withCard(schemeTrace('rotary'));
  const site = 'decoder.layers.0.self_attention';
  const swap = ({ data, ...rest }, factor) => ({
    ...rest,
    data: data.map((_, at) => factor * data[at - (at % 4) + [0, 2, 1, 3][at % 4]]),
  });
  trace.tensors[`${site}.queries`] = swap(trace.tensors[`${site}.queries`], 1);
  trace.tensors[`${site}.rotated_queries`] = swap(trace.tensors[`${site}.rotated_queries`], 1.5);
  const scaling = { rope_type: 'yarn', factor: 4 };
  const rotation = {
    first: [0, 1],
    second: [2, 3],
    speeds: [1, 0.01],
    factor: 1.5,
    base: 1e4,
    scaling,
  };
  const other = { ...trace, card: { ...trace.card, rotation } };
  const [{ grid, facts }] = figuresOf(positions, other, show('rotation', { query: 3 }));
  near(grid.value(0, 2), 3 * Math.cos(3));
  ok(grid.value(0, 6) < 1e-6 && grid.value(1, 6) < 1e-6);
  deepEqual(facts.slice(2), [
    ['Speed of pair i', 'from 10,000^(−i/2) radians per position, scaled'],
    ['Scaling', 'yarn, factor 4'],
    ['Factor of the rotated numbers', '1.5'],
  ]);
  near(figuresOf(positions, other, show('encoding'))[0].grid.value(3, 0), Math.cos(3));
  const unknown = { ...trace, card: { ...trace.card, architecture: 'X', rotation: null } };
  ok(figuresOf(positions, unknown, show('rotation'))[0].notice);
});

test('learned biases by distance are drawn with their signs, and nothing rotates', () => {
  const trace = withCard(schemeTrace('relative'));
  const site = 'decoder.layers.0.self_attention.bias';
  trace.tensors[site].data = trace.tensors[site].data.map((bias) => bias + 1);
  const [map] = figuresOf(positions, trace, show('encoding'));
  deepEqual([map.grid.value(2, 2), map.data[0].zmax], [1, -map.data[0].zmin]);
  match(positions.wording(trace, FRAME).help, /learned for the distance/);
  ok(figuresOf(positions, trace, show('rotation'))[0].notice);
});

test('only the displayed parts are requested', () => {
  const asks = (part) => positions.asks(sinusoidal(), { ...FRAME, cards: CARDS, ...show(part) });
  for (const part of ['encoding', 'rotation']) deepEqual(asks(part), {});
  const size = { length: COUNT };
  deepEqual(asks('schemes'), {
    sinusoidal: { positional: { scheme: 'sinusoidal', ...size, width: 4 } },
    learned: { positional: { model: 'positions-learned', ...size } },
    rotary: { positional: { scheme: 'rotary', ...size, width: 2 } },
    alibi: { positional: { scheme: 'alibi', ...size, heads: 2 } },
  });
});

test('schemes: odd widths become even, a short table is asked for as far as it goes', () => {
  const trace = { ...sinusoidal(), card: { ...CARD, d_model: 9, n_heads: 3 } };
  const cards = [twin('learned', { max_tokens: 3 })];
  const asked = positions.asks(trace, { ...FRAME, cards, ...show('schemes') });
  equal(asked.sinusoidal.positional.width, 10);
  equal(asked.rotary.positional.width, 4);
  equal(asked.learned.positional.length, 3);
  const answers = { ...ENCODINGS, learned: { trace: { tensors: { encoding: flat(3, 6, 2) } } } };
  const [, learned] = figuresOf(positions, trace, show('schemes', { cards, answers }));
  assertReadable(learned);
  const none = show('schemes', { cards: [CARD], answers: ENCODINGS });
  equal('learned' in positions.asks(trace, { ...FRAME, ...none }), false);
  ok(figuresOf(positions, trace, none)[1].notice);
});

test('a rotation that depends on the length is that of the text, not of the card', () => {
  const other = {
    first: [0, 2],
    second: [1, 3],
    speeds: [7, 8],
    factor: 3,
    base: 1e4,
    scaling: {},
  };
  const trace = schemeTrace('rotary');
  trace.card = { ...CARD, ...trace.card, rotation: { ...other, n_tokens: 11 } };
  const state = { ...FRAME, ...show('rotation'), layer: 0, query: 3 };
  const asked = { of_length: { positional: { model: 'tiny', length: COUNT } } };
  deepEqual(positions.asks(trace, state), asked);
  deepEqual(positions.asks(trace, { ...state, ...show('schemes') }).of_length, undefined);
  const [waiting] = figuresOf(positions, trace, state);
  ok(waiting.isWaiting && waiting.notice);
  const angles = tensor(
    ['position', 'pair'],
    [COUNT, 2],
    (at) => Math.floor(at / 2) / [1, 100][at % 2],
  );
  const cos = tensor(['position', 'pair'], [COUNT, 2], (at) => Math.cos(angles.data[at]));
  const answers = { of_length: { trace: { length: COUNT, tensors: { angles, cos } } } };
  const [circles] = figuresOf(positions, trace, { ...state, answers });
  near(circles.grid.value(0, 6), 0, 1e-6);
  ok(circles.facts.some(([, value]) => value === `${COUNT} tokens`));
  trace.card.rotation.n_tokens = COUNT;
  deepEqual(positions.asks(trace, state), {});
  trace.card.rotation.n_tokens = 0;
  deepEqual(positions.asks(trace, state), {});
});
