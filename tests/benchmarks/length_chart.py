"""Measure one layer of attention by the length of the text, and draw it for the README.

    python -m tests.benchmarks.length_chart static/cost_by_length.svg

12 heads of 64, causal, float32, one thread; processor time, the least of the rounds. *Whole matrix*
writes scores and weights, as `output_attentions` needs them; *blocks* observes rows, maps and all
numbers of rows. The slope is that of a straight line through the last four points in log–log.
"""

import argparse
import math
import platform
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from headlight.model.attention.blockwise import blockwise_attention
from headlight.model.attention.kernels import attention_mask, attention_scores, attention_weights
from headlight.model.attention.observer import Watch, watching
from tests.benchmarks.test_long_texts import OBSERVED, layer, seconds

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 400, 70, 190, 30, 50
COLOURS = {"whole matrix": "#b3542c", "blocks": "#1f6feb", "SDPA": "#57606a"}
MOST_WHOLE = 4096


def measure(lengths, n_rounds):
    """Return the seconds by name and length."""
    taken = {name: {} for name in COLOURS}
    with torch.inference_mode(), watching(Watch(resolution=256, queries=(0,))):
        for n_tokens in lengths:
            (queries, keys, values), terms = layer(n_tokens)

            def whole(queries=queries, keys=keys, values=values):
                mask = attention_mask(len(queries[0, 0]), len(keys[0, 0]), is_causal=True)
                return attention_weights(attention_scores(queries, keys, mask)) @ values

            calls = {
                "SDPA": lambda q=queries, k=keys, v=values: F.scaled_dot_product_attention(
                    q, k, v, is_causal=True
                ),
                "blocks": lambda q=queries, k=keys, v=values, t=terms: blockwise_attention(
                    q, k, v, t, OBSERVED["everything"]
                ),
            }
            if n_tokens <= MOST_WHOLE:
                calls["whole matrix"] = whole
            for name, call in calls.items():
                taken[name][n_tokens] = min(seconds(call) for _ in range(n_rounds))
    return taken


def slope(by_length):
    """Return the slope of a straight line through the last four points."""
    points = sorted(by_length.items())[-4:]
    return float(np.polyfit(*np.log(np.array(points, dtype=float)).T, 1)[0])


def svg(taken):
    """Return the chart."""
    lengths = sorted({n for by_length in taken.values() for n in by_length})
    times = [s for by_length in taken.values() for s in by_length.values()]
    low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))

    def x(n):
        share = math.log(n / lengths[0]) / math.log(lengths[-1] / lengths[0])
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(s):
        return HEIGHT - BOTTOM - (math.log10(s) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    parts = [f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>']
    for power in range(low, high + 1):
        at = y(10**power)
        label = f"{10**power:g} s" if power >= 0 else f"{10 ** (power + 3):g} ms"
        parts.append(f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="#d0d7de"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{label}</text>')
    parts += [
        f'<text x="{x(n):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{n:,}</text>'
        for n in lengths
    ]
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">tokens</text>')
    for name, by_length in taken.items():
        points = [(x(n), y(s)) for n, s in sorted(by_length.items())]
        path = "L".join(f"{left:.1f} {top:.1f}" for left, top in points)
        colour = COLOURS[name]
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in points]
        left, top = points[-1]
        label = f"{name}: slope {slope(by_length):.2f}"
        place = f'x="{left + 9:.1f}" y="{top + 4:.1f}"'
        if max(by_length) < lengths[-1]:  # above its line, clear of those that go on
            place = f'x="{left - 6:.1f}" y="{top - 8:.1f}" text-anchor="end"'
        parts.append(f'<text {place} fill="{colour}">{label}</text>')
    title = "Processor time of one layer of 12 × 64 by the length of the text"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'font-family="sans-serif" font-size="12" fill="#24292f"><title>{title}</title>'
        + "\n".join(parts)
        + "</svg>\n"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--longest", type=int, default=16384)
    parser.add_argument("--rounds", type=int, default=2)
    chosen = parser.parse_args()
    n_doublings = int(math.log2(chosen.longest / 512))
    measured = measure([512 << number for number in range(n_doublings + 1)], chosen.rounds)
    chosen.file.write_text(svg(measured))
    for name, by_length in measured.items():
        shown = ", ".join(f"{n:,}: {s:.3f} s" for n, s in sorted(by_length.items()))
        print(f"{name} (slope {slope(by_length):.2f}): {shown}")  # noqa: T201
    print(f"torch {torch.__version__}, {platform.processor() or platform.machine()}")  # noqa: T201
