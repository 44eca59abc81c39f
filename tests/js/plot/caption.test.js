import assert from 'node:assert/strict';
import { test } from 'node:test';
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
  assert.deepEqual(captionOf(trace, { title: 'Layer 0', grid: { request: {} } }, []), [
    'Layer 0',
    'tiny · “it↵saw <b>”',
  ]);
});

test('of an edited pass it also says what its numbers are', () => {
  const grid = {
    quantity: 'weight of B less that of A',
    request: { edits: [{ kind: 'no_scaling' }] },
  };
  assert.deepEqual(captionOf(trace, { title: 'B − A', grid }, []), [
    'B − A',
    'weight of B less that of A',
    'tiny · “it↵saw <b>”',
  ]);
});

test('the drawing stays as large as it was, below its caption', () => {
  const layout = captioned(LAYOUT, ['Layer 0', 'tiny'], { width: 600, height: 400 }, PALETTE);
  const room = layout.height - 400;
  assert.ok(room > 30);
  assert.equal(layout.width, 600);
  assert.deepEqual(layout.margin, { ...LAYOUT.margin, t: LAYOUT.margin.t + room });
  assert.equal(LAYOUT.margin.t, 20, 'the page’s own layout is left alone');
});

test('no text becomes markup, and a long one is cut to the picture', () => {
  const { title } = captioned(
    LAYOUT,
    ['<i>', `<b>${'long '.repeat(80)}`],
    { width: 500, height: 400 },
    PALETTE,
  );
  assert.ok(title.text.startsWith('<b>&lt;i&gt;</b><br>'));
  assert.ok(title.text.includes('&lt;b&gt;long'));
  assert.ok(title.text.endsWith('…</span>'));
});
