"""Attention heads with a known function: the previous-token head and the induction head."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headlight.model.checkpoint import Checkpoint
from headlight.model.training.batches import prepend

WEIGHTS = "decoder.layers.*.self_attention.weights"


@dataclass(frozen=True)
class HeadScore:
    """A head and its mean attention weight, in [0, 1], on the keys that define its function."""

    layer: int
    head: int
    weight: float


def previous_token_head(checkpoint: Checkpoint, rows: Int[Tensor, "row token"]) -> HeadScore:
    """Find the head with the greatest mean weight on the previous token.

    The first token of a row, which has only the start token before it, does not count.

    Args:
        checkpoint: the model.
        rows: text without the start token.
    """
    weights, _ = _read(checkpoint, rows)
    return _best(weights.diagonal(offset=-1, dim1=-2, dim2=-1)[..., 1:].mean(dim=(1, 3)))


def induction_head(
    checkpoint: Checkpoint, *, n_rows: int = 32, segment: int = 50, seed: int = 0
) -> tuple[HeadScore, float]:
    """Find the head with the greatest mean weight on the token after the earlier occurrence.

    Each row is a segment of tokens drawn uniformly from the vocabulary, twice. Olsson et al. 2022,
    https://arxiv.org/abs/2209.11895.

    Returns:
        The head with its mean weight over the repetition, and the model's accuracy on the
        repetition: the share of its tokens, except the first, that are the model's first guess.
    """
    generator = torch.Generator().manual_seed(seed)
    special = {checkpoint.tokenizer.start_id, checkpoint.tokenizer.end_id}
    ordinary = torch.tensor([i for i in range(checkpoint.config.vocab_size) if i not in special])
    drawn = torch.randint(len(ordinary), (n_rows, segment), generator=generator)
    rows = ordinary[drawn].repeat(1, 2)
    weights, logits = _read(checkpoint, rows)
    # In the repetition, position p (the start token is position 0) holds the token of p − segment;
    # the one after that is at p − segment + 1.
    stripe = weights.diagonal(offset=1 - segment, dim1=-2, dim2=-1)[..., 2:]
    predicted = logits[:, segment + 1 : -1].argmax(dim=-1)
    accuracy = (predicted == rows[:, segment + 1 :]).float().mean().item()
    return _best(stripe.mean(dim=(1, 3))), accuracy


def _read(
    checkpoint: Checkpoint, rows: Int[Tensor, "row token"]
) -> tuple[Float[Tensor, "layer row head query key"], Float[Tensor, "row query vocab"]]:
    ids = prepend(checkpoint.tokenizer.start_id, rows).to(checkpoint.device)
    with torch.inference_mode(), checkpoint.model.capture([WEIGHTS]) as captured:
        logits = checkpoint.model(ids).logits
    return torch.stack(list(captured.values())).cpu(), logits.cpu()


def _best(scores: Float[Tensor, "layer head"]) -> HeadScore:
    layer, head = divmod(int(scores.argmax()), scores.shape[1])
    return HeadScore(layer, head, float(scores[layer, head]))
