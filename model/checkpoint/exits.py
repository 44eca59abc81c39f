"""The end of a model, as a lens applies it to the residual stream of any layer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

import numpy as np
from jaxtyping import Float

from headlight.model.trace import NamedArray

Exits: TypeAlias = Callable[[str, Iterable[np.ndarray]], Iterator[np.ndarray]]
"""Makes the logits (query, vocab) of streams (query, d_model) of a stack."""
PARAMETERS = ("*coder.norm.*", "*coder.embedding.vectors.weight")


def norm_and_unembedding(parameters: Mapping[str, NamedArray], epsilon: float = 1e-5) -> Exits:
    """Yield the exits of a model whose logits are its final norm's output times E.

    Args:
        parameters: ``{stack}.embedding.vectors.weight`` (vocab, d_model), the encoder's if the two
            stacks share it; ``{stack}.norm.scale`` and ``.shift`` (d_model): both for LayerNorm,
            only the scale for RMSNorm, neither for a post-norm model, which has no final norm.
        epsilon: the norm's ε, added to the variance.

    Returns:
        The exits; they raise a KeyError if the parameters have no embedding.
    """

    def exits(
        stack: str, streams: Iterable[Float[np.ndarray, "query d_model"]]
    ) -> Iterator[Float[np.ndarray, "query vocab"]]:
        vectors = _unembedding(parameters, stack)
        for stream in streams:
            x = _normalise(stream.astype(np.float64), parameters, stack, epsilon)
            yield x.astype(np.float32) @ vectors.T

    return exits


def _unembedding(
    parameters: Mapping[str, NamedArray], stack: str
) -> Float[np.ndarray, "vocab d_model"]:
    for owner in (stack, "encoder", "decoder"):
        if (name := f"{owner}.embedding.vectors.weight") in parameters:
            # The product over the whole vocabulary is most of the work; float32 as in models.
            return parameters[name].data.astype(np.float32)
    raise KeyError(f"{stack}.embedding.vectors.weight is missing; the lens needs the unembedding")


def _normalise(
    stream: Float[np.ndarray, "query d_model"],
    parameters: Mapping[str, NamedArray],
    stack: str,
    epsilon: float,
) -> Float[np.ndarray, "query d_model"]:
    scale, shift = (parameters.get(f"{stack}.norm.{name}") for name in ("scale", "shift"))
    if scale is None:
        return stream
    centred = stream if shift is None else stream - stream.mean(axis=-1, keepdims=True)
    size = np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + epsilon)
    normalised: Float[np.ndarray, "query d_model"] = centred / size * scale.data
    return normalised if shift is None else normalised + shift.data
