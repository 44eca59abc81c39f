/** Elements, boxes, files, the clipboard and the colours of the theme. */

import { deepEqual, equal, match, ok, rejects, throws } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import {
  all,
  blank,
  find,
  labelled,
  layOut,
  match as matchMedia,
  painted,
  saved,
  send,
  settled,
  texts,
} from '../browser.js';
import { savePicture } from '../../../static/js/ui/picture.js';
import { chooseFile } from '../../../static/js/ui/composer.js';
import { readTextFile } from '../../../static/js/ui/text_file.js';
import { copy } from '../../../static/js/ui/exports.js';
import * as dom from '../../../static/js/ui/dom.js';

beforeEach(() => blank());

test('an element has its attributes, listeners and children', () => {
  let clicks = 0;
  const node = dom.element(
    'button',
    {
      class: 'a',
      'data-b': 0,
      hidden: true,
      title: null,
      id: undefined,
      disabled: false,
      onclick: () => (clicks += 1),
    },
    '<b>',
    null,
    dom.element('i'),
  );
  node.click();
  equal(clicks, 1);
  deepEqual(
    [...node.attributes].map(({ name, value }) => [name, value]),
    [
      ['class', 'a'],
      ['data-b', '0'],
      ['hidden', ''],
    ],
  );
  deepEqual([node.childNodes.length, node.textContent], [2, '<b>']);
});

test('a button and a segment are as they are named', () => {
  let clicks = 0;
  const made = dom.button('Go', () => (clicks += 1), { title: 'what' });
  made.click();
  deepEqual(
    [made.type, made.className, made.title, made.textContent, clicks],
    ['button', 'button', 'what', 'Go', 1],
  );
  const radio = find('input', dom.segment('a', 7, 'Seven', { title: 'of it' }, { checked: true }));
  deepEqual([radio.type, radio.name, radio.value, radio.checked], ['radio', 'a', '7', true]);
  equal(radio.parentElement.title, 'of it');
  equal(radio.parentElement.textContent, 'Seven');
});

test('numbers are painted a pixel each, and NaN not at all', () => {
  const canvas = dom.element('canvas', { width: 2, height: 2 });
  const colours = Uint8Array.from({ length: 768 }, (_, at) => Math.floor(at / 3));
  colours[3 * 255 + 1] = 7;
  colours[3 * 255 + 2] = 9;
  dom.paintValues(canvas, Float64Array.of(0, 2, NaN, 1), colours, 2);
  const [[name, image]] = painted.get(canvas);
  equal(name, 'putImageData');
  deepEqual(
    [...image.data],
    [0, 0, 0, 255, 255, 7, 9, 255, 0, 0, 0, 0, image.data[12], image.data[12], image.data[12], 255],
  );
  ok(image.data[12] > 100 && image.data[12] < 150);
});

test('a part that the page lacks is named', () => {
  blank('<p id="a"></p>');
  equal(dom.partOf(document, '#a', HTMLElement).id, 'a');
  throws(() => dom.partOf(document, '#a', HTMLInputElement), /HTMLInputElement.*#a/);
  throws(() => dom.partOf(document, '#b', HTMLElement), /#b/);
});

const SCREEN = { width: 1000, height: 800 };
const CARD = { width: 300, height: 200 };
const EDGE = 8;

test('a card goes to the first side that has room: right, left, below, above', () => {
  const at = (target) => dom.placeBeside(target, CARD, SCREEN);
  deepEqual(at({ left: 20, top: 100, width: 400, height: 300 }), { left: 432, top: 100 });
  deepEqual(
    at({ left: 680 - EDGE - 400, top: 100, width: 400 - 12 + EDGE - EDGE + 20 - 8, height: 9 })
      .left,
    684,
  );
  deepEqual(at({ left: 500, top: 700, width: 400, height: 90 }), { left: 188, top: 592 });
  deepEqual(at({ left: 20, top: 20, width: 960, height: 150 }), { left: 20, top: 182 });
  deepEqual(at({ left: 100, top: 500, width: 880, height: 280 }), { left: 100, top: 288 });
  deepEqual(at({ left: 0, top: 0, width: 1000, height: 800 }), { left: 692, top: 592 });
  deepEqual(at({ left: -50, top: -90, width: 1020, height: 120 }), { left: 8, top: 42 });
});

test('a card that fits to the pixel is placed there', () => {
  const at = (target) => dom.placeBeside(target, CARD, SCREEN);
  const room = SCREEN.width - EDGE - CARD.width - 12;
  deepEqual(at({ left: 0, top: 50, width: room, height: 700 }), { left: room + 12, top: 50 });
  deepEqual(at({ left: 320, top: 50, width: 660, height: 700 }), { left: 8, top: 50 });
  const below = SCREEN.height - EDGE - CARD.height - 12;
  deepEqual(at({ left: 40, top: 0, width: 950, height: below }), { left: 40, top: below + 12 });
  deepEqual(at({ left: 40, top: 220, width: 950, height: 570 }), { left: 40, top: 8 });
});

test('a text is copied by the clipboard, by selection, or with a way out', async () => {
  const copied = [];
  const clipboard = { writeText: async (text) => void copied.push(text) };
  Object.defineProperty(navigator, 'clipboard', { value: clipboard, configurable: true });
  document.execCommand = (command) => {
    copied.push([command, document.activeElement.value ?? '', document.activeElement.tagName]);
    return true;
  };
  await copy('a');
  deepEqual(copied.splice(0), ['a']);
  clipboard.writeText = () => Promise.reject(new Error('no'));
  const focused = document.body.appendChild(dom.element('input'));
  focused.focus();
  await copy('b');
  equal(copied.splice(0)[0][0], 'copy');
  equal(document.activeElement, focused);
  equal(find('textarea'), null);
  document.execCommand = () => false;
  await rejects(copy('c'), /does not let/);
  Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true });
  await rejects(copy('c'), /does not let/);
});

test('a file is saved under its name', async () => {
  match(dom.save(new Blob(['x']), 'a.csv'), /a\.csv/);
  equal(saved.at(-1).name, 'a.csv');
});

test('a change of theme is told, of the page and of the system', () => {
  blank('<fieldset><input type="radio"></fieldset>');
  let changes = 0;
  dom.watchTheme(find('fieldset'), () => (changes += 1));
  send(find('input'), 'change');
  equal(changes, 1);
  matchMedia('(prefers-color-scheme: dark)', true);
  equal(changes, 2);
  equal(dom.palette().theme, 'dark');
  matchMedia('(prefers-color-scheme: dark)', false);
  equal(dom.palette().theme, 'light');
  document.documentElement.dataset.theme = 'dark';
  equal(dom.palette().theme, 'dark');
  document.documentElement.dataset.theme = 'light';
  equal(dom.palette().theme, 'light');
  equal(dom.palette('dark').theme, 'dark');
  delete document.documentElement.dataset.theme;
  deepEqual(Object.keys(dom.palette()).length, 10);
  equal(find('span'), null);
});

test('the page is as large as it says, or as it is', () => {
  equal(dom.pageZoom(), 1);
  document.documentElement.style.setProperty('--zoom', '1.5');
  equal(dom.pageZoom(), 1.5);
  document.documentElement.style.removeProperty('--zoom');
});

test('a choice is kept, unless storage is forbidden', () => {
  equal(dom.kept('a'), null);
  dom.keep('a', 'b');
  equal(dom.kept('a'), 'b');
  const { getItem, setItem } = window.Storage.prototype;
  window.Storage.prototype.getItem = window.Storage.prototype.setItem = () => {
    throw new Error('forbidden');
  };
  equal(dom.kept('a'), undefined);
  dom.keep('a', 'c');
  Object.assign(window.Storage.prototype, { getItem, setItem });
  equal(dom.kept('a'), 'b');
});

test('help is behind a question mark, beside it, and gone with what it explains', () => {
  const help = dom.createHelp('What is this');
  const second = dom.createHelp('Other');
  document.body.append(help.element, second.element);
  const box = find('.help-box');
  const button = find('button');
  equal(button.getAttribute('popovertarget'), box.id);
  ok(box.id !== all('.help-box')[1].id);
  ok(help.element.hidden);
  const groups = [
    { title: 'Group', parts: [['a', 'means b']] },
    { title: '', parts: [['c', 'd']] },
  ];
  help.show(groups);
  ok(!help.element.hidden);
  deepEqual(
    [texts('h3', box), texts('dt', box), texts('dd', box)],
    [['Group'], ['a', 'c'], ['means b', 'd']],
  );
  const kept = find('dl', box);
  help.show(structuredClone(groups));
  equal(find('dl', box), kept);
  help.show([]);
  ok(help.element.hidden);
  equal(find('dl', box), null);
  layOut(button, { left: 100, top: 50, width: 20, height: 20 });
  layOut(box, { width: 200, height: 100 });
  layOut(document.documentElement, { width: 1000, height: 800 });
  send(box, 'toggle', { newState: 'open' });
  deepEqual([box.style.left, box.style.top], ['132px', '50px']);
  ok(box.classList.contains('is-placed'));
  layOut(button, { left: 100, top: 20, width: 20, height: 20 });
  send(window, 'scroll');
  equal(box.style.top, '20px');
  send(box, 'toggle', { newState: 'closed' });
  ok(!box.classList.contains('is-placed'));
  layOut(button, { left: 100, top: 90, width: 20, height: 20 });
  send(window, 'scroll');
  equal(box.style.top, '20px');
});

test('a picture holds the canvases and the words of a part', async () => {
  blank('<div><canvas></canvas><canvas></canvas><b>word</b><b> </b><b>none</b></div>');
  const part = find('div');
  layOut(part, { left: 10, top: 20, width: 100.2, height: 50 });
  const [canvas] = all('canvas');
  layOut(canvas, { left: 20, top: 30, width: 40, height: 20 });
  const [word, blankWord, hidden] = all('b');
  layOut(word, { left: 30, top: 60, width: 20, height: 10 });
  layOut(blankWord, { left: 30, top: 60, width: 20, height: 10 });
  ok(hidden);
  const said = [];
  await savePicture(part, 'b', 'all.png', (message) => said.push(message));
  equal(saved.at(-1).name, 'all.png');
  match(said[0], /all\.png/);
  const [picture, calls] = [...painted].at(-1);
  deepEqual([picture.width, picture.height], [233, 132]);
  const given = (name) => calls.filter(([each]) => each === name).map(([, ...rest]) => rest);
  deepEqual(given('fillRect'), [[0, 0, 233, 132]]);
  deepEqual(given('scale'), [[2, 2]]);
  deepEqual(given('translate'), [[-2, -12]]);
  deepEqual(given('drawImage'), [[canvas, 20, 30, 40, 20]]);
  deepEqual(given('fillText'), [['word', 30, 65]]);
  deepEqual(given('imageSmoothingEnabled'), [[false]]);
  deepEqual(given('textBaseline'), [['middle']]);
  equal(given('font').length, 1);
  equal(given('fillStyle').length, 2);
  const { toBlob } = window.HTMLCanvasElement.prototype;
  window.HTMLCanvasElement.prototype.toBlob = (done) => done(null);
  await savePicture(part, 'b', 'all.png', (message) => said.push(message));
  match(said[1], /failed.*too large/);
  const { getContext } = window.HTMLCanvasElement.prototype;
  window.HTMLCanvasElement.prototype.getContext = () => null;
  await savePicture(part, 'b', 'all.png', (message) => said.push(message));
  match(said[2], /failed.*no pictures/);
  Object.assign(window.HTMLCanvasElement.prototype, { toBlob, getContext });
});

test('the browser’s dialog hands on the chosen file, and none if none is chosen', async () => {
  const { click } = window.HTMLInputElement.prototype;
  let input;
  window.HTMLElement.prototype.click = function pick() {
    input = this;
  };
  let chosen = null;
  chooseFile().then((file) => (chosen = file));
  equal(input.type, 'file');
  send(input, 'change');
  await settled();
  equal(chosen, null);
  Object.defineProperty(input, 'files', { value: ['a file'] });
  send(input, 'change');
  await settled();
  equal(chosen, 'a file');
  window.HTMLElement.prototype.click = click;
});

const fileOf = (content, size) => {
  const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content;
  return { name: 'a.txt', size: size ?? bytes.length, arrayBuffer: async () => bytes };
};

test('a file is read if it is text of a fair size', async () => {
  equal(await readTextFile(fileOf('a\r\nb\rc\nd')), 'a\nb\nc\nd');
  equal(await readTextFile(fileOf('a', 4e6)), 'a');
  await rejects(readTextFile(fileOf('a', 4e6 + 1)), /a\.txt has 4/);
  await rejects(readTextFile(fileOf(' \n')), /empty/);
  await rejects(readTextFile(fileOf('a\0')), /not text/);
  await rejects(readTextFile(fileOf(Uint8Array.of(0xff, 0xfe))), /not text/);
});

test('a name with an index is set as a symbol', () => {
  const parts = dom.withSymbols('after W_O.');
  ok(parts.length >= 1);
  const host = dom.element('p', {}, ...parts);
  ok(host.childElementCount > 0);
  equal(labelled('none'), undefined);
});

test('what is copied by selection is hidden, and opens no keyboard', async () => {
  Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true });
  const seen = [];
  document.execCommand = () => {
    const box = find('textarea');
    const { value, readOnly, selectionStart, selectionEnd } = box;
    const isHidden = box.getAttribute('aria-hidden');
    seen.push([value, readOnly, isHidden, selectionEnd - selectionStart]);
    return true;
  };
  await copy('two words');
  deepEqual(seen, [['two words', true, 'true', 9]]);
  equal(find('textarea'), null);
});
