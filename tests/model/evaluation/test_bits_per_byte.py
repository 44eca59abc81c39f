"""Compression of held-out text: every token once, with enough before it."""

import math

import pytest
import torch
from torch import Tensor

from headlight.model.checkpoint import Checkpoint
from headlight.model.evaluation.bits_per_byte import bits_per_byte
from headlight.model.training.corpus import TokenStream
from headlight.model.training.losses import token_losses

SHORT = ["The cat chased the mouse.\n"]
LONG = ["The quick brown fox — jumps over it.\n" * 6, "你好 🦊 zzz.\n", "A tree."]
CONTEXT = 48


def losses_of(checkpoint: Checkpoint, ids: Tensor) -> Tensor:
    """The loss of every token of one text after the start token."""
    row = torch.cat([torch.tensor([checkpoint.tokenizer.start_id]), ids])[None]
    with torch.inference_mode():
        return token_losses(checkpoint.model(row[:, :-1]).logits, row[:, 1:])[0]


@pytest.mark.parametrize("documents", [SHORT, LONG])
def test_a_model_that_knows_nothing_needs_the_log_of_the_vocabulary_for_each_token(
    checkpoint: Checkpoint, documents: list[str]
) -> None:
    with checkpoint.model.edit("logits", torch.zeros_like):
        figures = bits_per_byte(checkpoint, documents)
    n_tokens = len(TokenStream.encode(documents, checkpoint.tokenizer).ids)
    n_bytes = sum(len(document.encode()) for document in documents)
    assert figures["tokens"] == n_tokens
    assert figures["bytes"] == n_bytes
    assert figures["nats_per_token"] == pytest.approx(math.log(300))
    assert figures["bits_per_byte"] == pytest.approx(n_tokens * math.log2(300) / n_bytes)


def test_a_text_within_one_context_is_read_at_once(checkpoint: Checkpoint) -> None:
    ids = TokenStream.encode(SHORT, checkpoint.tokenizer).ids
    assert len(ids) <= CONTEXT
    expected = losses_of(checkpoint, ids).mean().item()
    assert bits_per_byte(checkpoint, SHORT)["nats_per_token"] == pytest.approx(expected)


@pytest.mark.parametrize("batch_rows", [1, 16])
def test_the_window_slides_by_half_a_context(checkpoint: Checkpoint, batch_rows: int) -> None:
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


def test_all_four_figures_agree(checkpoint: Checkpoint) -> None:
    figures = bits_per_byte(checkpoint, LONG)
    bits = figures["nats_per_token"] * figures["tokens"] / math.log(2)
    assert figures["bits_per_byte"] == pytest.approx(bits / figures["bytes"])
