"""The sensitivity of a model to fewer bits: each part is quantized separately, on one text.

    divergence = mean over positions of KL(p ‖ p′)      p, p′: the distribution of the model as it
                                                        is, and with the part rounded
    loss = mean of −ln p′(t)                            t: the token in the text

A part whose divergence is large needs more bits than the others. Dong et al. 2019 rank layers so by
curvature, https://arxiv.org/abs/1905.03696; here the change itself is measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int

from headlight.model.cancellation import check
from headlight.model.quantization.affine import Quantization, parts_of
from headlight.model.served import Served
from headlight.model.trace import NamedArray, Trace
from headlight.model.tracing import ModelInput, PassSpec, run_batch

ALL = "*"
BITS = (8, 4, 2)


def quantization_sensitivity(
    trace: Trace,
    parts: Sequence[str],
    rounded_logits: Callable[[str, int], Float[np.ndarray, "query vocab"]],
    *,
    is_encoder: bool,
    bits: Sequence[int] = BITS,
) -> dict[str, NamedArray]:
    """Return the change of the predictions when the weights of one part are rounded.

    Args:
        trace: of the model as it is, with the site ``logits`` (query, vocab).
        parts: names or globs of modules.
        rounded_logits: the logits of the same text with a part in so many bits.
        is_encoder: whether each position predicts its own token, in place of the next.
        bits: to round to.

    Returns:
        ``divergence`` (bits, part) in bits, at least 0; ``loss`` (bits, part) in bits per token,
        and ``loss_change`` (bits, part), negative if the rounded model predicts the text better;
        ``bits`` (bits). All float32, the last int32.

    Raises:
        KeyError: the trace has no logits.
        ValueError: the text has no token to predict.
    """
    labels = _labels(trace, is_encoder=is_encoder)
    plain = _log_probabilities(trace.tensors["logits"].data)
    divergence, loss = np.zeros((2, len(bits), len(parts)), np.float32)
    for row, number in enumerate(bits):
        for column, part in enumerate(parts):
            rounded = _log_probabilities(rounded_logits(part, number))
            divergences = (np.exp2(plain) * (plain - rounded)).sum(axis=-1)
            divergence[row, column] = max(0.0, float(divergences.mean()))
            loss[row, column] = _loss(rounded, labels)
    axes = ("bits", "part")
    return {
        "divergence": NamedArray(axes, divergence),
        "loss": NamedArray(axes, loss),
        "loss_change": NamedArray(axes, loss - np.float32(_loss(plain, labels))),
        "bits": NamedArray(("bits",), np.array(bits, np.int32)),
    }


def parts_to_round(model: Served) -> list[str]:
    """Return all parts of a model together, and each one by itself."""
    return [ALL, *parts_of(model.description.matrices)]


def rounded_passes(
    trace: Trace, model: Served
) -> Callable[[str, int], Float[np.ndarray, "query vocab"]]:
    """Return a function that reads the text of a trace with one part in so many bits."""
    text = ModelInput(trace.text, trace.tokens, trace.target, trace.target_tokens)

    def logits(part: str, bits: int) -> Float[np.ndarray, "query vocab"]:
        check()
        spec = PassSpec(("logits",), None, (Quantization(bits=bits, parts=(part,)),))
        return run_batch(model, spec, [text])[0]["logits"]

    return logits


def _labels(trace: Trace, *, is_encoder: bool) -> Int[np.ndarray, " token"]:
    """Return the token that each of the first positions predicts."""
    tokens = trace.tokens if trace.target_tokens is None else trace.target_tokens
    ids = np.array([token.id for token in tokens], np.int64)[0 if is_encoder else 1 :]
    if not len(ids):
        raise ValueError("the text has one token and none after it to predict; send a longer one")
    return ids


def _log_probabilities(
    logits: Float[np.ndarray, "query vocab"],
) -> Float[np.ndarray, "query vocab"]:
    """Return the binary logarithms of the probabilities."""
    # PyTorch's kernel makes one pass over each row, in place of four.
    log_probs = torch.from_numpy(logits.astype(np.float64)).log_softmax(dim=-1)
    return log_probs.div_(math.log(2)).numpy()


def _loss(
    log_probabilities: Float[np.ndarray, "query vocab"], labels: Int[np.ndarray, " token"]
) -> float:
    return -float(log_probabilities[np.arange(len(labels)), labels].mean())
