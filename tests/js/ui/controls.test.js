import assert from 'node:assert/strict';
import { test } from 'node:test';
import { labelsExplained } from '../../../static/js/data/attention.js';
import { explainedOf } from '../../../static/js/ui/controls.js';

test('switches say what they and their options do; a number of something explains itself', () => {
  const explained = explainedOf([
    {
      kind: 'choice',
      label: 'As',
      options: [
        { id: 'a', title: 'Matrix', help: 'rows by columns' },
        { id: 'b', title: 'Lines' },
      ],
    },
    { kind: 'flag', label: 'Whole words', help: 'pieces as one' },
    { kind: 'counts', label: 'Heads', options: [{ id: 0, title: '0', help: 'Head 0' }] },
    { kind: 'button', label: 'Go' },
  ]);
  assert.deepEqual(explained, [
    { title: 'As', parts: [['Matrix', 'Rows by columns']] },
    { title: '', parts: [['Whole words', 'Pieces as one']] },
  ]);
});

test('every label of a head is explained', () => {
  const labels = labelsExplained();
  assert.ok(labels.length >= 8);
  for (const [title, meaning] of labels)
    assert.ok(/^[A-Z]/.test(title) && /^[A-Z].{20,}/.test(meaning), title);
});
