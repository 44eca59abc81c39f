"""The cost of capturing attention weights, against the bare forward pass.

    make bench

The passes run by turns and their processor time is taken, so that whatever else the machine does
hits all of them alike.
"""

import time
from collections.abc import Callable
from contextlib import nullcontext
from statistics import median
from timeit import repeat

import pytest
import torch

from headlight.model.checkpoint.loading import ZOO, load
from headlight.model.config import TransformerConfig
from headlight.model.hooks import HookPoint
from headlight.model.transformer import Transformer

N_TOKENS = 256
N_ROUNDS = {"stories": 20, "twelve": 3}
SITES = {
    "nothing": None,
    "one": "decoder.layers.1.self_attention.weights",
    "all": "decoder.layers.*.self_attention.weights",
}
TARGETS = {"one": 1.1, "all": 1.5}
SLACK = 1.3


def twelve():
    """GPT-2 small's twelve layers of twelve heads in 768 dimensions, with fewer words."""
    torch.manual_seed(0)
    config = TransformerConfig(
        n_layers=12, n_heads=12, d_model=768, d_ff=3072, vocab_size=4096, max_tokens=N_TOKENS
    )
    return Transformer(config).eval()


MODELS: dict[str, Callable[[], Transformer]] = {
    "stories": lambda: load(ZOO / "stories").model,
    "twelve": twelve,
}
NAMES = {"stories": "stories", "twelve": "12 × 12 heads of 64"}
WATCHED = {"one": "one layer", "all": "all layers"}


@pytest.mark.parametrize("name", MODELS)
def test_capturing_costs_little_beside_the_pass(table, name):
    model = MODELS[name]()
    ids = torch.randint(model.config.vocab_size, (1, N_TOKENS))
    times = measure(model, ids, N_ROUNDS[name])
    for what, target in TARGETS.items():
        ratio = times[what] / times["nothing"]
        figure = f"{1e3 * times[what]:.1f} ms, {ratio:.2f} × the fused forward pass"
        told = f"{NAMES[name]}, {N_TOKENS} tokens: weights of {WATCHED[what]}"
        table.add("Capture", told, figure, f"≤ {target} ×", ratio <= target)
        assert ratio <= SLACK * target


@torch.inference_mode()
def measure(model, ids, n_rounds):
    """Return the median processor seconds of a pass with nothing, one layer and all captured."""
    times: dict[str, list[float]] = {what: [] for what in SITES}
    for _ in range(n_rounds + 1):
        for what, site in SITES.items():
            began = time.process_time()
            with model.capture([site]) if site else nullcontext():
                model(ids)
            times[what].append(time.process_time() - began)
    return {what: median(taken[1:]) for what, taken in times.items()}


def test_an_idle_hook_point_takes_less_than_a_microsecond(table):
    point, tensor = HookPoint("batch query d_model", d_model=8), torch.zeros(1, 4, 8)
    seconds = min(repeat(lambda: point(tensor), number=20_000, repeat=20)) / 20_000
    table.add("Capture", "an idle hook point", f"{1e6 * seconds:.2f} µs", "< 1 µs", seconds < 1e-6)
    assert seconds < 2e-6
