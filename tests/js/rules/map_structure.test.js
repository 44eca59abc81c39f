/** How much of a head's map is neither its queries', nor its keys', nor its distances'. */

import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import {
  structuredHead,
  measureStructure,
  structuresIn,
} from '../../../static/js/rules/map_structure.js';

const SIZE = 12;
const SIDES = { rows: SIZE, columns: SIZE };

/** A map of one text that sees only what came before, its rows made to add up to 1. */
function mapOf(weight) {
  const map = new Float64Array(SIZE * SIZE);
  for (let row = 0; row < SIZE; row += 1) {
    const cells = Array.from({ length: row + 1 }, (_, column) => weight(row, column));
    const sum = cells.reduce((all, each) => all + each, 0);
    cells.forEach((cell, column) => (map[row * SIZE + column] = cell / sum));
  }
  return map;
}

const near = (value, wanted) => ok(Math.abs(value - wanted) < 0.02, `${value} is not ${wanted}`);
const ofMap = (map, isOneText = true) => measureStructure(map, 0, SIDES, isOneText);

test('a head that looks everywhere alike, a fixed way back or at one key has no structure', () => {
  near(ofMap(mapOf(() => 1)), 0);
  near(ofMap(mapOf((row, column) => Math.exp(column - row))), 0);
  near(ofMap(mapOf((_, column) => (column === 4 ? 5 : 1))), 0);
  near(ofMap(mapOf((_, column) => (column === 0 ? 1 : 0))), 0);
  equal(ofMap(new Float64Array(SIZE * SIZE)), 0);
});

test('a head that links certain parts of a text has structure, less if it mostly rests', () => {
  const links = (row, column) => (row % 4 === 1 && column % 4 === 2 ? 5 : 0.1);
  const linked = ofMap(mapOf(links));
  ok(linked > 0.05, `${linked}`);
  const resting = ofMap(mapOf((row, column) => (column === 0 ? 50 : links(row, column))));
  ok(resting < linked / 2, `${resting}`);
});

test('between two texts a distance explains nothing', () => {
  const diagonal = Float64Array.from({ length: SIZE * SIZE }, (_, at) =>
    Number(at % SIZE === Math.floor(at / SIZE)),
  );
  near(ofMap(diagonal), 0);
  ok(ofMap(diagonal, false) > 0.5);
});

test('a finer map of a part of a larger array is read from its place', () => {
  const map = mapOf((row, column) => ((row + column) % 3 ? 1 : 4));
  const twice = Float64Array.from([...new Float64Array(7), ...map]);
  equal(measureStructure(twice, 7, SIDES, true), ofMap(map));
  const fine = new Float64Array(100 * 100).fill(1);
  near(measureStructure(fine, 0, { rows: 100, columns: 100 }, false), 0);
});

/** A trace of two layers of two heads, of which one links parts of the text. */
function traceOf(layer, head, stack = 'decoder', ending = 'self_attention') {
  const [plain, linking] = [
    mapOf(() => 1),
    mapOf((row, column) => (row % 4 === 1 && column % 4 === 2 ? 5 : 0.1)),
  ];
  const tensors = Object.fromEntries(
    [0, 1].map((each) => [
      `${stack}.layers.${each}.${ending}.mean_map`,
      {
        shape: [2, SIZE, SIZE],
        data: Float64Array.from(
          [0, 1].flatMap((at) => [...(each === layer && at === head ? linking : plain)]),
        ),
      },
    ]),
  );
  return { tensors };
}

const FREE = { where: '', layer: null, head: null };

test('the head with most structure is opened, of what was chosen already', () => {
  const trace = traceOf(1, 0);
  deepEqual(structuredHead(trace, FREE), { layer: 1, head: 0 });
  equal(structuredHead(trace, { ...FREE, layer: 0 }).layer, 0);
  deepEqual(structuredHead(trace, { ...FREE, layer: 0, head: 1 }), { layer: 0, head: 1 });
  deepEqual(structuredHead({ tensors: {} }, FREE), { layer: 0, head: 0 });
  const ranked = structuresIn(trace, { stack: 'decoder', ending: 'self_attention' });
  equal(ranked, structuresIn(trace, { stack: 'decoder', ending: 'self_attention' }));
  deepEqual([ranked.length, ranked[0].layer, ranked[0].head], [4, 1, 0]);
});

test('a translator opens on its cross attention, or on the place that was chosen', () => {
  const trace = {
    tensors: {
      ...traceOf(0, 1, 'encoder').tensors,
      ...traceOf(1, 1, 'decoder', 'cross_attention').tensors,
    },
  };
  deepEqual(structuredHead(trace, FREE), { layer: 1, head: 1 });
  deepEqual(structuredHead(trace, { ...FREE, where: 'encoder' }), { layer: 0, head: 1 });
});
