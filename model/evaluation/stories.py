"""The figures of `stories`: bits per byte, attention heads, expert load and minimal pairs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from headlight.model.checkpoint import Checkpoint
from headlight.model.evaluation.agreement import agreement_figures
from headlight.model.evaluation.attention_heads import (
    HeadScore,
    induction_head,
    previous_token_head,
)
from headlight.model.evaluation.minimal_pairs import MinimalPair, pair_accuracy
from headlight.model.evaluation.moe import expert_load, load_entropy
from headlight.model.training.batches import prepend
from headlight.model.training.corpus import CorpusError, TokenStream
from headlight.model.training.losses import token_losses

HEAD_ROWS = 32


def evaluate(
    checkpoint: Checkpoint, documents: Sequence[str], pairs: Sequence[MinimalPair]
) -> dict[str, Any]:
    """Measure the model on held-out text and on minimal pairs.

    Args:
        checkpoint: the model.
        documents: held-out text, at least one context long.
        pairs: minimal pairs; without any, their figures are left out.

    Returns:
        The figures by name.

    Raises:
        CorpusError: the text is shorter than one context.
    """
    stream = TokenStream.encode(documents, checkpoint.tokenizer)
    rows = _rows(stream.ids, checkpoint.config.max_tokens - 1)
    induction, copying = induction_head(checkpoint)
    figures: dict[str, Any] = {
        **bits_per_byte(checkpoint, documents),
        "previous_token_head": _named(previous_token_head(checkpoint, rows[:HEAD_ROWS])),
        "induction_head": _named(induction),
        "copy_accuracy": copying,
    }
    if checkpoint.config.moe is not None:
        load = expert_load(checkpoint, rows)
        figures["expert_load_entropy"] = {
            f"layer_{n}": load_entropy(share) for n, share in load.items()
        }
        figures["smallest_expert_share"] = {
            f"layer_{n}": float(share.min()) for n, share in load.items()
        }
    figures |= agreement_figures(checkpoint)
    if pairs:
        accuracy = pair_accuracy(checkpoint, pairs)
        figures["minimal_pairs"] = sum(accuracy.values()) / len(accuracy)
        figures["minimal_pairs_by_paradigm"] = accuracy
    return figures


def _rows(ids: Int[Tensor, " all"], length: int) -> Int[Tensor, "row token"]:
    if len(ids) < length:
        raise CorpusError(f"the text has {len(ids)} tokens; evaluation needs at least {length}")
    return ids[: len(ids) // length * length].view(-1, length)


def _named(score: HeadScore) -> dict[str, int | float]:
    return {"layer": score.layer, "head": score.head, "weight": score.weight}


def bits_per_byte(
    checkpoint: Checkpoint, documents: Sequence[str], *, batch_rows: int = 16
) -> dict[str, float]:
    """Measure compression in bits per byte of unseen text; every token is predicted once.

    Unlike perplexity per token, bits per byte do not depend on the tokenizer, so models can be
    compared. The window is the model's whole context and slides by half of it, so that a token
    has at least half a context before it, except at the beginning. The end token of each document
    counts towards the bits; its separator line does not count towards the bytes.

    Args:
        checkpoint: the model.
        documents: held-out text.
        batch_rows: windows in one pass.

    Returns:
        ``bits_per_byte``, ``nats_per_token``, ``tokens`` and ``bytes``.
    """
    tokenizer = checkpoint.tokenizer
    ids = TokenStream.encode(documents, tokenizer).ids
    length = checkpoint.config.max_tokens
    nats = 0.0
    for rows, is_new in _windows(ids, length, batch_rows):
        rows = prepend(tokenizer.start_id, rows).to(checkpoint.device)
        with torch.inference_mode():
            losses = token_losses(checkpoint.model(rows[:, :-1]).logits, rows[:, 1:])
        nats += losses.cpu()[is_new].sum().item()
    n_bytes = sum(len(document.encode()) for document in documents)
    return {
        "bits_per_byte": nats / math.log(2) / n_bytes,
        "nats_per_token": nats / len(ids),
        "tokens": len(ids),
        "bytes": n_bytes,
    }


def _windows(
    ids: Int[Tensor, " token"], length: int, batch_rows: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield batches of windows, and a mask of the tokens that no earlier window has predicted."""
    length = min(length, len(ids))
    stride = max(1, length // 2)
    starts = [*range(0, len(ids) - length, stride), len(ids) - length]
    predicted = [0] + [start + length for start in starts[:-1]]
    for first in range(0, len(starts), batch_rows):
        chunk = torch.tensor(starts[first : first + batch_rows])[:, None]
        places = chunk + torch.arange(length)
        until = torch.tensor(predicted[first : first + batch_rows])[:, None]
        yield ids[places], places >= until
