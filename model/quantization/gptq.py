"""GPTQ: round the weights of linear layers so that their outputs on calibration text change least.

Frantar et al. 2022, https://arxiv.org/abs/2210.17323. Of a layer y = W·x, rounding column by
column, the error of each column is spread over those that are not rounded yet,

    w_j ← w_j − (w_q − round(w_q)) / [H⁻¹]_qq · [H⁻¹]_qj        H = 2·X·Xᵀ + λ·I,

which is the best answer to it for the squared error of the outputs. The Cholesky factor of H⁻¹
gives the rows of every step at once. Columns are taken in the order of their diagonal of H, the
largest first. Scales and zero points are those of rounding (`quantization.quantize`), so the file
has the same layout.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from headlight.model.quantization.affine import Quantization, Quantized, matrices_of, quantize

DAMPING = 0.01
"""λ, as a share of the mean of the diagonal."""


@dataclass(frozen=True, kw_only=True)
class LayerError:
    """The mean squared error of a layer's outputs on the calibration text, over their mean square.

    ``rounded`` is that of rounding, ``calibrated`` that of GPTQ.
    """

    rounded: float
    calibrated: float


def calibrate(
    model: nn.Module, run: Callable[[], None], quantization: Quantization
) -> tuple[dict[str, Quantized], dict[str, LayerError]]:
    """Quantize the linear layers of a model that the quantization chooses.

    Args:
        model: in eval mode; it keeps its weights.
        run: runs the model on the calibration text.
        quantization: chooses matrices. Others than those of linear layers are left out, and so is
            a layer that the text never reaches, such as an expert without a token.

    Returns:
        The numbers of each matrix by its name, and the errors of its outputs.

    Raises:
        ValueError: a weight or an input is not finite.
    """
    chosen = set(quantization.chosen(matrices_of(model)))
    layers = {
        f"{name}.weight": module
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and f"{name}.weight" in chosen
    }
    with _second_moments(layers) as moments:
        run()
    numbers, errors = dict[str, Quantized](), dict[str, LayerError]()
    for name, layer in layers.items():
        if name in moments:
            weight = layer.weight.detach().double().cpu()
            numbers[name] = gptq(weight, moments[name], quantization)
            rounded = quantize(weight.float(), quantization.bits, quantization.per)
            errors[name] = LayerError(
                rounded=_error(weight, rounded, moments[name]),
                calibrated=_error(weight, numbers[name], moments[name]),
            )
    return numbers, errors


@contextmanager
def _second_moments(layers: Mapping[str, nn.Linear]) -> Iterator[dict[str, Tensor]]:
    """Add up X·Xᵀ of the inputs of layers while the block runs, by name, in float64."""
    moments: dict[str, Tensor] = {}

    def add(name: str) -> Callable[[nn.Module, tuple[Any, ...]], None]:
        def hook(_: nn.Module, inputs: tuple[Any, ...]) -> None:
            rows = inputs[0].detach().flatten(0, -2).double().cpu()
            if len(rows):
                moments[name] = moments.get(name, 0) + rows.T @ rows

        return hook

    handles = [layer.register_forward_pre_hook(add(name)) for name, layer in layers.items()]
    try:
        yield moments
    finally:
        for handle in handles:
            handle.remove()


def gptq(
    weight: Float[Tensor, "output input"],
    moments: Float[Tensor, "input input"],
    quantization: Quantization,
) -> Quantized:
    """Round a matrix, each column with the errors of those before.

    Args:
        weight: W.
        moments: X·Xᵀ of its inputs, of any scale.
        quantization: the bits, and the granularity of the scales.

    Raises:
        ValueError: a number is not finite.
    """
    if not moments.isfinite().all():
        raise ValueError("the calibration text gives inputs that are not finite")
    weight = weight.double().clone()
    known = quantize(weight.float(), quantization.bits, quantization.per)
    scales = known.scales.double().expand(len(weight))
    zeros = known.zero_points.double().expand(len(weight))
    # 1. The Hessian, its dead inputs set aside, and the upper Cholesky factor of its inverse.
    hessian = 2 * moments.double()
    diagonal = hessian.diagonal()
    is_dead = diagonal == 0
    hessian = hessian + torch.diag(
        is_dead.double() + DAMPING * diagonal.mean().clamp(min=1e-30) * ~is_dead
    )
    order = diagonal.argsort(descending=True, stable=True)
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(hessian[order][:, order]))
    factor = torch.linalg.cholesky(inverse, upper=True)
    # 2. Round column by column, and spread the error over the later ones.
    weight, values = weight[:, order], torch.empty_like(weight)
    for column in range(weight.shape[1]):
        exact = weight[:, column]
        whole = (exact / scales + zeros).round().clamp(0, 2**quantization.bits - 1)
        error = (exact - scales * (whole - zeros)) / factor[column, column]
        values[:, column] = whole
        weight[:, column:] -= error[:, None] * factor[column, column:]
    restored = torch.empty_like(values)
    restored[:, order] = values
    return Quantized(
        values=restored.to(torch.uint8), scales=known.scales, zero_points=known.zero_points
    )


def _error(weight: Tensor, numbers: Quantized, moments: Tensor) -> float:
    """Return the squared error of the outputs over their square: tr(ΔW·XXᵀ·ΔWᵀ) / tr(W·XXᵀ·Wᵀ)."""
    change = numbers.dequantize().double() - weight
    total = ((weight @ moments) * weight).sum()
    return float(((change @ moments) * change).sum() / total.clamp(min=1e-30))


def by_kind(errors: Mapping[str, LayerError]) -> dict[str, dict[str, float]]:
    """Average the errors of layers of one kind: names with every number as a star."""
    return _means(errors, lambda name: re.sub(r"\b\d+\b", "*", name.removesuffix(".weight")))


def by_layer(errors: Mapping[str, LayerError]) -> dict[str, dict[str, float]]:
    """Average the errors of all linear layers in one layer of the model: "decoder.layers.0".

    A name that holds no number is a layer of its own.
    """
    return _means(errors, lambda name: re.sub(r"(\.\d+)\..*", r"\1", name))


def _means(
    errors: Mapping[str, LayerError], group_of: Callable[[str], str]
) -> dict[str, dict[str, float]]:
    groups: dict[str, list[LayerError]] = {}
    for name, error in errors.items():
        groups.setdefault(group_of(name), []).append(error)
    return {
        group: {
            "rounded": _mean(error.rounded for error in members),
            "calibrated": _mean(error.calibrated for error in members),
        }
        for group, members in groups.items()
    }


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers)
