"""What all requests have in common, and all answers."""

from pydantic import BaseModel, ConfigDict


class Request(BaseModel):
    """A request: strict, which is no conversion from one type to another and no unknown member."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Answer(BaseModel):
    """An answer. A client ignores members that it does not know."""

    model_config = ConfigDict(frozen=True)
