"""The figures of a model with fewer bits for each weight: quality, size, speed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import process_time

import torch
from safetensors.torch import save

from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.quantization.affine import (
    MOST_BITS,
    Quantization,
    StoredQuantization,
    make_dynamic,
)
from headlight.model.quantization.storage import restored_weights, stored_weights

N_TOKENS, N_PASSES = 64, 9


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
    checkpoint: Checkpoint, quantization: StoredQuantization | None
) -> tuple[Checkpoint, int]:
    """Return the model as loaded from a file with this quantization, and the bytes of the file."""
    weights = checkpoint.model.weights()
    stored = stored_weights(weights, quantization, torch.float16)
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
