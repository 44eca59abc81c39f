/**
 * The steps of a derivation as formulas: in letters, then with the numbers of one cell.
 */

import { name, number, op, over, power, root, row, sub, under, words } from './formula.js';
import { decimal as written, share } from './number.js';

/** @typedef {import('./derivation.js').Derivation} Derivation */
/** @typedef {import('./formula.js').Term} Term */

const q = () => name('q', 'query');
const k = () => name('k', 'key');
const s = () => name('s');
const d = () => name('d');
const amount = (value) => number(written(value));
/** A weight is 0 or 1 only where it is exactly that. */
const weight = (value) => number(value > 0 && value < 1e-4 ? written(value, 4) : share(value, 4));
const result = (term) => ({ ...term, role: 'result' });
const sum = (index) => under(op('∑'), name(index));
/** A number that stands after a sign of its own. */
const plus = (value) => [op(value < 0 ? '−' : '+'), amount(Math.abs(value))];

/** @param {Derivation} derivation @returns {Term[]} */
export function turnFormula({ query, key, projected }) {
  const angle = (position) =>
    over(number(position), power(number('10000'), row(number('2'), name('i'), '/', d())));
  const turn = (letter, index) =>
    row(
      sub(letter(), words('turned')),
      '=',
      sub(name('R'), name('θ')),
      letter(),
      words(',\u00a0\u00a0'),
      sub(name('θ'), name('i')),
      '=',
      angle(index),
    );
  return [turn(q, query), turn(k, key)];
}

/** @param {Derivation} derivation @returns {Term[]} */
export function productFormula({ products, row: { products: all }, key }) {
  return [
    row(q(), '·', k(), '=', sum('i'), sub(q(), name('i')), sub(k(), name('i'))),
    row('=', ...firstTerms(products), '=', result(amount(all[key]))),
  ];
}

/** The sum as far as it fits on a line. */
function firstTerms(products) {
  const [first, second, ...others] = products;
  return [
    amount(first),
    ...(second === undefined ? [] : plus(second)),
    ...(others.length > 0 ? [op('+'), op('…')] : []),
  ];
}

/** @param {Derivation} derivation @returns {Term[]} */
export function scoreFormula({
  divisor,
  temperature,
  isHidden,
  met,
  key,
  row: { products, biases, scores },
}) {
  const isTempered = temperature !== 1;
  const scaled = (product, ...divisors) =>
    divisors.length > 0 ? over(product, row(...divisors)) : product;
  const divisors = (width, value) => [
    ...(isTempered && !biases ? [value] : []),
    ...(divisor === 1 ? [] : [root(width)]),
  ];
  const biased = (terms, value) =>
    isTempered && biases ? [over(number(1), value), '(', ...terms, ')'] : terms;
  const letters = [
    scaled(row(q(), '·', k()), ...divisors(d(), name('T'))),
    ...(biases ? ['+', name('b')] : []),
  ];
  const lines = [row(s(), '=', ...biased(letters, name('T')))];
  if (isHidden)
    return [
      ...lines,
      row(s(), '=', result(amount(-Infinity)), words('\u00a0\u00a0hidden: comes later')),
    ];
  const multiplied = divisors(number(met.key.length), number(temperature)).flatMap((term, at) =>
    at > 0 ? ['·', term] : [term],
  );
  const numbers = [
    scaled(amount(products[key]), ...multiplied),
    ...(biases ? plus(biases[key]) : []),
  ];
  return [
    ...lines,
    row('=', ...biased(numbers, number(temperature)), '=', result(amount(scores[key]))),
  ];
}

/** @param {Derivation} derivation @returns {Term[]} */
export function softmaxFormula({ key, row: { scores, greatest, powers, total, weights } }) {
  const letters = (score) => power(name('e'), row(score, '−', sub(s(), words('max'))));
  const exponent =
    scores[key] === -Infinity ? amount(-Infinity) : row(amount(scores[key]), ...plus(-greatest));
  return [
    row(name('a'), '=', over(letters(s()), row(sum('j'), letters(sub(s(), name('j')))))),
    row(
      '=',
      over(power(name('e'), exponent), amount(total)),
      '=',
      over(weight(powers[key]), amount(total)),
      '=',
      result(weight(weights[key])),
    ),
  ];
}

/** @param {Derivation} derivation @param {(vector: ArrayLike<number>) => number} lengthOf @returns {Term[]} */
export function valueFormula({ key, value, weighted, row: { weights } }, lengthOf) {
  const size = (...parts) => row('‖', ...parts, '‖');
  const v = () => name('v');
  return [
    row(name('z'), '=', sum('j'), sub(name('a'), name('j')), sub(v(), name('j'))),
    row(
      size(name('a'), v()),
      '=',
      weight(weights[key]),
      '×',
      amount(lengthOf(value)),
      '=',
      result(amount(lengthOf(weighted))),
    ),
  ];
}

/** @param {{head: ArrayLike<number>, whole: ArrayLike<number>, share: number}} part @param {number} head @param {(vector: ArrayLike<number>) => number} lengthOf @returns {Term[]} */
export function outputFormula({ head, whole, share: given }, index, lengthOf) {
  const z = (letter) =>
    row(sub(name('z'), letter), sub(name('W'), row(words('O'), words(','), letter)));
  return [
    row(name('o'), '=', sum('h'), z(name('h'))),
    row(
      over(row(z(number(index)), '·', name('o')), power(row('‖', name('o'), '‖'), number('2'))),
      '=',
      result(amount(given)),
    ),
    row(
      '‖',
      z(number(index)),
      '‖',
      '=',
      amount(lengthOf(head)),
      words('\u00a0of\u00a0'),
      '‖',
      name('o'),
      '‖',
      '=',
      amount(lengthOf(whole)),
    ),
  ];
}
