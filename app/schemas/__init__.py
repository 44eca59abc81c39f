"""The requests, answers and events of the API; the server and the client share them.

Nothing here imports PyTorch or the server. The documentation at /docs is made from these classes.
"""

from typing import Annotated, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from headlight.forms import Answer

JSON = "application/json"
SAFETENSORS = "application/x-safetensors"
SVG = "image/svg+xml"
EVENT_STREAM = "text/event-stream"
LOWER_TRIANGLE = "lower-triangle"

Kind = TypeVar("Kind")
Data = TypeVar("Data")


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
                    "detail": "8,001 characters are more than the 8,000 that are allowed; "
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
