"""The time and the memory of one cell's score by parts, against a forward pass of 200 tokens.

    make bench

The models are random, in the shapes of a model of 30 layers of 9 heads and of one of 32 × 32 heads.
"""

import time
from statistics import median

import pytest
import torch

from headlight.model.analysis.score_attribution import Cell, read_for, score_parts
from headlight.model.checkpoint.card import ModelCard
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.checkpoint.loading import ZOO, load
from headlight.model.config import TransformerConfig
from headlight.model.description import Description
from headlight.model.trace import AttentionFacts, Token, Trace
from headlight.model.transformer import Transformer

N_TOKENS, N_ROUNDS = 200, 3
SHAPES = {
    "30 × 9 heads of 64": {
        "n_layers": 30,
        "n_heads": 9,
        "n_kv_heads": 3,
        "d_model": 576,
        "d_ff": 1536,
    },
    "32 × 32 heads of 32": {"n_layers": 32, "n_heads": 32, "d_model": 1024, "d_ff": 2816},
}
MOST_PASSES = 1.0
MOST_MEGABYTES = 1_056 * N_TOKENS * 128 * 4 / 1e6
"""The parts × tokens × d_head of 32 × 32 heads of 128."""


def made(shape):
    """Return a random model with its metadata, and a text of random tokens."""
    torch.manual_seed(0)
    config = TransformerConfig(
        **shape, vocab_size=4096, max_tokens=N_TOKENS, positional="rotary", norm="rms_norm"
    )
    model = Transformer(config).eval()
    facts = tuple(
        AttentionFacts(
            path=f"decoder.layers.{layer}.self_attention",
            n_heads=config.n_heads,
            n_groups=config.n_groups,
            is_causal=True,
            scale=config.d_head**-0.5,
        )
        for layer in range(config.n_layers)
    )
    description = Description(
        id="random", config=config, card=ModelCard(title="random", licence="none"), revision="",
        n_parameters=0, sites=tuple(model.sites), attentions=facts,
    )  # fmt: skip
    tokenizer = load(ZOO / "stories").tokenizer
    tokens = tuple(
        Token(id=int(each), text="a", start=at, end=at + 1, word=at, is_special=False)
        for at, each in enumerate(torch.randint(4096, (N_TOKENS,)))
    )
    text = Trace(
        model="random", revision="", precision="float32", text="a" * N_TOKENS, tokens=tokens,
        tensors={},
    )  # fmt: skip
    return Checkpoint(model=model, tokenizer=tokenizer, description=description), text


@pytest.mark.parametrize("name", SHAPES)
def test_one_cell_costs_at_most_one_more_pass(table, name):
    model, text = made(SHAPES[name])
    path = f"decoder.layers.{SHAPES[name]['n_layers'] - 1}.self_attention"
    cell = Cell(path=path, head=0, query=N_TOKENS - 1, key=3)
    ids = [[token.id for token in text.tokens]]
    read = read_for(model, text, path, cell.query)
    times = {"pass": [], "parts": []}
    for _ in range(N_ROUNDS):
        for what, work in {
            "pass": lambda: model.read(ids, None, sites=["logits"]),
            "parts": lambda: score_parts(model, read, cell),
        }.items():
            start = time.process_time()
            work()
            times[what].append(time.process_time() - start)
    parts = score_parts(model, read, cell)
    ratio = median(times["parts"]) / median(times["pass"])
    kept = sum(array.data.nbytes for array in read.tensors.values()) / 1e6
    told = f"{name}, {N_TOKENS} tokens: one cell by {len(parts.key_parts)} parts"
    figure = f"{ratio:.2f} × a pass, and {kept:.0f} MB kept of the pass"
    target = f"≤ {MOST_PASSES} ×, {MOST_MEGABYTES:.0f} MB"
    is_met = ratio <= MOST_PASSES and kept <= MOST_MEGABYTES
    table.add("Score attribution", told, figure, target, is_met)
