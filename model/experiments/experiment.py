"""An experiment: a pure, seeded, bounded function from validated parameters to named arrays.

    for frame in experiment.start({"length": 80}):
        frame["gradient"].data

An array whose name is its only axis holds the values of that axis. An experiment of more than a
second gives its result in frames. The arrays with an axis in `GROWING` go on from frame to frame
along it; any other array is whole in the frame that has it. `collect` joins the frames.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from headlight.model.cancellation import check
from headlight.model.trace import NamedArray

MAX_SECONDS = 60
"""The longest estimated time of a run, on one core."""

MAX_MEGABYTES = 500
"""The most memory that a run may need, as estimated."""

TEXTS = Path(__file__).with_name("texts")
"""What is said of each experiment, and the arrays that it declares, as ``ID.toml``."""

GROWING = ("step", "frame")
"""The axes along which the arrays of consecutive frames are joined."""

Arrays = Mapping[str, NDArray[np.generic]]
Frame = dict[str, NamedArray]


class Parameters(BaseModel):
    """The parameters of an experiment: each has a default, limits and a description.

    Raises:
        pydantic.ValidationError: a parameter is unknown, has another type or is out of range.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)

    seed: int = Field(0, ge=0, lt=2**31, description="Equal seeds give equal numbers.")


@dataclass(frozen=True)
class Quantity:
    """A declared array of a result.

    Args:
        axes: the names of its axes, separated by spaces; empty: a single number.
        help: what its numbers are.
        unit: of its numbers; empty: none.
    """

    axes: str
    help: str
    unit: str = ""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The estimated cost of a run.

    Args:
        seconds: on one core of a common server.
        megabytes: of memory beyond that of the process.
    """

    seconds: float
    megabytes: float


def small(_: Parameters) -> Cost:
    """Return the cost of arrays that take some milliseconds, whatever their parameters are."""
    return Cost(seconds=0.01, megabytes=2.0)


class TooCostly(ValueError):
    """The parameters ask for more time or memory than a run may take.

    Args:
        what: ``seconds`` or ``megabytes``.
        limit: the greatest allowed amount.
        actual: the estimated amount.
        way_out: how to ask for less.
    """

    def __init__(self, what: str, *, limit: int, actual: int, way_out: str) -> None:
        super().__init__(
            f"this run needs about {actual:,} {what}, more than the {limit:,} allowed; {way_out}"
        )
        self.what, self.limit, self.actual = what, limit, actual


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A named experiment and its description, whose arrays and prose ``texts/ID.toml`` declares.

    Args:
        id: its name.
        order: its place among all; smaller ones come first.
        group: the heading above its tab in the page.
        tab: the name of its tab, in two or three words.
        title: a few words.
        parameters: the class of its parameters.
        run: computes the result; yields the arrays of each frame, and between frames computes for
            at most a few seconds.
        way_out: how to lower the cost, part of a sentence.
        cost: estimates the cost of a run.
        is_streamed: whether it gives more than one frame.
        measures_machine: whether its numbers are those of the machine that runs it.
    """

    id: str
    order: int
    group: str
    tab: str
    title: str
    parameters: type[Parameters]
    run: Callable[[Any], Iterator[Arrays]]
    way_out: str
    cost: Callable[[Any], Cost] = small
    is_streamed: bool = False
    measures_machine: bool = False

    @cached_property
    def _said(self) -> dict[str, Any]:
        return tomllib.loads((TEXTS / f"{self.id}.toml").read_text("utf-8"))

    @cached_property
    def quantities(self) -> Mapping[str, Quantity]:
        """The arrays of its result, by name."""
        return {name: Quantity(*given) for name, given in self._said["quantities"].items()}

    @property
    def see(self) -> str:
        """One paragraph on what to see."""
        return " ".join(self._said["see"].split())

    @property
    def field(self) -> str:
        """One paragraph on where the field stands."""
        return " ".join(self._said["field"].split())

    @property
    def sources(self) -> Mapping[str, str]:
        """Of both paragraphs: the title of each publication, by its address."""
        sources: Mapping[str, str] = self._said["sources"]
        return sources

    def validate(self, values: Mapping[str, Any] | Parameters) -> Parameters:
        """Check values; a parameter that is not named has its default.

        Raises:
            pydantic.ValidationError: a value is not allowed.
            TooCostly: the run would take too long or too much memory.
        """
        parameters = (
            values if isinstance(values, self.parameters) else self.parameters(**dict(values))
        )
        cost = self.cost(parameters)
        for what, limit in (("seconds", MAX_SECONDS), ("megabytes", MAX_MEGABYTES)):
            if (actual := getattr(cost, what)) > limit:
                raise TooCostly(what, limit=limit, actual=round(actual), way_out=self.way_out)
        return parameters

    def start(self, values: Mapping[str, Any] | Parameters | None = None) -> Generator[Frame]:
        """Validate the values now, and compute the frames as they are asked for.

        Raises:
            pydantic.ValidationError, TooCostly: as `validate`.
            Cancelled: while computing, if the run is cancelled (`cancellation`).
        """
        return self._frames(self.validate(values or {}))

    def result(self, values: Mapping[str, Any] | Parameters | None = None) -> Frame:
        """Compute the whole result at once; arguments and errors are those of `start`."""
        return collect(self.start(values))

    def _frames(self, parameters: Parameters) -> Generator[Frame]:
        for arrays in self.run(parameters):
            yield {
                name: NamedArray(tuple(self.quantities[name].axes.split()), np.asarray(data))
                for name, data in arrays.items()
            }
            check()


def collect(frames: Iterable[Frame]) -> Frame:
    """Join frames: arrays with a growing axis are concatenated along it, the last of others stays.

    Raises:
        ValueError: there is no frame.
    """
    parts: dict[str, list[NamedArray]] = {}
    for frame in frames:
        for name, array in frame.items():
            if set(array.axes) & set(GROWING):
                parts.setdefault(name, []).append(array)
            else:
                parts[name] = [array]
    if not parts:
        raise ValueError("there is no frame to join")
    return {name: _join(arrays) for name, arrays in parts.items()}


def _join(arrays: list[NamedArray]) -> NamedArray:
    axes = arrays[0].axes
    if len(arrays) == 1:
        return arrays[0]
    growing = next(place for place, axis in enumerate(axes) if axis in GROWING)
    return NamedArray(axes, np.concatenate([array.data for array in arrays], axis=growing))
