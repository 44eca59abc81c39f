"""The examples of attention by hand: their numbers, and the results that their texts print."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import torch

GIVEN = ("inputs", "query_weights", "key_weights", "value_weights", "queries", "keys", "values")
"""The numbers that an example can have, in the order of the computation."""


def _projected(inputs: tuple[int, int], width: int) -> dict[str, tuple[int, int]]:
    weights = (inputs[1], width)
    return {"inputs": inputs, **dict.fromkeys(GIVEN[1:4], weights)}


EXAMPLE_SHAPES: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "life": _projected((6, 3), 2),
    "fox": {"inputs": (6, 3)},
    "fox_projected": _projected((6, 3), 4),
    "fox_linear": _projected((6, 3), 4),
    "animal": {"queries": (1, 2), "keys": (4, 2), "values": (4, 2)},
    "animal_embedded": _projected((4, 4), 2),
    "divided": {"queries": (1, 1), "keys": (3, 1), "values": (3, 1)},
    "cat": _projected((5, 4), 4),
}
"""The shapes of the numbers of every example."""


@dataclass(frozen=True, kw_only=True)
class Example:
    """The given numbers of an example, and the results that a text prints for it."""

    tokens: tuple[str, ...]
    query_tokens: tuple[str, ...] | None = None
    given: Mapping[str, np.ndarray]
    is_scaled: bool
    printed: Mapping[str, np.ndarray] = field(default_factory=dict)


def rounded(drawn: torch.Tensor) -> np.ndarray:
    """Round numbers to 6 decimals, as many as float32 has and as can be typed again."""
    return drawn.double().numpy().round(6)


def _random(*shape: int) -> np.ndarray:
    generator = torch.Generator().manual_seed(123)
    return rounded(torch.rand(shape, generator=generator))


def _life() -> Example:
    generator = torch.Generator().manual_seed(123)
    vectors = rounded(torch.randn(6, 3, generator=generator))
    words = ("Life", "is", "short", "eat", "dessert", "first")
    # The vocabulary is sorted, capital letters first: Life dessert eat first is short.
    vocabulary = sorted(words)
    drawn = _random(3, 3, 2)
    return Example(
        tokens=words,
        given={
            "inputs": vectors[[vocabulary.index(word) for word in words]],
            "query_weights": drawn[0],
            "key_weights": drawn[1],
            "value_weights": drawn[2],
        },
        is_scaled=True,
    )


FOX = ("the", "quick", "brown", "fox", "jumps", "over")
FOX_INPUTS = np.array(
    [
        [0.3, 0.2, 0.9],
        [0.1, 0.5, 0.2],
        [0.6, 0.4, 0.3],
        [0.8, 0.4, 0.3],
        [0.7, 0.2, 0.5],
        [0.9, 0.4, 0.7],
    ]
)


def _fox() -> Example:
    return Example(tokens=FOX, given={"inputs": FOX_INPUTS}, is_scaled=False)


def _fox_projected() -> Example:
    drawn = _random(3, 3, 4)
    weights = dict(zip(("query_weights", "key_weights", "value_weights"), drawn, strict=True))
    return Example(tokens=FOX, given={"inputs": FOX_INPUTS, **weights}, is_scaled=True)


def _fox_linear() -> Example:
    """Return the matrices of three `torch.nn.Linear(3, 4)`, drawn as it draws them."""
    bound = 1 / math.sqrt(3)
    generator = torch.Generator().manual_seed(123)
    given = {"inputs": FOX_INPUTS}
    for name in ("query_weights", "key_weights", "value_weights"):
        drawn = torch.empty(4, 3).uniform_(-bound, bound, generator=generator)
        given[name] = rounded(drawn.T)
    return Example(tokens=FOX, given=given, is_scaled=True)


def _animal() -> Example:
    return Example(
        tokens=("animal", "street", "it", "tired"),
        query_tokens=("it",),
        given={
            "queries": np.array([[0.7, 0.3]]),
            "keys": np.array([[0.9, 0.2], [0.1, 0.8], [0.5, 0.5], [0.8, 0.3]]),
            "values": np.array([[0.85, 0.15], [0.25, 0.88], [0.48, 0.52], [0.82, 0.25]]),
        },
        is_scaled=False,
        printed={
            "weights": np.array([[0.35, 0.15, 0.20, 0.30]]),
            "context": np.array([[0.678, 0.364]]),
        },
    )


def _animal_embedded() -> Example:
    """Return vectors that the example's keys and values, and the query of “it”, are made from.

    The first two of a vector's four numbers are its key, the others its value.
    """
    given = _animal().given
    key_part = np.concatenate([np.eye(2), np.zeros((2, 2))])
    return Example(
        tokens=("animal", "street", "it", "tired"),
        given={
            "inputs": np.concatenate([given["keys"], given["values"]], axis=1),
            "query_weights": key_part @ np.diag([1.4, 0.6]),
            "key_weights": key_part,
            "value_weights": key_part[::-1, ::-1],
        },
        is_scaled=False,
        printed={
            name: np.stack([np.full_like(row[0], np.nan)] * 2 + [row[0]] + [row[0] * np.nan])
            for name, row in _animal().printed.items()
        },
    )


def _divided() -> Example:
    """Return the scores 10, 5 and 1 divided by 25, of which a text prints one weight."""
    return Example(
        tokens=("10 / 25", "5 / 25", "1 / 25"),
        query_tokens=("query",),
        given={
            "queries": np.array([[1.0]]),
            "keys": np.array([[0.4], [0.2], [0.04]]),
            "values": np.array([[1.0], [0.0], [0.0]]),
        },
        is_scaled=False,
        printed={"weights": np.array([[0.422, np.nan, np.nan]])},
    )


def _cat() -> Example:
    vectors = {
        "the": [0.1, 0.2, 0.3, 0.4],
        "cat": [0.9, 0.1, 0.8, 0.2],
        "chased": [0.5, 0.5, 0.5, 0.5],
        "mouse": [0.8, 0.2, 0.7, 0.3],
    }
    words = ("the", "cat", "chased", "the", "mouse")
    return Example(
        tokens=words,
        given={
            "inputs": np.array([vectors[word] for word in words]),
            "query_weights": np.array([[1, 0, 0.5, 0], [0] * 4, [0.5, 0, 1, 0], [0] * 4]),
            "key_weights": np.array(
                [[1, 0, 0.8, 0], [0, 0.1, 0, 0], [0.8, 0, 1, 0], [0, 0, 0, 0.1]]
            ),
            "value_weights": np.array(
                [
                    [0.9, 0.1, 0.7, 0.2],
                    [0.1, 0.9, 0.2, 0.7],
                    [0.7, 0.2, 0.9, 0.1],
                    [0.2, 0.7, 0.1, 0.9],
                ]
            ),
        },
        is_scaled=False,
    )


EXAMPLES: Mapping[str, Callable[[], Example]] = {
    "life": _life,
    "fox": _fox,
    "fox_projected": _fox_projected,
    "fox_linear": _fox_linear,
    "animal": _animal,
    "animal_embedded": _animal_embedded,
    "divided": _divided,
    "cat": _cat,
}


@cache
def example(name: str) -> Example:
    """Return an example by its name."""
    return EXAMPLES[name]()
