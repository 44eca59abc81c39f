/** The page around the views: its status, notices, waiting, retries, keys and the key of a server. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { beforeEach, mock, test } from 'node:test';
import {
  all,
  find,
  labelled,
  layOut,
  observers,
  press,
  recorder,
  send,
  showTemplate,
  texts,
  type,
} from '../browser.js';
import { Problem } from '../../../static/js/api/calls.js';
import { askForKey } from '../../../static/js/ui/dialogs.js';
import {
  createKeys,
  createLater,
  createPageStatus,
  createRetrier,
  createSiteMenu,
  createSkip,
  readInWords,
  watchSticky,
} from '../../../static/js/ui/page.js';

mock.timers.enable({ apis: ['setTimeout'] });
let now = 1000;
Object.defineProperty(performance, 'now', { value: () => now });
window.performance.now = () => now;
const byId = (id) => find(`#${id}`);
const { calls, handlers, take } = recorder(
  'onRetry',
  'onOffer',
  'onCancel',
  'onStep',
  'onText',
  'onMap',
  'onDrawing',
);
let status;

beforeEach(() => {
  showTemplate('index.html');
  status = createPageStatus(byId, handlers);
  take();
});

const broken = () =>
  new Problem({ title: 'Unreachable', detail: 'no answer; try later', status: 503, retryAfter: 1 });
const wrong = () => new Problem({ title: 'Wrong', detail: 'bad text; do otherwise', status: 422 });
const hidden = () => ['results', 'empty', 'notice'].map((id) => byId(id).hidden);

test('results, nothing and a problem take each other’s place', () => {
  status.showResults('5 tokens');
  deepEqual([hidden(), byId('status').textContent], [[false, true, true], '5 tokens']);
  status.showNothing();
  deepEqual([hidden(), byId('status').textContent], [[true, false, true], '']);
  status.showProblem(wrong(), false, false);
  deepEqual([hidden(), byId('status').textContent], [[true, true, false], '']);
  ok(!byId('results').classList.contains('is-stale'));
  status.showProblem(wrong(), false, true);
  deepEqual(hidden(), [false, true, false]);
  ok(byId('status').textContent !== '' && byId('results').classList.contains('is-stale'));
  ok(byId('translation').classList.contains('is-stale'));
  status.showResults('');
  equal(byId('notice').childElementCount, 0);
  status.say('words');
  equal(byId('status').textContent, 'words');
});

test('a notice says what is wrong and what to do, once', () => {
  status.showProblem(broken(), false, false);
  const notice = byId('notice');
  ok(notice.textContent.includes('o answer; try later'));
  const button = labelled('Try again', notice);
  button.click();
  deepEqual(
    take().map(([name]) => name),
    ['onRetry'],
  );
  status.showProblem(broken(), false, false);
  equal(labelled('Try again', notice), button);
  status.showProblem(wrong(), false, false);
  equal(labelled('Try again', notice), undefined);
  ok(notice.textContent.includes('ad text; do otherwise'));
});

test('an offer takes the place of the way out', () => {
  const offer = { label: 'Do this', patch: { text: 'a' } };
  const further = { label: 'Or that', patch: { view: 'b' } };
  const notice = byId('notice');
  status.showProblem(Object.assign(wrong(), { offer }), false, false);
  ok(notice.textContent.includes('ad text') && !notice.textContent.includes('otherwise'));
  labelled('Do this', notice).click();
  status.showProblem(Object.assign(wrong(), { further }), false, false);
  ok(!notice.textContent.includes('otherwise'));
  equal(labelled('Do this', notice), undefined);
  labelled('Or that', notice).click();
  status.showProblem(Object.assign(wrong(), { offer, further }), false, false);
  deepEqual(texts('button', notice), ['Do this', 'Or that']);
  deepEqual(
    take().map(([name, patch]) => [name, patch]),
    [
      ['onOffer', offer.patch],
      ['onOffer', further.patch],
    ],
  );
  status.showResults('');
  status.showProblem(wrong(), false, false);
  ok(notice.textContent.includes('otherwise'));
});

test('reading is told, pales what is shown, and can be cancelled after a while', () => {
  status.waitForTrace(true);
  ok(!byId('beam').hidden && byId('cancel').hidden);
  equal(byId('main').getAttribute('aria-busy'), 'true');
  ok(byId('results').classList.contains('is-stale'));
  match(byId('status').textContent, /./);
  now += 1000;
  mock.timers.tick(1000);
  ok(!byId('cancel').hidden && !byId('elapsed').hidden);
  equal(byId('elapsed').textContent, '1 s');
  now += 2000;
  mock.timers.tick(1000);
  equal(byId('elapsed').textContent, '3 s');
  byId('cancel').click();
  equal(calls.at(-1)[0], 'onCancel');
  status.waitForAnswers(true);
  status.waitForTrace(false);
  ok(!byId('beam').hidden && !byId('cancel').hidden);
  ok(!byId('results').classList.contains('is-stale'));
  status.waitForAnswers(false);
  ok(byId('beam').hidden && byId('cancel').hidden && byId('elapsed').hidden);
  equal(byId('main').getAttribute('aria-busy'), 'false');
  mock.timers.tick(5000);
  ok(byId('cancel').hidden);
  status.waitForAnswers(true);
  status.waitForTrace(true);
  status.waitForAnswers(false);
  ok(!byId('beam').hidden);
  status.waitForTrace(false);
});

test('a notice is not talked over', () => {
  status.showProblem(wrong(), false, false);
  status.waitForTrace(true);
  equal(byId('status').textContent, '');
  status.waitForTrace(false);
});

test('a model that is loaded says how far it is', () => {
  status.load({ id: 'm', title: '', progress: 0, memory_bytes: 2e9 });
  ok(byId('status').classList.contains('is-loading'));
  ok(byId('status').textContent.includes('m.') && !byId('status').textContent.includes('%'));
  status.load({ id: 'm', title: 'Em', progress: 0.256, memory_bytes: 2e9 });
  ok(byId('status').textContent.includes('Em: 26 %') && byId('status').textContent.includes('2'));
  status.load({ id: 'm' });
  status.waitForTrace(false);
  ok(!byId('status').classList.contains('is-loading'));
});

test('the share of a long text is a progress bar', () => {
  const beam = byId('beam');
  status.waitForTrace(true);
  status.tell({ share: 0.519 }, { text: 'abc', queries: [0] }, 7);
  equal(byId('status').textContent, 'One row of 3 characters');
  deepEqual(
    ['role', 'aria-valuenow'].map((name) => beam.getAttribute(name)),
    ['progressbar', '51'],
  );
  ok(beam.hasAttribute('aria-label') && beam.classList.contains('is-measured'));
  equal(beam.style.getPropertyValue('--share'), '0.519');
  mock.timers.tick(1000);
  ok(byId('elapsed').textContent.startsWith('51 %, '));
  status.waitForTrace(false);
  ok(
    !beam.hasAttribute('role') &&
      !beam.hasAttribute('aria-valuenow') &&
      !beam.hasAttribute('aria-label'),
  );
  ok(!beam.classList.contains('is-measured'));
  status.waitForTrace(true);
  mock.timers.tick(1000);
  ok(!byId('elapsed').textContent.includes('%'));
  status.waitForTrace(false);
});

let isHidden = false;
Object.defineProperty(document, 'hidden', { get: () => isHidden, configurable: true });

test('the page asks again after a pause, while it is looked at', () => {
  let acts = 0;
  const retrier = createRetrier(() => (acts += 1));
  equal(retrier.after(wrong()), false);
  mock.timers.tick(1e6);
  equal(acts, 0);
  equal(retrier.after(broken()), true);
  mock.timers.tick(1e6);
  equal(acts, 1);
  mock.timers.tick(1e6);
  equal(acts, 1);
  isHidden = true;
  retrier.after(broken());
  mock.timers.tick(1e6);
  equal(acts, 1);
  isHidden = false;
  send(document, 'visibilitychange');
  equal(acts, 2);
  send(document, 'visibilitychange');
  equal(acts, 2);
  retrier.after(broken());
  retrier.stop();
  mock.timers.tick(1e6);
  send(window, 'online');
  equal(acts, 2);
  const lost = new Problem({ title: 'Offline', detail: '', status: 0 });
  ok(retrier.after(lost));
  send(window, 'online');
  equal(acts, 3);
  mock.timers.tick(1e6);
  equal(acts, 3);
  retrier.stop();
});

test('the page asks less often each time, until it is told to begin anew', () => {
  const times = [];
  const retrier = createRetrier(() => times.push('asked'));
  const wait = () => {
    retrier.after(broken());
    const before = times.length;
    let waited = 0;
    while (times.length === before && waited < 1e6) {
      mock.timers.tick(100);
      waited += 100;
    }
    return waited;
  };
  const [first, second] = [wait(), wait()];
  ok(second > first, `${first}, then ${second}`);
  retrier.stop();
  equal(wait(), first);
});

test('the skip link leads to what is there when it is followed', () => {
  let target = byId('text');
  createSkip(find('.skip'), () => target);
  equal(send(find('.skip'), 'click'), false);
  equal(document.activeElement, byId('text'));
  target = byId('results');
  target.hidden = false;
  send(find('.skip'), 'click');
  equal(document.activeElement, byId('results'));
});

test('a part that sticks to the top is marked', () => {
  watchSticky(byId('sentence'));
  const { call, node } = observers.IntersectionObserver.at(-1);
  equal(node, byId('sentence').previousElementSibling);
  const isStuck = (intersectionRatio, top) => {
    call([{ intersectionRatio, boundingClientRect: { top, height: 0 } }]);
    return byId('sentence').classList.contains('is-stuck');
  };
  deepEqual(
    [isStuck(0, -5), isStuck(1, -5), isStuck(0, 0), isStuck(0, 900)],
    [true, false, false, false],
  );
});

test('the finding sticks while its place keeps the height, so that nothing below it moves', () => {
  const [pinned, said] = [byId('pinned'), byId('said')];
  watchSticky(pinned, said);
  const { call, node } = observers.IntersectionObserver.at(-1);
  equal(node, said);
  const scrolled = (intersectionRatio) =>
    call([{ intersectionRatio, boundingClientRect: { top: -90, height: 224 } }]);
  scrolled(0.4);
  ok(pinned.classList.contains('is-stuck'), 'its first lines are out of sight');
  equal(said.style.getPropertyValue('--kept'), '224px');
  scrolled(0.7);
  ok(!pinned.classList.contains('is-stuck'));
});

test('what loads late is loaded once', async () => {
  let loads = 0;
  const opened = [];
  createLater(byId('present'), async () => {
    loads += 1;
    return { open: (from) => opened.push(from) };
  });
  equal(loads, 0);
  byId('present').click();
  byId('present').click();
  await Promise.resolve();
  await Promise.resolve();
  await Promise.resolve();
  deepEqual([loads, opened], [1, [byId('present'), byId('present')]]);
});

test('the menu of the page closes behind what is chosen', () => {
  const links = byId('site-more');
  createSiteMenu(links);
  const { matches } = links;
  send(find('button', links), 'click');
  equal(links.dataset.popover, undefined);
  links.matches = (selector) => selector === ':popover-open' || matches.call(links, selector);
  send(links, 'click');
  equal(links.dataset.popover, undefined);
  send(find('button', links), 'click');
  equal(links.dataset.popover, 'hidden');
});

/** The dialogs are loaded when one opens. */
async function loaded() {
  await import('../../../static/js/ui/dialogs.js');
  await null;
}

test('letters are keys of the page, unless something is typed or they are off', async () => {
  localStorage.clear();
  createKeys(byId('keys'), handlers);
  const after = (key, members, target = document.body) => {
    take();
    return [
      press(target, key, members),
      ...take().map(([name, ...given]) => [name, ...given].join(' ')),
    ];
  };
  deepEqual(after('h'), [false, 'onStep head -1']);
  deepEqual(after('l'), [false, 'onStep head 1']);
  deepEqual(after('k'), [false, 'onStep layer -1']);
  deepEqual(after('j'), [false, 'onStep layer 1']);
  deepEqual(after('m'), [false, 'onMap']);
  deepEqual(after('d'), [false, 'onDrawing']);
  deepEqual(after('/'), [false, 'onText']);
  deepEqual(after('q'), [true]);
  for (const modifier of ['altKey', 'ctrlKey', 'metaKey', 'isComposing'])
    deepEqual(after('h', { [modifier]: true }), [true], modifier);
  deepEqual(after('h', {}, byId('text')), [true]);
  deepEqual(after('h', {}, byId('model')), [true]);
  deepEqual(after('h', {}, find('input[type="radio"]')), [false, 'onStep head -1']);
  deepEqual(after('h', {}, document), [false, 'onStep head -1']);
  byId('main').addEventListener('keydown', (event) => event.preventDefault(), { once: true });
  deepEqual(after('h', {}, byId('main')), [false]);
  press(document.body, '?');
  await loaded();
  const dialog = find('dialog.keys');
  ok(dialog.open);
  ok(all('kbd', dialog).length > 10);
  deepEqual(after('h'), [true]);
  byId('keys').click();
  await loaded();
  dialog.close();
  const box = find('input[type="checkbox"]', dialog);
  ok(box.checked);
  box.click();
  deepEqual(after('h'), [true]);
  equal(localStorage.length, 1);
  byId('keys').click();
  await loaded();
  equal(all('dialog.keys').length, 1);
  ok(dialog.open);
  dialog.close();
  box.click();
  deepEqual(after('h'), [false, 'onStep head -1']);
  box.click();
  showTemplate('index.html');
  createKeys(byId('keys'), { onStep: () => calls.push(['second']) });
  deepEqual(after('h'), [true]);
  byId('keys').click();
  await loaded();
  ok(!find('dialog.keys input').checked);
});

test('what was read is told with its time once that is long', () => {
  const read = { tokens: ['a'], timings: { pass: 600, more: 400 }, card: null };
  equal(readInWords(read), '1 token');
  equal(readInWords({ ...read, timings: {} }), '1 token');
  const long = {
    ...read,
    tokens: ['a', 'b'],
    timings: { pass: 1240, more: 200 },
    resolution: 8,
    card: { max_tokens: 4 },
  };
  equal(readInWords(long), '2 tokens, 1.4 s');
});

test('a server’s key is asked for, and kept if it can be one', () => {
  localStorage.clear();
  sessionStorage.clear();
  let kept = 0;
  askForKey(false, () => (kept += 1));
  const dialog = find('dialog.key');
  const wrongKey = find('#key-wrong');
  ok(dialog.open);
  equal(wrongKey.textContent, '');
  askForKey(true);
  equal(wrongKey.textContent, '');
  dialog.close();
  askForKey(true);
  match(wrongKey.textContent, /./);
  equal(all('dialog.key').length, 1);
  const rejected = wrongKey.textContent;
  const submit = (key) => {
    find('#key').value = key;
    return send(find('form', dialog), 'submit');
  };
  equal(submit('a b'), false);
  ok(wrongKey.textContent !== rejected && kept === 0);
  const noKey = wrongKey.textContent;
  submit('abc123');
  equal(kept, 1);
  const { setItem } = window.Storage.prototype;
  window.Storage.prototype.setItem = () => {
    throw new Error('forbidden');
  };
  submit('abc123');
  window.Storage.prototype.setItem = setItem;
  equal(kept, 1);
  ok(wrongKey.textContent !== noKey && wrongKey.textContent !== rejected);
  type(find('#key'), '');
  layOut(dialog, {});
});
