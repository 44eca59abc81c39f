"""Experiments: their descriptions, results and events."""

from typing import Any, Literal

from pydantic import Field

from headlight.forms import Answer
from headlight.schemas import Event, ProblemAnswer

ArrayType = Literal["float64", "float32", "int64", "bool", "string"]


class SourceAnswer(Answer):
    """A publication."""

    title: str
    url: str


class QuantityAnswer(Answer):
    """An array that a result holds."""

    axes: list[str] = Field(description="The names of its axes; none: a single number.")
    unit: str = Field(description="The unit of its numbers; empty: none.")
    help: str = Field(description="The meaning of its numbers.")


class ExperimentSummary(Answer):
    """An experiment in short."""

    id: str
    title: str
    is_streamed: bool = Field(description="Whether its result comes in several frames.")
    see: str = Field(description="One paragraph on the result.")


class ExperimentsAnswer(Answer):
    """Every experiment."""

    experiments: list[ExperimentSummary]


class ExperimentAnswer(ExperimentSummary):
    """The description of an experiment."""

    field: str = Field(description="One paragraph on current research.")
    sources: list[SourceAnswer]
    parameters: dict[str, Any] = Field(
        description="A JSON Schema of the parameters: defaults, limits and descriptions."
    )
    arrays: dict[str, QuantityAnswer] = Field(
        description="The arrays of the result. One whose name is its only axis holds the values "
        "of that axis."
    )
    growing: list[str] = Field(
        description="Axes along which the arrays of consecutive frames are joined; any other "
        "array is whole in the frame that has it."
    )


class ArrayAnswer(Answer):
    """An array of a result."""

    axes: list[str]
    shape: list[int]
    dtype: ArrayType
    data: Any = Field(description="Nested lists; a number that is not finite is null.")


class ExperimentStarted(Answer):
    """The experiment and all of its parameters."""

    experiment: str
    parameters: dict[str, Any] = Field(description="Every parameter, with its default if omitted.")


class ExperimentResult(ExperimentStarted):
    """The whole result of an experiment."""

    arrays: dict[str, ArrayAnswer]


class ExperimentFrame(Answer):
    """A part of the result."""

    index: int = Field(description="The number of the frame, from 0.")
    arrays: dict[str, ArrayAnswer]


class ExperimentEnded(Answer):
    """The end of the stream."""

    n_frames: int = Field(description="The number of frames that were sent.")


class ExperimentWaiting(Answer):
    """A run that has not begun."""

    ahead: int = Field(description="Runs that have to end before it begins.")


class ExperimentWaitingEvent(Event[Literal["waiting"], ExperimentWaiting]):
    """`event: waiting`, before the start of a run that has to wait for others."""


class ExperimentStartEvent(Event[Literal["start"], ExperimentStarted]):
    """`event: start`, once, with the first frame."""


class ExperimentFrameEvent(Event[Literal["frame"], ExperimentFrame]):
    """`event: frame`, as soon as it is computed."""


class ExperimentEndEvent(Event[Literal["end"], ExperimentEnded]):
    """`event: end`, after the last frame."""


class ExperimentErrorEvent(Event[Literal["error"], ProblemAnswer]):
    """`event: error`: an error after the first frame; the last event of its stream."""


ExperimentEvent = (
    ExperimentWaitingEvent
    | ExperimentStartEvent
    | ExperimentFrameEvent
    | ExperimentEndEvent
    | ExperimentErrorEvent
)
