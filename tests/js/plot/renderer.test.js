/** Plotly loads once, after the first paint. */

import { equal, rejects } from 'node:assert/strict';
import { test } from 'node:test';
import { all, find, send, settled } from '../browser.js';
import { element } from '../../../static/js/ui/dom.js';
import { plotly } from '../../../static/js/plot/renderer.js';

test('Plotly is the one that is there, or runs once after a paint', async () => {
  const held = window.Plotly;
  equal(await plotly(), held);
  delete window.Plotly;
  const link = element('link', { id: 'plotly', href: 'http://localhost/plotly.js' });
  document.body.append(link);
  const failing = plotly();
  equal(plotly(), failing);
  await settled(250);
  const script = find('script[src]');
  equal(script.src, link.href);
  send(script, 'error');
  await rejects(failing, /did not load/);
  equal(find('script[src]'), null);
  const again = plotly();
  await settled(250);
  equal(all('meta[id]').length, 1);
  window.Plotly = held;
  send(find('script[src]'), 'load');
  equal(await again, held);
});
