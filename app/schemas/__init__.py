"""Every request, answer and event of the API; the server and the client share them.

Nothing here imports PyTorch or the server. The documentation at /docs is made from these classes.
"""

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

JSON = "application/json"
SAFETENSORS = "application/x-safetensors"
SVG = "image/svg+xml"
EVENT_STREAM = "text/event-stream"
LOWER_TRIANGLE = "lower-triangle"

Kind = TypeVar("Kind")
Data = TypeVar("Data")


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


class ArraysAnswer(Answer):
    """An answer whose other members are arrays by name."""

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, TensorAnswer]


class OneLine:
    """The data of an event: one line of text that holds JSON."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {
            "type": "string",
            "contentMediaType": "application/json",
            "contentSchema": handler(schema),
        }


class Event(Answer, Generic[Kind, Data]):
    """An event of a stream: its name, and its data."""

    event: Kind
    data: Annotated[Data, OneLine()]


class LimitAnswer(Answer):
    """A limit in force."""

    value: int | float | dict[str, int] = Field(
        description="A map by model id if it differs between models."
    )
    unit: str
    reason: str
    refusal: str | None = Field(
        description="The status and the kind of the error beyond the limit; null: none."
    )
    env: str | None = Field(description="The environment variable that sets it; null: it is fixed.")


class HealthAnswer(Answer):
    """The state of the server."""

    status: Literal["ok", "ready"]


class ProblemAnswer(BaseModel):
    """An error in the format of RFC 9457."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:headlight:problem:too-many-characters",
                    "title": "Too many characters",
                    "status": 422,
                    "detail": "4,001 characters are more than the 4,000 that are allowed; "
                    "send a shorter text",
                    "limit": 4000,
                    "actual": 4001,
                    "request_id": "5f0c9d4be2a17386",
                }
            ]
        },
    )

    type: str
    title: str
    status: int
    detail: str
    limit: int | None = None
    actual: int | None = None
    request_id: str | None = Field(
        None, description="The id of the request in the server's log: X-Request-ID."
    )
