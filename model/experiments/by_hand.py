"""Attention computed by hand: small examples, of which every number can be changed.

    queries = inputs·W_Q     scores = queries·keysᵀ/√d_k     weights = softmax(scores)
    keys    = inputs·W_K                                     context = weights·values
    values  = inputs·W_V

With several heads each takes a part of the columns of queries, keys and values; their contexts are
joined and multiplied by W_O:

    output = concat(context of head 0, …, context of head h − 1)·W_O

Queries, keys or values that are given are taken as they are. The results that a text prints for its
own example are returned next to those of the formula.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field, model_validator

from headlight.model.attention.kernels import attention_weights, causal_mask
from headlight.model.experiments.by_hand_examples import GIVEN, Example, examples, rounded
from headlight.model.experiments.experiment import Arrays, Experiment, Parameters

MAX_TOKENS, MAX_WIDTH = 16, 32

Number = Annotated[float, Field(ge=-1e6, le=1e6)]
Vector = Annotated[list[Number], Field(min_length=1, max_length=MAX_WIDTH)]
Rows = Annotated[list[Vector], Field(min_length=1, max_length=MAX_TOKENS)]
Matrix = Annotated[list[Vector], Field(min_length=1, max_length=MAX_WIDTH)]
Token = Annotated[str, Field(min_length=1, max_length=40)]
Tokens = Annotated[list[Token], Field(min_length=1, max_length=MAX_TOKENS)]

MAX_HEADS = 8
STEPS = ("scores", "weights", "context")
"""Results of steps that can be given too, instead of being computed."""


class ByHand(Parameters):
    """The parameters of `by_hand`; numbers that are not given are those of the example."""

    example: Literal[
        "life", "fox", "fox_projected", "fox_linear", "animal", "animal_embedded", "divided", "cat"
    ] = Field("life", description="The example whose numbers are shown.")
    is_scaled: bool | None = Field(
        None, description="Whether scores are divided by √d_k. null: as in the example."
    )
    is_causal: bool = Field(False, description="Whether a token sees only itself and earlier ones.")
    n_heads: int = Field(
        1, ge=1, le=MAX_HEADS, description="Heads; they divide the dimensions among them."
    )
    head: int = Field(
        0, ge=0, lt=MAX_HEADS, description="The head whose scores, weights and context are shown."
    )
    tokens: Tokens | None = Field(None, description="The tokens, one for each key.")
    inputs: Rows | None = Field(None, description="A vector for each token.")
    query_weights: Matrix | None = Field(None, description="W_Q, a row for each input dimension.")
    key_weights: Matrix | None = Field(None, description="W_K, a row for each input dimension.")
    value_weights: Matrix | None = Field(None, description="W_V, a row for each input dimension.")
    output_weights: Matrix | None = Field(
        None,
        description="W_O, a row for each dimension of the joined contexts. null: none with one "
        "head, drawn numbers with several.",
    )
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
        for name in (*GIVEN, *STEPS, "output_weights"):
            rows = getattr(self, name)
            if rows is not None and len({len(row) for row in rows}) > 1:
                raise ValueError(f"the rows of {name} have different lengths")
        _check_shapes(self)
        return self


def _shapes(parameters: ByHand) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the request's numbers and of the example's that it does not replace."""
    shapes = dict(examples()[parameters.example].shapes)
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
    _check_heads(parameters, d_key=outputs["keys"][1], d_value=outputs["values"][1])
    n_queries = outputs["queries"][0]
    for name in STEPS:
        rows = getattr(parameters, name)
        n_columns, what = (
            (outputs["values"][1] // parameters.n_heads, "dimensions of the values")
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


def _check_heads(parameters: ByHand, *, d_key: int, d_value: int) -> None:
    """Raise ValueError if the heads do not divide the dimensions, or W_O does not fit."""
    n_heads = parameters.n_heads
    for name, width in (("keys", d_key), ("values", d_value)):
        if width % n_heads:
            raise ValueError(
                f"n_heads ({n_heads}) must divide the {width} dimensions of the {name}"
            )
    if parameters.head >= n_heads:
        raise ValueError(f"head ({parameters.head}) must be below n_heads ({n_heads})")
    matrix = parameters.output_weights
    if matrix is not None and len(matrix) != d_value:
        raise ValueError(
            f"output_weights have {len(matrix)} rows, but values have {d_value} dimensions"
        )


def _given(parameters: ByHand) -> dict[str, np.ndarray]:
    """Return the numbers of the request, and those of the example that it does not replace.

    Given inputs replace the example's queries, keys and values too; they are then computed.
    """
    given = dict(examples()[parameters.example].given)
    if parameters.inputs is not None:
        given = {name: value for name, value in given.items() if name.endswith("weights")}
    for name in GIVEN:
        if (rows := getattr(parameters, name)) is not None:
            given[name] = np.array(rows, dtype=np.float64)
    return given


def run(parameters: ByHand) -> Iterator[Arrays]:
    """Compute attention step by step, in float64."""
    chosen, given = examples()[parameters.example], _given(parameters)
    arrays = {name: given[name] for name in GIVEN[:4] if name in given}
    # 1. Queries, keys and values; without a matrix they are the inputs.
    for kind, name in (("query", "queries"), ("key", "keys"), ("value", "values")):
        matrix = given.get(f"{kind}_weights")
        arrays[name] = given[name] if name in given else _project(given["inputs"], matrix)
    # 2. Attention of each head, from its part of the columns.
    queries, keys, values = (
        np.split(arrays[name], parameters.n_heads, axis=1) for name in GIVEN[4:]
    )
    heads = [
        _attend(q, k, v, parameters, is_shown=head == parameters.head)
        for head, (q, k, v) in enumerate(zip(queries, keys, values, strict=True))
    ]
    shown = heads[parameters.head]
    arrays |= {**shown, **_labels(parameters, chosen, *shown["scores"].shape)}
    # 3. The contexts side by side, times W_O.
    if parameters.n_heads > 1 or parameters.output_weights is not None:
        arrays |= _join(heads, parameters, given)
    if _is_unchanged(parameters):
        arrays |= {f"printed_{name}": value for name, value in chosen.printed.items()}
    yield arrays


def _attend(
    queries: np.ndarray, keys: np.ndarray, values: np.ndarray, parameters: ByHand, *, is_shown: bool
) -> dict[str, np.ndarray]:
    """Compute one head; scores, weights and context that are given are those of the shown one."""
    typed = {name: getattr(parameters, name) if is_shown else None for name in STEPS}
    # 1. Products, scaled and masked.
    products = queries @ keys.T
    is_scaled = parameters.is_scaled
    if is_scaled is None:
        is_scaled = examples()[parameters.example].is_scaled
    divisor = math.sqrt(keys.shape[1]) if is_scaled else 1.0
    scores = products / divisor if typed["scores"] is None else np.array(typed["scores"])
    if parameters.is_causal:
        scores = np.where(causal_mask(*scores.shape).numpy(), scores, -np.inf)
    # 2. The softmax of each row, and the mean of the values by these weights.
    weights = attention_weights(torch.from_numpy(scores)).numpy()
    if typed["weights"] is not None:
        weights = np.array(typed["weights"])
    context = formula = weights @ values
    if typed["context"] is not None:
        context = np.array(typed["context"])
    return {
        "products": products,
        "divisor": np.array(divisor),
        "scores": scores,
        "weights": weights,
        "context": context,
        **({} if typed["context"] is None else {"formula_context": formula}),
    }


def _join(
    heads: list[dict[str, np.ndarray]], parameters: ByHand, given: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the weights of all heads, their contexts side by side, W_O and the output."""
    joined = np.concatenate([head["context"] for head in heads], axis=1)
    if parameters.output_weights is not None:
        matrix = np.array(parameters.output_weights)
    else:
        d_model = given["inputs"].shape[1] if "inputs" in given else joined.shape[1]
        drawn = torch.Generator().manual_seed(124)
        matrix = rounded(torch.rand((joined.shape[1], d_model), generator=drawn))
    return {
        "head_weights": np.stack([head["weights"] for head in heads]),
        "joined": joined,
        "output_weights": matrix,
        "output": joined @ matrix,
    }


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
    is_as_scaled = scaling is None or scaling == examples()[parameters.example].is_scaled
    return is_as_given and is_as_scaled and not parameters.is_causal and parameters.n_heads == 1


EXPERIMENT = Experiment(
    id="by_hand",
    order=1,
    group="Attention",
    tab="By hand",
    title="Attention by hand",
    parameters=ByHand,
    run=run,
    way_out="choose fewer tokens",
)
