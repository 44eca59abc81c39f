import assert from 'node:assert/strict';
import { test } from 'node:test';
import { css, diverging, inkOn, levelOf, luminance, plotlyScale, sequential } from '../../static/js/core/colour.js';

/** OKLab lightness of bytes, computed the way back. */
function lightness(scale, level) {
  const [r, g, b] = [...scale.subarray(level * 3, level * 3 + 3)].map((byte) => {
    const c = byte / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return 0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s;
}

for (const theme of ['light', 'dark']) {
  test(`the ${theme} scale for weights climbs in even steps of lightness`, () => {
    const scale = sequential(theme);
    const from = lightness(scale, 0);
    const to = lightness(scale, 255);
    assert.ok(Math.abs(to - from) > 0.65, 'the ends are far apart');
    for (let level = 0; level < 256; level += 1) {
      const even = from + (to - from) * (level / 255);
      assert.ok(Math.abs(lightness(scale, level) - even) < 0.02, `level ${level}`);
    }
  });

  test(`the ${theme} scale for signed values is symmetric about zero`, () => {
    const scale = diverging(theme);
    for (let step = 0; step < 128; step += 1) {
      assert.ok(Math.abs(lightness(scale, step) - lightness(scale, 255 - step)) < 0.03, `level ${step}`);
    }
  });

  test(`every level of the ${theme} scales takes text of contrast 4.5 or more`, () => {
    for (const scale of [sequential(theme), diverging(theme)]) {
      for (let level = 0; level < 256; level += 1) {
        const ground = luminance(scale.subarray(level * 3, level * 3 + 3));
        const ink = inkOn(scale, level) === '#000' ? 0 : 1;
        const contrast = (Math.max(ground, ink) + 0.05) / (Math.min(ground, ink) + 0.05);
        assert.ok(contrast >= 4.5, `level ${level}: ${contrast.toFixed(2)}`);
      }
    }
  });
}

test('values find their level, and none falls off the scale', () => {
  assert.equal(levelOf(0, 1), 0);
  assert.equal(levelOf(1, 1), 255);
  assert.equal(levelOf(0.25, 0.5), 128);
  assert.equal(levelOf(2, 1), 255);
  assert.equal(levelOf(0.5, 0), 0);
});

test('the plot and the canvas agree on colour', () => {
  const scale = sequential('dark');
  for (const [position, colour] of plotlyScale(scale)) assert.equal(colour, css(scale, Math.round(position * 255)));
});
