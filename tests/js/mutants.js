/**
 * Mutation test of the JavaScript: faults are put into `words`, `trace`, `rules`, `state`, `plot` and `ui`, one at a time,
 * and the tests have to see them.
 *
 *     make mutants-js SEED=1 MUTANTS=200
 *
 * A mutant changes an operator, a condition, a truth value or a returned value, or removes a
 * statement that calls or assigns; strings and numbers stay. The sample is drawn by a seed, from each folder
 * in proportion to its lines. Each mutant meets the test files that import its file, the nearest
 * first, until a test fails; one that hangs counts as seen. The tree itself is never touched.
 *
 * Stryker (https://stryker-mutator.io) draws no sample: it tries every mutant of the files, here nearly
 * ten thousand, and brings 116 packages of 73 MB.
 */

import { parse } from 'acorn';
import { spawn } from 'node:child_process';
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const FOLDERS = ['words', 'trace', 'rules', 'state', 'plot', 'ui'];
/** What the tests read. */
const COPIED = ['static', 'templates', 'tests/js', 'app'];
const MODULES = 'tests/js/node_modules';
const TIMEOUT = 120_000;
const WORKERS = 2;

const INSTEAD = {
  '+': '-', '-': '+', '*': '/', '/': '*', '%': '*',
  '<': '<=', '<=': '<', '>': '>=', '>=': '>', '===': '!==', '!==': '===',
  '&&': '||', '||': '&&', '??': '&&',
  '+=': '-=', '-=': '+=', '++': '--', '--': '++',
}; // prettier-ignore

/**
 * @typedef {object} Mutant
 * @property {string} path relative to the root
 * @property {number} start @property {number} end the part of the text that is replaced
 * @property {string} text what replaces it
 */

/** Returns the files below a folder whose names end in `ending`. */
function filesIn(folder, ending) {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending) && !name.includes('node_modules'))
    .map((name) => join(folder, name))
    .sort();
}

const parsed = (source) => parse(source, { ecmaVersion: 'latest', sourceType: 'module' });

/** Calls `visit` with each node of a syntax tree. */
function walk(node, visit) {
  visit(node);
  for (const value of Object.values(node))
    for (const child of Array.isArray(value) ? value : [value])
      if (typeof child?.type === 'string') walk(child, visit);
}

/** Returns all mutants of a file. @returns {Mutant[]} */
function mutantsOf(path) {
  const source = readFileSync(join(ROOT, path), 'utf8');
  const mutants = [];
  const replace = ({ start, end }, text) => mutants.push({ path, start, end, text });
  const isText = ({ type, value }) => type === 'TemplateLiteral' || typeof value === 'string';
  const mutate = (node) => {
    const { type, operator, test } = node;
    if (/^(Binary|Logical)Expression$/.test(type) && operator in INSTEAD) {
      const between = { start: node.left.end, end: node.right.start };
      const isJoin = operator === '+' && (isText(node.left) || isText(node.right));
      const text = source.slice(between.start, between.end);
      if (!isJoin) replace(between, text.replace(operator, INSTEAD[operator]));
    }
    if (type === 'AssignmentExpression' && operator in INSTEAD) {
      const between = { start: node.left.end, end: node.right.start };
      replace(between, ` ${INSTEAD[operator]} `);
    }
    if (type === 'UpdateExpression')
      replace(node, source.slice(node.start, node.end).replace(operator, INSTEAD[operator]));
    if (type === 'UnaryExpression' && /[-!]/.test(operator))
      replace({ start: node.start, end: node.argument.start }, ' ');
    if (/^(If|While)Statement$|^ConditionalExpression$/.test(type)) {
      if (type !== 'WhileStatement') replace(test, 'true');
      replace(test, 'false');
    }
    if (type === 'Literal' && typeof node.value === 'boolean') replace(node, String(!node.value));
    if (type === 'ReturnStatement' && node.argument) replace(node.argument, 'undefined');
    if (type === 'ArrowFunctionExpression' && node.expression) replace(node.body, 'undefined');
    if (type === 'ExpressionStatement' && !node.directive) replace(node, ';');
    const [, extreme] = /^Math\.(min|max)$/.exec(source.slice(node.start, node.end)) ?? [];
    if (extreme) replace(node, extreme === 'min' ? 'Math.max' : 'Math.min');
  };
  walk(parsed(source), mutate);
  return mutants;
}

/** Returns random numbers in [0, 1) that a seed determines (mulberry32). */
function randomOf(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Draws `count` mutants, from each folder in proportion to its lines. */
function sampleOf(count, seed, folders) {
  const random = randomOf(seed);
  const files = folders.map((folder) => filesIn(`static/js/${folder}`, '.js'));
  const lines = files.map((paths) =>
    paths.reduce((sum, path) => sum + readFileSync(join(ROOT, path), 'utf8').split('\n').length, 0),
  );
  const total = lines.reduce((sum, of) => sum + of, 0);
  let [drawn, before] = [0, 0];
  return files.flatMap((paths, i) => {
    before += lines[i];
    const quota = Math.round((count * before) / total) - drawn;
    drawn += quota;
    const mutants = paths.flatMap(mutantsOf);
    return Array.from({ length: Math.min(quota, mutants.length) }, () =>
      mutants.splice(Math.floor(random() * mutants.length), 1),
    ).flat();
  });
}

/** Returns the files that a module imports, statically or not. */
function importsOf(path) {
  const paths = [];
  walk(parsed(readFileSync(join(ROOT, path), 'utf8')), ({ source }) => {
    if (source?.value?.startsWith?.('.')) paths.push(join(dirname(path), source.value));
  });
  return paths;
}

/** Returns for each file the test files that import it, the nearest first. */
function testsByFile() {
  const imports = new Map();
  const importing = (path) => imports.get(path) ?? imports.set(path, importsOf(path)).get(path);
  const tests = {};
  for (const test of filesIn('tests/js', '.test.js')) {
    const distances = new Map([[test, 0]]);
    for (const [path, distance] of distances)
      for (const next of importing(path))
        if (!distances.has(next)) distances.set(next, distance + 1);
    for (const [path, distance] of distances) (tests[path] ??= []).push({ test, distance });
  }
  for (const list of Object.values(tests)) list.sort((a, b) => a.distance - b.distance);
  return tests;
}

/** Copies the tree into a temporary folder. */
function copied() {
  const folder = mkdtempSync(join(tmpdir(), 'mutants-'));
  const filter = (path) => relative(ROOT, path) !== MODULES && !path.endsWith('.pyc');
  for (const part of COPIED)
    cpSync(join(ROOT, part), join(folder, part), { recursive: true, filter });
  symlinkSync(join(ROOT, MODULES), join(folder, MODULES));
  return folder;
}

/** Runs a test file. @returns {Promise<boolean>} whether it passes */
function passes(folder, test) {
  return new Promise((done) => {
    const run = spawn(process.execPath, [test], { cwd: folder, stdio: 'ignore', timeout: TIMEOUT });
    run.on('close', (code) => done(code === 0));
  });
}

/** Returns the test that sees the mutant, or null. */
async function seenBy({ path, start, end, text }, tests, folder) {
  const source = readFileSync(join(ROOT, path), 'utf8');
  writeFileSync(join(folder, path), source.slice(0, start) + text + source.slice(end));
  try {
    for (const { test } of tests[path] ?? []) if (!(await passes(folder, test))) return test;
    return null;
  } finally {
    writeFileSync(join(folder, path), source);
  }
}

/** Runs every test file without a fault: one that fails anyway would see every mutant. */
async function assertPassing() {
  const folder = copied();
  try {
    for (const test of filesIn('tests/js', '.test.js'))
      if (!(await passes(folder, test))) throw new Error(`${test} fails without a fault`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Writes a mutant in a line: where it is, what was there, what is there now. */
function written({ path, start, end, text }) {
  const source = readFileSync(join(ROOT, path), 'utf8');
  const before = source.slice(0, start);
  const line = before.split('\n').length;
  const around = source.split('\n')[line - 1].trim();
  const short = (code) => JSON.stringify(code.length > 60 ? `${code.slice(0, 57)}…` : code);
  return `${path}:${line}  ${short(source.slice(start, end))} → ${short(text)}  in  ${around}`;
}

const { values: options } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    mutants: { type: 'string', default: '200' },
    folders: { type: 'string', default: FOLDERS.join() },
  },
});
const sample = sampleOf(Number(options.mutants), Number(options.seed), options.folders.split(','));
const tests = testsByFile();
await assertPassing();
const figures = {};
const survivors = [];
const queue = [...sample];
await Promise.all(
  Array.from({ length: WORKERS }, async () => {
    const folder = copied();
    try {
      for (let mutant = queue.shift(); mutant; mutant = queue.shift()) {
        const [, , group] = mutant.path.split('/');
        figures[group] ??= { mutants: 0, survived: 0 };
        figures[group].mutants += 1;
        if (await seenBy(mutant, tests, folder)) continue;
        figures[group].survived += 1;
        survivors.push(written(mutant));
        console.log(survivors.at(-1));
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  }),
);
console.table(figures);
console.log(`${survivors.length} of ${sample.length} mutants survived (seed ${options.seed}).`);
