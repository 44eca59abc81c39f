"""The optimizers: Muon for the matrices inside the layers, AdamW for everything else.

Muon is momentum whose update of a matrix is made orthogonal, so that every direction of the
matrix moves at the same rate. Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/. Its
update is scaled to the root mean square of Adam's, so that both take the same learning rates (Liu
et al. 2025, https://arxiv.org/abs/2502.16982).
"""

from __future__ import annotations

import torch
from torch import nn

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
    """Make the optimizers of all parameters; each group keeps its peak learning rate as ``peak``.

    Args:
        model: the model to train.
        name: ``muon``: Muon for the matrices inside the layers and AdamW for embeddings, norms,
            biases and routers; ``adamw``: AdamW for everything.
        learning_rate: at its peak.
        adam_share: with ``muon``, the share of the learning rate that AdamW uses.
        weight_decay: of the matrices inside the layers.
    """
    matrices, others = _split_parameters(model)
    optimizers: list[torch.optim.Optimizer]
    if name == "muon":
        adam_rate = adam_share * learning_rate
        optimizers = [
            torch.optim.Muon(
                matrices,
                lr=learning_rate,
                weight_decay=weight_decay,
                adjust_lr_fn="match_rms_adamw",
            ),
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


def _split_parameters(model: Transformer) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Split the parameters into the matrices inside the layers and the rest."""
    matrices: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        is_inner = parameter.ndim == 2 and ".layers." in name and "router" not in name
        (matrices if is_inner else others).append(parameter)
    return matrices, others
