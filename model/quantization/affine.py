"""Affine quantization: store the weights of a model in 2 to 8 bits each.

    q = clamp(round(w / scale) + zero_point, 0, 2^bits − 1)        w ≈ scale · (q − zero_point)

Jacob et al. 2018, section 2.1, https://arxiv.org/abs/1712.05877. Every channel, which is a row of a
matrix, has its own scale and zero point, or the whole tensor has one of each. The range
always includes 0, so that 0 is stored exactly and the zero point fits the storage, which is
unsigned: a zero point of 128 or more would wrap around in a signed byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from fnmatch import translate
from functools import lru_cache
from threading import Lock
from typing import Any, Literal
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from headlight.model.hooks import Function, FunctionMode
from headlight.model.interventions.intervention import Intervention

LEAST_BITS, MOST_BITS = 2, 8

Granularity = Literal["channel", "tensor"]


class UnknownPart(ValueError):
    """No matrix of the model has that name, or matches that glob."""


@dataclass(frozen=True, kw_only=True)
class Quantization(Intervention):
    """The number of bits of each weight, and the matrices that are quantized.

    Vectors (biases, and the scales and shifts of norms) are never quantized: they are few.

    Args:
        bits: of each weight, 2 to 8.
        parts: names or globs of modules; a module means all inside it. Empty: every matrix.
        per: ``channel``: a scale for each row of a matrix; ``tensor``: one for all of it.

    Raises:
        ValueError: bits are out of range, or `per` is unknown.
    """

    bits: int
    parts: tuple[str, ...] = ()
    per: Granularity = "channel"

    def __post_init__(self) -> None:
        if type(self.bits) is not int or not LEAST_BITS <= self.bits <= MOST_BITS:
            raise ValueError(f"bits ({self.bits!r}) must be {LEAST_BITS} to {MOST_BITS}")
        if self.per not in ("channel", "tensor"):
            raise ValueError(f"per ({self.per!r}) must be channel or tensor")

    @property
    def quantizations(self) -> tuple[Quantization, ...]:
        """As `Intervention.quantizations`."""
        return (self,)

    def chosen(self, matrices: Iterable[str]) -> list[str]:
        """Return the names of the matrices to quantize, in the order given.

        Args:
            matrices: the names of the model's, as `matrices_of` lists them.

        Raises:
            UnknownPart: a part matches none of them.
        """
        names = list(matrices)
        if not self.parts:
            return names
        matches: set[str] = set()
        for part in self.parts:
            matched = list(filter(_matcher(part), names))
            if not matched:
                known = ", ".join(dict.fromkeys(map(_general, names)))
                raise UnknownPart(f"no part of the model matches {part[:100]!r}; it has {known}")
            matches.update(matched)
        return [name for name in names if name in matches]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; `from_dict` reads it back."""
        return {**asdict(self), "parts": list(self.parts)}

    @classmethod
    def from_dict(cls, data: object) -> Quantization:
        """Read plain data, such as a checkpoint's.

        Raises:
            ValueError: it is not a mapping, a key is unknown or missing, or a value is not allowed.
        """
        known = {field.name for field in fields(cls)}
        if isinstance(data, dict) and data.get("activations") == "float":  # of older checkpoints
            data = {name: value for name, value in data.items() if name != "activations"}
        if not isinstance(data, dict) or "bits" not in data or not set(data) <= known:
            raise ValueError(f"quantization must be an object of bits and {', '.join(known)}")
        parts = data.get("parts", [])
        if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
            raise ValueError("quantization.parts must be a list of names")
        return cls(**{**data, "parts": tuple(parts)})


@lru_cache(maxsize=64)
def _matcher(part: str) -> Callable[[str], object]:
    """Return a function that matches a matrix that is the part, or lies inside it."""
    return re.compile(rf"{translate(part)}|{translate(part + '.*')}").match


def _general(name: str) -> str:
    """Return the module of a matrix with its layer as a star."""
    match = re.match(r"(.*\.layers)\.\d+\.([a-z_]+)", name)
    return f"{match[1]}.*.{match[2]}" if match else name.rpartition(".")[0]


def matrices_of(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters with two or more axes by name, a shared matrix once."""
    return {name: parameter for name, parameter in model.named_parameters() if parameter.ndim > 1}


def parts_of(matrices: Iterable[str]) -> list[str]:
    """Return the parts of a model: its embeddings, and each layer's attentions and network."""
    matches = (re.match(r".*\.layers\.\d+\.[a-z_]+|.*\.embedding(?=\.)", name) for name in matrices)
    return list(dict.fromkeys(match[0] for match in matches if match))


# --- one tensor -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Quantized:
    """A tensor of whole numbers, with the scale and zero point of each row.

    Attributes:
        values: in [0, 2^bits − 1], uint8, in the shape of the tensor.
        scales: the distance between neighbouring values, float32; one for each entry of the first
            axis, or a single one.
        zero_points: the values that represent 0, uint8, as many.
    """

    values: UInt8[Tensor, "*shape"]
    scales: Float[Tensor, " channel"]
    zero_points: UInt8[Tensor, " channel"]

    def dequantize(self) -> Float[Tensor, "*shape"]:
        """Scale · (q − zero_point), float32."""
        shape = (-1, *[1] * (self.values.ndim - 1))
        steps = self.values.float() - self.zero_points.float().view(shape)
        return steps.mul_(self.scales.view(shape))


def quantize(tensor: Float[Tensor, "*shape"], bits: int, per: Granularity = "channel") -> Quantized:
    """Round a tensor to 2^bits evenly spaced values between its extremes, or 0 and one of them.

    The error of each number is at most half a scale. A constant tensor is kept to the precision of
    float32, and so are zeros in any tensor.

    Args:
        tensor: of at least one axis; it may be empty.
        bits: 2 to 8.
        per: ``channel``: each entry of the first axis has a scale; ``tensor``: one for all.

    Raises:
        ValueError: bits are out of range, or a number is not finite.
    """
    Quantization(bits=bits, per=per)
    most = 2**bits - 1
    tensor = tensor.detach().float()
    if not tensor.isfinite().all():
        raise ValueError("a tensor with numbers that are not finite cannot be quantized")
    rows = tensor.reshape(len(tensor) if per == "channel" else 1, -1) if tensor.numel() else None
    if rows is None:
        n_scales = len(tensor) if per == "channel" else 1
        low = high = tensor.new_zeros(n_scales)
    else:
        low, high = rows.amin(dim=1).clamp_(max=0), rows.amax(dim=1).clamp_(min=0)
    # In float64, as the distance of two numbers of float32 may exceed its range.
    scales = ((high.double() - low.double()) / most).float()
    scales[scales < torch.finfo(torch.float32).tiny] = 1.0  # all 0, or so near that they become 0
    zero_points = (-low / scales).round_().clamp_(0, most)
    if rows is None:
        values = tensor
    else:
        values = rows * (1 / scales)[:, None]
        values = values.round_().add_(zero_points[:, None]).clamp_(0, most).view(tensor.shape)
    return Quantized(
        values=values.to(torch.uint8), scales=scales, zero_points=zero_points.to(torch.uint8)
    )


def fake_quantize(
    tensor: Float[Tensor, "*shape"], bits: int, per: Granularity = "channel"
) -> Float[Tensor, "*shape"]:
    """Quantize and restore a tensor, in its own dtype; the arguments are those of `quantize`."""
    return quantize(tensor, bits, per).dequantize().to(tensor.dtype)


# --- the weights of a pass ------------------------------------------------------------------------


class _Replacing(FunctionMode):
    """Let every operation of this thread read other tensors in place of some parameters."""

    def __init__(self, replaced: Mapping[int, Tensor]) -> None:
        super().__init__()
        self.replaced = replaced

    def _call(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        args = tuple(self._read(argument) for argument in args)
        return func(*args, **{name: self._read(argument) for name, argument in kwargs.items()})

    def _read(self, value: Any) -> Any:
        return self.replaced.get(id(value), value) if isinstance(value, nn.Parameter) else value


def assigned(
    matrices: Iterable[str], quantizations: Sequence[Quantization]
) -> dict[str, Quantization]:
    """Return the quantization of each matrix that one of them chooses.

    Raises:
        UnknownPart: a part matches no matrix.
        ValueError: two of them choose one matrix.
    """
    names, by_name = list(matrices), dict[str, Quantization]()
    for quantization in quantizations:
        for name in quantization.chosen(names):
            if name in by_name:
                raise ValueError(f"{name} is quantized twice; choose parts that do not overlap")
            by_name[name] = quantization
    return by_name


@contextmanager
def quantized_weights(
    model: nn.Module,
    quantizations: Sequence[Quantization],
    matrices: Mapping[str, nn.Parameter] | None = None,
) -> Iterator[None]:
    """Compute with quantized weights inside the ``with`` block, only in this thread.

    The parameters keep their values: each operation on one is given its rounded copy. Other threads
    that run the same model at the same time see nothing of it.

    Args:
        model: the model.
        quantizations: of its weights.
        matrices: its matrices by name; None: by the names of the modules.

    Raises:
        UnknownPart, ValueError: as `assigned`; or a weight is not finite.
    """
    matrices = matrices_of(model) if matrices is None else matrices
    with _Replacing(_rounded(model, tuple(quantizations), matrices)):
        yield


_KEPT: WeakKeyDictionary[nn.Module, tuple[Any, dict[int, Tensor]]] = WeakKeyDictionary()
_KEEPING = Lock()


def _rounded(
    model: nn.Module, quantizations: tuple[Quantization, ...], matrices: Mapping[str, nn.Parameter]
) -> dict[int, Tensor]:
    """Return the rounded copies by the id of their parameter.

    The last ones of a model are kept while its weights stay as they are: a text that is generated
    needs them at every token, and making them takes five times as long as a pass.
    """
    key = quantizations, tuple((matrix.data_ptr(), matrix._version) for matrix in matrices.values())
    with _KEEPING:
        kept = _KEPT.get(model)
    if kept is not None and kept[0] == key:
        return kept[1]
    with torch.inference_mode():
        copies = {
            id(matrices[name]): fake_quantize(matrices[name], chosen.bits, chosen.per)
            for name, chosen in assigned(matrices, quantizations).items()
        }
    with _KEEPING:
        _KEPT[model] = key, copies
    return copies
