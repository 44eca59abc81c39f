"""The logit lens of a foreign model: its own exit, run by stepping over its layers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headlight.model.cancellation import check
from headlight.model.foreign.installing import stepping_over
from headlight.model.foreign.outputs import OF_TEXT
from headlight.model.foreign.passes import ForeignPasses
from headlight.model.foreign.points import new_pass
from headlight.model.served import LinearExit


def exits(
    model: ForeignPasses, streams: Iterable[Float[np.ndarray, "query d_model"]]
) -> Iterator[Float[np.ndarray, "query vocab"]]:
    """Yield the logits of each stream, as if it left the last layer of the stack that predicts.

    Every layer returns the stream, so that what follows the layers runs as it is in the model: a
    norm, a projection, a cap on the logits.
    """
    for stream in streams:
        check()
        x = torch.as_tensor(np.ascontiguousarray(stream), device=model.device)
        x = x.to(next(model.module.parameters()).dtype)
        with torch.inference_mode():
            logits = _logits_of(model, x)
        yield logits.float().cpu().numpy()


def _logits_of(
    model: ForeignPasses, x: Float[Tensor, "query d_model"]
) -> Float[Tensor, "query vocab"]:
    """Return the logits of the rows of a stream, each by itself if the model `reads_alone`."""
    stream = x[:, None] if model.reads_alone else x[None]
    with new_pass(), stepping_over(stream):
        logits = model.output(model.dummy_inputs(len(x)))
    return logits[:, 0] if model.reads_alone else logits[0]


_TOLERANCES = {torch.float32: 1e-3, torch.float64: 1e-6}
AT_ONCE = 32
"""Gradients in one backward pass: each holds the logits of all tokens once more."""


def linear_exit(
    model: ForeignPasses, stream: Float[np.ndarray, " d_model"], tokens: Sequence[int]
) -> LinearExit:
    """As `Served.linear_exit`, from the exit's own numbers and gradient.

    With f(x) = v·c/σ + b, c = x (RMSNorm) or x − μ (LayerNorm) and σ² = |c|²/d + ε, the gradient
    is g = v/σ − (v·c)c/(dσ³). Freezing σ adds the second term back: v/σ = g + (f − b − g·x)c/|c|²,
    where b = f(0). A second stream shows whether f has this form; dε = |c|²g·x/(f − b − g·x). A
    head of labels that has not, as one with a tanh, is taken with its slope frozen: g·x + b.

    Raises:
        ValueError: it has not, and the tokens are no labels.
    """
    if len(tokens) > len(stream):
        return _whole_exit(model, stream, tokens)
    dtype = next(model.module.parameters()).dtype
    largest = max(1e-6, float(np.abs(stream).max()))
    probe = 2 * np.roll(stream, 1) + np.roll(stream, 7) ** 2 / largest
    rows = np.stack([stream, np.zeros_like(stream), probe])
    x = torch.as_tensor(rows, device=model.device).to(dtype).requires_grad_()
    with torch.inference_mode(False), torch.enable_grad():
        logits = _logits_of(model, x)[:, list(tokens)]
        gradients = [
            torch.autograd.grad(logits[0], x, each, retain_graph=True, is_grads_batched=True)[0]
            for each in torch.eye(len(tokens), device=x.device, dtype=logits.dtype).split(AT_ONCE)
        ]
    at_stream, at_zero, at_probe = logits.detach().double().cpu().numpy()
    is_centred = model.config.norm == "layer_norm"
    centre, probed = (row - row.mean() if is_centred else row for row in (stream, probe))
    slope = torch.cat(gradients)[:, 0].double().cpu().numpy()
    missing = at_stream - at_zero - slope @ stream
    directions = slope + np.outer(missing / (centre @ centre), centre)
    longest = int(np.abs(missing).argmax())
    share = slope[longest] @ stream / (missing[longest] or np.inf)
    extra = max(0.0, float(share)) * (centre @ centre)  # d·ε
    ratio = np.sqrt((centre @ centre + extra) / (probed @ probed + extra))
    expected = (directions @ probed * ratio + at_zero, directions @ probe + at_zero)
    scale = float(np.abs(at_probe).max() + np.abs(at_stream).max())
    error = min(float(np.abs(at_probe - row).max()) for row in expected)
    if not error <= _TOLERANCES.get(dtype, 0.05) * scale:
        if model.task in OF_TEXT:
            return LinearExit(slope, at_zero, is_frozen=True)
        raise ValueError(
            "what this model does with its last stream is more than a norm and a matrix, so its "
            "logits are not a sum over its parts"
        )
    return LinearExit(directions, at_zero)


_ROWS = 128


def _whole_exit(
    model: ForeignPasses, stream: Float[np.ndarray, " d_model"], tokens: Sequence[int]
) -> LinearExit:
    """As `linear_exit`, of more tokens than features: from the exit of each feature by itself.

    The norm of the stream s·e_i is the same for all i, so f(s·e_i) − f(0) is v_i times a constant,
    which the gradients of two tokens tell.
    """
    width = len(stream)
    size = max(1.0, float(np.linalg.norm(stream)))
    step = min(_ROWS, model.config.max_tokens)
    rows = (
        size * np.eye(width, dtype=np.float32)[start : start + step]
        for start in range(0, width, step)
    )
    (at_zero,) = exits(model, [np.zeros((1, width), np.float32)])
    chosen = at_zero[0][list(tokens)].astype(np.float64)
    changes = np.concatenate([logits[:, list(tokens)] for logits in exits(model, rows)]) - chosen
    exact = linear_exit(model, stream, tokens[:2]).directions
    factor = float((exact * changes[:, :2].T).sum() / np.square(changes[:, :2]).sum())
    return LinearExit(factor * changes.T, chosen)
