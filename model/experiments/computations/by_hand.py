"""Attention computed by hand: small examples, of which every number can be changed.

    queries = inputs·W_Q     scores = queries·keysᵀ/√d_k     weights = softmax(scores)
    keys    = inputs·W_K                                     context = weights·values
    values  = inputs·W_V

Queries, keys or values that are given are taken as they are. The results that a text prints for its
own example are returned beside those of the formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import torch

from headlight.model.attention import attention_weights, causal_mask
from headlight.model.experiments.by_hand import GIVEN, STEPS, ByHand
from headlight.model.experiments.experiment import Arrays


@dataclass(frozen=True, kw_only=True)
class Example:
    """The given numbers of an example, and the results that a text prints for it."""

    tokens: tuple[str, ...]
    query_tokens: tuple[str, ...] | None = None
    given: Mapping[str, np.ndarray]
    is_scaled: bool
    printed: Mapping[str, np.ndarray] = field(default_factory=dict)


def _rounded(drawn: torch.Tensor) -> np.ndarray:
    """Numbers to 6 decimals, as many as float32 has and as can be typed again."""
    return drawn.double().numpy().round(6)


def _random(*shape: int, seed: int = 123) -> np.ndarray:
    generator = torch.Generator().manual_seed(seed)
    return _rounded(torch.rand(shape, generator=generator))


def _life() -> Example:
    generator = torch.Generator().manual_seed(123)
    vectors = _rounded(torch.randn(6, 3, generator=generator))
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
    """The matrices of three `torch.nn.Linear(3, 4)`, drawn as it draws them."""
    bound = 1 / math.sqrt(3)
    generator = torch.Generator().manual_seed(123)
    given = {"inputs": FOX_INPUTS}
    for name in ("query_weights", "key_weights", "value_weights"):
        drawn = torch.empty(4, 3).uniform_(-bound, bound, generator=generator)
        given[name] = _rounded(drawn.T)
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
    "cat": _cat,
}


@cache
def example(name: str) -> Example:
    """An example by its name."""
    return EXAMPLES[name]()


def _given(parameters: ByHand) -> dict[str, np.ndarray]:
    """The numbers of the request, and those of the example that it does not replace.

    Given inputs replace the example's queries, keys and values too; they are then computed.
    """
    given = dict(example(parameters.example).given)
    if parameters.inputs is not None:
        given = {name: value for name, value in given.items() if name.endswith("weights")}
    for name in GIVEN:
        if (rows := getattr(parameters, name)) is not None:
            given[name] = np.array(rows, dtype=np.float64)
    return given


def run(parameters: ByHand) -> Iterator[Arrays]:
    """Compute attention step by step, in float64."""
    chosen, given = example(parameters.example), _given(parameters)
    arrays = {name: given[name] for name in GIVEN[:4] if name in given}
    # 1. Queries, keys and values; without a matrix they are the inputs.
    for kind, name in (("query", "queries"), ("key", "keys"), ("value", "values")):
        matrix = given.get(f"{kind}_weights")
        arrays[name] = given[name] if name in given else _project(given["inputs"], matrix)
    # 2. Their products, scaled and masked.
    products = arrays["queries"] @ arrays["keys"].T
    is_scaled = chosen.is_scaled if parameters.is_scaled is None else parameters.is_scaled
    divisor = math.sqrt(arrays["keys"].shape[1]) if is_scaled else 1.0
    scores = products / divisor
    if parameters.scores is not None:
        scores = np.array(parameters.scores)
    if parameters.is_causal:
        scores = np.where(causal_mask(*scores.shape).numpy(), scores, -np.inf)
    # 3. The softmax of each row, and the mean of the values by these weights.
    weights = attention_weights(torch.from_numpy(scores)).numpy()
    if parameters.weights is not None:
        weights = np.array(parameters.weights)
    context = weights @ arrays["values"]
    if parameters.context is not None:
        arrays["formula_context"], context = context, np.array(parameters.context)
    arrays |= {
        "products": products,
        "divisor": np.array(divisor),
        "scores": scores,
        "weights": weights,
        "context": context,
        **_labels(parameters, chosen, *scores.shape),
    }
    if _is_unchanged(parameters):
        arrays |= {f"printed_{name}": value for name, value in chosen.printed.items()}
    yield arrays


def _project(inputs: np.ndarray, matrix: np.ndarray | None) -> np.ndarray:
    return inputs if matrix is None else inputs @ matrix


def _labels(
    parameters: ByHand, chosen: Example, n_queries: int, n_keys: int
) -> dict[str, np.ndarray]:
    """The tokens of the keys and of the queries; numbers if none are known."""
    tokens = tuple(parameters.tokens or chosen.tokens)
    if len(tokens) != n_keys:
        tokens = tuple(map(str, range(n_keys)))
    queries = chosen.query_tokens or tokens
    if len(queries) != n_queries:
        queries = tokens if n_queries == n_keys else tuple(map(str, range(n_queries)))
    return {"key": np.array(tokens), "query": np.array(queries)}


def _is_unchanged(parameters: ByHand) -> bool:
    """Whether the numbers are those of the example."""
    is_as_given = all(getattr(parameters, name) is None for name in (*GIVEN, *STEPS))
    scaling = parameters.is_scaled
    is_as_scaled = scaling is None or scaling == example(parameters.example).is_scaled
    return is_as_given and is_as_scaled and not parameters.is_causal
