/** The formulas of a derivation, in letters and in the numbers of its cell. */

import { decimal as written, share } from '../../words/numbers.js';
import { name, number, op, over, power, root, row, sub, under, words } from '../../ui/formula.js';
import { hiddenReason, lengthOf } from './derivation.js';

/** @import { Term } from '../../ui/formula.js' */

const q = () => name('q', 'query');
const k = () => name('k', 'key');
const s = () => name('s');
const d = () => name('d');
/** @param {number} value */
const amount = (value) => number(written(value));
/** A weight is written 0 or 1 only if it is exactly that. @param {number} value */
const weight = (value) => number(value > 0 && value < 1e-4 ? written(value, 4) : share(value, 4));
/** @param {Term} term @returns {Term} */
const result = (term) => ({ ...term, role: 'result' });
/** @param {string} index */
const sum = (index) => under(op('∑'), name(index));
/** Return a number with a preceding sign. @param {number} value */
const plus = (value) => [op(value < 0 ? '−' : '+'), amount(Math.abs(value))];

/** @param {Derivation} derivation @returns {Term[]} */
export function turnFormula({ query, key, terms }) {
  /** @param {number} position */
  const angle = (position) =>
    over(number(position), power(number('10000'), row(number('2'), name('i'), '/', d())));
  /** @param {() => Term} letter @param {number} index */
  const turn = (letter, index) =>
    row(
      sub(letter(), words('rotated')),
      '=',
      sub(name('R'), name('θ')),
      letter(),
      ...(terms.isForeign
        ? []
        : [words(',\u00a0\u00a0'), sub(name('θ'), name('i')), '=', angle(index)]),
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

/** Return the first terms of a sum, as many as fit on a line. @param {Float64Array} products */
function firstTerms(products) {
  const [first, second, ...others] = products;
  return [
    amount(first),
    ...(second === undefined ? [] : plus(second)),
    ...(others.length > 0 ? [op('+'), op('…')] : []),
  ];
}

/** @param {Derivation} derivation @returns {Term[]} */
export function scoreFormula(derivation) {
  const { temperature, isHidden, key, row: of } = derivation;
  const { scaled: products, biases, scores } = of;
  const { softcap } = derivation.terms;
  const isTempered = temperature !== 1;
  // The temperature divides a sum in brackets, and a product with its scale.
  const isSum = biases !== null || softcap !== null;
  const within = isTempered && !isSum;
  const [letters, numbers] = scaledTerms(derivation, within);
  /** @param {Term} term @param {Term} cap */
  const held = (term, cap) =>
    softcap === null ? [term] : [cap, words('\u00a0tanh'), '(', over(term, cap), ')'];
  /** @param {(Term|string)[]} parts @param {Term} value */
  const tempered = (parts, value) =>
    isTempered && isSum ? [over(number(1), value), '(', ...parts, ')'] : parts;
  const x = name('x');
  const hidden = row(
    s(),
    '=',
    result(amount(-Infinity)),
    words(`\u00a0\u00a0hidden: ${hiddenReason(derivation, key)}`),
  );
  const first =
    softcap === null
      ? []
      : [
          row(x, '=', letters),
          ...(isHidden ? [] : [row('=', numbers, '=', amount(products[key]))]),
        ];
  const score = row(
    s(),
    '=',
    ...tempered(
      [...held(softcap === null ? letters : x, name('C')), ...(biases ? ['+', name('b')] : [])],
      name('T'),
    ),
  );
  if (isHidden) return [...first, score, hidden];
  const made = [
    ...held(softcap === null ? numbers : amount(products[key]), amount(softcap ?? 0)),
    ...(biases ? plus(biases[key]) : []),
  ];
  return [
    ...first,
    score,
    row('=', ...tempered(made, number(temperature)), '=', result(amount(scores[key]))),
  ];
}

/**
 * Return the product with its scale, in letters and in numbers.
 * @param {Derivation} derivation
 * @param {boolean} isTempered whether the temperature divides it, too
 * @returns {[Term, Term]}
 */
function scaledTerms({ divisor, isRoot, temperature, met, key, row: { products } }, isTempered) {
  /** @param {Term} product @param {Term[]} divisors */
  const divided = (product, divisors) =>
    divisors.length > 0
      ? over(product, row(...divisors.flatMap((term, at) => (at > 0 ? ['·', term] : [term]))))
      : product;
  /** @param {Term} given @param {Term} width @param {Term} value */
  const divisors = (given, width, value) => [
    ...(isTempered ? [value] : []),
    ...(divisor === 1 ? [] : [isRoot ? root(width) : given]),
  ];
  return [
    divided(row(q(), '·', k()), divisors(name('c'), d(), name('T'))),
    divided(
      amount(products[key]),
      divisors(number(written(divisor, 4)), number(met.key.length), number(temperature)),
    ),
  ];
}

/** @param {Derivation} derivation @returns {Term[]} */
export function softmaxFormula({
  key,
  terms: { sink },
  row: { scores, greatest, powers, total, weights },
}) {
  /** @param {Term} score */
  const letters = (score) => power(name('e'), row(score, '−', sub(s(), words('max'))));
  const exponent =
    scores[key] === -Infinity ? amount(-Infinity) : row(amount(scores[key]), ...plus(-greatest));
  const sinks = sink === null ? [] : ['+', letters(sub(s(), words('sink')))];
  return [
    row(name('a'), '=', over(letters(s()), row(sum('j'), letters(sub(s(), name('j'))), ...sinks))),
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

/** @param {Derivation} derivation @returns {Term[]} */
export function valueFormula({ key, value, weighted, row: { weights } }) {
  /** @param {...Term} parts */
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

/** @param {{head: ArrayLike<number>, whole: ArrayLike<number>, share: number}} part @param {number} index @returns {Term[]} */
export function outputFormula({ head, whole, share: given }, index) {
  /** @param {Term} letter */
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
