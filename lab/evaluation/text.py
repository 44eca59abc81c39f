"""The loss of a model on a text, in bits, and the weights of its heads on rows of tokens."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headlight.lab.training.batches import prepend
from headlight.lab.training.losses import token_losses
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.corpus import CorpusError, TokenStream

WEIGHTS = "decoder.layers.*.self_attention.weights"


def whole_rows(ids: Int[Tensor, " all"], length: int) -> Int[Tensor, "row token"]:
    """Cut a text into rows of so many tokens, and leave out the rest.

    Raises:
        CorpusError: the text is shorter than one row.
    """
    if len(ids) < length:
        raise CorpusError(f"the text has {len(ids)} tokens; evaluation needs at least {length}")
    return ids[: len(ids) // length * length].view(-1, length)


def token_bits(checkpoint: Checkpoint, ids: Int[Tensor, "row token"]) -> Float[Tensor, "row token"]:
    """Compute the loss of each token of some rows in bits; the start token is put before each."""
    rows = prepend(checkpoint.tokenizer.start_id, ids).to(checkpoint.device)
    with torch.inference_mode():
        losses = token_losses(checkpoint.model(rows[:, :-1]).logits, rows[:, 1:])
    return losses.cpu() / math.log(2)


def bits_per_byte(
    checkpoint: Checkpoint, documents: Sequence[str], *, batch_rows: int = 16
) -> dict[str, float]:
    """Measure compression in bits per byte of unseen text; every token is predicted once.

    Unlike perplexity per token, bits per byte do not depend on the tokenizer, so models can be
    compared. The window is the model's whole context and slides by half of it, so that a token
    has at least half a context before it, except at the beginning. The end token of each document
    counts towards the bits; its separator line does not count towards the bytes.

    Returns:
        ``bits_per_byte``, ``bits_per_token``, ``tokens`` and ``bytes``.
    """
    ids = TokenStream.encode(documents, checkpoint.tokenizer).ids
    length = checkpoint.config.max_tokens
    bits = 0.0
    for rows, is_new in _windows(ids, length, batch_rows):
        bits += token_bits(checkpoint, rows)[is_new].sum().item()
    n_bytes = sum(len(document.encode()) for document in documents)
    return {
        "bits_per_byte": bits / n_bytes,
        "bits_per_token": bits / len(ids),
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


def attention(
    checkpoint: Checkpoint, ids: Int[Tensor, "row token"]
) -> tuple[Float[Tensor, "layer row head query key"], Float[Tensor, "row query vocab"]]:
    """Return the weights of all heads and the logits of rows of tokens, start token included."""
    with torch.inference_mode(), checkpoint.model.capture([WEIGHTS]) as captured:
        logits = checkpoint.model(ids.to(checkpoint.device)).logits
    return torch.stack(list(captured.values())).cpu(), logits.cpu()
