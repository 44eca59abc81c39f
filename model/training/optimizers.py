"""Which optimizer moves which parameter, and at which rate."""

from __future__ import annotations

import torch
from torch import nn

from headlight.model.training.muon import Muon
from headlight.model.transformer import Transformer

OPTIMIZERS = ("muon", "adamw")


def make_optimizers(
    model: Transformer,
    name: str = "muon",
    *,
    learning_rate: float,
    adam_share: float = 0.5,
    weight_decay: float = 0.0,
) -> list[torch.optim.Optimizer]:
    """The optimizers of all parameters, each group remembering its peak rate as ``peak``.

    Args:
        model: whose parameters.
        name: ``muon``: Muon for the matrices inside the layers and AdamW for embeddings, norms,
            biases and routers; ``adamw``: AdamW for everything.
        learning_rate: at its peak.
        adam_share: beside Muon, AdamW learns at this share of the rate.
        weight_decay: of the matrices inside the layers.
    """
    matrices, others = _sorted_parameters(model)
    optimizers: list[torch.optim.Optimizer]
    if name == "muon":
        adam_rate = adam_share * learning_rate
        optimizers = [
            Muon(matrices, lr=learning_rate, weight_decay=weight_decay),
            torch.optim.AdamW(others, lr=adam_rate, betas=(0.9, 0.95), weight_decay=0.0),
        ]
    else:
        groups = [
            {"params": matrices, "weight_decay": weight_decay},
            {"params": others, "weight_decay": 0.0},
        ]
        optimizers = [torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.98))]
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["peak"] = group["lr"]
    return optimizers


def _sorted_parameters(model: Transformer) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """The matrices inside the layers, and all that is left."""
    matrices: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        is_inner = parameter.ndim == 2 and ".layers." in name and "router" not in name
        (matrices if is_inner else others).append(parameter)
    return matrices, others
