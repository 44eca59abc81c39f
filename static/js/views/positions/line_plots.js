/** Lines over positions or distances, in strips below one another, and the similarity by distance. */

import { signed } from '../../words/numbers.js';
import { range } from '../../trace/trace.js';
import { chart } from '../../plot/chart.js';
import { warm } from '../../plot/curves.js';
import { lane } from '../../plot/marks/lane.js';
import { line } from '../../plot/marks/line.js';
import { ribbon } from '../../plot/marks/decorations.js';
import { band, linear } from '../../plot/scales.js';

/**
 * @import { Chart } from '../../plot/chart.js'
 * @import { Frame } from '../../plot/figure.js'
 * @import { Datum } from '../../plot/marks/lane.js'
 * @import { Datum as LineDatum } from '../../plot/marks/line.js'
 * @import { Meaning } from '../../plot/marks/mark.js'
 * @import { Band } from '../../plot/scales.js'
 * @import { byDistance } from './maps.js'
 */

/** With more points than this, dots would hide the line. */
const ROOMY_DOTS = 128;
/** Pixels that the number of a column needs. */
export const COLUMN_SPACE = 28;

/**
 * @typedef {Object} Strip
 * @property {string} label
 * @property {ArrayLike<number>} values by column; NaN: none
 * @property {[number, number][]} [curve] points of a line that is defined between the columns too
 * @property {boolean} [isChosen]
 */

/**
 * Draw each line in its strip.
 * @param {Strip[]} strips
 * @param {{x: Band, rows: string, domain: [number, number], isLog?: boolean, isFilled?: boolean} & Meaning<Datum> & Pick<Chart, 'table'|'sentence'|'cursor'>} channels `rows`: what a strip is
 * @param {Frame} frame
 */
export function stripsChart(strips, { x, rows, table, sentence, cursor, ...channels }, frame) {
  const { palette } = frame;
  return chart(
    {
      x,
      y: band(
        strips.map(({ label }) => label),
        { title: rows },
      ),
      marks: [
        lane(
          strips.map(({ values, curve, isChosen }) => ({
            values,
            curve,
            stroke: isChosen ? palette.query : warm(palette),
            width: isChosen ? 2.5 : 1.5,
          })),
          { format: (value) => signed(value, 4), ...channels },
        ),
      ],
      size: { row: [26, 84], height: 400 },
      table,
      sentence,
      cursor,
    },
    frame,
  );
}

/** Round away from 0 to two significant digits. @param {number} value */
export function outwards(value) {
  if (value === 0) return 0;
  const unit = 10 ** (Math.floor(Math.log10(Math.abs(value))) - 1);
  return Number(
    (Math.sign(value) * Math.ceil(Math.abs(value) / unit - 1e-9) * unit).toPrecision(2),
  );
}

/**
 * Draw the mean as a line in the band from the least to the greatest.
 * @param {ReturnType<typeof byDistance>} similarity
 * @param {Meaning<LineDatum> & Pick<Chart, 'table'|'sentence'|'cursor'>} channels
 * @param {Frame} frame
 */
export function distanceChart({ mean, least, most }, { table, sentence, cursor, ...said }, frame) {
  const stroke = warm(frame.palette);
  const distances = range(mean.length);
  const edge = { stroke, width: 0.5, isQuiet: true };
  return chart(
    {
      x: band(distances.map(String), {
        title: 'distance between two positions',
        space: COLUMN_SPACE,
      }),
      y: linear('cosine similarity', { domain: tenthsAround(least, most) }),
      marks: [
        ribbon({ low: [...least], high: [...most], fill: stroke }, { x: distances }),
        line(
          [
            {
              name: 'mean',
              values: mean,
              stroke,
              dots: mean.length > ROOMY_DOTS ? 0 : 5,
              isQuiet: true,
            },
            { name: 'least', values: least, ...edge },
            { name: 'greatest', values: most, ...edge },
          ],
          { format: (value) => signed(value, 4), ...said },
        ),
      ],
      table,
      sentence,
      cursor,
    },
    frame,
  );
}

/** @param {Float64Array} least @param {Float64Array} most @returns {[number, number]} their reach, extended to tenths */
function tenthsAround(least, most) {
  const from = Math.floor(Math.min(...least) * 10 + 1e-6);
  const to = Math.ceil(Math.max(...most) * 10 - 1e-6);
  return [Math.min(from, to - 1) / 10, to / 10];
}
