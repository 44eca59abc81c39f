"""A `TraceJob`: a validated request for a trace, under the id of its result.

The id is a hash of all that decides the numbers, and of nothing else: not of how the sites were
spelled, how the numbers are sent, or which other texts the pass reads, as each text of a batch has
the numbers that it has alone (to 1e-5 in float32; in bfloat16, where that would not hold, a pass
reads one text). So any replica that computed the same before can answer from its cache.
"""

import hashlib
import json
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from headlight.errors import Problem, over_limit
from headlight.model.interventions import (
    ExpertAblation,
    HeadAblation,
    ImpossibleIntervention,
    Intervention,
    NoScaling,
    Temperature,
    UnknownExpert,
)
from headlight.model.served import Description
from headlight.model.sites import UnknownHead, UnknownLayer, UnknownSite
from headlight.model.tracing import NoTarget, PassSpec, TooManyTokens, pass_spec
from headlight.schemas.traces import (
    EditRequest,
    ExpertsOffRequest,
    HeadsOffRequest,
    TemperatureRequest,
    TraceRequest,
)
from headlight.tracing.analyses import derived_arrays, sites_of

_KINDS: dict[type[Exception], str] = {
    UnknownSite: "unknown-site",
    UnknownLayer: "unknown-layer",
    UnknownHead: "unknown-head",
    UnknownExpert: "unknown-expert",
    ImpossibleIntervention: "impossible-edit",
    NoTarget: "no-target",
}


@dataclass(frozen=True, kw_only=True)
class TraceJob:
    """A trace to compute.

    Attributes:
        id: of the trace.
        request: what was asked for.
        model: its id.
        spec: of the pass; it captures `sites` and what the analyses read.
        sites: the sites that are sent.
        derived: the arrays that analyses make beyond what they read: a site and its axes.
        is_batched: whether a pass may read other texts together with this one.
    """

    id: str
    request: TraceRequest
    model: str
    spec: PassSpec
    sites: tuple[str, ...]
    derived: tuple[tuple[str, tuple[str, ...]], ...]
    is_batched: bool = True

    @property
    def batch_key(self) -> Hashable | None:
        """Equal for jobs that one pass can compute; None: this one is computed alone."""
        return ("trace", self.model, self.spec) if self.is_batched else None


def trace_job(request: TraceRequest, description: Description, dtype: torch.dtype) -> TraceJob:
    """The job that a request asks a model for.

    Args:
        request: what is asked for; its texts are checked already.
        description: of the model; its weights need not be loaded.
        dtype: what the model computes in.

    Raises:
        Problem: 422, the model lacks something that is asked for.
    """
    with model_errors_as_problems():
        sent = pass_spec(
            description,
            capture=request.capture,
            layers=request.layers,
            heads=request.heads,
            interventions=[intervention_of(edit) for edit in request.edits or ()],
        )
    read = sites_of(request.wanted_analyses, description, request.layers)
    spec = sent.with_sites(read)
    precision = str(dtype).removeprefix("torch.")
    return TraceJob(
        id=trace_id(description.revision, precision, request, sent.sites, spec.sites),
        request=request,
        model=description.id,
        spec=spec,
        sites=sent.sites,
        derived=tuple(derived_arrays(request.wanted_analyses, read)),
        is_batched=precision == "float32",
    )


def trace_id(
    revision: str,
    precision: str,
    request: TraceRequest,
    sites: Sequence[str],
    read: Sequence[str] = (),
) -> str:
    """The id of a trace, the same for every request for the same numbers.

    `read` are the sites that its analyses read: some keep to the layers that were asked for.
    """
    asked: list[Any] = [revision, precision, request.text, sites, request.heads]
    asked += [request.wanted_analyses, sorted(read), request.target, request.wanted_edits]
    # Not orjson, which rejects half a character; the tokenizer has the better message for it.
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:32]


def intervention_of(edit: EditRequest) -> Intervention:
    """The intervention that an edit of the API asks for."""
    place: dict[str, Any] = {"layer": edit.layer, "where": edit.where}
    match edit:
        case HeadsOffRequest():
            return HeadAblation(heads=tuple(edit.heads), **place)
        case ExpertsOffRequest():
            return ExpertAblation(experts=tuple(edit.experts), **place)
        case TemperatureRequest():
            return Temperature(value=edit.value, **place)
        case _:
            return NoScaling(**place)


def check_text(text: str, limit: int, name: str = "text") -> None:
    """Reject a text that is empty or too long, before anything else touches it.

    Args:
        text: what was sent.
        limit: characters that it may have.
        name: the member of the request that it is.

    Raises:
        Problem: 422.
    """
    if len(text) > limit:
        way_out = f"send a shorter {name}"
        raise over_limit("characters", limit=limit, actual=len(text), way_out=way_out)
    if not text.strip():
        raise Problem(422, "empty-text", f"the {name} is empty; send at least one word")


@contextmanager
def model_errors_as_problems() -> Iterator[None]:
    """Turn the errors that the model raises about a request into problems.

    A panic of the tokenizer, a compiled library, is one too: it unwinds without harm, so the text
    is rejected and the server goes on.

    Raises:
        Problem: 422.
    """
    try:
        yield
    except TooManyTokens as error:
        detail = f"{error}; send a shorter one"
        raise Problem(
            422, "too-many-tokens", detail, limit=error.limit, actual=error.actual
        ) from error
    except tuple(_KINDS) as error:
        raise Problem(422, _KINDS[type(error)], str(error)) from error
    except BaseException as panic:
        if type(panic).__name__ != "PanicException":
            raise
        detail = "the tokenizer cannot read this text; change it"
        raise Problem(422, "unreadable-text", detail) from None
