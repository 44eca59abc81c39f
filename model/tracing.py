"""One forward pass of one of our models, captured as a Trace."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import torch
from torch import Tensor

from model.checkpoint import Checkpoint
from model.hooks import Capture
from model.sites import UnknownSite, layer_of, match_sites, require_heads, require_layers
from model.trace import NamedArray, Token, Trace

DEFAULT_CAPTURE = (
    "*.self_attention.weights",
    "*.embedding.positional",
    "*.experts.router_probs",
    "*.experts.expert_indices",
    "*.experts.expert_weights",
)


class EmptyText(ValueError):
    """A text without anything to read."""


class TooManyTokens(ValueError):
    """A text of more tokens than the model can read."""

    def __init__(self, actual: int, limit: int) -> None:
        super().__init__(f"the text has {actual} tokens, but the model reads at most {limit}")
        self.actual = actual
        self.limit = limit


@dataclass(frozen=True)
class Plan:
    """What a pass will read and keep; ``tokenize_ms`` is what cutting the text took."""

    text: str
    tokens: tuple[Token, ...]
    sites: tuple[str, ...]
    heads: tuple[int, ...] | None
    tokenize_ms: float


def read_tokens(checkpoint: Checkpoint, text: str) -> tuple[Token, ...]:
    """The tokens that the model would read for a text.

    Raises:
        EmptyText: the text is empty or blank.
        TooManyTokens: it is longer than the model can read.
        ValueError: it holds a lone surrogate.
    """
    if not text.strip():
        raise EmptyText("the text is empty; type at least one word")
    tokens = tuple(checkpoint.tokenizer.encode(text))
    if len(tokens) > checkpoint.config.max_tokens:
        raise TooManyTokens(len(tokens), checkpoint.config.max_tokens)
    return tokens


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
        sites = [site for site in sites if layer_of(site) in {None, *layers}]
        if not sites:
            raise UnknownSite(f"nothing of {list(capture)} lies in layers {list(layers)}")
    return sites


def plan(
    checkpoint: Checkpoint,
    text: str,
    *,
    capture: Sequence[str] | None = None,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
) -> Plan:
    """Cut a text into tokens and choose the sites: what can be known before a pass.

    Args:
        checkpoint: the model and its tokenizer.
        text: what to read; the start token is put before it.
        capture: globs over site names; None: `DEFAULT_CAPTURE`.
        layers: of the sites in a layer, only those in these layers.
        heads: of the arrays with a head axis, only these heads.

    Raises:
        EmptyText, TooManyTokens, UnknownSite, UnknownLayer, UnknownHead: with what would do.
    """
    began = perf_counter()
    tokens = read_tokens(checkpoint, text)
    took = 1e3 * (perf_counter() - began)
    sites = tuple(select_sites(checkpoint, capture, layers, heads))
    return Plan(text, tokens, sites, None if heads is None else tuple(heads), took)


def run(checkpoint: Checkpoint, plan: Plan) -> Trace:
    """Make the pass that was planned.

    Returns:
        The arrays by site without a batch axis, float32 or int32, on the CPU.
    """
    began = perf_counter()
    ids = torch.tensor([[token.id for token in plan.tokens]], device=checkpoint.device)
    with torch.inference_mode(), checkpoint.model.capture(plan.sites, heads=plan.heads) as captured:
        checkpoint.model(ids)
        tensors = _arrays(captured, checkpoint)
    took = 1e3 * (perf_counter() - began)
    return Trace(
        model=checkpoint.id,
        revision=checkpoint.description.revision,
        precision=checkpoint.precision,
        text=plan.text,
        tokens=plan.tokens,
        tensors=tensors,
        heads=plan.heads,
        timings={"tokenize": plan.tokenize_ms, "forward": took},
    )


def trace(
    checkpoint: Checkpoint,
    text: str,
    *,
    capture: Sequence[str] | None = None,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
) -> Trace:
    """Read a text and keep what was asked for: `plan`, then `run`."""
    return run(checkpoint, plan(checkpoint, text, capture=capture, layers=layers, heads=heads))


def _arrays(captured: Capture, checkpoint: Checkpoint) -> dict[str, NamedArray]:
    axes = {site.name: site.axes for site in checkpoint.description.sites}
    return {site: _array(tensor, axes[site]) for site, tensor in captured.items()}


def _array(tensor: Tensor, axes: tuple[str, ...]) -> NamedArray:
    if axes[0] == "batch":
        tensor, axes = tensor[0], axes[1:]
    dtype = torch.float32 if tensor.is_floating_point() else torch.int32
    # A copy, so that nobody who writes into a trace writes into the model.
    return NamedArray(axes, tensor.to("cpu", dtype, copy=True).contiguous().numpy())
