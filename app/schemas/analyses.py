"""Options of analyses: the members of a request that only some analyses read."""

from typing import Annotated, Literal

from pydantic import Field

from headlight.forms import Request
from headlight.schemas.edits import MAX_NUMBERS, Number

MOST_TOP = 2**20
MAX_EDITED_TOKENS = 2**18

Token = Annotated[int, Field(ge=0, lt=2**31)] | str


class PredictionsRequest(Request):
    """The tokens that next_token and logit_lens return."""

    top: int = Field(
        20, ge=1, le=MOST_TOP, description="How many of the likeliest; at most the vocabulary."
    )
    tokens: list[Token] = Field(
        default=[],
        max_length=MAX_NUMBERS,
        description="Ids, or texts of one token each, such as ` cat`, whose logits, probabilities "
        "and ranks are returned as chosen_logits, chosen_probabilities and chosen_ranks (1 is the "
        "likeliest), with chosen_ids.",
    )
    following: bool = Field(
        False,
        description="Whether next_token also returns `following`: of every token of the text that "
        "is predicted, but the first, the probability that it had. Its −ln is the loss.",
    )
    temperature: float | None = Field(
        None,
        ge=0,
        allow_inf_nan=False,
        description="With this, top_k or top_p, next_token also returns `sampled`: the probability "
        "that each of the tokens has of being sampled, as `/generate` samples. Divides the logits; "
        "0 always takes the likeliest token. If omitted, 1.",
    )
    top_k: int | None = Field(
        None, ge=1, lt=2**31, description="Sample from the k likeliest tokens only."
    )
    top_p: float | None = Field(
        None,
        gt=0,
        le=1,
        description="Sample from the fewest tokens whose probabilities reach p.",
    )

    @property
    def samples(self) -> bool:
        """True if probabilities of being sampled are asked for."""
        return not (self.temperature is self.top_k is self.top_p is None)


PatchedPart = Literal["residual", "attention", "feed_forward", "heads"]


class LogitDifferenceRequest(Request):
    """The logit of one token minus that of another, which some analyses explain."""

    position: Number | None = Field(
        None,
        description="The position that predicts: the token after it, or in an encoder the token at "
        "it. If omitted, the first mask, or the last position.",
    )
    token: Token | None = Field(
        None,
        description="An id, or a text of one token, such as ` cat`; if omitted, the likeliest.",
    )
    against: Token | None = Field(
        None,
        description="The token to compare with; if omitted, the likeliest of all others.",
    )


class PatchingRequest(Request):
    """The other text whose activations `patching` puts into this one, one at a time."""

    text: str = Field(description="Of as many tokens as this text; it is read with the same edits.")
    target: str | None = Field(
        None, description="Its target in an encoder–decoder; if omitted, that of this text."
    )
    parts: list[PatchedPart] = Field(
        default=["residual", "heads"],
        min_length=1,
        max_length=4,
        description="residual: the stream before a layer, at a position. attention, feed_forward: "
        "a layer's contribution there. heads: a head's context, at all positions.",
    )
