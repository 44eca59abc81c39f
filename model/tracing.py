"""Forward passes of one of our models, captured as Traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import torch
from torch import Tensor

from headlight.model.batching import fill_up
from headlight.model.checkpoint import Checkpoint
from headlight.model.hooks import Capture
from headlight.model.interventions import Intervention, intervene, site_edits
from headlight.model.selection import select_sites
from headlight.model.trace import NamedArray, Token, Trace
from headlight.model.translation import translate


class EmptyText(ValueError):
    """A text without anything to read."""


class NoTarget(ValueError):
    """A target for a model that reads one text only."""


class TooManyTokens(ValueError):
    """A text of more tokens than the model can read."""

    def __init__(self, actual: int, limit: int, what: str = "text") -> None:
        super().__init__(f"the {what} has {actual} tokens, but the model reads at most {limit}")
        self.actual, self.limit = actual, limit


@dataclass(frozen=True)
class Plan:
    """What a pass will read, change and keep; ``timings`` are the milliseconds of planning."""

    text: str
    tokens: tuple[Token, ...]
    target: str | None
    target_tokens: tuple[Token, ...] | None
    sites: tuple[str, ...]
    heads: tuple[int, ...] | None
    timings: Mapping[str, float]
    edits: tuple[Intervention, ...] = ()

    @property
    def n_read(self) -> int:
        """How many tokens the pass reads: those of the text, and those of the target."""
        return len(self.tokens) + len(self.target_tokens or ())

    def n_tokens(self, site: str) -> dict[str, int]:
        """How many queries, keys and positions a site has."""
        n_source = len(self.tokens)
        n_target = n_source if self.target_tokens is None else len(self.target_tokens)
        n_queries = n_source if site.startswith("encoder.") else n_target
        n_keys = n_source if ".cross_attention." in site else n_queries
        return {"query": n_queries, "key": n_keys, "position": n_queries}


def read_tokens(checkpoint: Checkpoint, text: str, what: str = "text") -> tuple[Token, ...]:
    """The tokens that the model would read for a text.

    Args:
        checkpoint: the model and its tokenizer.
        text: the text.
        what: what an error calls it.

    Raises:
        EmptyText: the text is empty or blank.
        TooManyTokens: it is longer than the model can read.
        ValueError: it holds a lone surrogate.
    """
    if not text.strip():
        raise EmptyText(f"the {what} is empty; type at least one word")
    tokens = tuple(checkpoint.tokenizer.encode(text))
    if len(tokens) > checkpoint.config.max_tokens:
        raise TooManyTokens(len(tokens), checkpoint.config.max_tokens, what)
    return tokens


def plan(
    checkpoint: Checkpoint,
    text: str,
    target: str | None = None,
    *,
    capture: Sequence[str] | None = None,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    edits: Sequence[Intervention] = (),
) -> Plan:
    """Cut a text into tokens and choose the sites: what can be known before a pass.

    An encoder–decoder without a target translates the text here, to know what it will read; it
    does so without the edits, so that passes with and without them read the same tokens.

    Args:
        checkpoint: the model and its tokenizer.
        text: what to read; the start token is put before it.
        target: what the decoder of an encoder–decoder reads; None: its own translation.
        capture: globs over site names; None: `selection.DEFAULT_CAPTURE`.
        layers: of the sites in a layer, only those in these layers.
        heads: of the arrays with a head axis, only these heads.
        edits: what the pass will change.

    Raises:
        EmptyText, TooManyTokens, NoTarget, UnknownSite, UnknownLayer, UnknownHead, UnknownExpert,
            ImpossibleIntervention: with what would do.
    """
    asked = {"capture": capture, "layers": layers, "heads": heads}
    return with_targets(checkpoint, [draft(checkpoint, text, target, edits=edits, **asked)])[0]


def draft(
    checkpoint: Checkpoint,
    text: str,
    target: str | None = None,
    *,
    capture: Sequence[str] | None = None,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    edits: Sequence[Intervention] = (),
) -> Plan:
    """As `plan`, but what the model would have to translate first is left without a target."""
    site_edits(checkpoint.config, edits)
    sites = select_sites(checkpoint.description, capture, layers, heads)
    began = perf_counter()
    tokens = read_tokens(checkpoint, text)
    target_tokens = _read_target(checkpoint, target)
    took = 1e3 * (perf_counter() - began)
    return Plan(
        text=text,
        tokens=tokens,
        target=target,
        target_tokens=target_tokens,
        sites=sites,
        heads=None if heads is None else tuple(heads),
        timings={"tokenize": took},
        edits=tuple(edits),
    )


def _read_target(checkpoint: Checkpoint, target: str | None) -> tuple[Token, ...] | None:
    if target is None:
        return None
    if checkpoint.config.kind != "encoder-decoder":
        raise NoTarget(f"the model '{checkpoint.id}' reads one text; leave the target out")
    return read_tokens(checkpoint, target, "target")


def lacks_target(checkpoint: Checkpoint, plan: Plan) -> bool:
    """Whether the decoder has nothing to read yet."""
    return checkpoint.config.kind == "encoder-decoder" and plan.target_tokens is None


def with_targets(checkpoint: Checkpoint, plans: Sequence[Plan]) -> list[Plan]:
    """The plans, those that lack a target with the model's translation; it makes all at once."""
    lacking = [plan for plan in plans if lacks_target(checkpoint, plan)]
    if not lacking:
        return list(plans)
    began = perf_counter()
    tokenizer, max_tokens = checkpoint.tokenizer, checkpoint.config.max_tokens
    translations = translate(
        checkpoint.model,
        [_ids(plan.tokens) for plan in lacking],
        start_id=tokenizer.start_id,
        end_id=tokenizer.end_id,
    )
    texts = [tokenizer.decode(ids) for ids in translations]
    tokens = [tuple(tokenizer.encode(text)[:max_tokens]) for text in texts]
    took = {"translate": 1e3 * (perf_counter() - began)}
    found = iter(zip(texts, tokens, strict=True))
    return [
        _with_target(plan, *next(found), took) if lacks_target(checkpoint, plan) else plan
        for plan in plans
    ]


def _with_target(
    plan: Plan, text: str, tokens: tuple[Token, ...], took: Mapping[str, float]
) -> Plan:
    return replace(plan, target=text, target_tokens=tokens, timings={**plan.timings, **took})


def run(checkpoint: Checkpoint, plan: Plan) -> Trace:
    """Make the pass that was planned.

    Returns:
        The arrays by site without a batch axis, float32 or int32, on the CPU.
    """
    return run_batch(checkpoint, [plan])[0]


def run_batch(checkpoint: Checkpoint, plans: Sequence[Plan]) -> list[Trace]:
    """Make several planned passes as one, in which every text is a row.

    Each trace holds the numbers that it holds alone, to 1e-5 in float32: how a processor adds up
    may depend on how much there is to add.

    Args:
        checkpoint: the model.
        plans: at least one; all of the same sites, heads and edits, in texts of any length.

    Returns:
        The traces in the order of the plans. Each has the milliseconds of the whole pass.

    Raises:
        ValueError: the plans differ in more than their texts.
    """
    if len({(plan.sites, plan.heads, plan.edits) for plan in plans}) != 1:
        raise ValueError("plans of one pass must have the same sites, heads and edits")
    began = perf_counter()
    sites, heads, edits = plans[0].sites, plans[0].heads, plans[0].edits
    model = checkpoint.model
    with (
        torch.inference_mode(),
        intervene(model, edits),
        model.capture(sites, heads=heads) as captured,
    ):
        _read(checkpoint, plans)
        tensors = _arrays(captured, checkpoint, plans)
    took = 1e3 * (perf_counter() - began)
    return [
        _trace(checkpoint, plan, arrays, took) for plan, arrays in zip(plans, tensors, strict=True)
    ]


def trace(
    checkpoint: Checkpoint,
    text: str,
    target: str | None = None,
    *,
    capture: Sequence[str] | None = None,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    edits: Sequence[Intervention] = (),
) -> Trace:
    """Read a text and keep what was asked for: `plan`, then `run`."""
    asked = {"capture": capture, "layers": layers, "heads": heads}
    return run(checkpoint, plan(checkpoint, text, target, edits=edits, **asked))


def _read(checkpoint: Checkpoint, plans: Sequence[Plan]) -> None:
    """The pass itself. A causal row needs no mark of where its tokens end."""
    model, device = checkpoint.model, checkpoint.device
    texts = fill_up([_ids(plan.tokens) for plan in plans], device)
    if not checkpoint.config.has_encoder:
        model(texts.ids)
        return
    targets = [_ids(plan.target_tokens) for plan in plans if plan.target_tokens]
    target_ids = fill_up(targets, device).ids if targets else None
    model(texts.ids, target_ids, is_token=texts.is_token)


def _ids(tokens: Sequence[Token]) -> list[int]:
    return [token.id for token in tokens]


def _trace(
    checkpoint: Checkpoint, plan: Plan, arrays: Mapping[str, NamedArray], took: float
) -> Trace:
    return Trace(
        model=checkpoint.id,
        revision=checkpoint.description.revision,
        precision=checkpoint.precision,
        text=plan.text,
        tokens=plan.tokens,
        target=plan.target,
        target_tokens=plan.target_tokens,
        tensors=arrays,
        heads=plan.heads,
        timings={**plan.timings, "forward": took},
    )


def _arrays(
    captured: Capture, checkpoint: Checkpoint, plans: Sequence[Plan]
) -> list[dict[str, NamedArray]]:
    """The arrays of each plan by site: its own row, as long as its own text."""
    axes = {site.name: site.axes for site in checkpoint.description.sites}
    arrays: list[dict[str, NamedArray]] = [{} for _ in plans]
    for site, tensor in captured.items():
        dtype = torch.float32 if tensor.is_floating_point() else torch.int32
        tensor = tensor.to("cpu", dtype)
        for row, plan in enumerate(plans):
            arrays[row][site] = _array(tensor, axes[site], row, plan.n_tokens(site))
    return arrays


def _array(
    tensor: Tensor, axes: tuple[str, ...], row: int, n_tokens: Mapping[str, int]
) -> NamedArray:
    if axes[0] == "batch":
        tensor, axes = tensor[row], axes[1:]
    own = tensor[tuple(slice(n_tokens.get(axis)) for axis in axes)]
    # A copy, so that nobody who writes into a trace writes into the model, or into another trace.
    return NamedArray(axes, own.numpy().copy())
