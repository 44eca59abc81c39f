"""The base class of analyses, the choices of a request that they read, and their result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from headlight.forms import Request, TensorAnswer
from headlight.model.trace import NamedArray, Trace

if TYPE_CHECKING:
    from headlight.model.description import Description
    from headlight.model.interventions.intervention import Intervention
    from headlight.model.served import Served


@dataclass(frozen=True)
class Result:
    """The result of an analysis: arrays, and plain data about them."""

    arrays: Mapping[str, NamedArray]
    metadata: Mapping[str, Any] = field(default_factory=dict)


class AnalysisOptions(Request):
    """The options that analyses read: one member of a request, an object of these fields.

    The options of one analysis are its class `Options`, and the member has the name of the
    analysis. Those that several read name it themselves, as ``member``.
    """

    member: ClassVar[str] = ""

    def __init_subclass__(cls, **arguments: Any) -> None:
        owner, _, name = cls.__qualname__.rpartition(".")
        if name == "Options":  # schemas are named by the class alone
            cls.__name__ = cls.__qualname__ = f"{owner.rpartition('.')[2]}Request"
        super().__init_subclass__(**arguments)


Options = TypeVar("Options", bound=AnalysisOptions)


@dataclass(frozen=True)
class Choices:
    """The choices of a request that its analyses read.

    ``given``: its options by their type. ``interventions``: those of the pass, which the passes of
    an analysis have too. ``id_of``: the id of a token that an option names.
    """

    given: Mapping[type[AnalysisOptions], AnalysisOptions] = field(default_factory=dict)
    interventions: tuple[Intervention, ...] = ()
    id_of: Callable[[int | str], int] = int

    def __getitem__(self, kind: type[Options]) -> Options:
        """Return options, with their standard values if the request gives none.

        Raises:
            ValueError: one of them has no standard value.
        """
        if (given := self.given.get(kind)) is not None:
            return given  # type: ignore[return-value]
        for name, each in kind.model_fields.items():
            if each.is_required():
                raise ValueError(f"there is no {name}; send it as {kind.member}.{name}")
        return kind()


def names_of(model: Served) -> Callable[[int], str]:
    """Return the name of what a model predicts by its id: the text of a token, or a label."""
    labels = model.description.labels
    return labels.__getitem__ if labels else model.tokenizer.text_of


class Analysis(ABC):
    """A quantity computed from a trace; a subclass is one analysis, and is offered once imported.

    The first line of its docstring is its description in the API, unless there is a `phrase`.

    Attributes:
        id: its name in requests and answers.
        needs: globs of the sites that it reads; a model that lacks one cannot have the analysis.
        also: globs of the sites that it reads if the model has them.
        axes: of the array that it makes of each site of `needs`, if it makes more numbers than it
            reads.
        answer: the type of its answer in the API; by default, arrays by name.
        reads: the options that it shares with other analyses.
        Options: its own.
        phrase: its description, if a line is too short for it.
        is_by_layer: it reads only the layers of the request.
        is_of_prediction: it reads only the stack that predicts.
        has_passes: it runs many more passes over the text.
        takes_edits: the pass that it reads may have edits.
        is_in_parts: it can be computed layer by layer while the pass runs, by `part` and `join`.
    """

    id: ClassVar[str]
    needs: ClassVar[tuple[str, ...]]
    also: ClassVar[tuple[str, ...]] = ()
    axes: ClassVar[tuple[str, ...]] = ()
    answer: ClassVar[Any] = dict[str, TensorAnswer]
    reads: ClassVar[tuple[type[AnalysisOptions], ...]] = ()
    Options: ClassVar[type[AnalysisOptions] | None] = None
    phrase: ClassVar[str] = ""
    is_by_layer: ClassVar[bool] = False
    is_of_prediction: ClassVar[bool] = False
    has_passes: ClassVar[bool] = False
    takes_edits: ClassVar[bool] = True
    is_in_parts: ClassVar[bool] = False

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if (own := vars(cls).get("Options")) is not None:
            own.member = cls.id

    @property
    def options(self) -> tuple[type[AnalysisOptions], ...]:
        """All options that it reads."""
        return self.reads if self.Options is None else (*self.reads, self.Options)

    @property
    def description(self) -> str:
        """Its description in the API, as a phrase."""
        first, *_ = (type(self).__doc__ or "").splitlines()
        return self.phrase or f"{first[:1].lower()}{first[1:].removesuffix('.')}"

    def reason_against(self, description: Description) -> str | None:
        """Return the reason why a model with the sites cannot have the analysis; None: it can."""
        return None

    def globs(self, description: Description, *, is_long: bool) -> tuple[str, ...]:
        """Return the globs of the sites to capture; `is_long`: of a text that may be a book."""
        return (*self.needs, *self.also)

    def n_predictions(self, n_layers: int) -> int:
        """Return the number of predictions that it makes of each position for `predictions`."""
        return 0

    def part(self, trace: Trace, model: Served, layer: str) -> Mapping[str, Any]:
        """Return the arrays of one layer, ``decoder.layers.0``, from a trace of its sites only."""
        return self.compute(trace, model, Choices()).arrays

    def join(self, parts: Mapping[str, Mapping[str, Any]]) -> Result:
        """Return the result of the whole text from those of `part` by layer, in order."""
        return Result({name: array for part in parts.values() for name, array in part.items()})

    @abstractmethod
    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        """Compute it from a trace that holds its sites.

        Raises:
            ValueError: the text has nothing for it to work on.
            TooManyPasses: it would read too many tokens.
        """
