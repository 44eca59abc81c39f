import { deepEqual, equal, match } from 'node:assert/strict';
import { test } from 'node:test';
import { choosePlace } from '../../../static/js/trace/attention.js';
import { asksRoles, headToOpen, findRoles } from '../../../static/js/rules/head_insight.js';
import { sampleTrace } from '../sample.js';
import { KING, traceOf } from './made_trace.js';

const REPEATED = ['<s>', 'Doc', 'tor', ' Mouse', ' sat', '.', ' Doc', 'tor', ' Mouse'];
const PREVIOUS = [1, 2, 3, 4, 5, 6, 7].map((query) => [query, query - 1, 0.9]);
const telling = (trace, chosen) => headToOpen(trace, choosePlace({}, trace), chosen);

test('a head that links two words is told before one that looks at the token before', () => {
  const trace = traceOf(KING, [PREVIOUS, [[6, 2, 0.7]]], ['previous']);
  deepEqual(telling(trace), { layer: 0, head: 1, query: 6 });
});

test('a short word, or one that the text begins with, is a weaker link', () => {
  const trace = traceOf(KING, [
    [
      [6, 5, 0.1],
      [6, 1, 0.9],
      [5, 2, 0.6],
    ],
    [[7, 2, 0.99]],
  ]);
  deepEqual(telling(trace), { layer: 0, head: 0, query: 5 });
});

test('a row that repeats a short phrase is told, unlike one that rests on the first token', () => {
  const letters = ['<s>', 'a', ' b', ' c', ' d', ' a', ' b'].map((text) => text.trim() || text);
  const trace = traceOf(
    letters,
    [PREVIOUS.slice(0, 6), [[6, 3, 0.3]], [[6, 3, 0.6]]],
    ['previous'],
  );
  deepEqual(telling(trace), { layer: 0, head: 2, query: 6 });
});

test('the head of a text with a mask is one that links the mask', () => {
  const words = ['<s>', 'The', ' hungry', ' cat', '[MASK]', ' on', ' the', ' mouse'];
  const trace = traceOf(words, [[[7, 3, 0.9]], [[4, 7, 0.6]]]);
  trace.tokens[4].is_special = true;
  deepEqual(telling(trace), { layer: 0, head: 1, query: 4 });
});

test('a head that repeats a phrase comes before all, at the row that does', () => {
  const trace = traceOf(REPEATED, [[[4, 1, 0.9]], [[7, 3, 0.8]]], ['mixed', 'induction']);
  deepEqual(telling(trace), { layer: 0, head: 1, query: 7 });
});

test('a labelled head whose rows link nothing gives way to one that links two words', () => {
  const trace = traceOf(KING, [[], [[6, 2, 0.7]]], ['induction']);
  deepEqual(telling(trace), { layer: 0, head: 1, query: 6 });
  deepEqual(telling(traceOf(KING, [[], []], ['induction'])).head, 0);
});

test('of a common head the row of a word is told, not a full stop that rests on the first token', () => {
  const resting = traceOf(KING, [[[3, 2, 0.3]]], ['sink']);
  deepEqual(telling(resting), { layer: 0, head: 0, query: 3 });
  const idle = traceOf(KING, [[]], ['sink']);
  deepEqual(telling(idle), { layer: 0, head: 0, query: 6 });
});

test('a chosen head is kept, and its own telling row found', () => {
  const trace = traceOf(KING, [[[4, 1, 0.5]], [[6, 2, 0.7]]]);
  deepEqual(telling(trace, { layer: 0, head: 0 }), { layer: 0, head: 0, query: 4 });
});

test('without weights, or past the text, there is nothing to tell', () => {
  deepEqual(headToOpen({ ...sampleTrace(), tensors: {} }, null), {
    layer: 0,
    head: 0,
    query: null,
  });
});

const roleHeads = {
  multiplier: { layer: 1, head: 0, weight: 0.6, evenly: 0.1 },
  carry: { layer: 1, head: 2, weight: 0.3, evenly: 0.07 },
};
const answers = { roles: { trace: { card: { metrics: { sample: { heads: roleHeads } } } } } };

test('only a calculation asks for the card', () => {
  deepEqual(asksRoles({ text: '47*23=47*20', model: 'sums' }), { roles: { card: 'sums' } });
  deepEqual(asksRoles({ text: 'A cat = 3', model: 'sums' }), {});
});

test('a head has the roles that were measured for it, with its weight', () => {
  const [[title, words], ...others] = findRoles({ answers, layer: 1, head: 0 });
  deepEqual([title, others.length], ['Role', 0]);
  match(words, /multiplier’s digit.*60.*10/u);
  deepEqual(findRoles({ answers, layer: 0, head: 0 }), []);
  deepEqual(findRoles({ answers: {}, layer: 1, head: 0 }), []);
});

test('a layer that is chosen without a head is kept', () => {
  const trace = traceOf(KING, [PREVIOUS, [[6, 2, 0.7]]]);
  const [site] = Object.keys(trace.tensors);
  const later = traceOf(KING, [[[5, 2, 0.5]], [[6, 2, 0.95]]]);
  trace.tensors[site.replace('layers.0', 'layers.1')] = later.tensors[site];
  deepEqual(telling(trace), { layer: 1, head: 1, query: 6 });
  deepEqual(telling(trace, { layer: 0, head: null }), { layer: 0, head: 1, query: 6 });
});

test('a layer or a head that is chosen is kept, though no link is in it', () => {
  const trace = traceOf(KING, [PREVIOUS, PREVIOUS], ['', 'previous']);
  const found = telling(trace, { layer: 0, head: null });
  deepEqual([found.layer, found.head], [0, 1]);
  const other = telling(trace, { layer: null, head: 0 });
  deepEqual([other.layer, other.head], [0, 0]);
  equal(typeof other.query, 'number');
});

test('of a chosen head the strongest row is told, also in a text with a mask', () => {
  const trace = traceOf(
    ['<s>', 'The', ' king', ' was', ' [MASK]', ' of', ' people', '.'],
    [
      [
        [4, 2, 0.6],
        [6, 2, 0.9],
      ],
    ],
  );
  trace.card = { kind: 'encoder', has_mask: true };
  trace.tokens[4] = { ...trace.tokens[4], text: '[MASK]', is_special: true, word: null };
  const [path] = Object.keys(trace.tensors);
  trace.tensors = { [path.replace('decoder', 'encoder')]: trace.tensors[path] };
  equal(telling(trace).query, 4);
  equal(telling(trace, { layer: 0, head: 0 }).query, 6);
});

test('a word of three letters is a better link than a weaker one to a long word', () => {
  equal(telling(traceOf(KING, [[[6, 3, 0.9]], [[6, 2, 0.6]]])).head, 0);
  equal(telling(traceOf(KING, [[[6, 3, 0.6]], [[6, 2, 0.6]]])).head, 1);
});
