"""The analyses of a request: whether a model has them, the sites that they read, their results."""

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Any

from headlight.analyses.analysis import Choices, Result
from headlight.analyses.analysis_registry import (
    ANALYSES,
    available,
    in_words,
    known_sites,
    matching,
    readers_of,
)
from headlight.analyses.predictions import PredictionsRequest
from headlight.model.analysis.edited_passes import TooManyPasses
from headlight.model.description import Description
from headlight.model.interventions.intervention import Intervention
from headlight.model.reductions import Part, Reduction
from headlight.model.served import Served
from headlight.model.sites import layer_of
from headlight.model.trace import Trace
from headlight.model.tracing import ModelInput
from headlight.problems import Problem, echo, over_limit
from headlight.schemas.traces import TraceRequest


def sites_of(
    names: Sequence[str],
    description: Description,
    layers: Sequence[int] | None = None,
    *,
    is_long: bool = False,
) -> list[str]:
    """Return the sites that some analyses need, each once; those by layer keep to `layers`.

    Of a text that is long, no logits: predictions are made of the residual stream in parts.

    Raises:
        Problem: 422, the model lacks the sites that one of them reads.
    """
    needed: dict[str, None] = {}
    for name in names:
        analysis = ANALYSES[name]
        keeps_to = layers if analysis.is_by_layer else None
        known = known_sites(analysis, description)
        if reason := analysis.reason_against(description):
            raise _no_such_analysis(f"{name} cannot be computed: {reason}", description)
        for glob in analysis.globs(description, is_long=is_long):
            sites = matching(known, glob)
            if not sites and glob in analysis.needs:
                reason = _reason_of(glob, description)
                raise _no_such_analysis(
                    f"{name} is computed from {glob}, which the model '{description.id}' "
                    f"lacks{reason}",
                    description,
                )
            needed |= {
                site: None for site in sites if keeps_to is None or layer_of(site) in keeps_to
            }
    return list(needed)


def _no_such_analysis(detail: str, description: Description) -> Problem:
    offered = ", ".join(available(description))
    return Problem(422, "no-such-analysis", f"{detail}; its analyses are {offered}")


def _reason_of(glob: str, description: Description) -> str:
    """Return the reason why the model lacks the sites, in parentheses, or nothing."""
    end = glob.rpartition("*")[2].strip(".")
    reasons = [why for site, why in description.omitted.items() if end and site.endswith(end)]
    return f" ({reasons[0]})" if reasons else ""


@dataclass
class Parts:
    """The arrays of one analysis by layer, as the pass computed them, or why there are none."""

    by_layer: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    error: ValueError | None = None


def reduction_of(
    request: TraceRequest, sent: Sequence[str], checkpoint: Served
) -> tuple[Reduction, dict[str, Parts]]:
    """Return the reduction of a pass over one text, and what it will compute by analysis.

    `sent` are the sites that are sent. With edits nothing is reduced.
    """

    def sites(names: Sequence[str]) -> list[str]:
        is_long = request.is_observed
        return sites_of(names, checkpoint.description, request.layers, is_long=is_long)

    def compute(trace: Trace, *, name: str, layer: str) -> None:
        try:
            computed[name].by_layer[layer] = ANALYSES[name].part(trace, checkpoint, layer)
        except ValueError as error:
            computed[name].error = error

    wanted = request.wanted_analyses
    computed = {
        name: Parts() for name in wanted if ANALYSES[name].is_in_parts and not request.edits
    }
    parts = [
        Part(tuple(of_layer), partial(compute, name=name, layer=layer))
        for name in computed
        for layer, of_layer in groupby(sorted(sites([name]), key=_layer_path), _layer_path)
    ]
    kept = {*sent, *sites([name for name in wanted if name not in computed])}
    return Reduction(parts, kept), computed


def _layer_path(site: str) -> str:
    return ".".join(site.split(".")[:3])


def derived_arrays(names: Sequence[str], sites: Sequence[str]) -> list[tuple[str, tuple[str, ...]]]:
    """Return the arrays that analyses make beyond what they read: a site and its axes."""
    return [
        (site, analysis.axes)
        for analysis in (ANALYSES[name] for name in names)
        for glob in (analysis.needs if analysis.axes else ())
        for site in fnmatch.filter(sites, glob)
    ]


def require_readers(request: TraceRequest) -> None:
    """Check that the requested analyses read each option of analyses, and allow the edits.

    Raises:
        Problem: 422.
    """
    wanted = request.wanted_analyses
    for kind in request.options:
        if not set(readers := readers_of(kind)) & set(wanted):
            way_out = f"ask for {in_words(readers, 'or')} in analyses"
            detail = f"{kind.member} is read by no analysis that is asked for; {way_out}"
            raise Problem(422, "unread-option", detail)
    for name in wanted if request.edits else ():
        if not ANALYSES[name].takes_edits:
            detail = f"{name} measures the model as it is; leave the edits out"
            raise Problem(422, "impossible-edit", detail)


def choices_of(
    request: TraceRequest, checkpoint: Served, interventions: Sequence[Intervention]
) -> Choices:
    """Return the choices of a request, whose pass has these interventions."""
    return Choices(request.options, tuple(interventions), partial(_token_id, checkpoint))


def _token_id(checkpoint: Served, token: int | str) -> int:
    """Return the id of a token of a request.

    Raises:
        Problem: 422, there is no such token, or a text is not one token.
    """
    if labels := checkpoint.description.labels:
        return _label_id(labels, token)
    if isinstance(token, int):
        if token < (n_ids := checkpoint.config.vocab_size):
            return token
        rule = f"the ids of the model '{checkpoint.id}' are 0 to {n_ids - 1}"
        raise Problem(422, "unknown-token", f"there is no token {token}; {rule}")
    try:
        tokens = [piece for piece in checkpoint.tokenizer.encode(token) if piece.end > piece.start]
    except ValueError:
        tokens = []
    if len(tokens) == 1:
        return tokens[0].id
    pieces = ", ".join(echo(piece.text) for piece in tokens[:4]) or "none"
    detail = f"the text {echo(token)} is not one token; its tokens are {pieces}; send one, or an id"
    raise Problem(422, "not-one-token", detail)


def _label_id(labels: Sequence[str], label: int | str) -> int:
    """Return the id of a label of a request, by its name or id."""
    if isinstance(label, str) and label in labels:
        return labels.index(label)
    if isinstance(label, int) and label < len(labels):
        return label
    detail = f"there is no label {echo(str(label))}; the first are {', '.join(labels[:8])}"
    raise Problem(422, "unknown-token", detail)


def n_predictions(request: TraceRequest, description: Description, model_input: ModelInput) -> int:
    """Return the numbers and texts that `predictions` makes two analyses return."""
    asked = Choices(request.options)[PredictionsRequest]
    top = min(asked.top, description.config.vocab_size)
    each = (3 + asked.samples) * top + 3 * len(asked.tokens) + asked.following
    n_layers = description.config.n_layers
    n_rows = sum(ANALYSES[name].n_predictions(n_layers) for name in request.wanted_analyses)
    return n_rows * model_input.axis_lengths("logits")["query"] * each


def analyse(
    name: str,
    trace: Trace,
    checkpoint: Served,
    choices: Choices | None = None,
    parts: Mapping[str, Parts] | None = None,
) -> Result:
    """Return an analysis of a trace that holds its sites, with the choices of its request.

    `parts` are those that the pass computed already.

    Raises:
        Problem: 422, this text has nothing for it to work on, or needs too many passes.
    """
    try:
        if computed := (parts or {}).get(name):
            if computed.error:
                raise computed.error
            return ANALYSES[name].join(computed.by_layer)
        return ANALYSES[name].compute(trace, checkpoint, choices or Choices())
    except TooManyPasses as error:
        raise over_limit(
            "edited tokens",
            limit=error.limit,
            actual=error.actual,
            way_out=f"{name} reads the text once for each edit; ask for fewer parts, or send a "
            "shorter text",
        ) from error
    except ValueError as error:
        raise Problem(422, "nothing-to-analyse", f"{name}: {error}") from error
