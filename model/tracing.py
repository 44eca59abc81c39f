"""One forward pass of one of our models, captured as a Trace."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

import torch
from torch import Tensor

from model.checkpoint import Checkpoint
from model.edits import PassEdit, editing, hooks_of
from model.hooks import Capture
from model.sites import UnknownSite, layer_of, match_sites, require_heads, require_layers
from model.trace import NamedArray, Token, Trace
from model.translation import translate

DEFAULT_CAPTURE = (
    "*.self_attention.weights",
    "*.cross_attention.weights",
    "*.embedding.positional",
    "*.experts.router_probs",
    "*.experts.expert_indices",
    "*.experts.expert_weights",
)


class EmptyText(ValueError):
    """A text without anything to read."""


class NoTarget(ValueError):
    """A target for a model that reads one text only."""


class TooManyTokens(ValueError):
    """A text of more tokens than the model can read."""

    def __init__(self, actual: int, limit: int, what: str = "text") -> None:
        super().__init__(f"the {what} has {actual} tokens, but the model reads at most {limit}")
        self.actual = actual
        self.limit = limit


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
    edits: tuple[PassEdit, ...] = ()

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


def read_target(
    checkpoint: Checkpoint, tokens: Sequence[Token], target: str | None
) -> tuple[str | None, tuple[Token, ...] | None]:
    """What the decoder of an encoder–decoder reads: the target, or the model's own translation.

    Args:
        checkpoint: the model.
        tokens: of the source.
        target: a text of the user's own; None: the model translates the source.

    Raises:
        EmptyText, TooManyTokens, ValueError: as `read_tokens`, of the target.
        NoTarget: there is a target and the model reads one text only.
    """
    if checkpoint.config.kind != "encoder-decoder":
        if target is not None:
            raise NoTarget(f"the model '{checkpoint.id}' reads one text; leave the target out")
        return None, None
    if target is not None:
        return target, read_tokens(checkpoint, target, "target")
    tokenizer = checkpoint.tokenizer
    (ids,) = translate(
        checkpoint.model,
        [[token.id for token in tokens]],
        start_id=tokenizer.start_id,
        end_id=tokenizer.end_id,
    )
    text = tokenizer.decode(ids)
    return text, tuple(tokenizer.encode(text)[: checkpoint.config.max_tokens])


def select_sites(
    checkpoint: Checkpoint,
    capture: Sequence[str] | None = None,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
) -> list[str]:
    """The sites that a request asks for, in the order of the module tree.

    Args:
        checkpoint: the model.
        capture: globs; None takes those of `DEFAULT_CAPTURE` that the model has.
        layers: of the sites in a layer, only those in these layers.
        heads: checked to exist.

    Raises:
        UnknownSite, UnknownLayer, UnknownHead: the model has no such thing.
    """
    names = [site.name for site in checkpoint.description.sites]
    if capture is None:
        capture = [glob for glob in DEFAULT_CAPTURE if fnmatch.filter(names, glob)]
    sites = match_sites(capture, names)
    if heads is not None:
        require_heads(heads, checkpoint.config.n_heads)
    if layers is not None:
        require_layers(layers, names)
        matched, sites = sites, [site for site in sites if layer_of(site) in {None, *layers}]
        if matched and not sites:
            raise UnknownSite(f"nothing of {list(capture)} lies in layers {list(layers)}")
    return sites


def plan(
    checkpoint: Checkpoint,
    text: str,
    target: str | None = None,
    *,
    capture: Sequence[str] | None = None,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    edits: Sequence[PassEdit] = (),
) -> Plan:
    """Cut a text into tokens and choose the sites: what can be known before a pass.

    An encoder–decoder without a target translates the text here, to know what it will read; it
    does so without the edits, so that passes with and without them read the same tokens.

    Args:
        checkpoint: the model and its tokenizer.
        text: what to read; the start token is put before it.
        target: what the decoder of an encoder–decoder reads; None: its own translation.
        capture: globs over site names; None: `DEFAULT_CAPTURE`.
        layers: of the sites in a layer, only those in these layers.
        heads: of the arrays with a head axis, only these heads.
        edits: what the pass will change.

    Raises:
        EmptyText, TooManyTokens, NoTarget, UnknownSite, UnknownLayer, UnknownHead, UnknownExpert,
            ImpossibleEdit: with what would do.
    """
    hooks_of(checkpoint.config, edits)
    sites = tuple(select_sites(checkpoint, capture, layers, heads))
    began = perf_counter()
    tokens = read_tokens(checkpoint, text)
    timings = {"tokenize": 1e3 * (perf_counter() - began)}
    began = perf_counter()
    target, target_tokens = read_target(checkpoint, tokens, target)
    if target_tokens is not None:
        timings["translate"] = 1e3 * (perf_counter() - began)
    return Plan(
        text=text,
        tokens=tokens,
        target=target,
        target_tokens=target_tokens,
        sites=sites,
        heads=None if heads is None else tuple(heads),
        timings=timings,
        edits=tuple(edits),
    )


def run(checkpoint: Checkpoint, plan: Plan) -> Trace:
    """Make the pass that was planned.

    Returns:
        The arrays by site without a batch axis, float32 or int32, on the CPU.
    """
    began = perf_counter()
    ids = [_ids(tokens, checkpoint) for tokens in (plan.tokens, plan.target_tokens) if tokens]
    model = checkpoint.model
    with (
        torch.inference_mode(),
        editing(model, plan.edits),
        model.capture(plan.sites, heads=plan.heads) as captured,
    ):
        model(*ids)
        tensors = _arrays(captured, checkpoint)
    took = 1e3 * (perf_counter() - began)
    return Trace(
        model=checkpoint.id,
        revision=checkpoint.description.revision,
        precision=checkpoint.precision,
        text=plan.text,
        tokens=plan.tokens,
        target=plan.target,
        target_tokens=plan.target_tokens,
        tensors=tensors,
        heads=plan.heads,
        timings={**plan.timings, "forward": took},
    )


def trace(
    checkpoint: Checkpoint,
    text: str,
    target: str | None = None,
    *,
    capture: Sequence[str] | None = None,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    edits: Sequence[PassEdit] = (),
) -> Trace:
    """Read a text and keep what was asked for: `plan`, then `run`."""
    planned = plan(
        checkpoint, text, target, capture=capture, layers=layers, heads=heads, edits=edits
    )
    return run(checkpoint, planned)


def _ids(tokens: Sequence[Token], checkpoint: Checkpoint) -> Tensor:
    return torch.tensor([[token.id for token in tokens]], device=checkpoint.device)


def _arrays(captured: Capture, checkpoint: Checkpoint) -> dict[str, NamedArray]:
    axes = {site.name: site.axes for site in checkpoint.description.sites}
    return {site: _array(tensor, axes[site]) for site, tensor in captured.items()}


def _array(tensor: Tensor, axes: tuple[str, ...]) -> NamedArray:
    if axes[0] == "batch":
        tensor, axes = tensor[0], axes[1:]
    dtype = torch.float32 if tensor.is_floating_point() else torch.int32
    # A copy, so that nobody who writes into a trace writes into the model.
    return NamedArray(axes, tensor.to("cpu", dtype, copy=True).contiguous().numpy())
