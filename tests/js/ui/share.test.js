/** The dialog that shares the page. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { all, blank, find, labelled, recorder, saved, settled } from '../browser.js';
import { createShare, keepingInWords, tellLost } from '../../../static/js/ui/share.js';
import { sampleTrace } from '../sample.js';

const ID = 'Zr1lq5hYQbSx0d3nJm7vWw';
const LINK = { id: ID, path: `/s/${ID}`, expires: '2027-01-31T12:00:00Z', local: true };
const TRACE = { ...sampleTrace(), asked: { model: 'tiny', text: 'it' } };
let asked;
let copied;
let limits;
let answers;

beforeEach(() => {
  blank('<div id="notice"></div><button>Share</button>');
  location.hash = '#text=it';
  asked = [];
  copied = [];
  saved.length = 0;
  limits = { link_days: { value: 30 }, max_link_bytes: { value: 1000 } };
  answers = {
    limits: () => Response.json(limits),
    links: () => Response.json(LINK, { status: 201 }),
    'qr.svg': () => new Response('<svg/>', { headers: { 'content-type': 'image/svg+xml' } }),
    page: () => new Response('<body></body>', { headers: { 'content-type': 'text/html' } }),
  };
  globalThis.fetch = async (url, { body, signal } = {}) => {
    const name = url.split('/').at(-1);
    asked.push([name, body && JSON.parse(body)]);
    return answers[name](signal);
  };
  Object.defineProperty(navigator, 'clipboard', {
    value: { writeText: async (text) => void copied.push(text) },
    configurable: true,
  });
});

async function open(subject = { trace: TRACE, figure: { grid: {} } }) {
  const { handlers, calls } = recorder('announce');
  createShare(() => subject, handlers.announce).open();
  await settled(5);
  return calls;
}
const dialog = () => find('dialog.share');
const [LINK_PART, FILE_PART] = [0, 1];
const said = (part) => all('.share-part', dialog())[part].querySelector('[role="status"]');
const posts = () => asked.filter(([name]) => name === 'links');

test('nothing is kept by the server before a button is pressed', async () => {
  await open();
  ok(dialog().open);
  deepEqual(
    asked.map(([name]) => name),
    ['limits'],
  );
  match(dialog().textContent, /30 days/);
});

test('a link is made, copied and shown with the day of its end', async () => {
  const calls = await open();
  labelled('Copy link').click();
  await settled(5);
  deepEqual(copied, [`http://localhost/s/${ID}`]);
  deepEqual(posts(), [['links', { state: 'text=it' }]]);
  equal(find('.share-address').value, copied[0]);
  ok(!find('.share-address').hidden);
  match(said(LINK_PART).textContent, /31 January 2027/);
  equal(calls.length, 1);
});

test('a view has one link, and another view another one', async () => {
  await open();
  labelled('Copy link').click();
  await settled(5);
  labelled('Copy link').click();
  await settled(5);
  equal(posts().length, 1);
  location.hash = '#text=another';
  labelled('Copy link').click();
  await settled(5);
  deepEqual(posts().at(-1), ['links', { state: 'text=another' }]);
});

test('a link that the clipboard refuses can be copied by hand', async () => {
  Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true });
  document.execCommand = () => false;
  await open();
  labelled('Copy link').click();
  await settled(5);
  match(said(LINK_PART).textContent, /Not copied/);
  equal(document.activeElement, find('.share-address'));
});

test('a server that keeps no links, or a state too large for one, has the long address', async () => {
  limits.link_days.value = 0;
  await open();
  ok(labelled('QR code').hidden);
  labelled('Copy link').click();
  await settled(5);
  deepEqual([copied, posts()], [[location.href], []]);
  match(keepingInWords({ days: 3, bytes: 5 }, 'http://x/#123456'), /too large.*16 characters/);
  match(keepingInWords({ days: 1, bytes: 5 }, 'http://x/#12345'), /1 day /);
});

test('a server that fails is told in the dialog, and asked again', async () => {
  answers.links = () => Response.json({ title: 'Busy' }, { status: 503 });
  await open();
  labelled('Copy link').click();
  await settled(5);
  match(said(LINK_PART).textContent, /No link.*Busy/);
  answers.links = () => Response.json(LINK, { status: 201 });
  labelled('Copy link').click();
  await settled(5);
  equal(copied.length, 1);
});

test('the code fills the screen with its address until it is closed', async () => {
  await open();
  labelled('QR code').click();
  await settled(5);
  const hall = find('dialog.share-hall');
  ok(hall.open && hall.textContent.includes(`/s/${ID}`));
  match(find('img', hall).alt, new RegExp(ID));
  equal(saved.at(-1).blob.size, 6);
  labelled('Close', hall).click();
  equal(find('dialog.share-hall'), null);
});

test('an address of this machine says that it opens nowhere else', async () => {
  await open();
  match(dialog().textContent, /on yours only/);
});

test('the page is saved as one file, with its progress', async () => {
  const content = '<body>'.padEnd(20_000) + '</body>';
  answers.page = () =>
    new Response(content, { headers: { 'content-length': String(content.length) } });
  const calls = await open();
  labelled('Save page').click();
  const bar = find('progress');
  ok(!bar.closest('.share-line').hidden && !bar.hasAttribute('value'));
  await settled(30);
  match(said(FILE_PART).textContent, /^Saved headlight-tiny-.*MB$/);
  equal(bar.value, 1);
  ok(bar.closest('.share-line').hidden && !labelled('Save page').disabled);
  equal(calls.length, 1);
});

test('a file is cancelled, fails, or has nothing to hold, each in words', async () => {
  answers.page = (signal) =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason));
    });
  await open();
  labelled('Save page').click();
  await settled(5);
  equal(document.activeElement, labelled('Cancel'));
  labelled('Cancel').click();
  await settled(5);
  equal(said(FILE_PART).textContent, 'Cancelled.');
  equal(document.activeElement, labelled('Save page'));
  answers.page = () => Response.json({ title: 'Full' }, { status: 503 });
  labelled('Save page').click();
  await settled(5);
  match(said(FILE_PART).textContent, /Not saved: Full/);
  equal(saved.length, 0);
  blank();
  await open(null);
  labelled('Save page').click();
  match(said(FILE_PART).textContent, /Nothing to save/);
});

test('a saved page says why it offers neither link nor file', async () => {
  document.body.className = 'is-saved';
  await open();
  match(dialog().textContent, /a file already/);
  equal(all('button', dialog()).length, 1);
  deepEqual(asked, []);
});

test('a lost link is told above the results until it is closed', () => {
  tellLost('Gone.');
  match(find('.notice').textContent, /^Gone\. An example/);
  labelled('Close').click();
  equal(find('.notice'), null);
});
