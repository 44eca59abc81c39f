"""Profiles of heads that the page lets the server measure."""

from pydantic import Field

from headlight.forms import Answer, Request

MAX_SENTENCES = 1_000


class ProfileRequest(Request):
    """How much is measured."""

    sentences: int = Field(
        300, ge=8, le=MAX_SENTENCES, description="The number of sentences that are read."
    )


class ProfileOffer(Answer):
    """Whether the heads of a model can be measured."""

    reason: str = Field(description="The reason against it in a sentence; empty: it can be.")
    seconds: int = Field(description="How long a measurement may take.")
