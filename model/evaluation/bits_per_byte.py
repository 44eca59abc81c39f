"""Compression: how many bits the model needs for a byte of text it has not seen.

Unlike perplexity per token it does not depend on the tokenizer, so models can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from headlight.model.checkpoint import Checkpoint
from headlight.model.training.batches import prepend
from headlight.model.training.corpus import TokenStream
from headlight.model.training.losses import token_losses


def bits_per_byte(
    checkpoint: Checkpoint, documents: Sequence[str], *, batch_rows: int = 16
) -> dict[str, float]:
    """Bits per byte with a sliding window: every token is predicted once.

    The window is the model's whole context and moves by half of it, so that a token has at least
    half a context before it, save at the beginning. The end token of each document counts
    towards the bits, its separator line does not count towards the bytes.

    Args:
        checkpoint: the model.
        documents: held-out text.
        batch_rows: windows read at a time.

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
    """Batches of windows, and which of their tokens no window before has predicted."""
    length = min(length, len(ids))
    stride = max(1, length // 2)
    starts = [*range(0, len(ids) - length, stride), len(ids) - length]
    predicted = [0] + [start + length for start in starts[:-1]]
    for first in range(0, len(starts), batch_rows):
        chunk = torch.tensor(starts[first : first + batch_rows])[:, None]
        places = chunk + torch.arange(length)
        until = torch.tensor(predicted[first : first + batch_rows])[:, None]
        yield ids[places], places >= until
