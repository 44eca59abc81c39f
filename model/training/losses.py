"""What training minimises."""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor


def token_losses(
    logits: Float[Tensor, "batch query vocab"], targets: Int[Tensor, "batch query"]
) -> Float[Tensor, "batch query"]:
    """−log P(token | the tokens before it) of every token, in nats, computed in float32."""
    losses = F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), reduction="none")
    return losses.view_as(targets)


def language_model_loss(
    logits: Float[Tensor, "batch query vocab"],
    targets: Int[Tensor, "batch query"],
    is_counted: Bool[Tensor, "batch query"],
) -> Float[Tensor, ""]:
    """The mean of `token_losses` over the targets that count, of which there is at least one."""
    losses = token_losses(logits, targets)
    return (losses * is_counted).sum() / is_counted.sum()
