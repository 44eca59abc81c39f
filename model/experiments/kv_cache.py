"""The cache of keys and values as a picture: shared keys, a window with sinks, and its bytes.

bytes = 2 · layers · heads with keys · width of a head · tokens kept · bytes of a number
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from pydantic import Field, model_validator

from headlight.model.experiments.experiment import Arrays, Experiment, Parameters


class KeyValueCacheShape(Parameters):
    """The parameters of `kv_cache`; nothing is drawn, so the seed changes nothing."""

    n_heads: int = Field(9, ge=1, le=128, description="Heads of queries.")
    n_kv_heads: int = Field(3, ge=1, le=128, description="Heads of keys and values they share.")
    n_layers: int = Field(30, ge=1, le=200, description="Each keeps keys and values of its own.")
    d_head: int = Field(64, ge=1, le=1024, description="The width of a key, and of a value.")
    number_bytes: int = Field(2, ge=1, le=8, description="2 for 16 bits, 4 for 32.")
    n_tokens: int = Field(32, ge=2, le=256, description="Tokens that are written.")
    window: int = Field(8, ge=1, le=65536, description="A query sees itself and so many less one.")
    n_sinks: int = Field(1, ge=0, le=16, description="First tokens that every query sees, too.")

    @model_validator(mode="after")
    def _has_whole_groups(self) -> KeyValueCacheShape:
        if self.n_heads % self.n_kv_heads:
            raise ValueError(
                f"{self.n_heads} heads do not form {self.n_kv_heads} groups of equal size; choose "
                "a divisor"
            )
        return self


def run(parameters: KeyValueCacheShape) -> Iterator[Arrays]:
    """Say which heads share keys, which keys a query sees, and what is kept after each token."""
    heads, groups = np.arange(parameters.n_heads), np.arange(parameters.n_kv_heads)
    tokens = np.arange(parameters.n_tokens)
    distance = tokens[:, None] - tokens
    sees = np.where((distance >= 0) & (distance < parameters.window), 2, 0)
    sees[(distance >= 0) & (sees == 0) & (tokens < parameters.n_sinks)] = 1
    row = 2 * parameters.n_layers * parameters.d_head * parameters.number_bytes
    written, kept = tokens + 1, (sees > 0).sum(1)
    d_model = parameters.n_heads * parameters.d_head
    projections = 4 * d_model**2  # of a token: W_Q, W_K, W_V and W_O
    yield {
        "shares": heads[:, None] // (parameters.n_heads // parameters.n_kv_heads) == groups,
        "sees": sees,
        "n_written": written,
        "n_kept": kept,
        "recomputed": written * projections + 2 * written**2 * d_model,
        "cached": projections + 2 * written * d_model,
        "full_bytes": row * parameters.n_heads * written,
        "grouped_bytes": row * parameters.n_kv_heads * written,
        "windowed_bytes": row * parameters.n_kv_heads * kept,
    }


EXPERIMENT = Experiment(
    id="kv_cache",
    order=25,
    group="Around the model",
    tab="Keys that are kept",
    title="The cache of keys and values as a picture",
    parameters=KeyValueCacheShape,
    run=run,
    way_out="choose fewer tokens",
)
