/** How weights are drawn: the size of numbers and gradients by layer. */

import { numbersIn } from '../../rules/experiment.js';
import { counted } from '../../words/lists.js';
import { decimal, grouped } from '../../words/numbers.js';
import { layersPicture, rowCurves, warm } from '../../plot/curves.js';

/**
 * @import { Arrays, ExperimentView, Picture, Result } from '../../rules/experiment.js'
 * @import { Curve } from '../../plot/curves.js'
 * @import { Size } from '../../plot/map.js'
 */

/** @type {Record<string, string>} */
const NAMES = { unit: 'deviation 1', small: '0.01', xavier: 'Xavier', kaiming: 'Kaiming' };

/** @type {ExperimentView} */
export const experiment = {
  id: 'initialisation',
  main: ['n_layers', 'activation', 'n_inputs', 'width'],
  finding,
  pictures,
};

/** @param {number} value @returns {string} */
function sizeOf(value) {
  return value >= 100 ? grouped(Number(value.toPrecision(3))) : decimal(value, 2);
}

/** @param {Result} result */
function finding({ arrays }) {
  const layers = arrays.layer.data.length - 1;
  const [unit, small, xavier, kaiming] = arrays.deviation.data.map(numbersIn);
  const second = layers > 1 ? ` and ${sizeOf(unit[2])} after the second` : '';
  return (
    `With weights of deviation 1 the numbers are ${sizeOf(unit[1])} after the first layer${second}; after ${counted(layers, 'layer')} they are ` +
    `${sizeOf(unit[layers])}, with 0.01 ${sizeOf(small[layers])}, with Xavier ${sizeOf(xavier[layers])} and with Kaiming ${sizeOf(kaiming[layers])}.`
  );
}

/** @param {Result} result @returns {Picture[]} */
function pictures({ arrays }) {
  const over = 'for four ways to draw the weights';
  /** @param {string} id @param {{title: string, help: string, up: string}} words */
  const picture = (id, words) =>
    layersPicture({ id, over, ...words }, arrays, (size) => curvesOf(arrays, id, size));
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

/** @param {Arrays} arrays @param {string} name @param {Size} size @returns {Curve[]} */
function curvesOf(arrays, name, { palette }) {
  /** @type {Record<string, Partial<Curve>>} */
  const looks = {
    unit: { colour: palette.ink },
    small: { colour: palette.muted, dash: 'dot' },
    xavier: { colour: palette.query },
    kaiming: { colour: warm(palette), width: 3 },
  };
  return rowCurves(arrays.scheme, arrays[name], NAMES, looks);
}
