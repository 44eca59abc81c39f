"""Every request, answer and event of the API; the server and the client share them.

Nothing here imports PyTorch or the server. The documentation at /docs is made from these classes.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Request(BaseModel):
    """A request: no value is converted to another type, and unknown members are errors."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Answer(BaseModel):
    """An answer; a client ignores unknown members."""

    model_config = ConfigDict(frozen=True)


class TensorAnswer(Answer):
    """An array with named axes."""

    axes: list[str]
    shape: list[int] = Field(description="The shape of the whole array.")
    dtype: Literal["float32", "int32", "uint16"]
    scale: float | None = Field(None, description="For uint16: value = data × scale.")
    packed: Literal["lower-triangle"] | None = Field(
        None,
        description="The last two axes are packed into one: the numbers on and below the "
        "diagonal, row by row. If missing, the array is whole.",
    )
    fill: float | None = Field(
        None, description="The number above the diagonal of a packed array; null: -inf."
    )
    data: list[Any] = Field(
        description="Nested lists; null is -inf: masked scores, and the logits of ablated experts."
    )
