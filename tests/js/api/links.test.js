/** Links that the server keeps, and the page that is opened at one. */

import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import {
  createLink,
  fetchQrCode,
  followLink,
  isLoopback,
  linkLimits,
} from '../../../static/js/api/links.js';

const ID = 'Zr1lq5hYQbSx0d3nJm7vWw';
let asked = [];
const answerWith = (status, body) => {
  asked = [];
  globalThis.fetch = async (url, options = {}) => {
    asked.push([url, options.body && JSON.parse(options.body)]);
    return new Response(JSON.stringify(body), { status });
  };
};
const problem = (type, title = type) => ({ type: `urn:headlight:problem:${type}`, title });
/** Opens the page at a path; returns the addresses that it took, and what is said. */
async function open(pathname, rest = {}) {
  const taken = [];
  const history = { replaceState: (...given) => taken.push(given[2]) };
  const why = await followLink({ location: { pathname, ...rest }, history });
  return { taken, why };
}

test('a page at a link takes its state as its address', async () => {
  answerWith(200, { state: 'text=it+saw&layer=1' });
  deepEqual(await open(`/s/${ID}`), { taken: ['/#text=it+saw&layer=1'], why: '' });
  deepEqual(asked, [[`/api/v1/links/${ID}`, undefined]]);
});

test('another page asks for no link', async () => {
  answerWith(200, { state: 'text=it' });
  for (const path of ['/', '/experiments', '/s/', '/s/a/b', '/folder/me/s/file.html'])
    deepEqual(await open(path), { taken: [], why: '' });
  deepEqual(asked, []);
});

test('a model in the query is that of the state, unless there is one, and nothing else is', async () => {
  const search = '?model=a%20b&text=private';
  deepEqual(await open('/', { search, hash: '' }), { taken: ['/#model=a%20b'], why: '' });
  deepEqual((await open('/', { search, hash: '#model=c' })).taken, []);
});

test('a link that is gone leaves the start page with a reason', async () => {
  for (const [status, type] of [
    [404, 'unknown-link'],
    [422, 'invalid-request'],
    [404, 'links-off'],
  ]) {
    answerWith(status, problem(type));
    const { taken, why } = await open('/s/gone');
    deepEqual(taken, ['/']);
    ok(why.length > 10 && !why.includes('urn:'));
  }
});

test('a link that may open later keeps its address, and one behind a key says nothing', async () => {
  answerWith(503, problem('links-busy', 'Busy'));
  const busy = await open(`/s/${ID}`);
  deepEqual(busy.taken, []);
  match(busy.why, /Busy.*Reload/);
  globalThis.fetch = async () => {
    throw new TypeError('network');
  };
  match((await open(`/s/${ID}`)).why, /did not respond/);
  answerWith(401, problem('key'));
  deepEqual(await open(`/s/${ID}`), { taken: [], why: '' });
});

test('a link has the address of the server and the day of its end', async () => {
  answerWith(201, { id: ID, path: `/s/${ID}`, expires: '2027-01-31T12:00:00Z', local: false });
  globalThis.location = { origin: 'https://host' };
  const link = await createLink('text=it');
  equal(link.address, `https://host/s/${ID}`);
  equal(link.expires.toISOString(), '2027-01-31T12:00:00.000Z');
  deepEqual(asked, [['/api/v1/links', { state: 'text=it' }]]);
});

test('an older server keeps no links, and a code is a picture', async () => {
  answerWith(200, {});
  deepEqual(await linkLimits(), { days: 0, bytes: 0 });
  answerWith(200, { link_days: { value: 3 }, max_link_bytes: { value: 9 } });
  deepEqual(await linkLimits(), { days: 3, bytes: 9 });
  ok((await fetchQrCode(ID)).size > 0);
  equal(asked.at(-1)[0], `/api/v1/links/${ID}/qr.svg`);
});

test('a loopback name is one that leads back to its own machine', () => {
  for (const host of ['localhost', 'a.localhost', '127.0.0.1', '127.1.2.3', '[::1]'])
    ok(isLoopback(host), host);
  for (const host of ['128.0.0.1', 'localhost.org', '10.0.0.127', 'notlocalhost', '[::2]', ''])
    ok(!isLoopback(host), host);
});
