"""The base class of analyses, the choices of a request that they read, and their result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from headlight.forms import TensorAnswer
from headlight.model.trace import NamedArray, Trace
from headlight.schemas.analyses import MAX_EDITED_TOKENS, PatchingRequest

if TYPE_CHECKING:
    from headlight.model.analysis.edited_passes import EditedPasses
    from headlight.model.analysis.logit_attribution import LogitDifference
    from headlight.model.description import Description
    from headlight.model.generation.sampling import Sampling
    from headlight.model.interventions.intervention import Intervention
    from headlight.model.served import Served


@dataclass(frozen=True)
class Result:
    """The result of an analysis: arrays, and plain data about them."""

    arrays: Mapping[str, NamedArray]
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Choices:
    """The choices of a request that its analyses read, with tokens as ids.

    ``top`` and ``ids``: how many of the likeliest tokens `next_token` and `logit_lens` return, and
    which others. ``following``: whether `next_token` returns those that the text goes on with.
    ``sampling``: how it would sample, or None.
    ``position``, ``token`` and ``against``: of the logit difference to explain, each None if the
    trace decides. ``patching``: the other text, and the parts. ``interventions``: those of the
    pass, which the passes of an analysis have too.
    """

    top: int = 20
    ids: tuple[int, ...] = ()
    following: bool = False
    sampling: Sampling | None = None
    position: int | None = None
    token: int | None = None
    against: int | None = None
    patching: PatchingRequest | None = None
    interventions: tuple[Intervention, ...] = ()

    def passes(self, trace: Trace, model: Served) -> EditedPasses:
        """Return passes with edits over the text of a trace."""
        from headlight.model.analysis.edited_passes import EditedPasses

        return EditedPasses(model, trace, self.interventions, MAX_EDITED_TOKENS)

    def difference(self, trace: Trace, model: Served) -> LogitDifference:
        """Return the logit difference to explain in a trace.

        Raises:
            ValueError: the trace has no such position, or the two tokens are the same.
        """
        from headlight.model.analysis.logit_attribution import choose_difference

        mask_id = model.tokenizer.mask_id
        return choose_difference(trace, self.position, self.token, self.against, mask_id=mask_id)


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
        options: the members of a request that are for it.
        phrase: its description, if a line is too short for it.
        is_by_layer: it reads only the layers of the request.
        is_of_prediction: it reads only the stack that predicts.
        has_passes: it runs many more passes over the text.
        takes_edits: the pass that it reads may have edits.
    """

    id: ClassVar[str]
    needs: ClassVar[tuple[str, ...]]
    also: ClassVar[tuple[str, ...]] = ()
    axes: ClassVar[tuple[str, ...]] = ()
    answer: ClassVar[Any] = dict[str, TensorAnswer]
    options: ClassVar[tuple[str, ...]] = ()
    phrase: ClassVar[str] = ""
    is_by_layer: ClassVar[bool] = False
    is_of_prediction: ClassVar[bool] = False
    has_passes: ClassVar[bool] = False
    takes_edits: ClassVar[bool] = True

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

    @abstractmethod
    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        """Compute it from a trace that holds its sites.

        Raises:
            ValueError: the text has nothing for it to work on.
            TooManyPasses: it would read too many tokens.
        """
