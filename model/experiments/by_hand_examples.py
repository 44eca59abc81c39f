"""The examples of attention by hand: their numbers, and the results that their texts print."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

GIVEN = ("inputs", "query_weights", "key_weights", "value_weights", "queries", "keys", "values")
"""The numbers that an example can have, in the order of the computation."""


@dataclass(frozen=True, kw_only=True)
class Example:
    """The given numbers of an example, and the results that a text prints for it."""

    tokens: tuple[str, ...]
    query_tokens: tuple[str, ...] | None
    given: Mapping[str, np.ndarray]
    is_scaled: bool
    printed: Mapping[str, np.ndarray]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each of the given numbers."""
        return {name: rows.shape for name, rows in self.given.items()}


def rounded(drawn: torch.Tensor) -> np.ndarray:
    """Round numbers to 6 decimals, as many as float32 has and as can be typed again."""
    return drawn.double().numpy().round(6)


@cache
def examples() -> dict[str, Example]:
    """Return the examples by name."""
    file = Path(__file__).with_suffix(".toml")
    return {name: _read(said) for name, said in tomllib.loads(file.read_text("utf-8")).items()}


def _read(said: Mapping[str, Any]) -> Example:
    queries = said.get("query_tokens")
    return Example(
        tokens=tuple(said["tokens"]),
        query_tokens=queries and tuple(queries),
        given={name: np.array(rows) for name, rows in said["given"].items()},
        is_scaled=said["is_scaled"],
        printed={name: np.array(rows) for name, rows in said.get("printed", {}).items()},
    )
