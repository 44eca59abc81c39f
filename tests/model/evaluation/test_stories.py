"""The figures of `stories`, measured at once, and bits per byte."""

import math
from collections.abc import Mapping

import pytest
import torch

from headlight.model.evaluation.minimal_pairs import MinimalPair
from headlight.model.evaluation.stories import bits_per_byte, evaluate
from headlight.model.training.corpus import CorpusError, TokenStream
from headlight.model.training.losses import token_losses

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


def test_every_figure_is_there_and_finite(figures):
    assert list(figures) == [
        "bits_per_byte",
        "nats_per_token",
        "tokens",
        "bytes",
        "previous_token_head",
        "induction_head",
        "copy_accuracy",
        "expert_load_entropy",
        "smallest_expert_share",
        "minimal_pairs",
        "minimal_pairs_by_paradigm",
    ]
    assert all(math.isfinite(number) for number in numbers(figures))
    assert set(figures["previous_token_head"]) == {"layer", "head", "weight"}
    assert set(figures["expert_load_entropy"]) == {"layer_1"}
    assert set(figures["smallest_expert_share"]) == {"layer_1"}
    assert set(figures["minimal_pairs_by_paradigm"]) == {"nouns", "verbs"}


def test_figures_are_those_of_the_single_measurements(checkpoint, figures):
    for name, value in bits_per_byte(checkpoint, DOCUMENTS).items():
        assert figures[name] == pytest.approx(value, abs=6e-5)
    by_paradigm = figures["minimal_pairs_by_paradigm"]
    assert figures["minimal_pairs"] == sum(by_paradigm.values()) / 2


def test_what_a_model_or_an_order_lacks_is_left_out(make_checkpoint):
    figures = evaluate(make_checkpoint(moe=None), DOCUMENTS, [])
    assert not any("expert" in name or "pairs" in name for name in figures)


def test_a_text_shorter_than_a_context_is_rejected(checkpoint):
    with pytest.raises(CorpusError, match="at least 47"):
        evaluate(checkpoint, ["A tree.\n"], [])


# --- bits per byte --------------------------------------------------------------------------------


SHORT = ["The cat chased the mouse.\n"]
LONG = ["The quick brown fox — jumps over it.\n" * 6, "你好 🦊 zzz.\n", "A tree."]
CONTEXT = 48


def losses_of(checkpoint, ids):
    """The loss of every token of one text after the start token."""
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
    assert figures["nats_per_token"] == pytest.approx(math.log(300))
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
    assert figures["nats_per_token"] == pytest.approx(nats / len(ids), rel=1e-5)
