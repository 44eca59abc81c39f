import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { curlOf } from '../../../static/js/data/curl.js';

test('a shell hands curl exactly what was asked', () => {
  const body = { model: 'tiny', text: `it's "$HOME" \`id\` \\n é`, capture: ['a.b'], heads: [1] };
  const line = curlOf('http://127.0.0.1:8000', { path: '/api/v1/trace', body }).replace(
    /^curl/,
    'printf "%s\\0"',
  );
  const words = execFileSync('/bin/sh', ['-c', line], { encoding: 'utf8' }).split('\0');
  assert.deepEqual(words.slice(0, 4), [
    '--silent',
    'http://127.0.0.1:8000/api/v1/trace',
    '--header',
    'Content-Type: application/json',
  ]);
  assert.deepEqual(JSON.parse(words[5]), body);
});
