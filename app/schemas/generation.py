"""What a request to generate looks like, and the events that answer it."""

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
    PlainValidator,
    TypeAdapter,
    WithJsonSchema,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from headlight.schemas.base import Answer
from headlight.schemas.server import ProblemAnswer
from headlight.schemas.traces import Numbers, TokenAnswer, TokenizeRequest

MAX_ALTERNATIVES = 100

Rows = Annotated[
    NDArray[np.float32],
    PlainValidator(lambda rows: np.asarray(rows, np.float32)),
    PlainSerializer(lambda rows: rows.tolist()),
    WithJsonSchema(TypeAdapter(list[list[list[float]]]).json_schema()),
]
"""Nested lists in JSON, an array in Python."""

TokenId = Annotated[int, Field(ge=0, lt=2**31)]


class GenerateRequest(TokenizeRequest):
    """A text to continue, token by token, and how each is drawn."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"text": "Once upon a time", "n_tokens": 20, "temperature": 0.8}]
        }
    )

    forced: list[TokenId] = Field(
        default=[],
        description="Tokens to take in place of the first drawn ones: to replay a path, or to go "
        "on from an alternative. Each has its event. The random numbers of the steps after them "
        "are those of a run that drew them.",
    )
    skip: int = Field(
        default=0,
        ge=0,
        lt=2**31,
        description="Forced tokens, from the first on, that have no event. They are read at once: "
        "to write one more token after many costs little more than that one.",
    )
    n_tokens: int = Field(
        ge=1, lt=2**31, description="How many tokens to write at most, forced ones included."
    )
    temperature: float = Field(
        default=1.0,
        ge=0,
        allow_inf_nan=False,
        description="Divides the logits; 0 takes the likeliest token.",
    )
    top_k: int | None = Field(
        default=None, ge=1, lt=2**31, description="Draw from the k likeliest tokens only."
    )
    top_p: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Draw from the fewest tokens whose probabilities reach p.",
    )
    seed: int = Field(
        default=0,
        ge=0,
        lt=2**63,
        description="Of the random numbers. Equal requests write equal tokens, also where they "
        "name no seed; another seed draws others.",
    )
    n_alternatives: int = Field(
        default=10,
        ge=0,
        le=MAX_ALTERNATIVES,
        description="How many of the likeliest tokens to tell at each step.",
    )
    layers: Numbers | None = Field(
        default=None, description="Attention and experts of these layers only."
    )
    heads: Numbers | None = Field(
        default=None, description="Attention of these heads only, in this order."
    )


class Started(Answer):
    """The text before the first new token."""

    model: str
    revision: str
    precision: str
    tokens: list[TokenAnswer] = Field(description="What the model read, start token included.")


class Alternative(Answer):
    """A token that could have come."""

    id: int
    text: str
    probability: float = Field(description="Of being drawn; 0: cut off by top_k or top_p.")
    model_probability: float = Field(description="At temperature 1, nothing cut off.")


class AttentionRow(Answer):
    """What the query that predicted the token attended to."""

    axes: tuple[Literal["layer"], Literal["head"], Literal["key"]]
    layers: list[int] = Field(description="The number of each layer.")
    heads: list[int] = Field(description="The number of each head.")
    data: Rows = Field(description="Weights over all tokens before this one; each row sums to 1.")


class ExpertsChosen(Answer):
    """Where one layer sent the query that predicted the token."""

    layer: int
    experts: list[int] = Field(description="Those that were chosen, the likeliest first.")
    weights: list[float] = Field(description="Of the chosen ones; they sum to 1.")
    probabilities: list[float] = Field(description="Of all experts, by the router.")


class TokenWritten(Answer):
    """One new token, and how the model came to it."""

    index: int = Field(description="Its number among the new tokens, from 0.")
    position: int = Field(description="Its place in the whole text, start token included.")
    id: int
    text: str = Field(description="What it spells; a part of a character as its bytes, \\xf0.")
    is_special: bool
    probability: float = Field(
        description="In the distribution it was drawn from; 0: forced, and could not be drawn."
    )
    model_probability: float = Field(description="At temperature 1, nothing cut off.")
    rank: int = Field(description="By model_probability; 1: the likeliest.")
    is_forced: bool
    alternatives: list[Alternative] = Field(
        description="The likeliest tokens, the likeliest first; the written one may be among them."
    )
    attention: AttentionRow
    experts: list[ExpertsChosen] | None = Field(description="null: the model is dense.")


class Ended(Answer):
    """Why no further token comes."""

    reason: Literal["length", "end_of_text", "max_tokens", "server_stopping"] = Field(
        description="length: n_tokens were written. end_of_text: the last one ends the text. "
        "max_tokens: the model reads no more. server_stopping: ask again, with `forced`, later."
    )
    n_tokens: int = Field(description="How many were written.")
    text: str = Field(description="What they spell together.")


class _OneLine:
    """The data of an event: on the wire it is JSON in a line of text."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {
            "type": "string",
            "contentMediaType": "application/json",
            "contentSchema": handler(schema),
        }


class StartEvent(Answer):
    """`event: start`, once, before the first token."""

    event: Literal["start"]
    data: Annotated[Started, _OneLine()]


class TokenEvent(Answer):
    """`event: token`, one for each."""

    event: Literal["token"]
    data: Annotated[TokenWritten, _OneLine()]


class EndEvent(Answer):
    """`event: end`, after the last token."""

    event: Literal["end"]
    data: Annotated[Ended, _OneLine()]


class ErrorEvent(Answer):
    """`event: error`: what went wrong after the first token; nothing comes after it."""

    event: Literal["error"]
    data: Annotated[ProblemAnswer, _OneLine()]


GenerationEvent = StartEvent | TokenEvent | EndEvent | ErrorEvent
