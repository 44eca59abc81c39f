/** The finding above the drawing, with its row of next words and what speaks for one of them. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { all, find, labelled, recorder, showTemplate, texts } from '../browser.js';
import { createFinding } from '../../../static/js/ui/next_words.js';
import { fillTrace, FRAME, sampleTrace, tensor } from '../sample.js';

const CARD = {
  kind: 'decoder',
  n_layers: 2,
  n_heads: 2,
  moe: null,
  analyses: ['next_token', 'logit_attribution'],
};

/** A pass that lists these tokens at every place. */
function passOf(listed, trace = sampleTrace()) {
  const count = listed.length;
  const of = (pick, Kind) =>
    tensor(['query', 'rank'], [5, count], (at) => pick(listed[at % count]), Kind);
  const next_token = {
    texts: trace.tokens.map(() => listed.map(([text]) => text)),
    ids: of(([, id]) => id, Int32Array),
    probabilities: of(([, , probability]) => probability, Float64Array),
  };
  return { card: CARD, ...trace, analyses: { next_token } };
}
const TRACE = passOf([
  [' are', 1, 0.62],
  [' were', 2, 0.25],
  [' is', 3, 0.081],
  [' was', 4, 0.03],
  [' am', 16, 0.004],
]);
const EDITED = passOf([
  [' is', 3, 0.5],
  [' are', 1, 0.31],
  [' am', 7, 0.1],
  [' be', 8, 0.05],
]);
const WHY = {
  trace: {
    analyses: {
      logit_attribution: {
        position: 4,
        token: { text: ' are' },
        against: { text: ' is' },
        part_names: ['layers.0.feed_forward'],
        parts: tensor(['part'], [1], 1.5),
        'self_attention.heads': tensor(['layer', 'head'], [2, 2], (at) => [0, 0, 0, 4.1][at]),
        'self_attention.keys': tensor(['layer', 'head', 'key'], [2, 2, 5], (at) =>
          at === 3 * 5 + 2 ? 4.1 : 0,
        ),
      },
    },
  },
};

const { calls, handlers, take } = recorder('onState', 'announce');
let finding;
beforeEach(() => {
  showTemplate('index.html');
  find('#results').hidden = false;
  take();
  finding = createFinding(find('#finding'), handlers);
});
const show = (state = {}, position = 4, trace = TRACE) =>
  finding.show(trace, { ...FRAME, ...state }, position);
const host = () => find('#finding');
const words = () => texts('.next-name');
const numbers = () => texts('.next-number');
const pressed = () => all('.next-name').map((node) => node.getAttribute('aria-pressed'));

test('what a head does is told with its address, or neither', () => {
  finding.explain('90 % of it', 'Layer 1, head 0');
  equal(find('#insight').textContent, '90\u00a0% of it');
  equal(find('#insight-where').textContent, 'Layer 1, head 0');
  ok(host().classList.contains('has-insight'));
  finding.explain('', 'Layer 1, head 0');
  equal(find('#insight').textContent + find('#insight-where').textContent, '');
  ok(!host().classList.contains('has-insight'));
});

test('the likeliest words are told with their probabilities, the likeliest chosen', () => {
  show();
  ok(host().classList.contains('has-next'));
  deepEqual(words(), ['are', 'were', 'is', 'was']);
  deepEqual(numbers(), ['62 %', '25 %', '8.1 %', '3.0 %']);
  deepEqual(pressed(), ['true', 'false', 'false', 'false']);
  equal(find('.next-label').textContent, 'next');
  deepEqual(all('.next-number').map(({ tagName }) => tagName)[1], 'SPAN');
  show({}, -1);
  ok(!host().classList.contains('has-next'));
});

test('a word is chosen, its number opens all, and “why?” opens its parts', () => {
  show({ token: 3 });
  deepEqual(pressed(), ['false', 'false', 'true', 'false']);
  all('.next-name')[1].click();
  find('button.next-number').click();
  labelled('why?').click();
  deepEqual(take(), [
    ['onState', { token: 2 }],
    ['onState', { view: 'next_token', token: 3 }],
    ['onState', { view: 'word', word_show: 'parts', word_token: 3 }],
  ]);
});

test('the row says of which place it is', () => {
  const label = (position, trace) => {
    show({}, position, trace);
    return find('.next-label').textContent;
  };
  match(label(1), /^after .*it/);
  const filling = { ...fillTrace(), card: { ...CARD, kind: 'encoder', has_mask: true } };
  equal(label(2, filling), 'fits here');
  match(label(3, filling), /^at .*<b>/);
});

test('a word that came and is not listed has no number that could be wrong', () => {
  show({}, 1);
  const [first, ...others] = ['.next-name', '.next-number'].map((name) => texts(name).at(-1));
  deepEqual([first, others], ['saw', ['under 0.4 %']]);
});

test('what speaks for the word are buttons, which open it', () => {
  show();
  equal(find('#causes').textContent, '', 'it is not known yet');
  show({ answers: { next_why: WHY } });
  const [head, network, ...others] = all('.next-cause');
  equal(others.length, 0);
  match(head.textContent, /“saw” \(layer 1, head 1\).*\+4\.1/);
  match(network.textContent, /^Layer 0, feed-forward network.*\+1\.5/);
  match(head.title, /layer 1, head 1/);
  head.click();
  const [[, patch]] = take();
  deepEqual([patch.layer, patch.head, patch.key, patch.query], [1, 1, 2, 4]);
});

test('a name from a text is text', () => {
  const trace = passOf([['<i>&', 1, 0.9]]);
  show({ answers: { next_why: WHY } }, 4, trace);
  deepEqual([words(), all('#finding i').length], [['<i>&'], 0]);
});

const OFF = { off: 'head decoder 1 0', answers: { next_edited: { trace: EDITED } } };

test('an edit is told with the numbers before it, and can be put back', () => {
  show(OFF);
  deepEqual(words(), ['is', 'are', 'am', 'be']);
  deepEqual(numbers(), ['50 %', '31 %', '10 %', '5.0 %']);
  deepEqual(texts('.next-before'), ['8.1 %', '62 %', 'under 0.4 %', 'under 0.4 %']);
  match(find('button.next-number').getAttribute('aria-label'), /31 %, before 62 %/);
  match(find('#causes').textContent, /^Layer 1, head 0 is switched off\./);
  const [[name, message], ...others] = take();
  deepEqual([name, others.length], ['announce', 0]);
  match(message, /switched off.*“are”: 62 % → 31 %$/);
  show(OFF);
  equal(calls.length, 0, 'it is announced once');
  labelled('Put it back').click();
  deepEqual(take(), [['onState', { off: '', weight: null }]]);
  show();
  equal(labelled('Put it back'), undefined);
  equal(all('.next-before').length, 0);
});

test('a head that is off may write a value of a corpus instead', () => {
  show(OFF);
  labelled('Its mean').click();
  deepEqual(take().at(-1), ['onState', { off_to: 'mean' }]);
  show({ ...OFF, off_to: 'mean' });
  match(find('#causes').textContent, /^Layer 1, head 0 writes its mean over a corpus\./);
  equal(labelled('Its mean'), undefined);
  labelled('Nothing').click();
  deepEqual(take().at(-1), ['onState', { off_to: 'zero' }]);
});

test('the weight that is set is told, and the head in cross-attention by its name', () => {
  show({ weight: 0.25, answers: { next_edited: { trace: EDITED } } });
  match(find('#causes').textContent, /^The chosen weight is set to 0\.25\./);
  const pair = { ...TRACE, card: { ...CARD, kind: 'encoder-decoder' }, target: 'a' };
  pair.target_tokens = pair.tokens;
  pair.tensors = Object.fromEntries(
    ['encoder.layers.0.self', 'decoder.layers.0.self', 'decoder.layers.0.cross'].map((path) => [
      `${path}_attention.weights`,
      tensor(['head', 'query', 'key'], [2, 5, 5], 0.2),
    ]),
  );
  show({ ...OFF, off: 'head cross 0 1' }, 4, pair);
  match(find('#causes').textContent, /^Cross-attention, layer 0, head 1 is switched off\./);
});

test('a head or a weight that the model does not have is not told as switched off or set', () => {
  for (const off of ['head decoder 7 0', 'head cross 0 0', 'head encoder 0 0', 'nonsense']) {
    show({ off, weight: 0.5, answers: { next_why: WHY } });
    ok(!/switched|set to/.test(find('#causes').textContent), off);
    equal(all('.next-cause').length, 2, off);
  }
});

test('while an edit is computed the row stays and pales, and a problem takes the words of the edit', () => {
  show();
  const [first] = all('.next-name');
  show({ off: OFF.off, answers: { next_edited: { isWaiting: true } } });
  ok(host().classList.contains('is-waiting'));
  equal(all('.next-name')[0], first);
  show({ off: OFF.off, answers: { next_edited: { problem: { message: 'Too busy.' } } } });
  ok(!host().classList.contains('is-waiting'));
  match(find('#causes').textContent, /^Too busy\./);
  ok(labelled('Put it back'));
  show({ answers: { next_why: { isWaiting: true } } });
  ok(host().classList.contains('is-waiting'));
});

test('an unchanged row keeps its buttons, and another one the focus', () => {
  show();
  const [, second] = all('.next-name');
  second.focus();
  show();
  equal(all('.next-name')[1], second);
  show({ token: 2 });
  const [, chosen] = all('.next-name');
  ok(chosen !== second && document.activeElement === chosen, 'the word that was chosen');
  show({ token: 2, answers: OFF.answers, off: OFF.off });
  ok(document.activeElement.dataset.focus === 'word 2', 'a lost word stays, and with it the focus');
  labelled('Put it back').focus();
  show({ token: 2 });
  equal(document.activeElement, all('.next-name')[0], 'the button that was pressed is gone');
});
