"""Weights with calibration: GPTQ on a text, and its figures next to those of rounding."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from headlight.lab.training.batches import prepend
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.corpus import TokenStream
from headlight.model.quantization.affine import Quantization, Quantized, StoredQuantization
from headlight.model.quantization.gptq import LayerError, by_kind, by_layer, calibrate
from headlight.model.quantization.storage import restored_weights, stored_weights

N_ROWS = 64
"""Rows of calibration text, each as long as the model reads."""


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


def evaluate(
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
            **measure(with_numbers(checkpoint, quantization, numbers)),
            "errors": by_kind(errors),
            "errors_by_layer": by_layer(errors),
        }
    return figures


def with_numbers(
    checkpoint: Checkpoint, quantization: StoredQuantization, numbers: Mapping[str, Quantized]
) -> Checkpoint:
    """Return the model as loaded from a file with these numbers."""
    weights = checkpoint.model.weights()
    stored = stored_weights(weights, quantization, torch.float16, numbers)
    model = copy.deepcopy(checkpoint.model)
    model.load_weights(restored_weights(stored.__getitem__, weights, quantization))
    return replace(checkpoint, model=model)
