"""Trace jobs: text lengths checked, and requests under the ids of their results.

The id is a hash of all that decides the numbers, and of nothing else: not of how the sites were
spelled, or how the numbers are sent. Nor does it depend on the other texts of a batch, as a batch
does not change a text's numbers (to 1e-5 in float32; in bfloat16, where that would not hold, a
pass reads one text). So any replica that computed the same before can answer from its cache.
"""

import hashlib
import json
import re
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch

from headlight.analyses.analysis_registry import available
from headlight.forms import identity
from headlight.model.circuits.graph import NoGraph, UnknownEdge
from headlight.model.description import Description
from headlight.model.interventions.expert_ablation import UnknownExpert
from headlight.model.interventions.intervention import ImpossibleIntervention
from headlight.model.interventions.site_edit import UnknownPosition
from headlight.model.quantization.affine import UnknownPart
from headlight.model.served import UnwatchedPass
from headlight.model.sites import UnknownHead, UnknownLayer, UnknownSite
from headlight.model.tokenizer import NoChat, NoPair, NoSpecialTokens, UnreadableText
from headlight.model.tracing import (
    EmptyText,
    NoTarget,
    PassSpec,
    TooManyTokens,
    UnknownToken,
    pass_spec,
)
from headlight.problems import Problem, over_limit
from headlight.schemas.edits import EditRequest
from headlight.schemas.traces import TokenizeRequest, TraceRequest
from headlight.tracing.results import derived_arrays, require_readers, sites_of

MOST_MARKS = 1_000
MARKS = re.compile(
    rf"[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u064b-\u065f\u1ab0-\u1aff"
    rf"\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{{{MOST_MARKS}}}"
)
"""Normalising them takes time that grows with the square of their number."""

STANDARD = ("next_token", "answer", "reward", "vector")
"""The analyses of a request that names none, of those that the model has."""

_KINDS: dict[type[Exception], str] = {
    UnknownSite: "unknown-site",
    UnknownLayer: "unknown-layer",
    UnknownHead: "unknown-head",
    UnknownExpert: "unknown-expert",
    UnknownPart: "unknown-part",
    ImpossibleIntervention: "impossible-edit",
    NoTarget: "no-target",
    EmptyText: "empty-text",
    UnreadableText: "unreadable-text",
    UnknownPosition: "unknown-position",
    UnknownToken: "unknown-token",
    UnwatchedPass: "unwatched-pass",
    NoGraph: "no-graph",
    NoChat: "no-chat",
    NoPair: "no-pair",
    NoSpecialTokens: "no-special-tokens",
    UnknownEdge: "unknown-edge",
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
    def takes_values(self) -> bool:
        """True if an edit takes its values from another trace."""
        edits = self.request.edits or ()
        return any(edit.taken() is not None or edit.needs_model for edit in edits)

    @property
    def batch_key(self) -> Hashable | None:
        """The key of the batch: one pass can compute jobs of equal keys; None: only this one."""
        return ("trace", self.model, self.spec) if self.is_batched else None


def trace_jobs(
    requests: Sequence[TraceRequest], description: Description, dtype: torch.dtype
) -> list[TraceJob]:
    """Return the jobs of requests that differ only in their texts; one pass can compute them all.

    Raises:
        Problem: 422, the model lacks something that is asked for.
    """
    requests = [with_standard(request, description) for request in requests]
    first = trace_job(requests[0], description, dtype)
    precision = str(dtype).removeprefix("torch.")
    return [
        replace(
            first,
            request=request,
            id=trace_id(description.revision, precision, request, first.sites, first.spec.sites),
        )
        for request in requests
    ]


def trace_job(request: TraceRequest, description: Description, dtype: torch.dtype) -> TraceJob:
    """Return the job that a request, whose texts are checked already, asks a model for.

    Raises:
        Problem: 422, the model lacks something that is asked for.
    """
    request = with_standard(request, description)
    with model_errors_as_problems():
        sent = pass_spec(
            description,
            capture=request.capture,
            layers=request.layers,
            heads=request.heads,
            interventions=[edit.intervention() for edit in request.edits or ()],
            resolution=request.resolution,
            queries=request.queries,
        )
    require_readers(request)
    read_sites = sites_of(
        request.wanted_analyses, description, request.layers, is_long=request.is_observed
    )
    spec = sent.with_sites(read_sites)
    precision = str(dtype).removeprefix("torch.")
    return TraceJob(
        id=trace_id(description.revision, precision, request, sent.sites, spec.sites),
        request=request,
        model=description.id,
        spec=spec,
        sites=sent.sites,
        derived=tuple(derived_arrays(request.wanted_analyses, read_sites)),
        is_batched=precision == "float32" and not request.is_observed,
    )


def with_standard(request: TraceRequest, description: Description) -> TraceRequest:
    """Return a request that names no analyses with those of a model that predicts no tokens."""
    if description.predicts == "token" or request.analyses is not None:
        return request
    offered = [name for name in STANDARD if name in available(description)]
    names = offered if request.wanted_analyses else []
    return request.model_copy(update={"analyses": names})


def trace_id(
    revision: str,
    precision: str,
    request: TraceRequest,
    sites: Sequence[str],
    read_sites: Sequence[str] = (),
) -> str:
    """Return the id of a trace, the same for every request for the same numbers.

    `sites` and `read_sites`, which its analyses read, stand for the model's sites that it names.
    """
    asked = [revision, precision, identity(request), sites, sorted(read_sites)]
    # Not orjson, which rejects half a character; the tokenizer has the better message for it.
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:32]


def way_to_read_more(request: TraceRequest, description: Description) -> str:
    """Return the way to read a text that is too long, as the end of a sentence, or nothing."""
    longest = description.longest_text
    is_translated = description.config.kind == "encoder-decoder" and request.target is None
    if request.is_observed or is_translated or longest <= description.config.max_tokens:
        return ""
    return f", or read up to {longest:,} tokens with resolution or queries"


def _source_texts(edits: Sequence[EditRequest]) -> list[str]:
    """Return the texts and targets that edits take values from."""
    sources = [taken.source for edit in edits if (taken := edit.taken()) is not None]
    texts = [text for source in sources for text in (source.text, source.target)]
    for edit in edits:
        if edit.needs_model:
            texts += [getattr(edit, name, None) for name in ("text", "target")]
            texts += getattr(edit, "texts", None) or ()
    return [text for text in texts if text is not None]


def check_texts(
    request: TokenizeRequest, limit: int, long_limit: int | None = None, longer: str = ""
) -> None:
    """Reject a request with a text that is empty or too long, before anything touches it.

    `long_limit` is that of a text of which only maps and rows are asked for, `longer` the result of
    `way_to_read_more`.

    Raises:
        Problem: 422.
    """
    if long_limit is not None and isinstance(request, TraceRequest) and request.is_observed:
        limit = max(limit, long_limit)
    if request.text is not None:
        check_text(request.text, limit, longer=longer)
    if request.text_pair is not None:
        check_text(request.text_pair, limit, "text_pair")
    if request.messages is not None:
        contents = [message.content for message in request.messages]
        if (actual := sum(map(len, contents))) > limit:
            way_out = "send fewer or shorter messages"
            raise over_limit("characters", limit=limit, actual=actual, way_out=way_out)
        for content in contents:
            require_readable(content, "content")
    if isinstance(request, TraceRequest) and request.target is not None:
        check_text(request.target, limit, "target")
    for text in _source_texts(getattr(request, "edits", None) or ()):
        check_text(text, limit)
    if (patching := getattr(request, "patching", None)) is not None:
        check_text(patching.text, limit, "patching.text")
        if patching.target is not None:
            check_text(patching.target, limit, "patching.target")


def check_text(text: str, limit: int, name: str = "text", longer: str = "") -> None:
    """Reject a text that is empty or has more than `limit` characters, before anything touches it.

    Raises:
        Problem: 422; it names the text by its member of the request, `name`.
    """
    if len(text) > limit:
        way_out = f"send a shorter {name}{longer}"
        setting = "HEADLIGHT_MAX_CHARACTERS"
        raise over_limit(
            "characters", limit=limit, actual=len(text), way_out=way_out, setting=setting
        )
    if not text:
        raise Problem(422, "empty-text", f"the {name} is empty; send at least one word")
    require_readable(text, name)


def require_readable(text: str, name: str) -> None:
    """Reject a text with more combining marks in a row than any language writes.

    Raises:
        Problem: 422.
    """
    if len(text) > MOST_MARKS and MARKS.search(text):
        detail = f"the {name} has {MOST_MARKS} combining marks in a row, which no language writes"
        raise Problem(422, "unreadable-text", detail)


def reading(request: TokenizeRequest) -> dict[str, Any]:
    """Return how a request has its text, ids or messages read, as `tokenize` takes it."""
    return {
        "ids": request.ids,
        "messages": request.said,
        "text_pair": request.text_pair,
        "special_tokens": request.special_tokens,
        "read_special_tokens": request.read_special_tokens,
    }


@contextmanager
def model_errors_as_problems(longer: str = "") -> Iterator[None]:
    """Turn the errors that the model raises about a request into problems.

    `longer` is the result of `way_to_read_more`.

    A panic of the tokenizer, a compiled library, is one too: it unwinds without harm, so the text
    is rejected and the server goes on.

    Raises:
        Problem: 422.
    """
    try:
        yield
    except TooManyTokens as error:
        detail = f"{error}; send a shorter one{longer}"
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
