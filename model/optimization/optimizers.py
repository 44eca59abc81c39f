"""The optimizers: Muon for the matrices inside the layers, AdamW for everything else.

Muon is momentum whose update of a matrix is made orthogonal, so that every direction of the
matrix moves at the same rate. Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/.
`torch.optim.Muon` gives the same update but works on one matrix at a time in bfloat16, which
processors without bfloat16 units emulate; `Muon` here stacks all matrices of one shape and works
in the precision of the run: in float32 several times faster on such processors, in bfloat16 three
times faster than that on those with the units.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from headlight.model.transformer import Transformer

OPTIMIZERS = ("muon", "adamw")
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
N_ITERATIONS = 5


def make_optimizers(
    model: Transformer,
    name: str = "muon",
    *,
    learning_rate: float,
    adam_share: float = 0.5,
    weight_decay: float = 0.0,
    precision: torch.dtype = torch.float32,
) -> list[torch.optim.Optimizer]:
    """Make the optimizers of all parameters; each group keeps its peak learning rate as ``peak``.

    Args:
        model: the model to train.
        name: ``muon``: Muon for the matrices inside the layers and AdamW for embeddings, norms,
            biases and routers; ``adamw``: AdamW for everything.
        learning_rate: at its peak.
        adam_share: with ``muon``, the share of the learning rate that AdamW uses.
        weight_decay: of the matrices inside the layers.
        precision: of Muon's products.
    """
    matrices, others = _split_parameters(model)
    optimizers: list[torch.optim.Optimizer]
    if name == "muon":
        adam_rate = adam_share * learning_rate
        optimizers = [
            Muon(matrices, lr=learning_rate, weight_decay=weight_decay, precision=precision),
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


def orthogonalise(
    matrices: Float[Tensor, "matrix row column"], precision: torch.dtype = torch.float32
) -> Float[Tensor, "matrix row column"]:
    """Bring all singular values near 1 by a quintic Newton–Schulz iteration.

    X ← aX + (bXXᵀ + c(XXᵀ)²)X, from X/‖X‖. The coefficients are chosen for speed, not accuracy:
    singular values end between about 0.7 and 1.2.

    Args:
        matrices: of one shape.
        precision: of the products.
    """
    a, b, c = COEFFICIENTS
    is_tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if is_tall else matrices
    x = x.to(precision)
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)
    for _ in range(N_ITERATIONS):
        gram = x @ x.mT
        x = a * x + torch.baddbmm(gram, gram, gram, beta=b, alpha=c) @ x
    orthogonal: Tensor = (x.mT if is_tall else x).to(matrices.dtype)
    return orthogonal


class Muon(torch.optim.Optimizer):
    """Orthogonalised Nesterov momentum, for parameters that are matrices.

    The update is scaled by 0.2·√(larger side), so that its root mean square equals that of Adam's
    and both take the same learning rates (Liu et al. 2025, https://arxiv.org/abs/2502.16982).

    Args:
        parameters: matrices only.
        lr: learning rate.
        momentum: decay of the moving average of the gradients, in [0, 1).
        weight_decay: decoupled decay, times the learning rate.
        precision: of `orthogonalise`.

    Raises:
        ValueError: a parameter is not a matrix.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        lr: float,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
        precision: torch.dtype = torch.float32,
    ) -> None:
        self.precision = precision
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.ndim != 2:
                    raise ValueError(f"Muon takes matrices, not shape {tuple(parameter.shape)}")

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]  # calls no closure
        """Update every matrix that has a gradient."""
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[nn.Parameter]] = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    by_shape[parameter.shape].append(parameter)
            for shape, parameters in by_shape.items():
                updates = torch.stack([self._momentum(p, group["momentum"]) for p in parameters])
                rate = group["lr"] * 0.2 * max(shape) ** 0.5
                updates = orthogonalise(updates, precision=self.precision)
                for parameter, update in zip(parameters, updates, strict=True):
                    parameter.mul_(1 - group["lr"] * group["weight_decay"])
                    parameter.add_(update, alpha=-rate)

    def _momentum(self, parameter: nn.Parameter, momentum: float) -> Tensor:
        gradient = parameter.grad
        assert gradient is not None
        state = self.state[parameter]
        if "average" not in state:
            state["average"] = torch.zeros_like(gradient)
        average = state["average"].lerp_(gradient, 1 - momentum)
        return gradient.lerp(average, momentum)
