import { deepEqual, equal } from 'node:assert/strict';
import { test } from 'node:test';
import '../browser.js';
import {
  formulaLines,
  name,
  number,
  op,
  over,
  power,
  root,
  row,
  spoken,
  spokenPowers,
  sub,
  under,
  words,
} from '../../../static/js/ui/formula.js';

test('a formula is written out for screen readers', () => {
  const formula = row(
    name('s'),
    '=',
    over(row(name('q'), '·', name('k')), root(name('d'))),
    '=',
    number('−1.5'),
  );
  equal(spoken(formula), 's equals q times k over the square root of d equals minus 1.5');
  equal(spoken(power(name('e'), sub(name('s'), name('j')))), 'e to the power of s j');
  equal(spoken(row(under(op('∑'), name('i')), words(' of all'))), 'the sum of over i of all');
  equal(spoken(number('−∞')), 'minus infinity');
});

test('the powers of a text are read out', () => {
  equal(
    spokenPowers('e^{−0.5} / 2, e^{3}'),
    'e to the power of minus 0.5 / 2, e to the power of 3',
  );
  equal(spokenPowers('√2: 0.667.'), '√2: 0.667.');
});

test('a formula is drawn as MathML, with words for who does not see it', () => {
  const [line] = formulaLines([row(name('q'), '·', name('k', 'query'))]);
  equal(line.className, 'formula');
  const [math] = line.children;
  deepEqual([math.tagName.toLowerCase(), math.getAttribute('display')], ['math', 'block']);
  equal(math.getAttribute('aria-label'), 'q times k');
  equal(math.textContent, 'q·k');
});
