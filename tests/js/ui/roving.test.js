/** A row of buttons as one stop of Tab. */

import { deepEqual, equal } from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { all, blank, find, layOut, press, settled } from '../browser.js';
import { createRoving } from '../../../static/js/ui/roving.js';

const stops = () => all('#host :is(button, a)').map(({ tabIndex }) => tabIndex);

beforeEach(() => {
  blank(
    '<div id="host"><button>a</button><button aria-pressed="true">b</button><a href="#">c</a></div>',
  );
  for (const node of all('#host > *')) layOut(node, { left: 0, top: 0, width: 9, height: 9 });
  createRoving(find('#host'));
});

test('Tab reaches the pressed one, and the arrow keys walk around', () => {
  deepEqual(stops(), [-1, 0, -1]);
  find('[aria-pressed]').focus();
  equal(press(document.activeElement, 'ArrowRight'), false);
  equal(document.activeElement.textContent, 'c');
  deepEqual(stops(), [-1, -1, 0]);
  press(document.activeElement, 'ArrowRight');
  equal(document.activeElement.textContent, 'a');
  press(document.activeElement, 'ArrowLeft');
  equal(document.activeElement.textContent, 'c');
  press(document.activeElement, 'Home');
  equal(document.activeElement.textContent, 'a');
  press(document.activeElement, 'End');
  equal(document.activeElement.textContent, 'c');
  equal(press(document.activeElement, 'ArrowRight', { ctrlKey: true }), true);
});

test('buttons that come later are of the row, and those of a menu are not', async () => {
  find('#host').innerHTML =
    '<button>x</button><button>y</button><div popover><button>z</button></div>';
  await settled();
  deepEqual(stops(), [0, -1, 0]);
});
