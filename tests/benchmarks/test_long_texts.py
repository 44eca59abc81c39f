"""The cost of observing attention block by block, against PyTorch's fused kernel in the same run.

    make bench

    HEADLIGHT_LONG=32768 make bench    # longer, too, and a whole book

The kernel and the blocks run by turns, and their processor time is taken. Memory is the greatest
that the process had (VmHWM), in a new process for each length. The default lengths take two
minutes, 32,768 six more.

Rows of 4,096 tokens are two products (62 % of their time), `exp` (25 %) and the sum of a row (2 %):
the blocks take 1.3 times the fused kernel before anything is observed, and rows 0.02 more. Bins and
maxima of maps add 0.2, entropy and distance, which read the scores again, 0.35.
"""

import math
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import pytest
import torch
import torch.nn.functional as F

from headlight.model.attention.blockwise import blockwise_attention
from headlight.model.attention.observer import MAPS, ROWS, STATISTICS, Watch, watching
from headlight.model.attention.scores import ScoreTerms
from headlight.model.checkpoint.loading import load
from headlight.model.config import TransformerConfig
from headlight.model.transformer import Transformer

LENGTHS = [4096, 16384, *map(int, filter(None, os.environ.get("HEADLIGHT_LONG", "").split(",")))]
BOOK = 30_000
OBSERVED = {"rows": (ROWS,), "maps": (ROWS, *MAPS), "everything": (ROWS, *MAPS, *STATISTICS)}
TARGETS = {"rows": 1.35, "maps": 1.6, "everything": 2.3}
MEGABYTES = {4096: 60, 16384: 180, 32768: 320}
MODEL_TARGETS = {4096: 1.45, 8192: 1.7}
BOOK_TARGET = 1.6
SLACK = 2.0
N_ROUNDS = 5


def seconds(work):
    """Return the processor time of a call."""
    began = time.thread_time()
    work()
    return time.thread_time() - began


class Peak:
    """The memory of this process at its greatest inside the block, beyond that before it."""

    def __enter__(self):
        Path("/proc/self/clear_refs").write_text("5")  # the greatest is that of now
        self.before = greatest_memory()
        return self

    def __exit__(self, *error):
        self.megabytes = (greatest_memory() - self.before) / 1024


def greatest_memory():
    """Return VmHWM in kB."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def layer(n_tokens, n_heads=12):
    torch.set_num_threads(1)
    return torch.randn(3, 1, n_heads, n_tokens, 64), ScoreTerms(scale=1 / 8, is_causal=True)


def memory_of(n_tokens):
    """Return the megabytes that everything of a layer adds to a new process."""
    module = "tests.benchmarks.test_long_texts"
    program = f"import {module} as m; print(m.measured_memory({n_tokens}))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    return float(run.stdout)


def measured_memory(n_tokens):
    (queries, keys, values), terms = layer(n_tokens)
    watch = Watch(resolution=256, queries=(0, n_tokens // 2, n_tokens - 1))
    with torch.inference_mode(), watching(watch):
        blockwise_attention(queries[..., :64, :], keys[..., :64, :], values[..., :64, :], terms)
        with Peak() as peak:
            blockwise_attention(queries, keys, values, terms, OBSERVED["everything"])
    return peak.megabytes


@pytest.mark.parametrize("n_tokens", LENGTHS)
def test_one_layer(table, n_tokens):
    (queries, keys, values), terms = layer(n_tokens)
    watch = Watch(resolution=256, queries=(0, n_tokens // 2, n_tokens - 1))

    def stream(names):
        with watching(watch):
            return blockwise_attention(queries, keys, values, terms, names)

    def fused():
        return F.scaled_dot_product_attention(queries, keys, values, is_causal=True)

    with torch.inference_mode():
        torch.testing.assert_close(stream(())[0], fused(), atol=1e-5, rtol=1e-4)
        taken = {name: [] for name in ("fused", *OBSERVED)}
        for _ in range(N_ROUNDS if n_tokens <= 4096 else 1):
            taken["fused"].append(seconds(fused))
            for name, names in OBSERVED.items():
                taken[name].append(seconds(lambda names=names: stream(names)))
    section, bare = "Long texts", median(taken["fused"])
    for name, target in TARGETS.items():
        ratio = median(taken[name]) / bare
        what = f"one layer of 12 × 64, {n_tokens:,} tokens, {name}"
        table.add(section, what, f"{ratio:.2f} × the kernel", f"≤ {target} ×", ratio <= target)
        assert ratio <= SLACK * target
    if limit := MEGABYTES.get(n_tokens):
        what = f"one layer of 12 × 64, {n_tokens:,} tokens, everything: more memory"
        megabytes = memory_of(n_tokens)
        table.add(section, what, f"{megabytes:.0f} MB", f"≤ {limit} MB", megabytes <= limit)


def test_the_cost_grows_with_the_square_of_the_length(table):
    torch.set_num_threads(1)
    terms, names = ScoreTerms(scale=1 / 8, is_causal=True), OBSERVED["everything"]
    lengths, taken = (512, 1024, 2048, 4096), []
    with torch.inference_mode(), watching(Watch()):
        for n_tokens in lengths:
            inputs = torch.randn(3, 1, 4, n_tokens, 64)
            run = [
                seconds(lambda i=inputs: blockwise_attention(*i, terms, names)) for _ in range(3)
            ]
            taken.append(min(run))
    slope = math.log(taken[-1] / taken[1]) / math.log(lengths[-1] / lengths[1])
    shown = ", ".join(f"{n:,}: {s:.3f} s" for n, s in zip(lengths, taken, strict=True))
    table.add(
        "Long texts", f"cost by length ({shown})", f"slope {slope:.2f}", "≤ 2.2", slope <= 2.2
    )
    assert slope <= 3


@pytest.mark.parametrize("n_tokens", MODEL_TARGETS)
def test_twelve_layers(table, n_tokens):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = TransformerConfig(
        n_layers=12, n_heads=12, d_model=768, d_ff=3072, vocab_size=4096, max_tokens=n_tokens
    )
    model, ids = Transformer(config).eval(), torch.zeros(1, n_tokens, dtype=torch.int64)
    sites = [
        f"decoder.layers.{layer}.self_attention.{name}"
        for layer in range(12)
        for name in (*STATISTICS, *MAPS, ROWS)
    ]

    def observe():
        with watching(Watch(resolution=128, queries=(9,))), model.capture_sites(sites) as captured:
            model(ids, has_logits=False)
        assert len(captured) == len(sites)

    with torch.inference_mode():
        model(ids[:, :64], has_logits=False)
        with Peak() as plain:
            bare = seconds(lambda: model(ids, has_logits=False))
        with Peak() as peak:
            taken = seconds(observe)
    ratio, more, target = taken / bare, peak.megabytes - plain.megabytes, MODEL_TARGETS[n_tokens]
    what = f"12 × 12 heads of 64, {n_tokens:,} tokens, everything of every layer"
    table.add("Long texts", what, f"{ratio:.2f} × the pass", f"≤ {target} ×", ratio <= target)
    table.add("Long texts", f"{what}: memory", f"{more:+.0f} MB", "≤ 200 MB", more <= 200)
    assert ratio <= SLACK * target


@pytest.mark.skipif(max(LENGTHS) < BOOK, reason="takes minutes: HEADLIGHT_LONG=32768")
def test_the_overview_of_a_book(table):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = load("stories").model
    ids = torch.randint(5, model.config.vocab_size, (1, BOOK))
    sites = [
        f"decoder.layers.{layer}.self_attention.{name}"
        for layer in range(model.config.n_layers)
        for name in MAPS
    ]

    def overview():
        with watching(Watch(resolution=256, keeps=True)), model.capture_sites(sites) as captured:
            model(ids, has_logits=False)
        assert len(captured) == len(sites)

    with torch.inference_mode():
        model(ids[:, :64], has_logits=False)
        bare = seconds(lambda: model(ids, has_logits=False))
        taken = seconds(overview)
    ratio = taken / bare
    what = f"stories, {BOOK:,} tokens, maps of every head"
    figure = f"{ratio:.2f} × the pass of {bare:.0f} s"
    table.add("Long texts", what, figure, f"≤ {BOOK_TARGET} ×", ratio <= BOOK_TARGET)
    assert ratio <= SLACK * BOOK_TARGET


def test_a_tile(table):
    torch.set_num_threads(1)
    queries, keys, values = torch.randn(3, 1, 2, 16384, 64)
    watch = Watch(keeps=True)
    terms = ScoreTerms(scale=1 / 8, is_causal=True)
    with torch.inference_mode(), watching(watch):
        blockwise_attention(
            queries[:, :, :4096], keys[:, :, :4096], values[:, :, :4096], terms, path="a"
        )
    kept = watch.kept["a"]
    taken = [seconds(lambda: kept.tile(1, (3000, 3512), (100, 612), 512)) for _ in range(5)]
    milliseconds = 1e3 * median(taken)
    table.add(
        "Long texts", "a tile of 512 × 512", f"{milliseconds:.1f} ms", "≤ 50 ms", milliseconds <= 50
    )
    assert milliseconds <= 500
