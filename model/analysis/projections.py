"""W_O, the projection by which the heads of an attention write, cut into the heads of a trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from headlight.model.trace import NamedArray


def projection_of(
    path: str, parameters: Mapping[str, NamedArray], heads: Sequence[int] | None, n_heads: int
) -> Float[np.ndarray, "head d_head d_model"]:
    """The output projection of an attention, float64, of the heads that a trace holds.

    Args:
        path: of the attention, ``decoder.layers.0.self_attention``.
        parameters: with ``{path}.output_projection.weight`` (head, d_head, d_model), all heads.
        heads: those of the trace; None: all of them.
        n_heads: how many heads its arrays have.

    Raises:
        KeyError: the projection is missing.
        ValueError: it has other heads than the trace.
    """
    name = f"{path}.output_projection.weight"
    if name not in parameters:
        raise KeyError(f"{name} is missing, and without it a head does not say what it writes")
    projection = parameters[name].data.astype(np.float64)
    chosen = range(len(projection)) if heads is None else heads
    if len(chosen) != n_heads or max(chosen) >= len(projection):
        raise ValueError(
            f"the output projection has {len(projection)} heads, but the trace holds those of "
            f"{n_heads} (heads: {'all' if heads is None else list(heads)})"
        )
    return projection[list(chosen)]
