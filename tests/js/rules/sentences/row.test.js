import { equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { explainRow } from '../../../../static/js/rules/sentences/row.js';
import { plain, tensor } from '../../sample.js';
import { KING, traceOf } from '../made_trace.js';

/** The sentence on a row, without the name of the head. */
const said = (trace, head, query) =>
  plain(explainRow(trace, { where: '', layer: 0, head }, query)).replace(
    /layer \d+, head \d+/,
    'H',
  );

/** A text of these pieces with one head, and what is said of each link of it. */
function links(words, ...wanted) {
  const trace = traceOf(
    words,
    wanted.map(([query, key, weight = 0.8]) => [[query, key, weight]]),
  );
  return wanted.map(([query], head) => said(trace, head, query));
}

test('the head is named, and words are counted, not tokens', () => {
  const trace = traceOf(KING, [[[6, 2, 0.7]]]);
  equal(
    plain(explainRow(trace, { where: '', layer: 0, head: 0 }, 6)),
    'At “him”, layer 0, head 0 mostly reads “king”, 4 words back (70 %).',
  );
  const [cats] = links(['<s>', 'The', ' dog', ' that', ' chas', 'ed', ' the', ' cats'], [7, 3]);
  equal(cats, 'At “cats”, H mostly reads “that”, 3 words back (80 %).');
});

test('a piece is named as a piece, and what followed an equal piece of another word is no copy', () => {
  const words = ['<s>', 'cat', 's', ' found', ' the', ' key', 's', ' and', ' key', 's'];
  const [found, and, whole] = links(words, [6, 3], [9, 7], [9, 5]);
  equal(found, 'At the “s” of the first “keys”, H mostly reads “found”, 2 words back (80 %).');
  equal(
    and,
    'At the “s” of the second “keys”, H mostly reads “and”, which followed the first “keys”, as induction heads do (80 %).',
  );
  equal(
    whole,
    'At the “s” of the second “keys”, H mostly reads the first “keys”, the same word (80 %).',
  );
});

test('the weights of the pieces of a word are added, except in the own word and in numbers', () => {
  const trace = traceOf(
    ['<s>', 'un', 'til', ' 4', '7', ' go', 'es'],
    [
      [
        [6, 1, 0.4],
        [6, 2, 0.3],
      ],
      [
        [6, 3, 0.4],
        [6, 4, 0.35],
      ],
      [[6, 5, 0.6]],
    ],
  );
  equal(said(trace, 0, 6), 'At the “es” of “goes”, H mostly reads “until”, 2 words back (70 %).');
  match(
    said(trace, 1, 6),
    /reads the “4” of “47” most, the word before \(40 %\) and the “7” of “47” \(35 %\)/,
  );
  match(said(trace, 2, 6), /mostly reads the “go” of the same word \(60 %\)/);
});

test('“mostly” is half of the row, “most” is more than any other, and less is only read', () => {
  const row = (weight, other) =>
    said(
      traceOf(KING, [
        [
          [6, 2, weight],
          [6, 4, other],
        ],
      ]),
      0,
      6,
    );
  match(row(0.5, 0.3), /mostly reads “king”.* \(50 %\) and “afraid” \(30 %\)/);
  match(row(0.45, 0.2), /reads “king” most, 4 words back \(45 %\)\.$/);
  const split = traceOf(
    ['<s>', 'a', ' b', 'c', ' d'],
    [
      [
        [4, 1, 0.4],
        [4, 2, 0.35],
        [4, 3, 0.25],
      ],
    ],
  );
  match(said(split, 0, 4), /H reads “a”, 2 words back \(40 %\) and “bc” \(60 %\)/);
});

test('a special token has no number, and a start that is read is told as the start', () => {
  const [start, alone] = links(KING, [6, 0, 0], [0, 0]);
  equal(start, 'At “him”, H mostly reads “<s>”, the start of the text (100 %).');
  equal(alone, 'At “<s>”, H has nothing else to read.');
});

test('a sign, a digit and a letter of a script without spaces are told as such', () => {
  const words = ['<s>', '9', '4', '*', '2', '2', '我', '喜', '我'];
  const [digit, sign, letter] = links(words, [5, 1], [4, 3], [8, 6]);
  match(digit, /^At the second “2” of “22”, .* the “9” of “94”/);
  match(sign, /^At the first “2” of “22”, .* reads “\*” \(/);
  match(letter, /^At the second “我”, .* the first “我” \(/);
});

test('a word that came often is numbered to the end, and an apostrophe is one apostrophe', () => {
  const the = ['<s>', ...Array.from({ length: 22 }, () => ' the')];
  match(links(the, [22, 12])[0], /^At the 22nd “the”, .* the 12th “the”, the same word/);
  const dont = ['<s>', ' don', "'t", ' don', '’t'];
  match(links(dont, [4, 2])[0], /^At the “’t” of the second “don’t”, .* the first “don’t”/);
});

test('a word is before, after, ahead, or itself', () => {
  const trace = traceOf(KING, [
    [
      [3, 2, 0.9],
      [4, 5, 0.9],
      [1, 6, 0.9],
      [2, 2, 0.9],
    ],
  ]);
  match(said(trace, 0, 3), /“king”, the word before/);
  match(said(trace, 0, 4), /“of”, the word after/);
  match(said(trace, 0, 1), /“him”, 5 words ahead/);
  match(said(trace, 0, 2), /“king” itself \(90 %\)/);
});

test('words of a script without spaces are not counted, and an invisible joiner is named', () => {
  const joined = ['<s>', 'The', ' king', ' 我', ' of', '\u200d', '.'];
  const [counted, joiner] = links(joined, [4, 2], [5, 2]);
  equal(counted, 'At “of”, H mostly reads “king” (80 %).');
  match(joiner, /‹ZWJ›/);
});

test('without weights, or past the text, there is nothing to tell', () => {
  const trace = traceOf(KING, [[]]);
  equal(said(trace, 0, 99) + said(trace, 9, 3) + said(trace, 0, -1), '');
  ok(said(trace, 0, 0));
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
  equal(said(pair(null), 0, 2), 'To write “dort”, H mostly reads “girl” (90 %).');
  match(said(pair(null), 0, 3), /^To write what follows “dort”/);
  match(said(pair({ layer: 0, head: 0, shift: 0 }), 0, 2), /^Having written “fille”, .*“girl”/);
});
