"""Attention computed by hand: small examples, of which every number can be changed.

    queries = inputs·W_Q     scores = queries·keysᵀ/√d_k     weights = softmax(scores)
    keys    = inputs·W_K                                     context = weights·values
    values  = inputs·W_V

Queries, keys or values that are given are taken as they are. The results that a text prints for its
own example are returned next to those of the formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field, model_validator

from headlight.model.attention.kernels import attention_weights, causal_mask
from headlight.model.lab.experiments.experiment import (
    Arrays,
    Cost,
    Experiment,
    Parameters,
    Quantity,
    Source,
)

MAX_TOKENS, MAX_WIDTH = 16, 32

Number = Annotated[float, Field(ge=-1e6, le=1e6)]
Vector = Annotated[list[Number], Field(min_length=1, max_length=MAX_WIDTH)]
Rows = Annotated[list[Vector], Field(min_length=1, max_length=MAX_TOKENS)]
Matrix = Annotated[list[Vector], Field(min_length=1, max_length=MAX_WIDTH)]
Token = Annotated[str, Field(min_length=1, max_length=40)]
Tokens = Annotated[list[Token], Field(min_length=1, max_length=MAX_TOKENS)]

GIVEN = ("inputs", "query_weights", "key_weights", "value_weights", "queries", "keys", "values")
STEPS = ("scores", "weights", "context")
"""Results of steps that can be given too, instead of being computed."""


def _projected(inputs: tuple[int, int], width: int) -> dict[str, tuple[int, int]]:
    weights = (inputs[1], width)
    return {"inputs": inputs, **dict.fromkeys(GIVEN[1:4], weights)}


EXAMPLE_SHAPES: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "life": _projected((6, 3), 2),
    "fox": {"inputs": (6, 3)},
    "fox_projected": _projected((6, 3), 4),
    "fox_linear": _projected((6, 3), 4),
    "animal": {"queries": (1, 2), "keys": (4, 2), "values": (4, 2)},
    "cat": _projected((5, 4), 4),
}
"""The shapes of the numbers of every example."""


class ByHand(Parameters):
    """The parameters of `by_hand`; numbers that are not given are those of the example."""

    example: Literal["life", "fox", "fox_projected", "fox_linear", "animal", "cat"] = Field(
        "life", description="The example whose numbers are shown."
    )
    is_scaled: bool | None = Field(
        None, description="Whether scores are divided by √d_k. null: as in the example."
    )
    is_causal: bool = Field(False, description="Whether a token sees only itself and earlier ones.")
    tokens: Tokens | None = Field(None, description="The tokens, one for each key.")
    inputs: Rows | None = Field(None, description="A vector for each token.")
    query_weights: Matrix | None = Field(None, description="W_Q, a row for each input dimension.")
    key_weights: Matrix | None = Field(None, description="W_K, a row for each input dimension.")
    value_weights: Matrix | None = Field(None, description="W_V, a row for each input dimension.")
    queries: Rows | None = Field(None, description="Queries, instead of inputs·W_Q.")
    keys: Rows | None = Field(None, description="Keys, instead of inputs·W_K.")
    values: Rows | None = Field(None, description="Values, instead of inputs·W_V.")
    scores: Rows | None = Field(
        None, description="Scores, instead of queries·keysᵀ/√d_k; a row for each query."
    )
    weights: Rows | None = Field(
        None, description="Weights, instead of the softmax of the scores; a row for each query."
    )
    context: Rows | None = Field(
        None,
        description="Context, instead of weights·values; a row for each query. That of a text can "
        "so be compared with that of the formula.",
    )

    @model_validator(mode="after")
    def _fits(self) -> ByHand:
        for name in (*GIVEN, *STEPS):
            rows = getattr(self, name)
            if rows is not None and len({len(row) for row in rows}) > 1:
                raise ValueError(f"the rows of {name} have different lengths")
        _check_shapes(self)
        return self


def _shapes(parameters: ByHand) -> dict[str, tuple[int, int]]:
    """Return the shapes of the request's numbers and of the example's that it does not replace."""
    shapes = dict(EXAMPLE_SHAPES[parameters.example])
    if parameters.inputs is not None:
        shapes = {name: shape for name, shape in shapes.items() if name.endswith("weights")}
    for name in GIVEN:
        if (rows := getattr(parameters, name)) is not None:
            shapes[name] = (len(rows), len(rows[0]))
    return shapes


def _check_shapes(parameters: ByHand) -> None:
    """Raise ValueError if the matrices do not fit together."""
    shapes = _shapes(parameters)
    outputs = {}
    for kind in ("query", "key", "value"):
        name = {"query": "queries", "key": "keys", "value": "values"}[kind]
        if name in shapes:
            outputs[name] = shapes[name]
            continue
        n_tokens, width = shapes["inputs"]
        weights = shapes.get(f"{kind}_weights", (width, width))
        if weights[0] != width:
            raise ValueError(
                f"{kind}_weights have {weights[0]} rows, but inputs have {width} dimensions"
            )
        outputs[name] = (n_tokens, weights[1])
    if outputs["queries"][1] != outputs["keys"][1]:
        raise ValueError(
            f"queries have {outputs['queries'][1]} dimensions, but keys have {outputs['keys'][1]}"
        )
    n_keys = outputs["keys"][0]
    if outputs["values"][0] != n_keys:
        raise ValueError(f"there are {outputs['values'][0]} values, but {n_keys} keys")
    if parameters.is_causal and outputs["queries"][0] > n_keys:
        raise ValueError(f"with a causal mask, {n_keys} keys allow no more queries than that")
    n_queries = outputs["queries"][0]
    for name in STEPS:
        rows = getattr(parameters, name)
        n_columns, what = (
            (outputs["values"][1], "dimensions of the values")
            if name == "context"
            else (n_keys, "keys")
        )
        if rows is not None and (shape := (len(rows), len(rows[0]))) != (n_queries, n_columns):
            raise ValueError(
                f"{name}: {shape[0]} rows of {shape[1]}, but {n_queries} queries and {n_columns} "
                f"{what} need as many rows and columns"
            )
    if parameters.tokens is not None and len(parameters.tokens) != n_keys:
        raise ValueError(f"there are {len(parameters.tokens)} tokens, but {n_keys} keys")


def cost(parameters: ByHand) -> Cost:  # noqa: ARG001 - the common signature
    """Return a millisecond: the largest matrices have 32 rows of 32 numbers."""
    return Cost(seconds=0.001, megabytes=1.0)


@dataclass(frozen=True, kw_only=True)
class Example:
    """The given numbers of an example, and the results that a text prints for it."""

    tokens: tuple[str, ...]
    query_tokens: tuple[str, ...] | None = None
    given: Mapping[str, np.ndarray]
    is_scaled: bool
    printed: Mapping[str, np.ndarray] = field(default_factory=dict)


def _rounded(drawn: torch.Tensor) -> np.ndarray:
    """Round numbers to 6 decimals, as many as float32 has and as can be typed again."""
    return drawn.double().numpy().round(6)


def _random(*shape: int) -> np.ndarray:
    generator = torch.Generator().manual_seed(123)
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
    """Return the matrices of three `torch.nn.Linear(3, 4)`, drawn as it draws them."""
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
    """Return an example by its name."""
    return EXAMPLES[name]()


def _given(parameters: ByHand) -> dict[str, np.ndarray]:
    """Return the numbers of the request, and those of the example that it does not replace.

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
    """Return the tokens of the keys and of the queries; numbers if none are known."""
    tokens = tuple(parameters.tokens or chosen.tokens)
    if len(tokens) != n_keys:
        tokens = tuple(map(str, range(n_keys)))
    queries = chosen.query_tokens or tokens
    if len(queries) != n_queries:
        queries = tokens if n_queries == n_keys else tuple(map(str, range(n_queries)))
    return {"key": np.array(tokens), "query": np.array(queries)}


def _is_unchanged(parameters: ByHand) -> bool:
    """Return True if the numbers are those of the example."""
    is_as_given = all(getattr(parameters, name) is None for name in (*GIVEN, *STEPS))
    scaling = parameters.is_scaled
    is_as_scaled = scaling is None or scaling == example(parameters.example).is_scaled
    return is_as_given and is_as_scaled and not parameters.is_causal


EXPERIMENT = Experiment(
    id="by_hand",
    title="Attention by hand",
    parameters=ByHand,
    run=run,
    cost=cost,
    way_out="choose fewer tokens",
    quantities={
        "key": Quantity(axes="key", help="The tokens attended to."),
        "query": Quantity(axes="query", help="The tokens that attend."),
        "inputs": Quantity(axes="key d_model", help="The vector of each token."),
        "query_weights": Quantity(axes="d_model d_k", help="W_Q."),
        "key_weights": Quantity(axes="d_model d_k", help="W_K."),
        "value_weights": Quantity(axes="d_model d_v", help="W_V."),
        "queries": Quantity(axes="query d_k", help="inputs·W_Q"),
        "keys": Quantity(axes="key d_k", help="inputs·W_K"),
        "values": Quantity(axes="key d_v", help="inputs·W_V"),
        "products": Quantity(axes="query key", help="queries·keysᵀ"),
        "divisor": Quantity(axes="", help="√d_k, or 1 if scores are not scaled."),
        "scores": Quantity(
            axes="query key",
            help="The products divided, or the scores given; null at keys that a mask hides.",
        ),
        "weights": Quantity(
            axes="query key", help="The softmax of each row of scores, or the weights given."
        ),
        "context": Quantity(axes="query d_v", help="weights·values, or the context given."),
        "formula_context": Quantity(
            axes="query d_v", help="weights·values, if another context is given."
        ),
        "printed_weights": Quantity(
            axes="query key", help="The weights that the text of the example prints."
        ),
        "printed_context": Quantity(
            axes="query d_v", help="The context that the text of the example prints."
        ),
    },
    see="Each row of weights comes from one query: its products with all keys, divided by √d_k, "
    "then the softmax. The context is the mean of the values by these weights. Every number in a "
    "box can be changed, and all that follows from it is computed again: change one number of a "
    "key and see a whole column of weights change; change a value and see only the context change. "
    "A popular text prints rounded weights for “it” that are not the softmax of its scores: choose "
    "that example to see the printed numbers below the computed ones.",
    field="This arithmetic has not changed since 2017; what changed is how it is computed. "
    "Blockwise kernels such as FlashAttention give the same numbers without writing the weights "
    "to memory. Multi-query and grouped-query attention let several heads share keys and values.",
    sources=(
        Source(
            title="Vaswani et al. 2017, Attention Is All You Need, section 3.2",
            url="https://arxiv.org/abs/1706.03762",
        ),
        Source(
            title="Dao et al. 2022, FlashAttention",
            url="https://arxiv.org/abs/2205.14135",
        ),
        Source(
            title="Ainslie et al. 2023, GQA: Training Generalized Multi-Query Transformer Models",
            url="https://arxiv.org/abs/2305.13245",
        ),
    ),
)
