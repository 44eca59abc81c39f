/** How weights are drawn: the size of numbers and gradients by layer. */

import { numbersIn } from '../../rules/experiment.js';
import { counted } from '../../words/lists.js';
import { rough } from '../../words/numbers.js';
import { layersPicture, rowCurves } from '../../plot/curves.js';

/**
 * @import { ExperimentView, Picture, Result } from '../../rules/experiment.js'
 * @import { Look } from '../../plot/curves.js'
 */

/** @type {Record<string, Look>} */
const LOOKS = {
  unit: { name: 'deviation 1', colour: 'ink' },
  small: { name: '0.01', colour: 'muted', dash: 'dot' },
  xavier: { name: 'Xavier', colour: 'query' },
  kaiming: { name: 'Kaiming', colour: 'warm', width: 3 },
};

/** @type {ExperimentView} */
export const experiment = {
  id: 'initialisation',
  main: ['n_layers', 'activation', 'n_inputs', 'width'],
  finding,
  pictures,
};

/** @param {Result} result */
function finding({ arrays }) {
  const layers = arrays.layer.data.length - 1;
  const [unit, small, xavier, kaiming] = arrays.deviation.data.map(numbersIn);
  const second = layers > 1 ? ` and ${rough(unit[2])} after the second` : '';
  return (
    `With weights of deviation 1 the numbers are ${rough(unit[1])} after the first layer${second}; after ${counted(layers, 'layer')} they are ` +
    `${rough(unit[layers])}, with 0.01 ${rough(small[layers])}, with Xavier ${rough(xavier[layers])} and with Kaiming ${rough(kaiming[layers])}.`
  );
}

/** @param {Result} result @returns {Picture[]} */
function pictures({ arrays }) {
  const over = 'for four ways to draw the weights';
  /** @param {string} id @param {{title: string, help: string, up: string}} words */
  const picture = (id, words) =>
    layersPicture({ id, over, ...words }, arrays, (size) =>
      rowCurves(arrays.scheme, arrays[id], LOOKS, size),
    );
  return [
    picture('deviation', {
      title: 'The size of the numbers, layer by layer',
      help: 'Standard deviation of the numbers after each layer; layer 0 is the input.',
      up: 'deviation',
    }),
    picture('gradient', {
      title: 'The gradient, layer by layer',
      help: 'Root mean square of the gradient of the output by the numbers that enter each layer.',
      up: 'gradient',
    }),
  ];
}
