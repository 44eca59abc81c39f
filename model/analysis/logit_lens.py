"""The logit lens: the next-token distribution read from the residual stream of each layer.

The model's final norm and unembedding are applied to the output of every layer. nostalgebraist
2020,
https://www.lesswrong.com/posts/AcKRB8wDpdaN6v6ru/interpreting-gpt-the-logit-lens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from headlight.model.analysis.layers import layers_of, require_all_layers
from headlight.model.analysis.next_token import (
    axes_of,
    following_ids,
    predictions_of_parts,
    row_parts,
)
from headlight.model.trace import NamedArray, Trace

PART = "residual.after"
CHUNK_ROWS = 512
"""The queries whose logits are held at one time."""


@runtime_checkable
class Exits(Protocol):
    """Makes logits of residual streams, as the end of a model does."""

    def __call__(
        self, stack: str, streams: Iterable[Float[np.ndarray, "query d_model"]]
    ) -> Iterator[Float[np.ndarray, "query vocab"]]:
        """Return the logits of each stream of a stack, as if it left the stack's last layer."""


def logit_lens(
    trace: Trace, exits: Exits, top: int = 20, tokens: Sequence[int] = ()
) -> dict[str, NamedArray]:
    """Return the `top` most likely tokens at every position after every layer, most likely first.

    In an encoder–decoder only the decoder predicts, so only its layers are read. The last layer
    equals `next_token` up to rounding.

    Args:
        trace: with ``{stack}.layers.N.residual.after`` (query, d_model) of every layer.
        exits: of the model.
        top: how many tokens; at most vocab_size are returned.
        tokens: ids of other tokens.

    Returns:
        ``ids`` (layer, query, rank), int32, and ``probabilities`` (layer, query, rank), float32.
        With `tokens` also ``chosen_ids`` (token), ``chosen_logits``, ``chosen_probabilities`` and
        ``chosen_ranks`` (layer, query, token); a rank of 1 is the likeliest.

    Raises:
        KeyError: the trace has no residual stream.
        ValueError: a layer below another is missing, top is less than 1, or there is no such token.
    """
    stack, layers = list(layers_of(trace, PART).items())[-1]
    require_all_layers(layers, stack, PART)
    by_layer = [_predictions(stack, stream, exits, top, tokens) for stream in layers.values()]
    arrays = {name: np.stack([each[name] for each in by_layer]) for name in by_layer[0]}
    if "chosen_ids" in arrays:
        arrays["chosen_ids"] = arrays["chosen_ids"][0]
    return {name: NamedArray(axes_of(name, array), array) for name, array in arrays.items()}


def last_prediction(
    trace: Trace, exits: Exits, top: int = 20, tokens: Sequence[int] = (), *, following: bool
) -> dict[str, NamedArray]:
    """As `next_token`, of the output of the last layer: all logits are never held at one time.

    Args:
        trace: with ``residual.after`` of the last layer of the stack that predicts.
        exits: of the model.
        top: how many tokens; at most vocab_size are returned.
        tokens: ids of other tokens.
        following: as of `next_token`.

    Raises:
        KeyError, ValueError: as `logit_lens`.
    """
    stack, layers = list(layers_of(trace, PART).items())[-1]
    ids = following_ids(trace) if following else None
    arrays = _predictions(stack, layers[max(layers)], exits, top, tokens, ids)
    return {name: NamedArray(axes_of(name, array), array) for name, array in arrays.items()}


def _predictions(
    stack: str,
    stream: Float[np.ndarray, "query d_model"],
    exits: Exits,
    top: int,
    tokens: Sequence[int],
    following: Sequence[int] | None = None,
) -> dict[str, NDArray[np.generic]]:
    """Return the likeliest and the chosen tokens of one stream, a part of it at a time."""
    return predictions_of_parts(exits(stack, row_parts(stream, CHUNK_ROWS)), top, tokens, following)
