import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { buildAnatomy } from '../../../../static/js/ui/model_map/parts.js';
import { neighbour, railLayout, stripLayout } from '../../../../static/js/ui/model_map/layout.js';

const moe = (nLayers) => ({
  n_experts: 8,
  top_k: 2,
  layers: Array.from({ length: nLayers }, (_, layer) => layer),
});
const SHAPES = {
  'four layers of six heads': { kind: 'decoder', n_layers: 4, n_heads: 6, moe: moe(4) },
  'a translator': { kind: 'encoder-decoder', n_layers: 3, n_heads: 6, moe: null },
  '24 layers of 16 heads': { kind: 'decoder', n_layers: 24, n_heads: 16, moe: null },
  '48 layers of 25 heads': { kind: 'decoder', n_layers: 48, n_heads: 25, moe: null },
};
const LAYOUTS = {
  rail: (anatomy, open) => railLayout(anatomy, { width: 248, height: 660, open }),
  'low rail': (anatomy, open) => railLayout(anatomy, { width: 320, height: 400, open }),
  strip: (anatomy, open) => stripLayout(anatomy, { width: 358, open }),
};
const open = { stack: 'decoder', layer: 1 };
const idsOf = ({ parts }, kind) =>
  parts.filter(({ part }) => part.kind === kind).map(({ part }) => part.id);

for (const [shape, card] of Object.entries(SHAPES)) {
  for (const [kind, layoutOf] of Object.entries(LAYOUTS)) {
    const layout = layoutOf(buildAnatomy(card), open);

    test(`${kind} of ${shape}: every part is inside, and none covers another`, () => {
      for (const { part, x, y, width, height } of layout.parts) {
        ok(x >= 0 && x + width <= layout.width + 0.01, `${part.id} from ${x} to ${x + width}`);
        ok(y >= 0 && y + height <= layout.height + 0.01, part.id);
        ok(width >= 3 && height >= 7, `${part.id}: ${width} × ${height}`);
      }
      for (const [at, one] of layout.parts.entries()) {
        for (const other of layout.parts.slice(at + 1))
          ok(!isOver(one, other), `${one.part.id} and ${other.part.id}`);
      }
    });

    test(`${kind} of ${shape}: all heads of the open layer are there, each once`, () => {
      const own = idsOf(layout, 'head').filter((id) => id.startsWith('head decoder 1 '));
      deepEqual(
        own,
        Array.from({ length: card.n_heads }, (_, head) => `head decoder 1 ${head}`),
      );
      equal(new Set(layout.parts.map(({ part }) => part.id)).size, layout.parts.length);
    });

    test(`${kind} of ${shape}: arrow keys reach every part from the first`, () => {
      const reached = new Set([layout.parts[0].part.id]);
      for (const id of reached) {
        for (const key of ['ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight']) {
          const to = neighbour(layout.parts, id, key);
          if (to) reached.add(to);
        }
      }
      deepEqual(
        layout.parts.map(({ part }) => part.id).filter((id) => !reached.has(id)),
        [],
      );
    });
  }
}

test('the numbers of many layers stand apart in the strip', () => {
  for (const nLayers of [4, 14, 24, 32, 48]) {
    const card = { kind: 'decoder', n_layers: nLayers, n_heads: 8, moe: null };
    const layers = LAYOUTS.strip(buildAnatomy(card), open).parts.filter(
      ({ part }) => part.kind === 'layer',
    );
    const starts = layers.filter(({ isUnnumbered }) => !isUnnumbered).map(({ x }) => x);
    equal(starts[0], layers[0].x);
    for (const [at, x] of starts.slice(1).entries()) ok(x - starts[at] >= 13, `${nLayers}: ${x}`);
  }
});

function isOver(one, other) {
  const across = Math.min(one.x + one.width, other.x + other.width) - Math.max(one.x, other.x);
  const down = Math.min(one.y + one.height, other.y + other.height) - Math.max(one.y, other.y);
  return across > 0.01 && down > 0.01;
}

test('a small model is drawn whole; of a deep one all layers but the open one are folded', () => {
  const small = LAYOUTS.rail(buildAnatomy(SHAPES['four layers of six heads']), open);
  equal(idsOf(small, 'head').length, 24);
  equal(idsOf(small, 'expert').length, 4, 'the experts of a layer are one part');
  deepEqual(idsOf(small, 'stream'), ['stream decoder 3'], 'the whole stream is one part');
  deepEqual(idsOf(small, 'layer'), []);
  const deep = LAYOUTS.rail(buildAnatomy(SHAPES['24 layers of 16 heads']), open);
  equal(idsOf(deep, 'layer').length, 24, 'the open one has a number, too');
  ok(deep.height <= 660, `${deep.height}`);
  equal(deep.parts.find(({ part }) => part.kind === 'layer').bars.length, 16);
});

test('heads are higher where the model has words for them, and only if they are wide', () => {
  const heightOf = (nHeads, labels, width = 320) => {
    const card = { kind: 'decoder', n_layers: 2, n_heads: nHeads, moe: null, head_labels: labels };
    const { parts } = railLayout(buildAnatomy(card), { width, height: 700, open });
    return parts.find(({ part }) => part.kind === 'head').height;
  };
  const labels = { 'decoder.layers.0.self_attention': [] };
  ok(heightOf(4, labels) > heightOf(4, undefined));
  ok(heightOf(4, undefined) > heightOf(9, undefined));
  equal(heightOf(9, labels), heightOf(9, undefined), 'narrow heads have no words');
});

test('arrow keys walk along the heads of a layer and from layer to layer', () => {
  const { parts } = LAYOUTS.rail(buildAnatomy(SHAPES['four layers of six heads']), open);
  equal(neighbour(parts, 'head decoder 1 2', 'ArrowRight'), 'head decoder 1 3');
  equal(neighbour(parts, 'head decoder 1 2', 'ArrowLeft'), 'head decoder 1 1');
  equal(neighbour(parts, 'head decoder 1 0', 'ArrowLeft'), 'stream decoder 3');
  ok(neighbour(parts, 'head decoder 1 2', 'ArrowDown').startsWith('expert decoder 1'));
  ok(neighbour(parts, 'head decoder 1 2', 'ArrowUp').startsWith('expert decoder 0'));
  equal(neighbour(parts, 'head decoder 1 5', 'ArrowRight'), null);
  equal(neighbour(parts, 'head decoder 1 5', 'Home'), parts[0].part.id);
  equal(neighbour(parts, 'head decoder 1 5', 'x'), null);
});

test('what a model does not have is not on its map', () => {
  const kindsOf = (card) =>
    new Set(LAYOUTS.rail(buildAnatomy(card), open).parts.map(({ part }) => part.kind));
  const decoder = kindsOf(SHAPES['24 layers of 16 heads']);
  ok(decoder.has('network') && !decoder.has('expert') && !decoder.has('bridge'));
  const translator = kindsOf(SHAPES['a translator']);
  ok(translator.has('bridge'));
});

test('an encoder and a decoder stand side by side, joined at each cross-attention', () => {
  const { parts, lines } = LAYOUTS['low rail'](buildAnatomy(SHAPES['a translator']), open);
  const left = parts.filter(({ part }) => part.stack === 'encoder').map(({ x }) => x);
  const right = parts.filter(({ part }) => part.place === 'cross').map(({ x }) => x);
  ok(Math.max(...left) < Math.min(...right));
  equal(lines.filter(({ isCross }) => isCross).length, 2 + 3);
});

test('in the strip a name does not reach into the next', () => {
  for (let width = 100; width < 500; width += 1) {
    const card = { kind: 'decoder', n_layers: 4, n_heads: 4, moe: null };
    const { names } = stripLayout(buildAnatomy(card), { width, open });
    const above = names.filter(({ y }) => y < names.at(-1).y);
    ok(above.length > 0);
    for (const [at, { text, x, y, isEnd }] of above.entries()) {
      const next = above[at + 1];
      if (next?.y === y && !isEnd && !next.isEnd)
        ok(x + text.length * 6.6 < next.x, `${text} at ${width}`);
    }
  }
});

test('a name of the strip is shortened, or left out, where it has no room', () => {
  const namesAt = (width, nHeads) =>
    stripLayout(buildAnatomy({ kind: 'decoder', n_layers: 4, n_heads: nHeads, moe: null }), {
      width,
      open,
    }).names.map(({ text }) => text);
  ok(namesAt(358, 4).includes('heads of layer 1'));
  ok(namesAt(358, 2).includes('heads') && !namesAt(358, 2).includes('heads of layer 1'));
});

test('the heads of a layer are named once, however many rows they take', () => {
  const card = { kind: 'decoder', n_layers: 32, n_heads: 32, moe: null };
  const { names, parts } = stripLayout(buildAnatomy(card), { width: 358, open });
  deepEqual(
    names.map(({ text }) => text),
    ['heads of layer 1', 'network', 'layers', 'predicts'],
  );
  const numbered = parts.filter(({ part, isUnnumbered }) => part.kind === 'layer' && !isUnnumbered);
  ok(numbered.every(({ x }, at) => at === 0 || x - numbered[at - 1].x >= 20));
});

test('down from the embedding are the heads, not the stream along them', () => {
  const { parts } = LAYOUTS.rail(buildAnatomy(SHAPES['four layers of six heads']), open);
  const embedding = parts.find(({ part }) => part.kind === 'embedding').part.id;
  ok(neighbour(parts, embedding, 'ArrowDown').startsWith('head decoder 0 '));
});

test('the experts of a layer, however many, are one part of the strip', () => {
  for (const nExperts of [2, 8, 256]) {
    const moe = { n_experts: nExperts, top_k: 2, layers: [0, 1] };
    const { parts } = stripLayout(
      buildAnatomy({ kind: 'decoder', n_layers: 2, n_heads: 14, moe }),
      { width: 358, open: { stack: 'decoder', layer: 1 } },
    );
    equal(parts.filter(({ part }) => part.kind === 'expert').length, 1);
  }
});
