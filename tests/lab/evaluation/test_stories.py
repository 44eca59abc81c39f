"""The figures of `stories`, measured at once, and bits per byte."""

import math
import re
from collections.abc import Mapping

import pytest
import torch

from headlight.lab.evaluation import stories
from headlight.lab.evaluation.minimal_pairs import MinimalPair
from headlight.lab.evaluation.stories import (
    OPENINGS,
    PAGE_SAMPLING,
    bits_per_byte,
    continuations,
    evaluate,
)
from headlight.lab.training.losses import token_losses
from headlight.model.corpus import TokenStream, read_lines
from headlight.static_files import STATIC

DOCUMENTS = ["The quick brown fox jumps over the lazy dog, zigzag.\n" * 5, "A tree.\n"]
PAIRS = [
    MinimalPair("verbs", "The cats chase it.", "The cats chases it."),
    MinimalPair("nouns", "A tree.", "A trees."),
]


def numbers(figures):
    for value in figures.values():
        yield from numbers(value) if isinstance(value, Mapping) else [value]


@pytest.fixture(scope="module")
def figures(checkpoint):
    return evaluate(checkpoint, DOCUMENTS, PAIRS)


def test_figures_are_those_of_the_single_measurements(checkpoint, figures):
    for name, value in bits_per_byte(checkpoint, DOCUMENTS).items():
        assert figures[name] == pytest.approx(value, abs=6e-5)
    by_paradigm = figures["minimal_pairs_by_paradigm"]
    assert figures["minimal_pairs"] == sum(by_paradigm.values()) / 2


# --- bits per byte --------------------------------------------------------------------------------


SHORT = ["The cat chased the mouse.\n"]
LONG = ["The quick brown fox — jumps over it.\n" * 6, "你好 🦊 zzz.\n", "A tree."]
CONTEXT = 48


def losses_of(checkpoint, ids):
    """Return the loss of every token of one text after the start token."""
    row = torch.cat([torch.tensor([checkpoint.tokenizer.start_id]), ids])[None]
    with torch.inference_mode():
        return token_losses(checkpoint.model(row[:, :-1]).logits, row[:, 1:])[0]


@pytest.mark.parametrize("documents", [SHORT, LONG])
def test_a_model_that_knows_nothing_needs_the_log_of_the_vocabulary_for_each_token(
    checkpoint, documents
):
    with checkpoint.model.edit("logits", torch.zeros_like):
        figures = bits_per_byte(checkpoint, documents)
    n_tokens = len(TokenStream.encode(documents, checkpoint.tokenizer).ids)
    n_bytes = sum(len(document.encode()) for document in documents)
    assert figures["tokens"] == n_tokens
    assert figures["bytes"] == n_bytes
    assert figures["bits_per_token"] == pytest.approx(math.log2(300))
    assert figures["bits_per_byte"] == pytest.approx(n_tokens * math.log2(300) / n_bytes)


@pytest.mark.parametrize("batch_rows", [1, 16])
def test_the_window_slides_by_half_a_context(checkpoint, batch_rows):
    ids = TokenStream.encode(LONG, checkpoint.tokenizer).ids
    assert len(ids) > 3 * CONTEXT
    nats, n_predicted, start = 0.0, 0, 0
    while n_predicted < len(ids):
        start = min(start, len(ids) - CONTEXT)
        losses = losses_of(checkpoint, ids[start : start + CONTEXT])
        new = losses[n_predicted - start :]
        nats += new.sum().item()
        n_predicted += len(new)
        start += CONTEXT // 2
    figures = bits_per_byte(checkpoint, LONG, batch_rows=batch_rows)
    assert figures["bits_per_token"] == pytest.approx(nats / math.log(2) / len(ids), rel=1e-5)


def test_continuations_begin_with_the_settings_of_the_page(make_checkpoint, monkeypatch):
    monkeypatch.setattr(stories, "N_CONTINUED", 8)
    entries = (STATIC / "js/views/registry.js").read_text()
    standard = {
        name: float(value)
        for name, value in re.findall(r"generate_(\w+): number\({.*?standard: ([\d.]+)", entries)
    }

    assert PAGE_SAMPLING.temperature == standard["temperature"]
    assert PAGE_SAMPLING.top_p == standard["top_p"]
    assert standard["top_k"] == 0
    assert PAGE_SAMPLING.top_k is None
    checkpoint = make_checkpoint(moe=None, max_tokens=200)
    texts = continuations(checkpoint)
    assert list(texts) == read_lines(OPENINGS)
    assert texts == continuations(checkpoint)
    assert len(set(texts.values())) == len(texts) == 10
