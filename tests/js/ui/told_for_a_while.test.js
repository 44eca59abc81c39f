/** The words of an export, and how long they stay. */

import { equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { all, blank, find, recorder, settled } from '../browser.js';
import { createPanel } from '../../../static/js/ui/panel.js';
import { attention } from '../../../static/js/views/attention/attention.js';
import { figuresOf, sampleTrace } from '../sample.js';

const { handlers, take } = recorder('onCell', 'onChoose', 'onState', 'onGoingOn', 'announce');

const copyCode = () =>
  all('.menu-name')
    .find(({ textContent }) => textContent === 'Copy curl')
    .closest('button')
    .click();

test('the words of an export go after a while, those of a later one stay as long', async (context) => {
  const copied = [];
  Object.defineProperty(navigator, 'clipboard', {
    value: { writeText: async (text) => void copied.push(text) },
    configurable: true,
  });
  blank();
  const panel = createPanel('attention', handlers);
  document.body.append(panel.element);
  const trace = { ...sampleTrace(), asked: { model: 'tiny', text: 'it' } };
  const [figure] = figuresOf(attention, trace);
  panel.show(trace, figure, { cards: [], help: '' });
  await settled(20);
  copyCode();
  await settled(30); // the exports have loaded
  take();
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const copy = async () => {
    copyCode();
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
  };
  const said = () => find('.exports-said').textContent;
  await copy();
  equal(copied.length, 2);
  const words = said();
  ok(words !== '');
  equal(take().filter(([name]) => name === 'announce').length, 1);
  context.mock.timers.tick(6000);
  equal(said(), words);
  await copy();
  context.mock.timers.tick(6000);
  equal(said(), words, 'the time begins with the second export');
  context.mock.timers.tick(4000);
  equal(said(), '');
  panel.destroy();
});
