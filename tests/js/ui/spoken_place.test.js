/** The words that are read out while views are presented. */

import { equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { blank, labelled, press } from '../browser.js';
import { written } from '../../../static/js/rules/presentation.js';
import { createPresentation } from '../../../static/js/ui/present.js';

const COVER = { panel: 0, row: 0, column: 1 };
const SLIDES = [
  { name: 'Plain', link: '#view=a', covers: [] },
  { name: 'Veiled', link: '#view=b', covers: [COVER, { ...COVER, column: 2 }] },
  { name: 'Last', link: '#view=c', covers: [] },
];

test('each view is told with its place and name, and with its covers only if it has some', () => {
  blank('<button id="present"></button><main></main>');
  localStorage.setItem('headlight.presentation', written(SLIDES));
  const said = [];
  const presentation = createPresentation((message) => said.push(message));
  presentation.open(document.querySelector('#present'));
  labelled('Start').click();
  match(said.at(-1), /1 of 3: Plain$/);
  press(document.body, 'ArrowRight');
  match(said.at(-1), /2 of 3: Veiled, 2 covered$/);
  press(document.body, 'End');
  match(said.at(-1), /3 of 3: Last$/);
  const count = said.length;
  press(document.body, 'ArrowRight');
  equal(said.length, count + 1);
  ok(!said.at(-1).includes('3 of 3'), 'there is no next one');
  press(document.body, 'ArrowLeft');
  match(said.at(-1), /2 of 3: Veiled, 2 covered$/);
  press(document.body, 'Home');
  match(said.at(-1), /1 of 3: Plain$/);
  labelled('Leave').click();
});
