import { equal, match } from 'node:assert/strict';
import { test } from 'node:test';
import { describeRole, labelledHeads, findPlaces } from '../../../../static/js/trace/attention.js';
import { explainLabel } from '../../../../static/js/rules/sentences/label.js';
import { KING, traceOf } from '../made_trace.js';

const PATH = 'decoder.layers.0.self_attention';

/** Each row reads the one before, but the fourth. */
const BEFORE = KING.map((_, row) => [row, row === 4 ? 2 : Math.max(row - 1, 0), 0.9]);

/** One head with this profile and these links. */
function labelled(profile, links = BEFORE, words = KING) {
  const trace = traceOf(words, [links]);
  return { ...trace, card: { ...trace.card, head_labels: { [PATH]: [profile] } } };
}

const said = (trace, query) => explainLabel(trace, { where: '', layer: 0, head: 0 }, query);
const onMap = (trace) => {
  const [place] = findPlaces(trace);
  return describeRole(labelledHeads(trace, place)[0].heads[0]);
};

test('a label is said with its share, but not where the open row does something else', () => {
  const trace = labelled({ previous: 0.62 });
  equal(
    said(trace, 6),
    'Over many sentences, 62 % of this head’s weight is on the token before; at this token, too.',
  );
  equal(said(trace, 4), '');
  match(said(trace, 0), /token before\.$/, 'no token is before the first');
  equal(
    said(labelled({ previous: 0.62, subject: 0.5 }), 4),
    '',
    'nor another than that of the map',
  );
});

test('on the map stands only a label that most rows deserve, and the line says the same one', () => {
  equal(onMap(labelled({ previous: 0.53 })), '');
  match(said(labelled({ previous: 0.53 }), 6), /53 %/);
  equal(onMap(labelled({ sink: 0.9, subject: 0.4 }, [])), 'rests');
  equal(onMap(labelled({ sink: 0.9, repetition: 0.8 }, [])), 'repeats a phrase');
  match(said(labelled({ sink: 0.9, repetition: 0.8 }, []), 6), /80 %.*what followed/);
  equal(onMap(labelled({ sink: 0.9, repetition: 0.7 }, [])), 'rests', 'phrases are less sure');
  equal(onMap(labelled({})) + said(labelled({}), 6), '');
});

test('a label that most rows of the text contradict is nowhere', () => {
  const trace = labelled({ sink: 0.9, next: 0.8 });
  const [head] = labelledHeads(trace, findPlaces(trace)[0])[0].heads;
  equal(onMap(trace) + said(trace, 1), '', 'not even at the row that does it');
  equal(head.profile, null, 'it is not told to have no label');
  equal(
    onMap(labelled({ sink: 0.9, previous: 0.6 })),
    'token before',
    'another that holds is told',
  );
});

test('a copy is told as missing only at a token that came before', () => {
  const words = ['<s>', ' a', ' b', ' c', ' a', ' b', ' a'];
  const copies = [
    [4, 2, 0.9],
    [5, 3, 0.9],
  ];
  const trace = labelled({ induction: 0.7 }, copies, words);
  equal(said(trace, 6), '');
  match(said(trace, 3), /followed it\.$/);
  match(said(trace, 4), /followed it; at this token, too\.$/);
});

test('of two texts, only what is read can agree', () => {
  const trace = labelled({ previous: 0.9, sink: 0.6 }, []);
  const [place] = findPlaces(trace);
  const cross = { ...place, id: 'cross', columns: 'target' };
  const two = { ...trace, target_tokens: trace.tokens };
  const [head] = labelledHeads(two, cross)[0].heads;
  equal(head.profile.map(({ id }) => id).join(), 'previous,sink', 'a place has no meaning there');
  const last = labelled(
    { sink: 0.6 },
    KING.map((_, row) => [row, 5, 0.9]),
  );
  equal(labelledHeads({ ...last, target_tokens: last.tokens }, cross)[0].heads[0].profile, null);
});

test('a label of made sentences says so, and nothing of this row', () => {
  match(said(labelled({ subject: 0.6 }), 6), /^Over many made sentences, 60 % .* subject\.$/);
});

test('a model without a profile has no label', () => {
  equal(said(traceOf(KING, [[]]), 6), '');
});
