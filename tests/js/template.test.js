import { ok } from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const page = readFileSync(join(ROOT, 'templates/index.html'), 'utf8');

function modules(folder = join(ROOT, 'static/js')) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return modules(path);
    return entry.name.endsWith('.js') ? [path] : [];
  });
}

test('the page has no inline script, style or handler', () => {
  ok(!/<script(?![^>]*\bsrc=)/.test(page));
  ok(!/<style|\sstyle=|\son[a-z]+=/.test(page));
});

test('every file the page names is there, and none is on another host', () => {
  for (const [, url] of page.matchAll(/(?:src|href)="([^"]+)"/g)) {
    ok(!/^(https?:)?\/\//.test(url), url);
    if (url.startsWith('/static/')) ok(existsSync(join(ROOT, url)), url);
  }
});

test('every id the code looks for is in the page', () => {
  const main = readFileSync(join(ROOT, 'static/js/main.js'), 'utf8');
  for (const [, id] of main.matchAll(/byId\('([a-z]+)'\)/g)) ok(page.includes(`id="${id}"`), id);
});

test('only ui, main.js and offline.js touch the DOM', () => {
  for (const path of modules().filter((name) => /\/js\/(api|data|plot|state|views)\//.test(name))) {
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
