"""How long the Attention view takes: bounds are generous, the figures stand in the report."""

import statistics

import pytest

PAINT = """async () => {
  const { createHeads } = await import('/static/js/ui/heads.js');
  const [layers, heads, count] = [12, 12, 128];
  const tensors = {};
  for (let layer = 0; layer < layers; layer += 1) {
    const data = new Float32Array(heads * count * count);
    for (let at = 0; at < data.length; at += 1) {
      const [row, column] = [Math.floor(at / count) % count, at % count];
      data[at] = column > row ? 0 : 1 / (row + 1);
    }
    const shape = [heads, count, count];
    tensors[`decoder.layers.${layer}.self_attention.weights`] = { shape, data, scale: 1 };
  }
  const trace = () => ({ tensors, analyses: {}, target_tokens: null });
  const times = [];
  for (let turn = 0; turn < 7; turn += 1) {
    const heads = createHeads({ onChoose: () => {} });
    document.body.append(heads.element);
    const palette = { theme: turn % 2 ? 'dark' : 'light' };
    const state = { where: '', layer: 0, head: 0, range: 'one', order: 'layer', palette };
    const start = performance.now();
    heads.show(trace(), { ...state, width: 560 });
    const built = performance.now();
    heads.show(trace(), { ...state, width: 561 });
    times.push({ built: built - start, again: performance.now() - built });
    const canvas = heads.element.querySelector('canvas');
    if (canvas.width < 500) throw new Error(`the canvas is ${canvas.width} pixels wide`);
    heads.element.remove();
  }
  return times;
}"""

HOVER = """async () => {
  const plot = document.querySelector('.view:not([hidden]) .plot');
  const pane = plot.querySelector('.nsewdrag[data-subplot="xy"]').getBoundingClientRect();
  const times = [];
  for (let step = 0; step < 40; step += 1) {
    const clientX = pane.x + ((step * 7) % 40 + 0.5) * pane.width / 41;
    const clientY = pane.y + (step + 0.5) * pane.height / 41;
    const where = { clientX, clientY, bubbles: true, pointerType: 'mouse' };
    await new Promise((done) => requestAnimationFrame(done));
    const start = performance.now();
    plot.dispatchEvent(new PointerEvent('pointermove', where));
    document.body.getBoundingClientRect();
    times.push(performance.now() - start);
  }
  return times;
}"""


@pytest.fixture
def report(record_property):
    def note(name, milliseconds):
        record_property(name, round(milliseconds, 1))

    return note


def test_144_heads_of_128_tokens_are_painted_in_under_100_ms(reader, report):
    reader.open()
    times = reader.page.evaluate(PAINT)
    first = statistics.median(time["built"] for time in times)
    again = statistics.median(time["again"] for time in times)
    report("144 heads built and painted", first)
    report("144 heads painted again", again)
    assert min(time["again"] for time in times) < 100
    assert min(time["built"] for time in times) < 200


@pytest.mark.parametrize("drawn", [{}, {"attention_words": 1}, {"attention_as": "lines"}])
def test_pointing_into_256_tokens_answers_in_under_50_ms(reader, report, drawn):
    text = "the cat and the dog " * 51
    reader.open(text=text[: len(text) - 5], layer=0, head=0, **drawn)
    assert len(reader.chips) > 240
    times = reader.page.evaluate(HOVER)
    assert reader.tip() != "" or "attention_as" in drawn
    report(f"hover {drawn or 'matrix'}, median", statistics.median(times))
    report(f"hover {drawn or 'matrix'}, worst", max(times))
    assert statistics.median(times) < 50
