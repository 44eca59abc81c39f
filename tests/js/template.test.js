import { ok } from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const PAGES = { 'index.html': 'main.js', 'experiments.html': 'experiments.js' };
const read = (path) => readFileSync(join(ROOT, path), 'utf8');
const readPage = (name) =>
  read(`templates/${name}`).replace(/{% include '([^']+)' %}/g, (_, part) =>
    read(`templates/${part}`),
  );
const pages = Object.keys(PAGES).map(readPage);

function modules(folder = join(ROOT, 'static/js')) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return modules(path);
    return entry.name.endsWith('.js') ? [path] : [];
  });
}

test('a page has no inline style or handler, and no inline script but that of the theme', () => {
  for (const page of pages.map((text) => text.replace('<script>{{ theme_first }}</script>', ''))) {
    ok(!/<script(?![^>]*\bsrc=)/.test(page));
    ok(!/<style|\sstyle=|\son[a-z]+=/.test(page));
  }
});

test('every file a page names is there, and none is on another host', () => {
  for (const [, url] of pages.join('').matchAll(/(?:src|href)="([^"]+)"/g)) {
    ok(!/^(https?:)?\/\//.test(url), url);
    // The server joins the modules of an entry under its name.
    const file = url.replace(/^{{ static_url }}(?:\/(\w+)(?=\/\1\.js$))?/, (_, entry) =>
      entry ? 'static/js' : 'static',
    );
    if (file !== url) ok(existsSync(join(ROOT, file)), url);
  }
});

test('every id the code looks for is in its page', () => {
  for (const [name, script] of Object.entries(PAGES)) {
    const page = readPage(name);
    for (const [, id] of read(`static/js/${script}`).matchAll(/byId\('([a-z]+)'\)/g))
      ok(page.includes(`id="${id}"`), `${name}: ${id}`);
  }
});

test('only ui, the renderer, main.js and archived.js touch the DOM', () => {
  const ofData = /\/js\/(api|data|plot|state|views)\/(?!renderer\.js)/;
  for (const path of modules().filter((name) => ofData.test(name))) {
    ok(!/\b(document|window|localStorage)\b\./.test(readFileSync(path, 'utf8')), path);
  }
});

test('markup is never made from text', () => {
  for (const path of modules())
    ok(
      !/innerHTML|insertAdjacentHTML|outerHTML|document\.write/.test(readFileSync(path, 'utf8')),
      path,
    );
});
