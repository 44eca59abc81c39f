"""The weights of a file, of which some matrices are quantized: their bits packed, scales and zeros.

stored = stored_weights(model.weights(), quantization, torch.float16)
weights = restored_weights(stored.__getitem__, model.weights(), quantization)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from headlight.model.quantization.affine import MOST_BITS, Quantization, Quantized, quantize

SCALE, ZERO_POINT = ".quantization_scale", ".quantization_zero_point"


def pack(values: UInt8[Tensor, "*shape"], bits: int) -> UInt8[Tensor, " byte"]:
    """Whole numbers below 2^bits as one stream of bits, the lowest bit of each number first."""
    flat = values.flatten().cpu()
    if bits == MOST_BITS:
        return flat
    by_bit = np.unpackbits(flat.numpy()[:, None], axis=1, count=bits, bitorder="little")
    return torch.from_numpy(np.packbits(by_bit, bitorder="little"))


def unpack(packed: UInt8[Tensor, " byte"], bits: int, shape: Sequence[int]) -> UInt8[Tensor, ...]:
    """Return the numbers that `pack` packed, in this shape."""
    if bits == MOST_BITS:
        return packed.view(*shape)
    n_numbers = int(np.prod(shape))
    by_bit = np.unpackbits(packed.cpu().numpy(), count=n_numbers * bits, bitorder="little")
    values = np.packbits(by_bit.reshape(n_numbers, bits), axis=1, bitorder="little")
    return torch.from_numpy(values).view(*shape)


def n_packed_bytes(n_numbers: int, bits: int) -> int:
    """Return the bytes that `pack` makes of so many numbers."""
    return -(-n_numbers * bits // 8)


class Stored(NamedTuple):
    """The shape of a tensor in a file, and the dtypes that it may have, as safetensors names them.

    ``dtypes`` None: any floating-point one.
    """

    shape: tuple[int, ...]
    dtypes: tuple[str, ...] | None = None


def stored_layout(
    weights: Mapping[str, Tensor], quantization: Quantization | None
) -> dict[str, Stored]:
    """Return the tensors of a file by name; a quantized matrix has values, scales, zeros.

    Args:
        weights: by name, of any device, the meta device too.
        quantization: None: the weights are stored as they are.

    Raises:
        UnknownPart: a part matches no matrix.
    """
    layout = {name: Stored(tuple(tensor.shape)) for name, tensor in weights.items()}
    for name in _chosen(weights, quantization):
        assert quantization is not None
        tensor = weights[name]
        n_scales = len(tensor) if quantization.per == "channel" else 1
        n_bytes = n_packed_bytes(tensor.numel(), quantization.bits)
        layout[name] = Stored((n_bytes,), ("U8",))
        layout[name + SCALE] = Stored((n_scales,), ("F32",))
        layout[name + ZERO_POINT] = Stored((n_scales,), ("U8",))
    return layout


def stored_weights(
    weights: Mapping[str, Tensor], quantization: Quantization | None, dtype: torch.dtype
) -> dict[str, Tensor]:
    """Return the tensors to write to a file, as `stored_layout` describes them.

    Args:
        weights: by name.
        quantization: None: none is quantized.
        dtype: of the tensors that are not quantized.

    Raises:
        UnknownPart: a part matches no matrix.
        ValueError: a weight is not finite.
    """
    quantized = set(_chosen(weights, quantization))
    tensors: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        if quantization is None or name not in quantized:
            tensors[name] = tensor.detach().to("cpu", dtype).contiguous()
            continue
        numbers = quantize(tensor.cpu(), quantization.bits, quantization.per)
        tensors[name] = pack(numbers.values, quantization.bits)
        tensors[name + SCALE] = numbers.scales
        tensors[name + ZERO_POINT] = numbers.zero_points
    return tensors


def restored_weights(
    read: Callable[[str], Tensor], weights: Mapping[str, Tensor], quantization: Quantization | None
) -> dict[str, Tensor]:
    """Return the weights of a file in float32.

    Args:
        read: a tensor of the file by its name.
        weights: by name, for their shapes.
        quantization: of the file.

    Raises:
        ValueError: a zero point does not fit the bits.
    """
    quantized = set(_chosen(weights, quantization))
    tensors: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        if quantization is None or name not in quantized:
            tensors[name] = read(name).float()
            continue
        zero_points = read(name + ZERO_POINT)
        if zero_points.numel() and (most := int(zero_points.max())) >= 2**quantization.bits:
            raise ValueError(f"{name} has a zero point of {most} in {quantization.bits} bits")
        values = unpack(read(name), quantization.bits, tensor.shape)
        scales = read(name + SCALE)
        tensors[name] = Quantized(
            values=values, scales=scales, zero_points=zero_points
        ).dequantize()
    return tensors


def _chosen(weights: Mapping[str, Tensor], quantization: Quantization | None) -> list[str]:
    if quantization is None:
        return []
    return quantization.chosen(name for name, tensor in weights.items() if tensor.ndim > 1)
