import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import {
  bareTitle,
  isFilling,
  labelInWords,
  labelledHeads,
  describeLabel,
  choosePlace,
  findPlaces,
  predictingSide,
  labelsInWords,
  sideOf,
  chooseStack,
} from '../../../static/js/trace/attention.js';
import { fillTrace, headLabels, LABELS, pairTrace, sampleTrace } from '../sample.js';

test('a model has the places whose weights its trace holds', () => {
  const ids = (trace) => findPlaces(trace).map(({ id }) => id);
  deepEqual(
    [ids(sampleTrace()), ids(fillTrace()), ids(pairTrace())],
    [['decoder'], ['encoder'], ['encoder', 'decoder', 'cross']],
  );
  equal(choosePlace({ where: '' }, { ...sampleTrace(), tensors: {} }), null);
});

test('a translator shows cross-attention by default', () => {
  equal(choosePlace({ where: '' }, pairTrace()).id, 'cross');
  equal(choosePlace({ where: 'encoder' }, pairTrace()).id, 'encoder');
  equal(choosePlace({ where: 'cross' }, sampleTrace()).id, 'decoder');
});

test('each stack reads its side, and the last one predicts', () => {
  const [pair, fill, decoder] = [pairTrace(), fillTrace(), sampleTrace()];
  deepEqual([sideOf('encoder', pair), sideOf('decoder', pair)], ['source', 'target']);
  equal(sideOf('decoder', decoder), 'source');
  deepEqual([predictingSide(pair), predictingSide(fill)], ['target', 'source']);
  const stacks = [chooseStack({ where: '' }, fill), chooseStack({ where: 'encoder' }, decoder)];
  deepEqual(stacks, ['encoder', 'decoder']);
  deepEqual([fill, pair, decoder].map(isFilling), [true, false, false]);
});

const FOUND = {
  'decoder.layers.0.self_attention': [
    { label: 'previous', scores: { previous: 0.9, sink: 0.1 } },
    { label: 'sink', scores: { previous: 0.1, sink: 0.6 } },
  ],
  'decoder.layers.1.self_attention': [
    { label: 'sink', scores: { sink: 0.8, induction: 0.5 } },
    { label: 'mixed', scores: { previous: 0.2, current: 0.3, broad: 0.8 } },
  ],
};

function labelled(queries) {
  const trace = sampleTrace();
  return { ...trace, analyses: { ...trace.analyses, head_labels: headLabels(FOUND, queries) } };
}

const placeIn = (trace, where = '') => choosePlace({ where }, trace);
const headsOf = (trace) => labelledHeads(trace, placeIn(trace));

test('each head has the label that the API gives it, with its score', () => {
  const said = headsOf(labelled()).map(({ heads }) => heads.map((head) => labelInWords(head)));
  deepEqual(said, [
    ['previous token 0.900', 'sink 0.600'],
    ['sink 0.800', 'mixed'],
  ]);
});

test('the labels of a profile stand apart from the label in the text', () => {
  const trace = labelled();
  const path = 'decoder.layers.0.self_attention';
  const card = { ...trace.card, head_labels: { [path]: [{ sink: 0.96, subject: 0.81 }, {}] } };
  const [first, second] = headsOf({ ...trace, card });
  deepEqual(first.heads.map(labelsInWords), [
    'sink 0.960, subject 0.810 over many texts, previous token 0.900 in this text',
    'sink 0.600 in this text',
  ]);
  equal(second.heads[0].profile, null, 'an attention that was not measured');
});

test('every label of the API has words on the page, and another keeps its name', () => {
  for (const id of LABELS)
    ok(describeLabel(id).help.length > 10 && describeLabel(id).short.length <= 5, id);
  deepEqual(describeLabel('name_mover'), {
    id: 'name_mover',
    title: 'name mover',
    short: 'name',
    help: '',
  });
  deepEqual(
    [bareTitle(describeLabel('previous')), bareTitle(describeLabel('sink')), bareTitle(null)],
    ['previous', 'sink', ''],
  );
});
