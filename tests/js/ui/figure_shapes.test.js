/** The shapes of a drawing, in a figure for a paper. */

import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';
import { blank, drawn, settled } from '../browser.js';
import { openPublicationDialog } from '../../../static/js/ui/publication_dialog.js';
import { attention } from '../../../static/js/views/attention/attention.js';
import { figuresOf, sampleTrace } from '../sample.js';

const [figure] = figuresOf(attention, sampleTrace());

/** The shapes of the picture that the dialog makes. */
async function shapesOf(layout, grid = {}) {
  blank();
  drawn.length = 0;
  openPublicationDialog(
    {
      trace: { ...sampleTrace(), asked: { model: 'tiny', text: 'it' } },
      figure: {
        ...figure,
        layout: { ...figure.layout, ...layout },
        grid: { ...figure.grid, chosen: {}, picked: null, ...grid },
      },
      cards: [],
      name: 'headlight-figure',
      help: '',
    },
    () => {},
  );
  await settled(250);
  return drawn.findLast(([name]) => name === 'toImage')[1].layout.shapes;
}

test('the shapes of a drawing stay, and the marked cell is added', async () => {
  const shapes = [{ type: 'line', x0: 1, x1: 2 }];
  deepEqual(await shapesOf({ shapes }), shapes);
  const [line, cell, ...others] = await shapesOf({ shapes }, { picked: { row: 1, column: 2 } });
  deepEqual(line, shapes[0]);
  deepEqual([cell.x0, cell.x1, cell.y0, cell.y1], [1.5, 2.5, 0.5, 1.5]);
  equal(others.length, 0);
  deepEqual(await shapesOf({ shapes: undefined }), []);
});
