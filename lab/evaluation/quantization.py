"""The figures of a model with fewer bits for each weight: quality, size, speed; also by GPTQ."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import process_time
from types import MappingProxyType
from typing import Any

import torch
from safetensors.torch import save

from headlight.lab.training.batches import prepend
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.corpus import TokenStream
from headlight.model.quantization.affine import (
    MOST_BITS,
    Quantization,
    Quantized,
    StoredQuantization,
    make_dynamic,
)
from headlight.model.quantization.gptq import LayerError, by_kind, by_layer, calibrate
from headlight.model.quantization.storage import restored_weights, stored_weights

N_TOKENS, N_PASSES = 64, 9
N_ROWS = 64
"""Rows of calibration text, each as long as the model reads."""


def evaluate(
    checkpoint: Checkpoint, measure: Callable[[Checkpoint], dict[str, float]], bits: Sequence[int]
) -> dict[str, dict[str, float]]:
    """Measure a model as it is, and with all its matrices in fewer bits, a scale for each row.

    Args:
        checkpoint: not quantized.
        measure: the quality of a model, by the name of the figure.
        bits: of the weights. With 8 on the CPU, dynamic activations are measured as well.

    Returns:
        For ``float`` and each ``bits_N``: what `measure` found, ``file_bytes`` of the weights as
        they are stored, and ``tokens_per_cpu_second`` of a pass over 64 tokens: by the processor's
        time, so that other work on the machine does not count, the fastest of nine, in turns.
        Unless activations are quantized, weights are restored at load: as fast as ``float``.

    Raises:
        ValueError: bits are out of range, or the model is quantized already.
    """
    if checkpoint.description.quantization is not None:
        raise ValueError(f"'{checkpoint.id}' is quantized already; evaluate it without --bits")
    wanted: list[StoredQuantization | None] = [None]
    for number in dict.fromkeys(bits):
        wanted.append(StoredQuantization(bits=number))
        if number == MOST_BITS and checkpoint.device.type == "cpu":
            wanted.append(StoredQuantization(bits=number, activations="dynamic"))
    figures: dict[str, dict[str, float]] = {}
    copies: dict[str, Checkpoint] = {}
    for quantization in wanted:
        name = _name(quantization)
        copies[name], n_bytes = _quantized(checkpoint, quantization)
        figures[name] = {**measure(copies[name]), "file_bytes": n_bytes}
    for name, speed in _speeds(copies).items():
        figures[name]["tokens_per_cpu_second"] = speed
    return figures


def _name(quantization: StoredQuantization | None) -> str:
    if quantization is None:
        return "float"
    suffix = "_dynamic" if quantization.activations == "dynamic" else ""
    return f"bits_{quantization.bits}{suffix}"


def _quantized(
    checkpoint: Checkpoint,
    quantization: StoredQuantization | None,
    numbers: Mapping[str, Quantized] = MappingProxyType({}),
) -> tuple[Checkpoint, int]:
    """Return the model as loaded from a file with this quantization, and the bytes of the file."""
    weights = checkpoint.model.weights()
    stored = stored_weights(weights, quantization, torch.float16, numbers)
    model = copy.deepcopy(checkpoint.model)
    model.load_weights(restored_weights(stored.__getitem__, weights, quantization))
    if quantization is not None and quantization.activations == "dynamic":
        make_dynamic(model, Quantization(bits=quantization.bits))
    return replace(checkpoint, model=model), len(save(stored))


def _speeds(copies: Mapping[str, Checkpoint]) -> dict[str, int]:
    """Measure the tokens per second of each model, to two digits: more are not reproducible."""
    seconds: dict[str, list[float]] = {name: [] for name in copies}
    n_tokens = 0
    for _ in range(N_PASSES):
        for name, checkpoint in copies.items():
            config = checkpoint.config
            n_tokens = min(N_TOKENS, config.max_tokens)
            ids = torch.arange(n_tokens, device=checkpoint.device)[None] % config.vocab_size
            inputs = (ids, ids) if config.kind == "encoder-decoder" else (ids,)
            began = process_time()
            with torch.inference_mode():
                checkpoint.model(*inputs).logits.sum().item()
            seconds[name].append(process_time() - began)
    return {
        name: int(float(f"{n_tokens / max(min(taken), 1e-9):.2g}"))
        for name, taken in seconds.items()
    }


# --- calibration ----------------------------------------------------------------------------------


def calibrated(
    checkpoint: Checkpoint, documents: Sequence[str], quantization: Quantization
) -> tuple[dict[str, Quantized], dict[str, LayerError]]:
    """Quantize the linear layers of a decoder or an encoder with the first rows of a text.

    Raises:
        CorpusError: the text is shorter than one row.
        ValueError: the model translates, so that it reads pairs and not a text.
    """
    config = checkpoint.config
    if config.kind == "encoder-decoder":
        raise ValueError("calibration reads a text, and a translator reads pairs; leave it out")
    stream = TokenStream.encode(documents, checkpoint.tokenizer)
    length = min(config.max_tokens - 1, len(stream.ids))
    starts = stream.row_starts(length)[:N_ROWS]
    rows = prepend(
        checkpoint.tokenizer.start_id, stream.ids[starts[:, None] + torch.arange(length)]
    )

    def run() -> None:
        with torch.inference_mode():
            for part in rows.split(4):
                checkpoint.model(part.to(checkpoint.device), has_logits=False)

    return calibrate(checkpoint.model, run, quantization)


def evaluate_calibrated(
    checkpoint: Checkpoint,
    measure: Callable[[Checkpoint], dict[str, float]],
    bits: Sequence[int],
    documents: Sequence[str],
) -> dict[str, Any]:
    """Measure a model with its matrices in fewer bits, rounded and calibrated.

    Returns:
        For each ``bits_N_gptq``: the figures of `measure`, and under ``errors`` the mean squared
        error of the outputs of each kind of linear layer, over their mean square, by both ways;
        under ``errors_by_layer`` the mean over the linear layers in each layer of the model.

    Raises:
        CorpusError, ValueError: as `calibrated`.
    """
    figures: dict[str, Any] = {}
    for number in dict.fromkeys(bits):
        quantization = StoredQuantization(bits=number)
        numbers, errors = calibrated(checkpoint, documents, quantization)
        figures[f"bits_{number}_gptq"] = {
            **measure(_quantized(checkpoint, quantization, numbers)[0]),
            "errors": by_kind(errors),
            "errors_by_layer": by_layer(errors),
        }
    return figures
