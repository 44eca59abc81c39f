import { equal, match } from 'node:assert/strict';
import { test } from 'node:test';
import { describeRole, labelledHeads, findPlaces } from '../../../../static/js/trace/attention.js';
import { explainLabel } from '../../../../static/js/rules/sentences/label.js';
import { KING, traceOf } from '../made_trace.js';

const PATH = 'decoder.layers.0.self_attention';

/** One head with this profile; row 6 reads key 5, row 4 reads key 2. */
function labelled(profile, words = KING) {
  const trace = traceOf(words, [
    [
      [6, 5, 0.9],
      [4, 2, 0.9],
    ],
  ]);
  return { ...trace, card: { ...trace.card, head_labels: { [PATH]: [profile] } } };
}

const said = (trace, query) => explainLabel(trace, { where: '', layer: 0, head: 0 }, query);
const onMap = (trace) => {
  const [place] = findPlaces(trace);
  return describeRole(labelledHeads(trace, place)[0].heads[0]);
};

test('a label is said with its share, and whether the open row does the same', () => {
  const trace = labelled({ previous: 0.62 });
  equal(
    said(trace, 6),
    'Over many sentences, 62 % of this head’s weight is on the token before; at this token, too.',
  );
  match(said(trace, 4), /token before; not at this token\.$/);
  match(said(trace, 0), /token before\.$/, 'no token is before the first');
});

test('on the map stands only a label that most rows deserve, and the line says the same one', () => {
  equal(onMap(labelled({ previous: 0.53 })), '');
  match(said(labelled({ previous: 0.53 }), 6), /53 %/);
  equal(onMap(labelled({ sink: 0.9, subject: 0.4 })), 'rests');
  equal(onMap(labelled({ sink: 0.9, repetition: 0.8 })), 'repeats a phrase');
  match(said(labelled({ sink: 0.9, repetition: 0.8 }), 6), /80 %.*what followed/);
  equal(onMap(labelled({ sink: 0.9, repetition: 0.7 })), 'rests', 'phrases are less sure');
  equal(onMap(labelled({})) + said(labelled({}), 6), '');
});

test('a copy is told as missing only at a token that came before', () => {
  const trace = labelled({ induction: 0.7 }, ['<s>', ' a', ' b', ' c', ' a', ' b', ' a']);
  match(said(trace, 6), /“?followed it; not at this token|followed it; at this token, too/);
  match(said(trace, 3), /followed it\.$/);
  match(said(trace, 4), /followed it; at this token, too\.$/);
});

test('a label of made sentences says so, and nothing of this row', () => {
  match(said(labelled({ subject: 0.6 }), 6), /^Over many made sentences, 60 % .* subject\.$/);
});

test('a model without a profile has no label', () => {
  equal(said(traceOf(KING, [[]]), 6), '');
});
