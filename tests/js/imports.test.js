/** A module can be understood after those that it imports: no module leads back to itself. */

import { deepEqual } from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const SCRIPTS = resolve(dirname(fileURLToPath(import.meta.url)), '../../static/js');

/** The modules that a module imports, at once or later, by their paths in static/js. */
function importsOf(name) {
  const code = readFileSync(join(SCRIPTS, name), 'utf8').replace(/\/\*[^]*?\*\//g, '');
  return [...code.matchAll(/(?:\bfrom|\bimport)\s*\(?'(\.[^']+)'/g)].map(([, source]) =>
    relative(SCRIPTS, resolve(SCRIPTS, dirname(name), source)),
  );
}

/** The circles among imports: each as the modules on it, in the order of its imports. */
function circlesIn(imports) {
  const circles = [];
  const done = new Set();
  const visit = (name, path) => {
    if (path.includes(name)) circles.push(path.slice(path.indexOf(name)));
    else if (!done.has(name)) {
      for (const imported of imports[name]) visit(imported, [...path, name]);
      done.add(name);
    }
  };
  for (const name of Object.keys(imports)) visit(name, []);
  return circles;
}

test('a circle of imports is seen', () => {
  deepEqual(circlesIn({ a: ['b', 'c'], b: ['c'], c: [] }), []);
  deepEqual(circlesIn({ a: ['b'], b: ['c'], c: ['b'] }), [['b', 'c']]);
  deepEqual(circlesIn({ a: ['a'] }), [['a']]);
});

test('no modules import each other in a circle, not even later', () => {
  const names = globSync('**/*.js', { cwd: SCRIPTS });
  const imports = Object.fromEntries(names.map((name) => [name, importsOf(name)]));
  deepEqual(imports['main.js'].includes('views/view_registry.js'), true);
  deepEqual(imports['views/view_registry.js'].includes('views/head/head.js'), true);
  deepEqual(circlesIn(imports), []);
});
