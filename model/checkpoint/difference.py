"""A model stored as its difference from another one: the name and revision of that one, a few bits.

    weights = base + difference

Fine-tuning changes every weight by little, so the difference has a small range and needs fewer bits
than the weights: Liu et al. 2024, https://arxiv.org/abs/2402.10193, keep one. The matrices of the
parts that both models have are quantized; the rest is stored in half precision. The tokenizer is
the base's. A base with another revision is refused: the sum would be another model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headlight.model.checkpoint.files import CheckpointError
from headlight.model.checkpoint.shared_tokenizer import is_model_name, neighbour
from headlight.model.quantization.affine import Quantization
from headlight.model.quantization.storage import restored_weights, stored_layout, stored_weights


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The model that a difference is from, and the bits of its numbers.

    Args:
        base: the name of the model, whose folder lies next to this one, or that ships.
        revision: of that model.
        bits: of each number of a matrix, 2 to 8.

    Raises:
        ValueError: one of them is not allowed.
    """

    base: str
    revision: str
    bits: int

    def __post_init__(self) -> None:
        if not is_model_name(self.base):
            raise ValueError(f"difference.base ({self.base!r}) must be the name of a model")
        if not isinstance(self.revision, str) or not re.fullmatch(r"[0-9a-f]{16}", self.revision):
            raise ValueError("difference.revision must be 16 hexadecimal digits")
        Quantization(bits=self.bits)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; `from_dict` reads it back."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: object) -> Difference:
        """Read plain data.

        Raises:
            ValueError: it is not an object of base, revision and bits, or one is not allowed.
        """
        if not isinstance(data, dict) or set(data) != {"base", "revision", "bits"}:
            raise ValueError("difference must be an object of base, revision and bits")
        return cls(**data)

    def folder(self, folder: Path, shipped: Path) -> Path:
        """Return the folder of the base.

        Args:
            folder: of the model that is stored as a difference.
            shipped: the folder of the models that ship.

        Raises:
            CheckpointError: there is no such model, or it is a difference itself.
        """
        place = neighbour(folder, self.base, shipped)
        if place is None:
            raise CheckpointError(
                f"{folder} is a difference from the model {self.base!r}, which is not there; put "
                "it next to this folder"
            )
        return place

    def require(self, folder: Path, base: Path, revision: str) -> None:
        """Check the revision of the base.

        Raises:
            CheckpointError: it is another one.
        """
        if revision != self.revision:
            raise CheckpointError(
                f"{folder} is a difference from {self.base} of the revision {self.revision}, and "
                f"{base} has the revision {revision}; restore that one, or train this model again"
            )

    def quantization(self, base: Mapping[str, Tensor]) -> Quantization:
        """Return the quantization of the difference: of the stacks that the base has."""
        stacks = dict.fromkeys(name.partition(".")[0] for name in base)
        return Quantization(bits=self.bits, parts=tuple(stacks))

    def stored(
        self, weights: Mapping[str, Tensor], base: Mapping[str, Tensor]
    ) -> dict[str, Tensor]:
        """Return the tensors to write to a file.

        Raises:
            ValueError: the models have different shapes, or a weight is not finite.
        """
        for name, tensor in base.items():
            if name not in weights or weights[name].shape != tensor.shape:
                raise ValueError(f"{self.base} has another architecture: {name} differs")
        changes = {
            name: tensor.detach().cpu().float() - base[name].detach().cpu().float()
            if name in base
            else tensor
            for name, tensor in weights.items()
        }
        return stored_weights(changes, self.quantization(base), torch.float16)

    def layout(self, weights: Mapping[str, Tensor], base: Mapping[str, Tensor]) -> Any:
        """As `stored_layout`, of the file of the difference."""
        return stored_layout(weights, self.quantization(base))

    def restored(
        self,
        read: Callable[[str], Tensor],
        shapes: Mapping[str, Tensor],
        base: Mapping[str, Tensor],
    ) -> dict[str, Tensor]:
        """Return base + difference, in float32; the arguments are as in `restored_weights`.

        Raises:
            ValueError: a zero point does not fit the bits.
        """
        changes = restored_weights(read, shapes, self.quantization(base))
        return {
            name: base[name].float() + change if name in base else change
            for name, change in changes.items()
        }
