"""How evenly the routers spread the tokens of a text over the experts."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headlight.model.checkpoint import Checkpoint
from headlight.model.training.batches import prepend

INDICES = "*.experts.expert_indices"


def expert_load(
    checkpoint: Checkpoint, rows: Int[Tensor, "row token"], *, batch_rows: int = 16
) -> dict[int, Float[Tensor, " expert"]]:
    """The share of the routed tokens that each expert takes, by layer; each sums to 1.

    Raises:
        ValueError: the model is dense.
    """
    moe = checkpoint.config.moe
    if moe is None:
        raise ValueError(f"{checkpoint.id} is dense: it has no experts")
    counts = torch.zeros(len(moe.layers), moe.n_experts)
    for chunk in rows.split(batch_rows):
        ids = prepend(checkpoint.tokenizer.start_id, chunk).to(checkpoint.device)
        with torch.inference_mode(), checkpoint.model.capture([INDICES]) as captured:
            checkpoint.model(ids)
        for number, indices in enumerate(captured.values()):
            counts[number] += indices.flatten().bincount(minlength=moe.n_experts).cpu()
    shares = counts / counts.sum(dim=1, keepdim=True)
    return dict(zip(moe.layers, shares, strict=True))


def load_entropy(load: Float[Tensor, " expert"]) -> float:
    """−Σ f·log f over log n_experts: 1 when every expert takes as many, 0 when one takes all."""
    return float(torch.special.entr(load).sum() / math.log(len(load)))
