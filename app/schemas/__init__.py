"""Every request, answer and event of the API; the server and the client share them.

Nothing here imports PyTorch or the server. The documentation at /docs is made from these classes.
"""

from pydantic import BaseModel, ConfigDict


class Request(BaseModel):
    """A request: no value is converted to another type, and unknown members are errors."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Answer(BaseModel):
    """An answer; a client ignores unknown members."""

    model_config = ConfigDict(frozen=True)
