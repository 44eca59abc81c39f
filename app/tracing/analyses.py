"""The analyses of a trace: the sites that each reads, its arrays and its metadata."""

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from headlight.errors import Problem, echo, over_limit
from headlight.model.analysis import (
    alignment,
    attention_by_distance,
    head_circuits,
    head_labels,
    head_outputs,
    logit_attribution,
    logit_lens,
    next_token,
    patching,
    quantization_sensitivity,
    residual_stream,
    reward,
    rollout,
    routing,
    saliency,
    strongest_path,
)
from headlight.model.analysis.edited_passes import EditedPasses, TooManyPasses
from headlight.model.analysis.logit_attribution import LogitDifference
from headlight.model.cancellation import check
from headlight.model.config import TransformerConfig
from headlight.model.generation import Sampling
from headlight.model.interventions import Intervention
from headlight.model.quantization import Quantization, parts_of
from headlight.model.served import Description, Served
from headlight.model.sites import layer_of
from headlight.model.trace import NamedArray, Trace
from headlight.model.tracing import ModelInput, PassSpec, run_batch, tokenize
from headlight.schemas.analyses import MAX_EDITED_TOKENS, AnalysisName, PatchingRequest
from headlight.schemas.traces import TraceRequest
from headlight.serialization.trace import Analysis

Arrays = Mapping[str, NamedArray]

_ALIGNER = ("layer", "head", "shift")

N_CACHED_GLOBS = 256


@dataclass(frozen=True)
class Choices:
    """The choices of a request that its analyses read, with tokens as ids.

    ``top`` and ``ids``: how many of the likeliest tokens `next_token` and `logit_lens` return, and
    which others. ``following``: whether `next_token` returns those that the text goes on with.
    ``sampling``: how it would sample, or None.
    ``position``, ``token`` and ``against``: of the logit difference to explain, each None if the
    trace decides. ``patching``: the other text, and the parts. ``interventions``: those of the
    pass, which further passes of an analysis have too.
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

    def passes(self, trace: Trace, checkpoint: Served) -> EditedPasses:
        """Further passes over the text of a trace."""
        return EditedPasses(checkpoint, trace, self.interventions, MAX_EDITED_TOKENS)

    def difference(self, trace: Trace, checkpoint: Served) -> LogitDifference:
        """The logit difference to explain in a trace.

        Raises:
            ValueError: the trace has no such position, or the two tokens are the same.
        """
        return logit_attribution.choose_difference(
            trace,
            self.position,
            self.token,
            self.against,
            mask_id=checkpoint.tokenizer.mask_id,
        )


@dataclass(frozen=True)
class _Analyser:
    """An analysis: the sites it needs, how it is computed, and what goes with its arrays.

    An analysis by layer reads only the layers of the request, one of the prediction only the stack
    that predicts. `also` are sites that it reads if the model has them. If it makes more numbers
    than it reads, `axes` are those of the array that it makes of each site. `reason_against` says
    why a model that has the sites cannot have the analysis; None: it can.
    """

    needs: tuple[str, ...]
    analyse: Callable[[Trace, Served, Choices], Arrays | Analysis]
    metadata: Callable[[Arrays, Trace, Served], Mapping[str, Any]] = lambda *_: {}
    is_by_layer: bool = False
    is_of_prediction: bool = False
    also: tuple[str, ...] = ()
    axes: tuple[str, ...] = ()
    reason_against: Callable[[Description], str | None] = lambda _: None


def output_weights(trace: Trace, checkpoint: Served) -> dict[str, NamedArray]:
    """W_O of every attention whose context or weights a trace holds, by the name of the weights."""
    sites = (site.rpartition(".") for site in trace.tensors)
    paths = dict.fromkeys(path for path, _, part in sites if part in ("context", "weights"))
    return {
        f"{path}.output_projection.weight": checkpoint.output_weights(path)
        for path in paths
        if path.endswith("attention")
    }


def sites_of(
    names: Sequence[str],
    description: Description,
    layers: Sequence[int] | None = None,
    *,
    is_long: bool = False,
) -> list[str]:
    """The sites that some analyses need, each once; those by layer keep to `layers`.

    Of a text that is long, no logits: predictions are made of the residual stream in parts.

    Raises:
        Problem: 422, the model lacks the sites that one of them reads.
    """
    needed: dict[str, None] = {}
    for name in names:
        analyser = ANALYSERS[name]
        keeps_to = layers if analyser.is_by_layer else None
        known = _known_sites(analyser, description)
        if reason := analyser.reason_against(description):
            raise _no_such_analysis(f"{name} cannot be computed: {reason}", description)
        for glob in _needs(name, description, is_long=is_long):
            sites = _matching(known, glob)
            if not sites and glob in analyser.needs:
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


def _known_sites(analyser: _Analyser, description: Description) -> tuple[str, ...]:
    """The sites that an analysis may read: all, or those of the stack that predicts."""
    if not analyser.is_of_prediction:
        return description.site_names
    other = "encoder." if description.config.has_decoder else "decoder."
    return tuple(site for site in description.site_names if not site.startswith(other))


@lru_cache(N_CACHED_GLOBS)
def _matching(names: tuple[str, ...], glob: str) -> list[str]:
    """The names that a glob matches; matching them again takes a tenth of a request's time."""
    return fnmatch.filter(names, glob)


def _reason_of(glob: str, description: Description) -> str:
    """The reason for which the model does not offer the sites, if one was found."""
    end = glob.rpartition("*")[2].strip(".")
    found = [why for site, why in description.omitted.items() if end and site.endswith(end)]
    return f" ({found[0]})" if found else ""


def _needs(name: str, description: Description, *, is_long: bool) -> tuple[str, ...]:
    """The globs that an analysis reads; of a long text no logits."""
    needs = (*ANALYSERS[name].needs, *ANALYSERS[name].also)
    is_predicting = name in ("next_token", "logit_lens")
    if not (is_long and is_predicting and "logit_lens" in description.features):
        return needs
    if name == "logit_lens":
        return tuple(glob for glob in needs if glob not in next_token.NEEDS)
    stack = "decoder" if description.config.has_decoder else "encoder"
    return (f"{stack}.layers.{description.config.n_layers - 1}.{logit_lens.PART}",)


def derived_arrays(names: Sequence[str], sites: Sequence[str]) -> list[tuple[str, tuple[str, ...]]]:
    """The arrays that analyses make beyond what they read: a site and the axes of each."""
    return [
        (site, analyser.axes)
        for analyser in (ANALYSERS[name] for name in names)
        for glob in (analyser.needs if analyser.axes else ())
        for site in fnmatch.filter(sites, glob)
    ]


def available(description: Description) -> list[str]:
    """The analyses that a model has the sites for."""
    return [
        name
        for name, analyser in ANALYSERS.items()
        if all(_matching(_known_sites(analyser, description), glob) for glob in analyser.needs)
        and analyser.reason_against(description) is None
    ]


_READERS: dict[str, tuple[AnalysisName, ...]] = {
    "predictions": ("next_token", "logit_lens"),
    "logit_difference": ("logit_attribution", "strongest_path", "patching", "saliency"),
    "patching": ("patching",),
}


def require_readers(request: TraceRequest) -> None:
    """Check that the requested analyses read each option of analyses, and allow the edits.

    Raises:
        Problem: 422.
    """
    for option, readers in _READERS.items():
        if getattr(request, option) is None or set(readers) & set(request.wanted_analyses):
            continue
        *others, last = readers
        names = f"{', '.join(others)} or {last}" if others else last
        detail = f"{option} is read by no analysis that is asked for; ask for {names} in analyses"
        raise Problem(422, "unread-option", detail)
    if request.edits and (name := "quantization_sensitivity") in request.wanted_analyses:
        detail = f"{name} measures the model as it is; leave the edits out"
        raise Problem(422, "impossible-edit", detail)


def choices_of(
    request: TraceRequest, checkpoint: Served, interventions: Sequence[Intervention]
) -> Choices:
    """The choices of a request, whose pass has these interventions.

    Raises:
        Problem: 422, there is no such token, or a text is not one token.
    """
    found = Choices(patching=request.patching, interventions=tuple(interventions))
    if (predictions := request.predictions) is not None:
        ids = tuple(_token_id(token, checkpoint) for token in predictions.tokens)
        found = replace(found, top=predictions.top, ids=ids, following=predictions.following)
        if predictions.samples:
            found = replace(
                found,
                sampling=Sampling(
                    temperature=1.0 if predictions.temperature is None else predictions.temperature,
                    top_k=predictions.top_k,
                    top_p=predictions.top_p,
                ),
            )
    if (asked := request.logit_difference) is not None:
        token, against = (
            None if one is None else _token_id(one, checkpoint)
            for one in (asked.token, asked.against)
        )
        found = replace(found, position=asked.position, token=token, against=against)
    return found


def _token_id(token: int | str, checkpoint: Served) -> int:
    if isinstance(token, int):
        if token < (n_ids := checkpoint.config.vocab_size):
            return token
        rule = f"the ids of the model '{checkpoint.id}' are 0 to {n_ids - 1}"
        raise Problem(422, "unknown-token", f"there is no token {token}; {rule}")
    try:
        found = [one for one in checkpoint.tokenizer.encode(token) if one.end > one.start]
    except ValueError:
        found = []
    if len(found) == 1:
        return found[0].id
    pieces = ", ".join(echo(one.text) for one in found[:4]) or "none"
    detail = f"the text {echo(token)} is not one token; its tokens are {pieces}; send one, or an id"
    raise Problem(422, "not-one-token", detail)


def n_predictions(request: TraceRequest, description: Description, read: ModelInput) -> int:
    """The numbers and texts that `predictions` makes `next_token` and `logit_lens` return."""
    if request.predictions is None:
        return 0
    top = min(request.predictions.top, description.config.vocab_size)
    each = (
        (3 + request.predictions.samples) * top
        + 3 * len(request.predictions.tokens)
        + request.predictions.following
    )
    names = request.wanted_analyses
    n_rows = ("next_token" in names) + description.config.n_layers * ("logit_lens" in names)
    return n_rows * read.axis_lengths("logits")["query"] * each


def analyse(
    name: str, trace: Trace, checkpoint: Served, choices: Choices | None = None
) -> Analysis:
    """One analysis of a trace that holds its sites, with the choices of its request.

    Raises:
        Problem: 422, this text has nothing for it to work on, or needs too many further passes.
    """
    analyser = ANALYSERS[name]
    try:
        arrays = analyser.analyse(trace, checkpoint, choices or Choices())
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
    if isinstance(arrays, Analysis):
        return arrays
    return Analysis(arrays=arrays, metadata=analyser.metadata(arrays, trace, checkpoint))


def _texts(arrays: Arrays, _: Trace, checkpoint: Served) -> dict[str, Any]:
    """The texts of an array of token ids, nested as the ids are."""
    spelled = np.frompyfunc(checkpoint.tokenizer.text_of, 1, 1)(arrays["ids"].data)
    return {"texts": spelled.tolist()}


def _next_token(trace: Trace, checkpoint: Served, chosen: Choices) -> Arrays:
    if next_token.NEEDS[0] not in trace:
        if chosen.sampling is not None:
            raise ValueError("the logits of this text are not held at once; send a shorter text")
        return logit_lens.last_prediction(
            trace, checkpoint.exits, chosen.top, chosen.ids, following=chosen.following
        )
    return next_token.next_token(
        trace, chosen.top, chosen.ids, following=chosen.following, sampling=chosen.sampling
    )


def _logit_lens(trace: Trace, checkpoint: Served, chosen: Choices) -> Arrays:
    return logit_lens.logit_lens(trace, checkpoint.exits, chosen.top, chosen.ids)


def _residual_stream(trace: Trace, checkpoint: Served, _: Choices) -> Arrays:
    config = checkpoint.config
    return residual_stream.residual_stream(trace, norm=config.norm, norm_place=config.norm_place)


def _of_outputs(
    analyse: Callable[[Trace, Mapping[str, NamedArray]], Arrays],
) -> Callable[[Trace, Served, Choices], Arrays]:
    """An analysis that reads the output projections of the attentions."""
    return lambda trace, checkpoint, _: analyse(trace, output_weights(trace, checkpoint))


def _logit_attribution(trace: Trace, checkpoint: Served, chosen: Choices) -> Analysis:
    difference = chosen.difference(trace, checkpoint)
    found = _attribution(trace, checkpoint, difference)
    metadata = {
        **_spelled(difference, checkpoint),
        "part_names": list(found.parts),
        "omitted": found.omitted,
    }
    return Analysis(arrays=found.arrays, metadata=metadata)


def _attribution(
    trace: Trace, checkpoint: Served, difference: LogitDifference
) -> logit_attribution.Attribution:
    config = checkpoint.config
    return logit_attribution.logit_attribution(
        trace,
        checkpoint.linear_exit,
        output_weights(trace, checkpoint),
        difference,
        n_experts=config.moe.n_experts if config.moe else 0,
        norm_place=config.norm_place,
    )


def _patching(trace: Trace, checkpoint: Served, chosen: Choices) -> Analysis:
    asked = chosen.patching
    if asked is None:
        raise ValueError("there is no other text; send it as patching.text")
    difference = chosen.difference(trace, checkpoint)
    target = trace.target if asked.target is None else asked.target
    read = tokenize(checkpoint, asked.text, target)
    sites = [site for site in trace.tensors if site in set(_patched_sites(checkpoint))]
    spec = PassSpec(tuple(sites), None, chosen.interventions)
    (source,) = run_batch(checkpoint, spec, [read])
    passes = chosen.passes(trace, checkpoint)
    arrays = patching.patching(passes, source, difference, asked.parts)
    tokens = [token.text for token in source.tokens]
    return Analysis(
        arrays=arrays, metadata={**_spelled(difference, checkpoint), "other_tokens": tokens}
    )


def _patched_sites(checkpoint: Served) -> list[str]:
    names, globs = checkpoint.description.site_names, (*patching.NEEDS, *patching.ALSO)
    return [name for glob in globs for name in _matching(names, glob)]


def _saliency(trace: Trace, checkpoint: Served, chosen: Choices) -> Analysis:
    difference = chosen.difference(trace, checkpoint)
    arrays = saliency.saliency(chosen.passes(trace, checkpoint), difference)
    return Analysis(arrays=arrays, metadata=_spelled(difference, checkpoint))


def _strongest_path(trace: Trace, checkpoint: Served, chosen: Choices) -> Analysis:
    difference = chosen.difference(trace, checkpoint)
    attribution = _attribution(trace, checkpoint, difference)
    found = strongest_path.strongest_path(chosen.passes(trace, checkpoint), attribution, difference)
    metadata = {
        **_spelled(difference, checkpoint),
        "difference": found.difference,
        "probability": found.probability,
        "edges": [asdict(edge) for edge in found.edges],
        "candidates": [asdict(head) for head in found.candidates],
    }
    return Analysis(arrays={"ablations": found.ablations}, metadata=metadata)


def _spelled(difference: LogitDifference, checkpoint: Served) -> dict[str, Any]:
    """A logit difference, its tokens with their texts."""
    return {
        "position": difference.position,
        **{
            name: {"id": token, "text": checkpoint.tokenizer.text_of(token)}
            for name, token in (("token", difference.token), ("against", difference.against))
        },
    }


def _normalised_stream(description: Description) -> str | None:
    """The reason for which the last stream of a model is not the sum of what its parts wrote."""
    if description.config.norm_place == "post":
        return "the model normalises what its parts write, so no logit is the sum of their outputs"
    reasons = (description.omitted.get(name) for name in ("sum", "logit_lens", "linear_exit"))
    return next(filter(None, reasons), None)


def _unknown_outputs(description: Description) -> str | None:
    """The reason for which what each head adds to the stream is not known."""
    if "head_outputs" in description.features:
        return None
    found = [why for name, why in description.omitted.items() if name.endswith(".head_outputs")]
    return (found or ["no matrix makes what an attention writes of what its heads read"])[0]


def _unknown_split(description: Description) -> str | None:
    """The reason for which a logit is not split by heads."""
    return _normalised_stream(description) or _unknown_outputs(description)


def _normalised_outputs(description: Description) -> str | None:
    """The reason for which the output of a part is not what it adds to the stream."""
    names = {site.name for site in description.sites}
    written = {name.rpartition(".residual.")[0] for name in names if ".residual." in name}
    if any(f"{layer}.residual.middle" not in names for layer in written):
        return (
            "attention and feed-forward network read the same stream, so there is none between them"
        )
    if all(
        f"{layer}.feed_forward.output" in names or f"{layer}.experts.output" in names
        for layer in written
    ):
        return description.omitted.get("sum")
    return "the output of a layer's feed-forward network cannot be read"


def _head_circuits(trace: Trace, checkpoint: Served, _: Choices) -> Analysis:
    assert isinstance(checkpoint.config, TransformerConfig)
    found = head_circuits.head_circuits(
        trace, checkpoint.weights(), checkpoint.linear_exit, checkpoint.config
    )
    ids = [array.data for name, array in found.arrays.items() if name.endswith("_ids")]
    unique = np.unique(np.concatenate([each.reshape(-1) for each in ids]))
    texts = {str(token): checkpoint.tokenizer.text_of(int(token)) for token in unique}
    return Analysis(arrays=found.arrays, metadata={"token_texts": texts, "omitted": found.omitted})


def _reason_against_circuits(description: Description) -> str | None:
    if description.architecture != "headlight":
        return "it does not offer the weights of its norms"
    if getattr(description.config, "has_embedding_norm", False):
        return "its embedding is normalised together with the position, so neither stands alone"
    return _normalised_stream(description)


def _aligner(trace: Trace, checkpoint: Served) -> dict[str, int]:
    """The head that the card found to align words best, if the trace holds it."""
    found = checkpoint.description.card.metrics.get("alignment")
    head = found.get("head") if isinstance(found, Mapping) else None
    chosen: dict[str, Any] = (
        {key: head.get(key) for key in _ALIGNER} if isinstance(head, Mapping) else {}
    )
    is_held = (
        all(type(number) is int for number in chosen.values())
        and chosen.get("layer") in range(checkpoint.config.n_layers)
        and chosen.get("head") in (trace.heads or range(checkpoint.config.n_heads))
        and chosen.get("shift") in (0, 1)
    )
    return chosen if is_held else {}


def _alignment(trace: Trace, checkpoint: Served, _: Choices) -> Arrays:
    if chosen := _aligner(trace, checkpoint):
        layers, heads = [chosen["layer"]], [chosen["head"]]
        return alignment.alignment(trace, layers=layers, heads=heads, shift=chosen["shift"])
    return alignment.alignment(trace)


def _sensitivity(trace: Trace, checkpoint: Served, _: Choices) -> Arrays:
    read = ModelInput(trace.text, trace.tokens, trace.target, trace.target_tokens)

    def rounded_logits(part: str, bits: int) -> Any:
        check()
        spec = PassSpec(("logits",), None, (Quantization(bits=bits, parts=(part,)),))
        return run_batch(checkpoint, spec, [read])[0]["logits"]

    return quantization_sensitivity.quantization_sensitivity(
        trace,
        _quantized_parts(checkpoint),
        rounded_logits,
        is_encoder=checkpoint.config.kind == "encoder",
    )


def _reason_against_rounding(description: Description) -> str | None:
    if description.quantization is not None:
        return "its weights are quantized already"
    return None if description.matrices else "its weights are not those of Headlight's own models"


def _quantized_parts(checkpoint: Served) -> list[str]:
    """All parts together, and each one alone."""
    return [quantization_sensitivity.ALL, *parts_of(checkpoint.description.matrices)]


ANALYSERS: dict[str, _Analyser] = {
    "next_token": _Analyser(next_token.NEEDS, _next_token, _texts),
    "rollout": _Analyser(rollout.NEEDS, lambda trace, *_: rollout.rollout(trace)),
    "head_labels": _Analyser(
        head_labels.NEEDS,
        lambda trace, *_: head_labels.head_labels(trace),
        lambda *_: {"labels": list(head_labels.LABELS)},
    ),
    "value_weighted": _Analyser(
        head_outputs.VALUE_WEIGHTED_NEEDS,
        _of_outputs(head_outputs.value_weighted),
        also=head_outputs.ALSO,
        reason_against=_unknown_outputs,
    ),
    "head_outputs": _Analyser(
        head_outputs.NEEDS,
        _of_outputs(head_outputs.head_outputs),
        is_by_layer=True,
        also=head_outputs.ALSO,
        axes=head_outputs.AXES,
        reason_against=_unknown_outputs,
    ),
    "head_norms": _Analyser(
        head_outputs.NEEDS,
        _of_outputs(head_outputs.head_norms),
        is_by_layer=True,
        also=head_outputs.ALSO,
        reason_against=_unknown_outputs,
    ),
    "head_circuits": _Analyser(
        head_circuits.NEEDS, _head_circuits, reason_against=_reason_against_circuits
    ),
    # It makes logits of every layer, so a text whose logits would be too many is too long for it.
    "logit_lens": _Analyser((*logit_lens.NEEDS, *next_token.NEEDS), _logit_lens, _texts),
    "residual_stream": _Analyser(
        residual_stream.NEEDS, _residual_stream, reason_against=_normalised_outputs
    ),
    "routing": _Analyser(routing.NEEDS, lambda trace, *_: routing.routing(trace)),
    "reward": _Analyser(reward.NEEDS, lambda trace, *_: reward.reward(trace)),
    "alignment": _Analyser(
        alignment.NEEDS,
        _alignment,
        lambda _, trace, checkpoint: {"aligner": _aligner(trace, checkpoint)},
    ),
    "logit_attribution": _Analyser(
        logit_attribution.NEEDS,
        _logit_attribution,
        is_of_prediction=True,
        also=logit_attribution.ALSO,
        reason_against=_unknown_split,
    ),
    "strongest_path": _Analyser(
        (*logit_attribution.NEEDS, "*_attention.weights", "*_attention.values"),
        _strongest_path,
        also=head_outputs.ALSO,
        reason_against=_unknown_split,
    ),
    "patching": _Analyser(patching.NEEDS, _patching, also=patching.ALSO),
    "saliency": _Analyser(saliency.NEEDS, _saliency),
    "attention_by_distance": _Analyser(
        attention_by_distance.NEEDS,
        lambda trace, *_: attention_by_distance.attention_by_distance(trace),
    ),
    "quantization_sensitivity": _Analyser(
        quantization_sensitivity.NEEDS,
        _sensitivity,
        lambda _, __, checkpoint: {"parts": _quantized_parts(checkpoint)},
        reason_against=_reason_against_rounding,
    ),
}
