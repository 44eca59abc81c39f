"""Declares `by_hand`: attention of small examples, of which every number can be changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from headlight.model.experiments.experiment import (
    Cost,
    Experiment,
    Parameters,
    Quantity,
    Source,
    computation,
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
        "life", description="The example that every number not given here is taken from."
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
    """The shapes of the numbers of the request, and of those of the example it does not replace."""
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
        if rows is not None and (found := (len(rows), len(rows[0]))) != (n_queries, n_columns):
            raise ValueError(
                f"{name}: {found[0]} rows of {found[1]}, but {n_queries} queries and {n_columns} "
                f"{what} need as many rows and columns"
            )
    if parameters.tokens is not None and len(parameters.tokens) != n_keys:
        raise ValueError(f"there are {len(parameters.tokens)} tokens, but {n_keys} keys")


def cost(parameters: ByHand) -> Cost:  # noqa: ARG001 - the common signature
    """A millisecond: the largest matrices have 32 rows of 32 numbers."""
    return Cost(seconds=0.001, megabytes=1.0)


EXPERIMENT = Experiment(
    id="by_hand",
    title="Attention by hand",
    parameters=ByHand,
    run=computation("by_hand"),
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
