/** The whole page over a small model: from its address to its drawings, and back. */

import { equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { all, find, labelled, layOut, press, showTemplate, type, observers } from './browser.js';
import { answerFrom } from '../../static/js/api/answers.js';
import { painted } from '../../static/js/plot/renderer.js';
import { headLabels, sampleTrace, TEXT, TOKENS } from './sample.js';

const SITES = [0, 1].map((layer) => `decoder.layers.${layer}.self_attention`);
const CARD = {
  id: 'tiny',
  title: 'Tiny',
  kind: 'decoder',
  state: 'loaded',
  n_layers: 2,
  n_heads: 2,
  parameters: 1000,
  max_tokens: 64,
  positional: 'sinusoidal',
  moe: { n_experts: 4, top_k: 2, layers: [1] },
  examples: [
    { title: 'One', text: TEXT, opens: { view: 'attention', layer: 8, head: 0 } },
    { title: 'Two', text: 'other', opens: { view: 'next_token' } },
  ],
  sites: [],
  analyses: ['next_token', 'head_labels'],
  licence: 'MIT',
  revision: 'r',
};
const asked = [];
answerFrom({
  catalogue: { default: 'tiny', models: [CARD] },
  answer: async (body) => {
    asked.push(body);
    if (body.card) return { card: CARD };
    const trace = sampleTrace();
    const labels = headLabels({
      [SITES[0]]: [
        { label: 'previous', scores: { previous: 0.8 } },
        { label: 'sink', scores: { sink: 0.9 } },
      ],
      [SITES[1]]: [{ label: 'previous', scores: { previous: 0.9 } }, { label: 'mixed' }],
    });
    return {
      ...trace,
      text: body.text ?? trace.text,
      card: CARD,
      asked: body,
      analyses: { ...trace.analyses, head_labels: labels },
      timings: { pass: 2 },
    };
  },
});

const link = () => new URLSearchParams(location.hash.slice(1));
const chosenHead = () =>
  all('.heads-cell').findIndex((cell) => cell.getAttribute('aria-selected') === 'true');
/** Waits, paint by paint, until something is so; a page that never gets there fails what follows. */
const until = async (isSo) => {
  for (let paints = 0; paints < 200 && !isSo(); paints += 1) await painted();
};
const arrive = async () => {
  await painted();
  await until(() => find('#main').getAttribute('aria-busy') !== 'true');
};
const isShown = (view) => !find(`#view-${view}`).hidden;

showTemplate('index.html');
layOut(find('#main'), { width: 1000, height: 800 });
location.hash = '#view=nowhere&layer=7&head=9&query=99';
await import('../../static/js/main.js');
await until(() => all('.heads-cell').length > 0);
await arrive();

test('a link to what the model does not have opens what it has', () => {
  ok(isShown('attention') && !find('#results').hidden);
  ok(Number(link().get('layer') ?? 0) < 2 && Number(link().get('head') ?? 0) < 2);
  ok(chosenHead() >= 0, 'a head of the model is chosen');
  ok((link().get('view') ?? 'attention') === 'attention');
  ok(Number(link().get('query') ?? 0) < TOKENS.length);
  equal(all('#chips .chip').length, TOKENS.length);
  equal(find('#status').textContent, '5 tokens', 'neither near the limit nor slow');
  equal(find('#text').value, TEXT);
  equal(find('#card').textContent, '', 'nothing is loaded for what is out of sight');
});

test('the facts of the model are shown once they are in sight', async () => {
  const { call } = observers.IntersectionObserver.find(({ node }) => node?.id === 'card');
  call([{ isIntersecting: false }]);
  await arrive();
  equal(find('#card').textContent, '');
  call([{ isIntersecting: true }]);
  await until(() => find('#card').textContent !== '');
  match(find('#card').textContent, /Tiny/);
});

test('going back to such a link opens what the model has', async () => {
  for (const [hash, at] of [
    ['#layer=1&head=1', 3],
    ['#layer=0&head=1', 1],
  ]) {
    location.hash = hash;
    await arrive();
    equal(chosenHead(), at);
  }
  location.hash = '#layer=8&head=0';
  await arrive();
  press(document.body, 'j');
  equal(chosenHead(), 0, 'the layer after the last one is the first');
});

test('an example that opens what the model does not have opens what it has', async () => {
  labelled('One').click();
  await arrive();
  press(document.body, 'j');
  equal(chosenHead(), 0, 'the layer after the last one is the first');
});

test('keys go from head to head and from layer to layer, around the end', async () => {
  location.hash = '#layer=1&head=1';
  await arrive();
  press(document.body, 'l');
  await arrive();
  equal(chosenHead(), 2);
  press(document.body, 'j');
  equal(chosenHead(), 0);
  press(document.body, 'k');
  press(document.body, 'h');
  equal(chosenHead(), 3);
  match(find('#announcer').textContent, /1.*1/);
  press(document.body, '/');
  equal(document.activeElement.id, 'text');
});

test('a head that is chosen in the view is that of the page and its link', async () => {
  all('.heads-cell')[1].click();
  await arrive();
  equal(chosenHead(), 1);
  equal(link().get('head'), '1');
});

test('a chosen token is the query of the page and its link', async () => {
  all('#chips .chip')[2].click();
  await arrive();
  equal(all('#chips .chip')[2].getAttribute('aria-selected'), 'true');
  equal(link().get('query'), '2');
});

test('a typed text is read, and an example opens at its own view', async () => {
  asked.length = 0;
  type(find('#text'), 'new text');
  press(find('#text'), 'Enter');
  await arrive();
  ok(asked.some(({ text }) => text === 'new text'));
  equal(link().get('text'), 'new text');
  equal(link().get('query'), null);
  asked.length = 0;
  press(find('#text'), 'Enter');
  await arrive();
  ok(asked.every(({ text }) => text === undefined || text !== 'new text' || asked.length < 3));
  labelled('Examples').click();
  labelled('Two').click();
  await arrive();
  ok(isShown('next_token') && !isShown('attention'));
  equal(find('#text').value, 'other');
});

test('the scene of a text is drawn in one paint, and what is below it in the next', async () => {
  const drawn = [];
  const parts = ['#chips', '#hero-words', '#views'].map((id) => find(id));
  const watcher = new MutationObserver((records) =>
    drawn.push(parts.map((part) => records.some(({ target }) => part.contains(target)))),
  );
  for (const part of parts)
    watcher.observe(part, { attributes: true, childList: true, subtree: true });
  type(find('#text'), 'the scene is first');
  press(find('#text'), 'Enter');
  await arrive();
  watcher.disconnect();
  const [taken, , views] = [0, 1, 2].map((at) => drawn.findIndex((changed) => changed[at]));
  ok(drawn[taken][1] && views > taken, JSON.stringify(drawn));
});

test('an empty text is nothing to read', async () => {
  type(find('#text'), '  ');
  press(find('#text'), 'Enter');
  await arrive();
  ok(find('#results').hidden && !find('#empty').hidden);
  labelled('Examples').click();
  labelled('One').click();
  await arrive();
  ok(!find('#results').hidden && isShown('attention'));
  ok(find('#notice').hidden);
});
