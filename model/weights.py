"""The norms and matrices behind a model's graph.

n(x) = γ ⊙ (x − μ)/√(σ² + ε) + β        LayerNorm; RMSNorm has neither μ nor β
q = n(x)·W_Q + b_Q                      and so for keys and values
head = context·W_O                      added to the stream by a head
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class NormParts:
    """A norm as its formula; ``shift`` None: there is none."""

    scale: Float[Tensor, " d_model"]
    shift: Float[Tensor, " d_model"] | None
    epsilon: float
    is_centred: bool

    def __call__(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Return the normalised last axis."""
        centred, size = self.split(x)
        out = centred / size * self.scale
        return out if self.shift is None else out + self.shift

    def split(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return x, centred if the norm does so, and the number that it is divided by."""
        centred = x - x.mean(dim=-1, keepdim=True) if self.is_centred else x
        return centred, (centred.square().mean(dim=-1, keepdim=True) + self.epsilon).sqrt()


@dataclass(frozen=True)
class InputMatrix:
    """W_Q, W_K or W_V by head (head, d_model, d_head), and its bias (head, d_head) or None.

    ``norm`` is that of the product, of each head or of all of them, with its scale by head (head,
    d_head); calling this leaves it out.
    """

    weight: Tensor
    bias: Tensor | None
    norm: NormParts | None = None

    def __call__(
        self, x: Float[Tensor, "head *batch d_model"], heads: list[int]
    ) -> Float[Tensor, "head *batch d_head"]:
        """Return queries, keys or values of some heads, each of an input of its own."""
        flat = x.flatten(1, -2)
        made = torch.bmm(flat, self.weight[heads])
        if self.bias is not None:
            made = made + self.bias[heads, None]
        by_text: Tensor = made.unflatten(1, x.shape[1:-1])
        return by_text


@dataclass(frozen=True)
class Weights:
    """The weights that a graph needs: norms by site, inputs by site, W_O by attention.

    ``norms`` are functions of a site, as a foreign model's are looked for when they are needed.
    ``carries`` are the factors (d_model) of the stream before the part at a path writes, if any.
    """

    norm: Callable[[str], NormParts | None]
    inputs: Callable[[str], InputMatrix | None]
    outputs: Callable[[str], Tensor | None]
    carries: Mapping[str, Tensor] = field(default_factory=dict)


ROUNDING = {torch.float32: 4e-7, torch.float64: 1e-14}
"""The rounding of a sum, by the size of the feature; 2⁻⁷ in a lower precision."""


def distance_of_sum(
    made: Float[Tensor, "*batch d_model"],
    before: Float[Tensor, "*batch d_model"],
    after: Float[Tensor, "*batch d_model"],
) -> float:
    """Return how far a sum is from the stream after a step, as a share of the step's change.

    A sum is rounded to the size of the stream, which massive activations make thousands of times
    larger than what is added to it, in a few features. So rounding is left out feature by feature.

    Args:
        made: the stream before plus what was written, in any precision.
        before: the stream before the step.
        after: the stream after it, in the precision of the pass.
    """

    def largest(tensor: Tensor) -> Tensor:
        return tensor.abs().flatten(0, -2).amax(dim=0).double()

    rounding = ROUNDING.get(after.dtype, 2.0**-7) * torch.maximum(largest(before), largest(after))
    change = largest(after.double() - before.double())
    step = torch.where(change > rounding, change, 0.0).max().clamp(min=1e-30)
    far = (largest(made.double() - after.double()) - rounding).max().clamp(min=0)
    return float(far / step)
