import { deepEqual, equal, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { quotedLine } from '../../../static/js/data/text.js';
import { captioned, captionOf } from '../../../static/js/plot/caption.js';

const trace = {
  model: 'tiny',
  revision: 'r',
  text: 'it\nsaw <b>',
  target_tokens: null,
  asked: { model: 'tiny', text: 'it\nsaw <b>' },
};
const PALETTE = { ink: 'rgb(0, 0, 0)', muted: 'rgb(90, 90, 90)' };
const LAYOUT = { margin: { l: 10, r: 5, t: 20, b: 30 }, xaxis: { range: [0, 1] } };

test('a caption is the title, the model and the text on one line', () => {
  deepEqual(captionOf(trace, { title: 'Layer 0', grid: { request: {} } }, []), [
    'Layer 0',
    'tiny · “it↵saw <b>”',
  ]);
});

test('no text becomes markup, and a long one is cut to the picture', () => {
  const { title } = captioned(
    LAYOUT,
    ['<i>', `<b>${'long '.repeat(80)}`],
    { width: 500, height: 400 },
    PALETTE,
  );
  ok(title.text.startsWith('<b>&lt;i&gt;</b><br>'));
  ok(title.text.includes('&lt;b&gt;long'));
  ok(title.text.endsWith('…</span>'));
});

test('a text with quotation marks of its own stands in single ones', () => {
  equal(quotedLine('He said, "no"'), '‘He said, "no"’');
  equal(quotedLine('it\nsaw'), '“it↵saw”');
});
