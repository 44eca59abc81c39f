/** Steering: continuations along a direction, and along a random one, next to each other. */

import { numbersIn } from '../../rules/experiment.js';
import { share, signed } from '../../words/numbers.js';
import { curvesPicture, plainCurve, strongCurve } from '../../plot/curves.js';
import { stripPicture } from '../../plot/strip.js';

/** @import { Picture } from '../../rules/experiment.js' */

/** @type {ExperimentView} */
export const experiment = {
  id: 'steering',
  main: ['text', 'strength', 'layer', 'toward', 'away', 'word', 'rival'],
  finding,
  pictures,
};

/** @param {Arrays} arrays @param {number} way */
function writtenIn({ written }, way) {
  return written.data[way].join('').trim();
}

/** @param {Result} result */
function finding({ arrays, values }) {
  const { word = 'cried', rival = 'laughed' } = values;
  const [plain, steered, random] = numbersIn(arrays.lead_now.data).map((lead) => signed(lead, 1));
  return (
    `Steered, “${word}” is ${steered} nats ahead of “${rival}”, ${plain} as it is, and ${random} along a random direction of equal length. ` +
    `It writes “${writtenIn(arrays, 1)}” in place of “${writtenIn(arrays, 0)}”.`
  );
}

/** @param {Result} result @returns {Picture[]} */
function pictures({ arrays, values }) {
  const random = arrays.random_lead.data.map(numbersIn);
  const strengths = numbersIn(arrays.strength.data);
  const ends = (/** @type {(...values: number[]) => number} */ most) =>
    strengths.map((_, at) => most(...random.map((/** @type {number[]} */ row) => row[at])));
  const { word = 'cried', rival = 'laughed' } = values;
  return [
    stripPicture({
      id: 'continuations',
      title: 'The text goes on in three ways',
      summary: 'The continuation as it is, along the direction, and along a random one.',
      help: 'Always the likeliest token; dark ones were sure. The random direction is as long as the other, and added with the same strength.',
      rows: arrays.way.data.map((/** @type {string} */ name, /** @type {number} */ way) => ({
        name,
        tokens: arrays.written.data[way],
        values: numbersIn(arrays.chance.data[way]),
      })),
      quantity: 'probability',
      format: (value) => share(value),
    }),
    {
      id: 'lead',
      isWide: true,
      draw: (size) =>
        curvesPicture({
          id: 'lead',
          title: `How far “${word}” is ahead`,
          summary: 'The lead of one word over the other by strength.',
          help: `ln P(${word}) − ln P(${rival}) after the text. Shaded: the least and the most of ${random.length} random directions.`,
          x: strengths,
          across: { title: 'strength' },
          up: { title: 'nats' },
          quantity: 'lead in nats',
          format: (value) => signed(value, 2),
          band: {
            name: 'random',
            low: ends(Math.min),
            high: ends(Math.max),
            colour: size.palette.query,
          },
          curves: () => [
            plainCurve('one random', random[0], size),
            strongCurve('the direction', arrays.lead.data, size),
          ],
        }).draw(size),
    },
  ];
}
