"""Generation: the request and its Server-Sent Events."""

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PlainSerializer, PlainValidator, TypeAdapter, WithJsonSchema

from headlight.forms import MAX_GLOBS, Answer, Glob, Numbers, TensorAnswer, option
from headlight.schemas import Event, ProblemAnswer
from headlight.schemas.edits import EDITS, EditRequests
from headlight.schemas.traces import MODEL, ModelId, TokenAnswer, TokenizeRequest, example

MAX_ALTERNATIVES = 100

Rows = Annotated[
    NDArray[np.float32],
    PlainValidator(lambda rows: np.asarray(rows, np.float32)),
    PlainSerializer(lambda rows: rows.tolist()),
    WithJsonSchema(TypeAdapter(list[list[list[float]]]).json_schema()),
]
"""Nested lists in JSON, an array in Python."""

TokenId = Annotated[int, Field(ge=0, lt=2**31)]


MAX_STOPS, MAX_CANDIDATES = 8, 16
StopString = Annotated[str, Field(min_length=1, max_length=100)]


class GenerateRequest(TokenizeRequest):
    """A text to continue, and how its tokens are sampled."""

    model_config = example(text="Once upon a time", n_tokens=20, temperature=0.8)

    model: ModelId | None = option(
        None,
        "The decoder that continues the text; if omitted, the default model.",
        is_resolved=True,
        **MODEL,
    )
    forced: list[TokenId] = option(
        flag=None,
        default=[],
        description="Tokens to take in place of the first sampled ones, to replay a run or to "
        "continue from an alternative. Each has an event. The steps after them use the random "
        "numbers of a run that sampled them.",
    )
    skip: int = option(
        flag=None,
        default=0,
        ge=0,
        lt=2**31,
        description="The number of forced tokens, from the first, that have no event. They are "
        "read in one pass, so one more token after many costs little more than that token.",
    )
    n_tokens: int = Field(
        ge=1,
        lt=2**31,
        description="The largest number of tokens to generate, including forced ones.",
    )
    temperature: float = option(
        help="Divides the logits; 0 always takes the likeliest token.",
        metavar="T",
        default=1.0,
        ge=0,
        allow_inf_nan=False,
        description="Divides the logits; 0 always takes the likeliest token.",
    )
    top_k: int | None = option(
        metavar="K",
        default=None,
        ge=1,
        lt=2**31,
        description="Sample from the k likeliest tokens only.",
    )
    top_p: float | None = option(
        metavar="P",
        default=None,
        gt=0,
        le=1,
        description="Sample from the fewest tokens whose probabilities reach p.",
    )
    repetition_penalty: float = option(
        help="Above 1, the tokens of the text so far become less likely.",
        metavar="X",
        default=1.0,
        gt=0,
        le=10,
        allow_inf_nan=False,
        description="Divides the positive logits of the tokens in the text so far, and multiplies "
        "their negative ones; 1 changes nothing.",
    )
    stop: list[StopString] = option(
        help="End the text before this string; repeat it for more.",
        default=[],
        max_length=MAX_STOPS,
        description="The text ends where one of these strings is complete; the text of the `end` "
        "event ends before it.",
    )
    beams: int = option(
        help="Beam search of this width, in place of sampling.",
        default=1,
        ge=1,
        le=MAX_CANDIDATES,
        description="Above 1: beam search of this width, in place of sampling. The stream begins "
        "when it is over, and every token is forced.",
    )
    length_penalty: float = option(
        help="Of beam search: divide log-probabilities by length^X.",
        metavar="X",
        default=1.0,
        ge=0,
        le=10,
        allow_inf_nan=False,
        description="Of beam search: hypotheses are ranked by log-probability / length^penalty.",
    )
    best_of: int = option(
        help="Sample N texts and print the one that --reward rates highest.",
        default=1,
        ge=1,
        le=MAX_CANDIDATES,
        description="Above 1: sample this many texts, with the seeds from `seed` on, and write the "
        "one that `reward` rates highest. The stream begins when all are rated.",
    )
    reward: ModelId | None = option(
        None,
        help="The reward model of --best-of.",
        metavar="ID",
        description="The reward model of best_of.",
    )
    seed: int = option(
        help="The seed of the random numbers.",
        default=0,
        ge=0,
        lt=2**63,
        description="The seed of the random numbers. Equal requests generate equal tokens, even "
        "if they omit the seed.",
    )
    n_alternatives: int = option(
        flag=None,
        default=10,
        ge=0,
        le=MAX_ALTERNATIVES,
        description="The number of likeliest tokens in each event.",
    )
    layers: Numbers | None = option(
        flag=None, default=None, description="Return attention and experts of these layers only."
    )
    heads: Numbers | None = option(
        flag=None, default=None, description="Return attention of these heads only, in this order."
    )
    capture: list[Glob] | None = option(
        flag=None,
        default=None,
        max_length=MAX_GLOBS,
        description="Site names or globs. Each event has the tensors of these sites for the query "
        "that predicted the token, without the axis of queries.",
    )
    edits: EditRequests | None = option(
        help="Changes to every pass, as `headlight trace` takes them.",
        default=None,
        description=EDITS + " They act in the pass over the text and in every step after it; "
        "positions may lie beyond the text. A mean is taken over heads only, and values for single "
        "keys cannot be given for scores and weights.",
    )


class CandidateAnswer(Answer):
    """A continuation that a search found."""

    text: str
    score: float = Field(
        description="The reward, or the log-probability in nats divided by length^length_penalty."
    )


class Started(Answer):
    """The text before the first new token."""

    model: str = Field(description="The id of the decoder that continues the text.")
    revision: str
    precision: str
    tokens: list[TokenAnswer] = Field(
        description="The tokens of the text, including the start token."
    )
    candidates: list[CandidateAnswer] = Field(
        default=[], description="Of beams or best_of: what was found; the first is written."
    )


class Alternative(Answer):
    """A token that could have been generated."""

    id: int
    text: str
    probability: float = Field(
        description="The probability of being sampled; 0 if excluded by top_k or top_p."
    )
    model_probability: float = Field(
        description="The model's probability: temperature 1, nothing excluded."
    )


class AttentionRow(Answer):
    """The attention of the query that predicted the token."""

    axes: tuple[Literal["layer"], Literal["head"], Literal["key"]]
    layers: list[int] = Field(description="The number of each layer.")
    heads: list[int] = Field(description="The number of each head.")
    data: Rows = Field(description="Weights over all tokens before this one. Each row sums to 1.")


class ExpertsChosen(Answer):
    """The experts of one layer for the query that predicted the token."""

    layer: int
    experts: list[int] = Field(description="The chosen experts, the likeliest first.")
    weights: list[float] = Field(description="The weights of the chosen experts; they sum to 1.")
    probabilities: list[float] = Field(description="The router's probabilities of all experts.")


class TokenWritten(Answer):
    """One new token, and how it was predicted."""

    index: int = Field(description="Its index among the new tokens, from 0.")
    position: int = Field(description="Its index in the whole text, including the start token.")
    id: int
    text: str = Field(description="Its characters; a part of a character as its bytes, \\xf0.")
    is_special: bool
    probability: float = Field(
        description="Its probability in the sampled distribution; 0 for a forced token outside it."
    )
    model_probability: float = Field(
        description="The model's probability: temperature 1, nothing excluded."
    )
    rank: int = Field(description="The rank by model_probability; 1 is the likeliest.")
    is_forced: bool
    alternatives: list[Alternative] = Field(
        description="The likeliest tokens, in descending order; the new token may be among them."
    )
    attention: AttentionRow
    experts: list[ExpertsChosen] | None = Field(description="null: the model is dense.")
    tensors: dict[str, TensorAnswer] = Field(
        default={}, description="The sites of `capture`, if it is given."
    )


class Ended(Answer):
    """The end of the stream."""

    reason: Literal["length", "end_of_text", "stop", "max_tokens", "server_stopping"] = Field(
        description="length: n_tokens were generated. end_of_text: the last one ends the text. "
        "stop: a string of `stop` is complete. "
        "max_tokens: the model reads no more. server_stopping: continue later with `forced`."
    )
    n_tokens: int = Field(description="The number of generated tokens.")
    text: str = Field(description="Their text.")


class StartEvent(Event[Literal["start"], Started]):
    """`event: start`, once, before the first token."""


class TokenEvent(Event[Literal["token"], TokenWritten]):
    """`event: token`, once for each token."""


class EndEvent(Event[Literal["end"], Ended]):
    """`event: end`, after the last token."""


class ErrorEvent(Event[Literal["error"], ProblemAnswer]):
    """`event: error`: an error after the first token; the last event of its stream."""


GenerationEvent = StartEvent | TokenEvent | EndEvent | ErrorEvent
