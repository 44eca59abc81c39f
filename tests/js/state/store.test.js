/** The state of the page and its history, without a page: a browser here is a list of addresses. */

import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { choice, count, fieldsOf, ofText } from '../../../static/js/state/state.js';
import { createAddress, Store } from '../../../static/js/state/store.js';
import { sampleTrace } from '../sample.js';

const VIEWS = [
  { id: 'attention', fields: { attention_show: choice(['map', 'lines']) } },
  { id: 'long', fields: {} },
  { id: 'generate', fields: { generate_step: ofText(count()) } },
];
const FIELDS = fieldsOf(VIEWS);
const EXAMPLES = [
  { title: 'One', text: 'an example', opens: { layer: 1, head: 0 } },
  { title: 'Two', text: 'an example', opens: { layer: 0, head: 1 } },
];
const CARD = { kind: 'decoder', examples: EXAMPLES };

/** A browser that knows its address and its history, and nothing else. */
function createBrowser(hash) {
  const entries = [hash];
  let at = 0;
  return {
    entries,
    location: {
      get hash() {
        return entries[at];
      },
    },
    history: {
      pushState(_, __, fragment) {
        entries.splice((at += 1), Infinity, fragment);
      },
      replaceState(_, __, fragment) {
        entries[at] = fragment;
      },
    },
    go(by) {
      at += by;
    },
  };
}

/** A store over an address, and what it told. */
function open(hash = '', trace = null) {
  const browser = createBrowser(hash);
  const changes = [];
  const shown = { trace };
  const store = new Store({
    fields: FIELDS,
    views: VIEWS.map(({ id }) => id),
    address: createAddress(FIELDS, browser),
    traceNow: () => shown.trace,
    onChange: (change) => changes.push(change),
  });
  const head = () => [store.state.layer, store.state.head];
  return { browser, changes, head, shown, store };
}

test('a change is told with what was before, and is a step of the history', () => {
  const { browser, changes, store } = open('#text=a');
  store.change({ view: 'generate' });
  const [{ before, patch, isTyped, isStep, isOtherText }] = changes;
  deepEqual(
    [before.view, patch, isTyped, isStep, isOtherText],
    ['attention', { view: 'generate' }, false, true, false],
  );
  deepEqual(browser.entries, ['#text=a', '#text=a&view=generate']);
  store.goOn({ view: 'long' });
  deepEqual(browser.entries, ['#text=a', '#text=a&view=long']);
  equal(changes[1].isStep, false);
  store.change({ view: 'long' });
  equal(browser.entries.length, 2, 'nothing has changed');
});

test('text, model and target are of another pass; words and view are not', () => {
  const { changes, store } = open('#text=a');
  for (const patch of [{ text: 'b' }, { model: 'm' }, { target: 't' }, { words: 'w' }, { key: 1 }])
    store.change(patch);
  deepEqual(
    changes.map(({ isOtherText }) => isOtherText),
    [true, true, true, false, false],
  );
});

test('what is typed in one go is one step of the history', (context) => {
  let now = 0;
  context.mock.method(performance, 'now', () => now);
  const { browser, store } = open('#text=a');
  const steps = (text, isTyped) => {
    const before = browser.entries.length;
    store.write({ text, words: '' }, isTyped);
    equal(new URLSearchParams(browser.location.hash.slice(1)).get('text'), text);
    return browser.entries.length - before;
  };
  equal(steps('ab', true), 1, 'the first stroke');
  now = 2000;
  equal(steps('abc', true), 0);
  now = 4000;
  equal(steps('abcd', true), 0, 'a pause counts from the last stroke');
  now = 7000;
  equal(steps('abcde', true), 1, 'after a pause');
  equal(steps('b', false), 1, 'what is chosen is a step, however soon');
});

test('the text that was read is not taken again', () => {
  const { changes, store } = open('#text=a');
  equal(store.write({ text: 'a', words: '' }, true), false);
  equal(store.write({ target: null }, true), false);
  equal(changes.length, 0);
  equal(store.write({ target: 'b' }, true), true);
  ok(changes[0].isTyped && changes[0].isOtherText);
});

test('another text resets what was chosen in the one before, and a head that the page chose', () => {
  const { head, store } = open('#text=a&view=generate&generate_step=3');
  const trace = sampleTrace();
  const chosen = open('#text=a', trace);
  store.change({ query: 2, source: 1, key: 1 });
  store.write({ text: 'b', words: '' }, false);
  const { query, source, key, generate_step: step } = store.state;
  deepEqual([query, source, key, step], [null, null, null, null]);
  deepEqual(head(), [null, null]);
  chosen.store.fit();
  ok(chosen.store.state.layer !== null, 'the page chose a head');
  chosen.store.write({ text: 'b', words: '' }, false);
  deepEqual(chosen.head(), [null, null]);
});

test('a head that the reader chose stays for other texts', () => {
  const linked = open('#text=a&layer=1&head=1');
  linked.store.write({ text: 'b', words: '' }, false);
  deepEqual(linked.head(), [1, 1]);
  for (const [link, name] of [
    ['layer=1', 'layer'],
    ['head=1', 'head'],
    ['where=cross', 'where'],
  ]) {
    const { store } = open(`#text=a&${link}`);
    store.write({ text: 'b', words: '' }, false);
    ok(store.state[name], name);
  }
  const { head, store } = open('#text=a');
  store.change({ layer: 1, head: 0 });
  store.write({ text: 'b', words: '' }, false);
  deepEqual(head(), [1, 0]);
});

test('an example opens at its own place, and its head is not one that the reader chose', () => {
  const { changes, head, store } = open('#text=a&layer=3&head=3&query=1&where=decoder');
  equal(store.follow(EXAMPLES[0]), true);
  deepEqual(head(), [1, 0]);
  deepEqual([store.state.query, store.state.where], [null, '']);
  equal(store.follow(EXAMPLES[1]), false, 'another place in the same text');
  deepEqual(head(), [0, 1]);
  deepEqual(
    changes.map(({ isOtherText }) => isOtherText),
    [true, false],
  );
  store.write({ text: 'b', words: '' }, false);
  deepEqual(head(), [null, null]);
});

test('an example that was not edited gives way to one of the other model', () => {
  const others = [{ title: 'A', text: 'of the other', opens: { layer: 0, head: 0 } }];
  const unedited = open('#text=an+example&target=x&layer=1');
  unedited.store.chooseModel('other', EXAMPLES, others);
  const { model, target, text } = unedited.store.state;
  deepEqual([model, target, text, unedited.head()], ['other', null, 'of the other', [0, 0]]);
  unedited.store.write({ text: 'b', words: '' }, false);
  deepEqual(unedited.head(), [null, null], 'the reader did not choose this head');
  const edited = open('#text=an+example,+edited&layer=1');
  edited.store.chooseModel('other', EXAMPLES, others);
  deepEqual([edited.store.state.text, edited.head()], ['an example, edited', [null, null]]);
  const none = open('#text=an+example');
  none.store.chooseModel('other', EXAMPLES, []);
  equal(none.store.state.text, 'an example');
});

test('a page without a text begins with the first example, where the link says nothing else', () => {
  const { browser, changes, head, store } = open('#head=1&target=x');
  store.begin(CARD);
  equal(store.state.text, 'an example');
  deepEqual(head(), [1, 1]);
  equal(store.state.target, null, 'a decoder has no target');
  equal(browser.location.hash, '#head=1&target=x', 'the address follows with the trace');
  equal(changes.length, 0);
  store.change({ text: 'typed' });
  store.begin({ ...CARD, kind: 'encoder-decoder' });
  equal(store.state.text, 'typed');
});

test('a target stays for a model that has one', () => {
  const { store } = open('#text=a&target=x');
  store.begin({ ...CARD, kind: 'encoder-decoder' });
  equal(store.state.target, 'x');
});

test('the state is brought into the bounds of the trace, and the address with it', () => {
  const trace = sampleTrace();
  const { browser, head, shown, store } = open('#text=a&view=nowhere&layer=70&head=90&query=99');
  store.change({ key: 99 });
  equal(store.state.layer, 70, 'without a trace nothing is known');
  shown.trace = trace;
  store.fit();
  ok(head().every((index) => index < 2));
  deepEqual([store.state.view, store.state.query, store.state.key], ['attention', null, null]);
  equal(new URLSearchParams(browser.location.hash.slice(1)).get('query'), null);
  equal(browser.entries.length, 2);
  store.change({ layer: 70 });
  ok(store.state.layer < 2);
  store.change({ text: 'b', layer: 70 });
  equal(store.state.layer, 70, 'the trace says nothing of another text');
});

test('back and forward restore what the link holds, and keep what other views show', () => {
  const { browser, changes, store } = open('#text=a', sampleTrace());
  store.change({ attention_show: 'lines' });
  store.change({ view: 'generate', generate_step: 4 });
  const told = changes.length;
  browser.go(-1);
  equal(store.restore(), false);
  deepEqual([store.state.view, store.state.generate_step], ['attention', 4]);
  browser.go(1);
  equal(store.restore(), false);
  deepEqual([store.state.view, store.state.attention_show], ['generate', 'lines']);
  browser.go(-2);
  store.restore();
  equal(store.state.attention_show, 'map');
  equal(changes.length, told, 'who restores knows it');
  browser.history.replaceState(null, '', '#text=a&layer=70');
  store.restore();
  ok(store.state.layer < 2, 'within what the trace has');
  store.change({ text: 'b' });
  browser.go(-1);
  equal(store.restore(), true, 'another text');
  equal(store.state.text, 'a');
});

test('a head that a kernel names stays; one of the history gives way', () => {
  for (const isNamed of [true, false]) {
    const { browser, head, store } = open('#text=a&query=1', sampleTrace());
    browser.history.replaceState(null, '', '#text=a&query=1&layer=1&head=0');
    equal(store.restore(isNamed), false);
    store.suggest({ layer: 0, head: 1 });
    deepEqual(head(), isNamed ? [1, 0] : [0, 1]);
  }
});

test('the view of long texts opens without a word, until the trace arrives', () => {
  const { browser, changes, shown, store } = open('#text=a');
  store.openLong();
  deepEqual([store.state.view, changes.length, browser.location.hash], ['long', 0, '#text=a']);
  shown.trace = sampleTrace();
  store.fit();
  equal(new URLSearchParams(browser.location.hash.slice(1)).get('view'), 'long');
});

test('the change to another text resets what is of the text', () => {
  deepEqual(open().store.withStandards({ text: 'b' }), {
    query: null,
    source: null,
    key: null,
    token: null,
    off: '',
    weight: null,
    generate_step: null,
    text: 'b',
  });
});

test('an edit is of the cell and the text that it was made in', () => {
  const { store } = open('#text=a&layer=1&head=0&query=3&key=2&weight=0.5&off=head+decoder+1+0');
  deepEqual([store.state.weight, store.state.off], [0.5, 'head decoder 1 0']);
  store.change({ view: 'word' });
  equal(store.state.weight, 0.5);
  store.change({ key: 1 });
  deepEqual([store.state.weight, store.state.off], [null, 'head decoder 1 0']);
  store.change({ weight: 0.75 });
  store.write({ text: 'b', words: '' }, false);
  deepEqual([store.state.weight, store.state.off], [null, '']);
});
