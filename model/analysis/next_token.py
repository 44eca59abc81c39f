"""The most likely next tokens after each token."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray

from headlight.model.distributions import log_sum_exp, top_k
from headlight.model.generation.sampling import Sampling, next_token_distribution
from headlight.model.trace import NamedArray, Trace

CHUNK_ROWS = 32
"""The queries whose logits are copied at one time."""


def next_token(
    trace: Trace,
    top: int = 20,
    tokens: Sequence[int] = (),
    *,
    following: bool = False,
    sampling: Sampling | None = None,
    is_independent: bool = False,
) -> dict[str, NamedArray]:
    """Return the `top` most likely next tokens after every token, most likely first.

    Args:
        trace: with the site ``logits`` (query, vocab).
        top: how many tokens; at most vocab_size are returned.
        tokens: ids of other tokens.
        following: whether the probability of the token that does follow is returned too.
        sampling: how a token would be sampled; None: not returned.
        is_independent: whether any number of labels may be right: a probability is then the
            sigmoid of its own logit.

    Returns:
        ``ids`` (query, rank), int32, and ``probabilities`` (query, rank), float32 in [0, 1]:
        softmax over the whole vocabulary, so a row sums to 1 or less. With `tokens` also
        ``chosen_ids`` (token), ``chosen_logits``, ``chosen_probabilities`` and ``chosen_ranks``
        (query, token); a rank of 1 is the likeliest. With `following` also ``following``
        (position), float32: of every token but the first, the probability that it had. With
        `sampling` also ``sampled`` (query, rank), float32: the probability of each of ``ids`` of
        being sampled, as `next_token_distribution` computes it.

    Raises:
        KeyError: the trace has no logits.
        ValueError: top is less than 1, or there is no such token.
    """
    logits = trace.tensors["logits"].data
    parts = row_parts(logits, CHUNK_ROWS)
    arrays = predictions_of_parts(parts, top, tokens, following_ids(trace) if following else None)
    if is_independent:
        kept = (("ids", "probabilities"), ("chosen_ids", "chosen_probabilities"))
        for ids, name in (pair for pair in kept if pair[0] in arrays):
            index = np.broadcast_to(arrays[ids], (len(logits), arrays[ids].shape[-1]))
            arrays[name] = probabilities_of(np.take_along_axis(logits, index, 1))
    if sampling is not None:
        arrays["sampled"] = _of_being_sampled(logits, arrays["ids"], sampling)
    return {name: NamedArray(axes_of(name, array), array) for name, array in arrays.items()}


def probabilities_of(logits: Float[np.ndarray, ...]) -> Float[np.ndarray, ...]:
    """Return the sigmoid of logits, float32."""
    return (1 / (1 + np.exp(-logits.astype(np.float64)))).astype(np.float32)


def row_parts(
    rows: Float[np.ndarray, "query width"], n_rows: int
) -> Iterator[Float[np.ndarray, "some width"]]:
    """Yield the rows, at most that many at a time; of a graph, whose length is open, all."""
    if torch.compiler.is_exporting():
        return iter([rows])
    return (rows[start : start + n_rows] for start in range(0, len(rows), n_rows))


def predictions_of_parts(
    parts: Iterable[Float[np.ndarray, "some vocab"]],
    top: int,
    tokens: Sequence[int],
    following: Sequence[int] | None,
) -> dict[str, NDArray[Any]]:
    """As `predictions`, of logits that come in parts, so that none is copied whole."""
    by_name: dict[str, list[NDArray[Any]]] = {}
    n_read = 0
    for logits in parts:
        rest = None if following is None else following[n_read:]
        n_read += logits.shape[0]
        for name, array in predictions(logits, top, tokens, rest).items():
            by_name.setdefault(name, []).append(array)
    return {
        name: arrays[0] if name == "chosen_ids" else np.concatenate(arrays)
        for name, arrays in by_name.items()
    }


def predictions(
    logits: Float[np.ndarray, "query vocab"],
    top: int,
    tokens: Sequence[int],
    following: Sequence[int] | None,
) -> dict[str, NDArray[Any]]:
    """Return the likeliest tokens of each row and their probabilities, like `next_token`.

    `following` has the token after each row; rows past the last have none.

    Raises:
        ValueError: top is less than 1, or there is no such token.
    """
    if not all(0 <= token < logits.shape[-1] for token in tokens):
        raise ValueError(f"tokens {list(tokens)} must lie in 0 to {logits.shape[-1] - 1}")
    normaliser = log_sum_exp(logits)

    def probabilities(some: NDArray[Any], rows: slice = slice(None)) -> NDArray[np.float32]:
        shares: NDArray[np.float32] = np.exp(some - normaliser[rows]).astype(np.float32)
        return shares

    ids, greatest = top_k(logits, top)
    arrays = {"ids": ids.astype(np.int32), "probabilities": probabilities(greatest)}
    if tokens:
        chosen = logits[:, list(tokens)]
        ranks = [1 + (logits > logits[:, token, None]).sum(axis=-1) for token in tokens]
        arrays |= {
            "chosen_ids": np.array(tokens, np.int32),
            "chosen_logits": chosen.astype(np.float32),
            "chosen_probabilities": probabilities(chosen),
            "chosen_ranks": np.stack(ranks, axis=-1).astype(np.int32),
        }
    if following is not None:
        rows = np.arange(min(len(following), len(logits)))
        had = logits[rows, following[: len(rows)]]
        arrays["following"] = probabilities(had[:, None], slice(len(rows)))[:, 0]
    return arrays


def axes_of(name: str, array: NDArray[Any]) -> tuple[str, ...]:
    """Return the axes of an array of `predictions`, or of one for each layer."""
    if name == "following":
        return ("position",)
    last = "token" if name.startswith("chosen") else "rank"
    return ("layer", "query", last)[3 - array.ndim :]


def _of_being_sampled(
    logits: Float[np.ndarray, "query vocab"], ids: Int[np.ndarray, "query rank"], sampling: Sampling
) -> Float[np.ndarray, "query rank"]:
    rows = [
        next_token_distribution(torch.tensor(row), sampling).numpy()[chosen]
        for row, chosen in zip(logits, ids, strict=True)
    ]
    return np.stack(rows).astype(np.float32)


def following_ids(trace: Trace) -> list[int]:
    """Return the tokens that follow the predicted positions of the text, but the last."""
    tokens = trace.tokens if trace.target_tokens is None else trace.target_tokens
    return [token.id for token in tokens[1:]]
