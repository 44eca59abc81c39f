/**
 * The service worker of a site: it keeps every file, so that the site opens without a network after
 * the first visit. `headlight site` writes the names of the files, and a version of all of them.
 */

const FILES = ['files'];
const KEPT = `headlight-${'version'}`;
/** The pages and their code, without which nothing opens. */
const FIRST = FILES.filter((name) => !/^(data\/(text|experiment|chapter)-|live\/)/.test(name));

/** @type {any} */
const worker = self;

worker.addEventListener('install', (/** @type {any} */ event) => {
  event.waitUntil(caches.open(KEPT).then((cache) => cache.addAll(FIRST)));
  worker.skipWaiting();
});

worker.addEventListener('activate', (/** @type {any} */ event) => {
  event.waitUntil(dropOthers().then(() => worker.clients.claim()));
});

// The page asks for the rest once it is drawn.
worker.addEventListener('message', (/** @type {any} */ event) => {
  event.waitUntil(keepRest());
});

worker.addEventListener('fetch', (/** @type {any} */ event) => {
  if (event.request.method === 'GET') event.respondWith(answer(event.request));
});

async function dropOthers() {
  const names = await caches.keys();
  const old = names.filter((name) => name.startsWith('headlight-') && name !== KEPT);
  await Promise.all(old.map((name) => caches.delete(name)));
}

async function keepRest() {
  const cache = await caches.open(KEPT);
  for (const name of FILES) {
    if (await cache.match(name)) continue;
    await cache.add(name).catch(() => {}); // the network went away: it is asked for again later
  }
}

/** Answer from what is kept; a file that computes is kept as it passes. @param {Request} request */
async function answer(request) {
  const cache = await caches.open(KEPT);
  const kept = await cache.match(request, { ignoreSearch: true });
  const response = kept ?? (await fetch(request));
  if (!kept && response.ok && request.url.includes('/live/'))
    cache.put(request, response.clone()).catch(() => {}); // the disk is full
  return response;
}
