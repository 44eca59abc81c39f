"""The training losses, in nats: cross-entropy with label smoothing, and distillation."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

BLOCK_ROWS = 256


def token_losses(
    logits: Float[Tensor, "batch query vocab"],
    targets: Int[Tensor, "batch query"],
    *,
    smoothing: float = 0.0,
) -> Float[Tensor, "batch query"]:
    """Compute −log P(token | the tokens before it) of every token, in nats and in float32.

    With label smoothing, the cross-entropy against (1 − smoothing) · one-hot + smoothing / vocab:

        −(1 − smoothing) · log P(token) − smoothing · mean over the vocabulary of log P.

    Szegedy et al. 2016, section 7, https://arxiv.org/abs/1512.00567; Vaswani et al. 2017,
    section 5.4, takes 0.1. The smallest possible loss is then above 0.

    Args:
        logits: one for every token of the vocabulary at every position.
        targets: the correct tokens.
        smoothing: the share of the target spread over the whole vocabulary, in [0, 1].

    Raises:
        ValueError: the smoothing is outside its range.
    """
    if not 0 <= smoothing <= 1:
        raise ValueError(f"smoothing ({smoothing}) must lie in [0, 1]")
    if logits.dtype == torch.bfloat16 and logits.requires_grad and not smoothing:
        in_blocks: Tensor = _CrossEntropy.apply(  # type: ignore[no-untyped-call]  # inherited from PyTorch
            logits.flatten(0, 1), targets.flatten()
        )
        return in_blocks.view_as(targets)
    # Measured: with smoothing `cross_entropy` keeps no more for the backward pass than without;
    # logsumexp, gather and mean would keep up to two more tensors as large as the logits.
    losses = F.cross_entropy(
        logits.flatten(0, 1).float(), targets.flatten(), reduction="none", label_smoothing=smoothing
    )
    return losses.view_as(targets)


class _CrossEntropy(torch.autograd.Function):
    """The cross-entropy of logits in bfloat16, in blocks of rows that the processor's cache holds.

    `F.cross_entropy` reads a copy of all logits in float32 and writes two more for the backward
    pass. Here the gradient, softmax(logits) − one-hot, is computed with the loss and kept in
    bfloat16, the precision in which the pass before would round it.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor) -> Tensor:
        losses = logits.new_empty(len(targets), dtype=torch.float32)
        gradient = torch.empty_like(logits)
        for first in range(0, len(targets), BLOCK_ROWS):
            block = slice(first, first + BLOCK_ROWS)
            scores, places = logits[block].float(), targets[block, None]
            log_sums = scores.logsumexp(dim=-1, keepdim=True)
            losses[block] = (log_sums - scores.gather(1, places))[:, 0]
            probs = (scores - log_sums).exp_()
            gradient[block] = probs.scatter_add_(1, places, -torch.ones_like(log_sums))
        ctx.save_for_backward(gradient)
        return losses

    @staticmethod
    def backward(ctx: Any, gradients: Tensor) -> tuple[Tensor, None]:
        (gradient,) = ctx.saved_tensors
        return gradient.mul_(gradients[:, None].to(gradient.dtype)), None


def distillation_losses(
    logits: Float[Tensor, "batch query vocab"],
    teacher_logits: Float[Tensor, "batch query vocab"],
    *,
    temperature: float,
) -> Float[Tensor, "batch query"]:
    """Compute T² · KL(teacher ‖ student) of every next-token distribution, in nats, in float32.

    Both distributions are softmax(logits / T). The factor T² keeps the size of the gradient, which
    falls with 1/T². Hinton et al. 2015, section 2, https://arxiv.org/abs/1503.02531.

    Args:
        logits: of the student.
        teacher_logits: of the teacher, without a gradient.
        temperature: T; 1 leaves the distributions as they are, more softens both.

    Raises:
        ValueError: the temperature is not positive.
    """
    if not temperature > 0:
        raise ValueError(f"temperature ({temperature}) must be positive")
    student = F.log_softmax(logits.float() / temperature, dim=-1)
    teacher = F.log_softmax(teacher_logits.float() / temperature, dim=-1)
    divergence = F.kl_div(student, teacher, reduction="none", log_target=True).sum(dim=-1)
    return temperature**2 * divergence
