import { deepEqual, equal, match } from 'node:assert/strict';
import { test } from 'node:test';
import { choosePlace } from '../../../static/js/trace/attention.js';
import {
  asksRoles,
  headToOpen,
  explainRow,
  findRoles,
} from '../../../static/js/rules/head_insight.js';
import { sampleTrace, tensor } from '../sample.js';

const CARD = { kind: 'decoder' };

/**
 * A decoder of one layer: each head is a list of `[query, key, weight]`; the rest of a row is on the
 * first token.
 */
function traceOf(words, heads, labels = []) {
  const tokens = words.map((text, at) => ({
    id: text.trim().toLowerCase().charCodeAt(0) * 7 + text.length,
    text,
    start: at,
    end: at + 1,
    word: at === 0 ? null : words.slice(1, at + 1).filter((piece) => !/^[a-z]/.test(piece)).length,
    is_special: at === 0,
  }));
  const count = tokens.length;
  const weights = tensor(['head', 'query', 'key'], [heads.length, count, count], 0);
  heads.forEach((links, head) => {
    for (let query = 0; query < count; query += 1) {
      const own = links.filter(([row]) => row === query);
      for (const [, key, weight] of own)
        weights.data[(head * count + query) * count + key] = weight;
      weights.data[(head * count + query) * count] += own.reduce((rest, [, , w]) => rest - w, 1);
    }
  });
  const path = 'decoder.layers.0.self_attention';
  const names = [...new Set([...labels, 'mixed'])];
  return {
    ...sampleTrace(),
    card: CARD,
    tokens,
    tensors: { [`${path}.weights`]: weights },
    analyses: {
      head_labels: {
        labels: names,
        [`${path}.label`]: tensor(['head'], [heads.length], (at) =>
          names.indexOf(labels[at] ?? 'mixed'),
        ),
        [`${path}.label_scores`]: tensor(['head', 'label'], [heads.length, names.length], 0.9),
        [`${path}.label_queries`]: tensor(['label'], [names.length], 4),
      },
    },
  };
}

const KING = ['<s>', 'The', ' king', ' was', ' afraid', ' of', ' him', '.'];
const REPEATED = ['<s>', 'Doc', 'tor', ' Mouse', ' sat', '.', ' Doc', 'tor', ' Mouse'];
const PREVIOUS = [1, 2, 3, 4, 5, 6, 7].map((query) => [query, query - 1, 0.9]);
const telling = (trace, chosen) => headToOpen(trace, choosePlace({}, trace), chosen);
const said = (trace, head, query) => explainRow(trace, { where: '', layer: 0, head }, query);

test('a head that links two words is told before one that looks at the token before', () => {
  const trace = traceOf(KING, [PREVIOUS, [[6, 2, 0.7]]], ['previous']);
  deepEqual(telling(trace), { layer: 0, head: 1, query: 6 });
  equal(said(trace, 1, 6), 'At “him”, this head mostly reads “king”, 4 tokens back (70 %).');
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
  equal(
    said(trace, 1, 7),
    'At the second “Doctor”, this head looks back to “Mouse”, which followed it before (80 %): an induction head.',
  );
});

test('a labelled head whose rows link nothing gives way to one that links two words', () => {
  const trace = traceOf(KING, [[], [[6, 2, 0.7]]], ['induction']);
  deepEqual(telling(trace), { layer: 0, head: 1, query: 6 });
  deepEqual(telling(traceOf(KING, [[], []], ['induction'])).head, 0);
});

test('a piece that repeats within different words is told as a piece', () => {
  const days = ['<s>', 'Mon', 'day', ',', ' Tues', 'day', ','];
  const trace = traceOf(days, [[[5, 3, 0.8]], [[5, 2, 0.7]]]);
  match(said(trace, 0, 5), /^At “day”, this head looks back to “,”, which followed it/);
  match(said(trace, 1, 5), /^At “day”, this head looks at the same letters elsewhere/);
});

test('a digit is told of its number, and a letter of a script without spaces alone', () => {
  const words = ['<s>', '9', '4', '*', '2', '3', '我', '喜'];
  const trace = traceOf(words, [
    [
      [5, 1, 0.9],
      [7, 4, 0.9],
    ],
  ]);
  const places = [null, 0, 0, 1, 2, 2, 3, 3];
  const tokens = trace.tokens.map((token, at) => ({ ...token, word: places[at] }));
  match(said({ ...trace, tokens }, 0, 5), /^At “3” of “23”, .* “9” of “94”, 4 tokens back/);
  match(said({ ...trace, tokens }, 0, 7), /^At “喜”, .* “2” of “23”/);
});

test('of a common head the row of a word is told, not a full stop that rests on the first token', () => {
  const resting = traceOf(KING, [[[3, 2, 0.3]]], ['sink']);
  deepEqual(telling(resting), { layer: 0, head: 0, query: 3 });
  const idle = traceOf(KING, [[]], ['sink']);
  deepEqual(telling(idle), { layer: 0, head: 0, query: 6 });
  equal(
    said(idle, 0, 6),
    'At “him”, this head looks at “<s>”, the start of the text (100 %): an attention sink.',
  );
});

test('the pieces of a word are told apart only if one looks at the other, and a contraction is whole', () => {
  const words = ['<s>', 'She', ' didn', "'t", ' hear', 'tily', ' sing'];
  const trace = traceOf(words, [
    [
      [6, 2, 0.9],
      [5, 4, 0.8],
      [4, 3, 0.9],
    ],
  ]);
  match(said(trace, 0, 6), /^At “sing”, .* “didn’t”, 4 tokens back/);
  match(said(trace, 0, 5), /^At “tily”, .* “hear” \(80 %\)/);
  match(said(trace, 0, 4), /^At “heartily”, .* “’t” \(90 %\)/);
});

test('a chosen head is kept, and its own telling row found', () => {
  const trace = traceOf(KING, [[[4, 1, 0.5]], [[6, 2, 0.7]]]);
  deepEqual(telling(trace, { layer: 0, head: 0 }), { layer: 0, head: 0, query: 4 });
});

test('what a label means is told only where the row does it', () => {
  const trace = traceOf(KING, [[...PREVIOUS.slice(0, 5), [6, 2, 0.9]]], ['previous']);
  equal(
    said(trace, 0, 3),
    'At “was”, this head looks at the token before, “king” (90 %): a previous-token head.',
  );
  equal(said(trace, 0, 6), 'At “him”, this head mostly reads “king”, 4 tokens back (90 %).');
});

test('without weights, or past the text, there is nothing to tell', () => {
  deepEqual(headToOpen({ ...sampleTrace(), tensors: {} }, null), {
    layer: 0,
    head: 0,
    query: null,
  });
  const trace = traceOf(KING, [PREVIOUS]);
  equal(said(trace, 0, 99), '');
  equal(said(trace, 9, 3), '');
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

test('the row of the first token is told, and none before it', () => {
  const trace = traceOf(KING, [PREVIOUS]);
  match(said(trace, 0, 0), /this head/);
  equal(said(trace, 0, -1), '');
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

/** A translator with one head of cross-attention: row n looks at token n of the source. */
function pair(aligner) {
  const trace = traceOf(['<s>', 'The', ' girl', ' sleeps'], []);
  const words = ['<s>', 'La', ' fille', ' dort'];
  const target_tokens = trace.tokens.map((token, at) => ({ ...token, text: words[at] }));
  const weights = tensor(['head', 'query', 'key'], [1, 4, 4], (at) => (at % 5 === 0 ? 0.9 : 0));
  return {
    ...trace,
    card: { kind: 'encoder-decoder', aligner },
    target_tokens,
    target: 'La fille dort',
    tensors: { 'decoder.layers.0.cross_attention.weights': weights },
    analyses: {},
  };
}

test('a row of cross-attention is told by the word that it writes, or looks up if it aligns', () => {
  equal(said(pair(null), 0, 2), 'To write “dort”, this head reads “girl” (90 %).');
  match(said(pair(null), 0, 3), /^To write what follows “dort”/);
  match(said(pair({ layer: 0, head: 0, shift: 0 }), 0, 2), /^Having written “fille”, .*“girl”/);
});

test('a second word is told where the head looks at it nearly as much', () => {
  const links = [
    [6, 2, 0.5],
    [6, 4, 0.3],
  ];
  match(said(traceOf(KING, [links]), 0, 6), /mostly reads “king”.* \(50 %\) and “afraid” \(30 %\)/);
  const weaker = [
    [6, 2, 0.5],
    [6, 4, 0.2],
  ];
  equal(said(traceOf(KING, [weaker]), 0, 6).includes('afraid'), false);
});

test('an invisible joiner is named wherever it is told', () => {
  const joined = ['<s>', 'The', ' king', ' was', ' afraid', ' of', '\u200d', '.'];
  match(said(traceOf(joined, [[[6, 2, 0.7]]]), 0, 6), /‹ZWJ›/);
});
