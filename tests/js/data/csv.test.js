import assert from 'node:assert/strict';
import { test } from 'node:test';
import { csv } from '../../../static/js/data/csv.js';

test('commas, quotes and line breaks stay inside their field', () => {
  assert.equal(csv([['a,b', 'say "hi"', '1\n2']]), '"a,b","say ""hi""","1\n2"\r\n');
});

test('a token that looks like a formula stays text, a number stays a number', () => {
  assert.equal(csv([['=1+1', '-0.5', '-', '+x']]), '"\t=1+1",-0.5,"\t-","\t+x"\r\n');
});
