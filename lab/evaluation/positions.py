"""The figures of `positions`: loss within and beyond the trained length, attention by distance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headlight.lab.evaluation.text import attention, token_bits, whole_rows
from headlight.lab.training.batches import prepend
from headlight.lab.training.recipes.positions import PositionsConfig
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.corpus import TokenStream
from headlight.model.embedding import TooManyPositions

DISTANCES = (0, 1, 2, 4, 8, 16, 32, 64)
BATCH_ROWS = 16
DISTANCE_ROWS = 64
"""Rows on which attention by distance is measured, at most."""


def evaluate(
    checkpoint: Checkpoint,
    documents: Sequence[str],
    *,
    trained_tokens: int | None = None,
    n_rows: int = 256,
) -> dict[str, Any]:
    """Compare the loss within the trained length and beyond it, and measure attention by distance.

    Args:
        checkpoint: a decoder.
        documents: held-out text.
        trained_tokens: the length of the training rows; None for that of the recipe.
        n_rows: the number of rows of twice that length, at most, evenly spread over the text.

    Returns:
        ``bits_per_token``: the mean loss of the first `trained_tokens` predictions of a row, and
        of as many after them; the latter None if the model does not accept so long a text. The two
        means differ in context as well: the first includes the predictions with little context.
        ``attention_by_distance``: per layer, the mean weight over heads and queries on the key at
        that distance before the query, within the trained length.

    Raises:
        CorpusError: the text is shorter than one row.
    """
    trained = PositionsConfig().tokens if trained_tokens is None else trained_tokens
    ids = TokenStream.encode(documents, checkpoint.tokenizer).ids
    length = 2 * trained
    rows = _spread(whole_rows(ids, length), n_rows)
    losses = _losses(checkpoint, rows)
    inside = _losses(checkpoint, rows[:, :trained]) if losses is None else losses[:, :trained]
    assert inside is not None
    beyond = None if losses is None else losses[:, trained:].mean().item()
    return {
        "bits_per_token": {
            "inside_trained_length": inside.mean().item(),
            "at_twice_the_length": beyond,
        },
        "trained_tokens": trained,
        "rows": len(rows),
        "attention_by_distance": _by_distance(
            checkpoint, _spread(rows, DISTANCE_ROWS)[:, :trained]
        ),
    }


def _spread(rows: Int[Tensor, "row token"], count: int) -> Int[Tensor, "chosen token"]:
    """Select at most `count` rows, evenly spread: the books of a text differ by 0.2 nats."""
    count = min(count, len(rows))
    return rows[torch.arange(count) * len(rows) // max(1, count)]


def _losses(
    checkpoint: Checkpoint, rows: Int[Tensor, "row token"]
) -> Float[Tensor, "row token"] | None:
    """Compute the loss of every token in bits; None if the model does not accept so long a text."""
    try:
        return torch.cat([token_bits(checkpoint, part) for part in rows.split(BATCH_ROWS)])
    except TooManyPositions:
        return None


def _by_distance(
    checkpoint: Checkpoint, rows: Int[Tensor, "row token"]
) -> dict[str, dict[str, float]]:
    """Average the attention weights at each distance before the query, per layer."""
    ids = prepend(checkpoint.tokenizer.start_id, rows)[:, :-1]
    by_layer, _ = attention(checkpoint, ids)
    return {
        f"layer_{number}": {
            f"distance_{distance}": weights.diagonal(-distance, dim1=-2, dim2=-1).mean().item()
            for distance in DISTANCES
            if distance < ids.shape[1]
        }
        for number, weights in enumerate(by_layer)
    }
