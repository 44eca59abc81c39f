/** The slider over the states of a training. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { blank, find, recorder, type } from '../browser.js';
import { cardOf } from '../../../static/js/api/calls.js';
import { bumpOf, showSteps, story, whenOf } from '../../../static/js/ui/steps.js';
import { haveSameHeads } from '../../../static/js/views/compare/models.js';
import { othersOf } from '../../../static/js/views/compare/sides.js';

const PATH = 'decoder.layers.0.self_attention';
/** A state with one head: its scores, its losses. */
function state(step, previous, induction, early) {
  const scores = { previous: [[previous]], induction: [[induction]] };
  const labels = { ...(previous > 0.25 && { previous }), ...(induction > 0.25 && { induction }) };
  return {
    ...{ step, tokens: step * 1000, ...scores, repeat_gain: induction * 4 },
    ...{ early_loss: early, late_loss: early - 0.2, head_labels: { [PATH]: [labels] } },
  };
}

const STEPS = [
  state(0, 0.1, 0, 7),
  state(300, 0.6, 0.1, 4),
  state(1500, 0.9, 0.8, 4.1),
  state(3000, 0.9, 0.9, 3),
];
const CARD = { id: 'forming', title: 'Forming', kind: 'decoder', head_labels: {}, steps: STEPS };
const OTHER = { id: 'other', kind: 'decoder', steps: [] };
const CATALOGUE = { default: 'other', models: [OTHER, CARD] };
const { handlers, take } = recorder('onModel');
beforeEach(() => {
  blank();
  take();
});

test('the slider names the state that reads, and chooses another one', () => {
  showSteps(document.body, CARD, 'forming@300', handlers.onModel);
  const slider = find('input');
  deepEqual([slider.value, slider.max], ['1', '3']);
  equal(find('output').textContent, 'trained on 300 k tokens');
  match(
    find('.steps-figures').textContent,
    /token before 0\.60.*repeats a phrase 0\.10.*gains 0\.40 nats.*first words 4\.00 nats/,
  );
  type(slider, '2');
  type(slider, '3');
  deepEqual(take(), [
    ['onModel', 'forming@1500'],
    ['onModel', 'forming'],
  ]);
  showSteps(document.body, CARD, 'forming', handlers.onModel);
  equal(find('input'), slider, 'the slider that is held stays');
  equal(slider.value, '3');
});

test('the sentence and the mark of the bump follow from the figures', () => {
  equal(
    story(STEPS),
    '“token before” is there from 300 k tokens on, in layer 0; “repeats a phrase” is there from 1.5 M tokens on, in layer 0; at the end a list read twice costs 3.6 nats a token less the second time.',
  );
  match(story(STEPS.slice(0, 2)), /“repeats a phrase” never appears/);
  equal(bumpOf(STEPS), 2);
  equal(bumpOf(STEPS.slice(0, 2)), -1);
  const bare = STEPS.map(({ step }) => ({ step, tokens: null, head_labels: {} }));
  equal(story(bare), '');
  equal(whenOf(bare[2]), 'step 1,500');
  showSteps(document.body, { ...CARD, steps: bare }, 'forming', handlers.onModel);
  ok(!find('svg'));
  const host = document.createElement('div');
  document.body.append(host);
  showSteps(host, CARD, 'forming@1500', handlers.onModel);
  match(host.textContent, /4\.10 nats, the top of its bump/);
  const heights = [...host.querySelectorAll('polyline')].map((line) =>
    line
      .getAttribute('points')
      .split(' ')
      .map((point) => Math.round(Number(point.split(',')[1]))),
  );
  const [gain, previous, induction, loss] = [
    [60, 54, 10, 4],
    [54, 26, 10, 10],
    [60, 54, 15, 10],
    [4, 9, 4, 60],
  ];
  deepEqual(heights, [gain, previous, induction, loss]);
  equal(host.querySelector('path').getAttribute('d').split(' ')[1], '4h0');
});

test('a state has its own labels, and Compare offers the others', () => {
  const card = cardOf(CATALOGUE, 'forming@300');
  deepEqual(card.head_labels, { [PATH]: [{ previous: 0.6 }] });
  equal(card.title, 'Forming, step 300');
  equal(cardOf(CATALOGUE, 'forming@301'), undefined);
  equal(cardOf(CATALOGUE, 'other@0'), undefined);
  deepEqual(
    othersOf({ card }, CATALOGUE.models).map(({ id }) => id),
    ['forming@0', 'forming@1500', 'forming@3000', 'other', 'forming'],
  );
  ok(haveSameHeads([card, cardOf(CATALOGUE, 'forming@1500')]));
  ok(!haveSameHeads([card, OTHER]));
});
