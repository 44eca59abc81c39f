"""Run forward passes of a model and keep the chosen activations as Traces.

    spec = pass_spec(checkpoint.description, capture=["*.weights"], heads=[0])
    inputs = with_translations(checkpoint, [tokenize(checkpoint, text) for text in texts])
    traces = run_batch(checkpoint, spec, inputs)

A `PassSpec` holds the captures and interventions of a pass; it is validated once, by `pass_spec`.
A `ModelInput` is one row of the pass. `trace` does all of it for one text.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import prod
from operator import index
from pathlib import Path
from time import perf_counter
from typing import Any, SupportsIndex

import torch
from torch import Tensor

from headlight.model.attention.observer import (
    MAPS,
    OBSERVED_AXES,
    ROWS,
    OnMap,
    Watch,
    n_bins,
    watching,
)
from headlight.model.description import Description
from headlight.model.hooks import reducing
from headlight.model.interventions.intervene import bound, require_quantizable, site_edits
from headlight.model.interventions.intervention import Intervention
from headlight.model.interventions.site_edit import require_positions
from headlight.model.reductions import Reduction
from headlight.model.served import Served
from headlight.model.sites import UnknownSite, layer_of, match_sites, require_heads, require_layers
from headlight.model.tokenizer import NO_PAIR, NoPair
from headlight.model.trace import Message, NamedArray, Token, Trace

DEFAULT_CAPTURE = (
    "*.self_attention.weights",
    "*.cross_attention.weights",
    "*.embedding.positional",
    "*.experts.router_probs",
    "*.experts.expert_indices",
    "*.experts.expert_weights",
)

PASS_TOKENS = 64
"""The fixed cost of a pass, in tokens.

Measured on the default model: a pass over a text of 5 tokens takes twice as long as adding 64
tokens to a pass. Padding that costs less than this is worth a pass saved.
"""

N_CACHED_SELECTIONS = 128
_OWN = ("_attention.weights", "logits")


class EmptyText(ValueError):
    """The text is empty, or has no tokens."""


class NoTarget(ValueError):
    """A target was given to a model that takes none, or the model cannot write its own."""


class UnknownToken(ValueError):
    """A token id that the model does not have."""


class TooManyTokens(ValueError):
    """The text has more tokens than the model can read."""

    def __init__(self, actual: int, limit: int, what: str = "text") -> None:
        super().__init__(f"the {what} has {actual} tokens, but the model reads at most {limit}")
        self.actual, self.limit = actual, limit


# --- the spec of a pass ---------------------------------------------------------------------------


@dataclass(frozen=True)
class PassSpec:
    """The sites that a pass captures, the heads that it keeps of them, and its interventions.

    ``resolution`` is that of the maps and ``queries`` are the positions of the rows; None: there
    are none. Made by `pass_spec`, which validates it. Inputs of equal specs can share a batch.
    """

    sites: tuple[str, ...]
    heads: tuple[int, ...] | None = None
    interventions: tuple[Intervention, ...] = ()
    resolution: int | None = None
    queries: tuple[int, ...] | None = None

    @property
    def is_observed(self) -> bool:
        """Whether maps or rows of attention are asked for, so that the text may be long."""
        return self.resolution is not None or self.queries is not None

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes of the axes that the pass chooses, but for bins."""
        chosen = {} if self.heads is None else {"head": len(self.heads)}
        return chosen | {"row": len(self.queries or ())}

    def with_sites(self, sites: Iterable[str]) -> PassSpec:
        """Return this spec with more sites of the same model, each once."""
        return replace(self, sites=tuple(dict.fromkeys([*self.sites, *sites])))


def pass_spec(
    description: Description,
    *,
    capture: str | Iterable[str] | None = None,
    layers: SupportsIndex | Iterable[SupportsIndex] | None = None,
    heads: SupportsIndex | Iterable[SupportsIndex] | None = None,
    interventions: Sequence[Intervention] = (),
    resolution: int | None = None,
    queries: SupportsIndex | Iterable[SupportsIndex] | None = None,
) -> PassSpec:
    """Select the sites of a pass and validate heads, layers and interventions.

    One glob, layer, head or position may replace a list of one; numbers may be NumPy's.

    Args:
        description: of the model; its weights need not be loaded.
        capture: globs over site names; None: those of `DEFAULT_CAPTURE` that the model has, or
            none if a resolution or queries are given.
        layers: of the sites in a layer, only those in these layers.
        heads: of the arrays with a head axis, only these heads, in this order.
        interventions: the changes to the pass.
        resolution: the greatest number of bins on each side of ``mean_map`` and ``max_map``, which
            are captured of every attention in the layers; None: they are not.
        queries: positions whose ``rows`` are captured of every attention in the layers.

    Returns:
        The spec; its sites are in the order of the module tree.

    Raises:
        UnknownSite, UnknownLayer, UnknownHead, UnknownExpert, UnknownPosition, UnknownPart,
            ImpossibleIntervention: the model has no such site, layer, head or part; the message
            suggests one that it has.
    """
    captured, wanted, kept, rows = map(_listed, (capture, layers, heads, queries))
    if kept is not None:
        require_heads(kept, description.config.n_heads)
    if interventions:
        require_quantizable(description.matrices, interventions, description.quantization)
        interventions = bound(description.sites, interventions)
        site_edits(description.config, interventions, description.paths)
    spec = PassSpec(
        (), kept, tuple(interventions), None if resolution is None else int(resolution), rows
    )
    if captured is None and spec.is_observed:
        captured = ()
    sites = _select(description.site_names, captured, wanted)
    return spec.with_sites([*sites, *_observed_sites(description, spec, wanted)])


def _listed(items: Any) -> tuple[Any, ...] | None:
    """Return a tuple of strings or whole numbers, given one or several; None of None."""
    if items is None:
        return None
    several = (items,) if isinstance(items, str) or not isinstance(items, Iterable) else items
    return tuple(item if isinstance(item, str) else index(item) for item in several)


def _observed_sites(
    description: Description, spec: PassSpec, layers: Sequence[int] | None
) -> list[str]:
    """Return the maps and rows of a pass.

    Raises:
        ValueError: the resolution is less than 1.
        UnknownPosition: a query is negative or named twice, or there is none.
        UnknownSite: the attentions of the model cannot be observed.
    """
    if not spec.is_observed:
        return []
    if spec.resolution is not None and spec.resolution < 1:
        raise ValueError(f"resolution ({spec.resolution}) must be at least 1")
    if spec.queries is not None:
        require_positions(spec.queries, None, "the map")
    paths = [
        path for path in description.observed if layers is None or layer_of(f"{path}.") in layers
    ]
    if not paths:
        raise UnknownSite(f"no attention of the model '{description.id}' has maps and rows")
    names = (*(MAPS if spec.resolution else ()), *((ROWS,) if spec.queries else ()))
    return [f"{path}.{name}" for path in paths for name in names]


# Most requests name the same few globs, and matching them takes longer than cutting a text.
@lru_cache(N_CACHED_SELECTIONS)
def _select(
    names: tuple[str, ...], capture: tuple[str, ...] | None, layers: tuple[int, ...] | None
) -> tuple[str, ...]:
    if capture is None:
        capture = tuple(glob for glob in DEFAULT_CAPTURE if fnmatch.filter(names, glob))
    sites = match_sites(capture, names)
    if layers is not None:
        require_layers(layers, names)
        matched, sites = sites, [site for site in sites if layer_of(site) in {None, *layers}]
        if matched and not sites:
            raise UnknownSite(f"no site of {list(capture)} is in layers {list(layers)}")
    return tuple(sites)


# --- the inputs of a pass -------------------------------------------------------------------------


@dataclass(frozen=True)
class ModelInput:
    """One text in tokens and, for an encoder–decoder, the target that its decoder reads.

    ``timings`` are the milliseconds that it took to make.
    """

    text: str
    tokens: tuple[Token, ...]
    target: str | None = None
    target_tokens: tuple[Token, ...] | None = None
    timings: Mapping[str, float] = field(default_factory=dict)

    @property
    def n_tokens(self) -> int:
        """The tokens of the text and of the target together."""
        return len(self.tokens) + len(self.target_tokens or ())

    def axis_lengths(self, site: str) -> dict[str, int]:
        """Return the lengths of the query, key and position axes at a site."""
        n_source = len(self.tokens)
        n_target = n_source if self.target_tokens is None else len(self.target_tokens)
        n_queries = n_source if site.startswith("encoder.") else n_target
        n_keys = n_source if ".cross_attention." in site else n_queries
        return {"query": n_queries, "key": n_keys, "position": n_queries}


def tokenize(
    checkpoint: Served,
    text: str | None,
    target: str | None = None,
    *,
    ids: Sequence[int] | None = None,
    messages: Sequence[Message] | None = None,
    text_pair: str | None = None,
    special_tokens: bool = True,
    read_special_tokens: bool = False,
    is_observed: bool = False,
) -> ModelInput:
    """Cut a text, and a target if there is one, into the tokens that a model reads.

    Args:
        checkpoint: the model and its tokenizer.
        text: the text; None: `ids` or `messages` are given.
        target: of an encoder–decoder.
        ids: token ids in place of a text, read as they are.
        messages: in place of a text, those that the model's chat template makes it of.
        text_pair: a second text, read after the first by a model that compares two.
        special_tokens: whether the model's special tokens are added to the text.
        read_special_tokens: whether a special token typed in the text is that token.
        is_observed: whether only parts of its attention are asked for, so that the text may be
            longer than ``max_tokens``, as far as the positions of the model reach.

    Raises:
        EmptyText: a text is empty, or has no tokens.
        TooManyTokens: a text is longer than the model can read.
        NoTarget: the model reads one text only.
        UnknownToken: the model has no such token.
        NoChat: the model has no chat template, or it rejects the messages.
        NoPair: the model reads no second text.
        NoSpecialTokens: the model has none to type.
        ValueError: a text holds a lone surrogate, or there is neither a text nor ids nor messages.
    """
    for value in (text, target):
        if not isinstance(value, str | None):
            raise TypeError(f"{value!r} is not a text; pass a string")
    began = perf_counter()
    # A translation of a long text would be as long.
    needs_translation = target is None and checkpoint.config.kind == "encoder-decoder"
    limit = checkpoint.config.max_tokens
    if is_observed and not needs_translation:
        limit = checkpoint.description.longest_text
    if ids is not None:
        text, tokens = read_ids(checkpoint, ids, limit)
    elif messages is not None:
        text, read = checkpoint.tokenizer.encode_messages(messages)
        tokens = _fitting(checkpoint, read, limit, "conversation")
    elif text is not None and text_pair is not None:
        text, read = encode_pair(checkpoint, text, text_pair)
        tokens = _fitting(checkpoint, read, limit, "pair of texts")
    elif text is not None:
        tokens = read_tokens(
            checkpoint,
            text,
            special_tokens=special_tokens,
            read_special_tokens=read_special_tokens,
            limit=limit,
        )
    else:
        raise ValueError("there is nothing to read; give a text, ids or messages")
    target_tokens = None
    if target is not None:
        if checkpoint.config.kind != "encoder-decoder":
            raise NoTarget(f"the model '{checkpoint.id}' reads one text; leave the target out")
        target_tokens = read_tokens(checkpoint, target, is_target=True, limit=limit)
    took = 1e3 * (perf_counter() - began)
    return ModelInput(text, tokens, target, target_tokens, {"tokenize": took})


def encode_pair(checkpoint: Served, text: str, pair: str) -> tuple[str, list[Token]]:
    """As `TextTokenizer.encode_pair`.

    Raises:
        EmptyText: a text is blank.
        NoPair: the model reads one text.
    """
    if "pairs" not in checkpoint.description.features:
        raise NoPair(NO_PAIR)
    if not text.strip() or not pair.strip():
        raise EmptyText("a text of the pair is empty; type at least one word in each")
    return checkpoint.tokenizer.encode_pair(text, pair)


def read_tokens(
    checkpoint: Served,
    text: str,
    *,
    is_target: bool = False,
    special_tokens: bool = True,
    read_special_tokens: bool = False,
    limit: int | None = None,
) -> tuple[Token, ...]:
    """Return the tokens that a model reads for a text.

    Args:
        checkpoint: the model and its tokenizer.
        text: the text.
        is_target: whether the decoder of an encoder–decoder reads it.
        special_tokens: whether the model's special tokens are added.
        read_special_tokens: whether those typed in a text are read as such.
        limit: the most tokens; None: ``max_tokens`` of the model.

    Raises:
        EmptyText, TooManyTokens, UnknownToken, ValueError: as `tokenize`.
    """
    what = "target" if is_target else "text"
    tokenizer = checkpoint.tokenizer
    encode = tokenizer.encode_read if read_special_tokens else tokenizer.encode
    tokens = (tokenizer.encode_target if is_target else encode)(text)
    # White space is a text to most models; those of this project learned words.
    is_own = checkpoint.description.architecture == "headlight"
    if not text.strip() and (is_own or all(token.is_special for token in tokens)):
        raise EmptyText(f"the {what} is empty; type at least one word")
    if not special_tokens:
        tokens = typed_tokens(tokens)
    limit = checkpoint.config.max_tokens if limit is None else limit
    return _fitting(checkpoint, tokens, limit, what)


def _fitting(
    checkpoint: Served, tokens: Sequence[Token], limit: int, what: str
) -> tuple[Token, ...]:
    """Return tokens that the model has, at least one and at most `limit`."""
    if not tokens:
        raise EmptyText(f"the {what} has no tokens; type at least one word")
    if len(tokens) > limit:
        raise TooManyTokens(len(tokens), limit, what)
    require_known(checkpoint, tokens)
    return tuple(tokens)


def require_known(checkpoint: Served, tokens: Iterable[Token]) -> None:
    """Check that a model has the tokens that its tokenizer makes.

    Raises:
        UnknownToken: the tokenizer has more tokens than the model.
    """
    n_ids = checkpoint.config.vocab_size
    for token in tokens:
        if token.id >= n_ids:
            raise UnknownToken(
                f"the tokenizer makes token {token.id} of {token.text[:50]!r}, but the model's ids "
                f"are 0 to {n_ids - 1}"
            )


def read_ids(
    checkpoint: Served, ids: Sequence[int], limit: int | None = None
) -> tuple[str, tuple[Token, ...]]:
    """Return the text of token ids, and the tokens with their places in it.

    If the text of the ids has just these tokens, they are those of `read_tokens`. Otherwise the
    text is that of each token in a row, special ones included. A word then begins at a space, at a
    special token and next to anything that is not a letter or digit. `limit` is the most tokens;
    None: ``max_tokens`` of the model.

    Raises:
        EmptyText: there are no ids.
        TooManyTokens, UnknownToken: as `tokenize`.
    """
    tokenizer, n_ids = checkpoint.tokenizer, checkpoint.config.vocab_size
    ids = [int(token_id) for token_id in ids]
    if not ids:
        raise EmptyText("ids is empty; give at least one token")
    limit = checkpoint.config.max_tokens if limit is None else limit
    if len(ids) > limit:
        raise TooManyTokens(len(ids), limit)
    for token_id in ids:
        if not 0 <= token_id < n_ids:
            raise UnknownToken(f"there is no token {token_id}; the ids are 0 to {n_ids - 1}")
    text = tokenizer.decode(ids)
    try:
        tokens = tokenizer.encode(text)
    except ValueError:
        tokens = []
    for candidate in (tokens, typed_tokens(tokens)):
        if [token.id for token in candidate] == ids:
            return text, tuple(candidate)
    return _spelled(checkpoint, ids)


def typed_tokens(tokens: Iterable[Token]) -> list[Token]:
    """Return the tokens without the special ones that spell no character of the text."""
    return [token for token in tokens if token.is_typed]


def _spelled(checkpoint: Served, ids: Sequence[int]) -> tuple[str, tuple[Token, ...]]:
    tokenizer = checkpoint.tokenizer
    tokens: list[Token] = []
    text, word, last = "", -1, ""
    for token_id in ids:
        piece, is_special = tokenizer.text_of(token_id), tokenizer.is_special(token_id)
        if not (is_special or (piece[:1].isalnum() and last[-1:].isalnum())):
            word += 1
        tokens.append(
            Token(
                id=token_id,
                text=piece,
                start=len(text),
                end=len(text) + len(piece),
                word=None if is_special else word,
                is_special=is_special,
            )
        )
        text, last = text + piece, "" if is_special else piece
    return text, tuple(tokens)


def lacks_target(checkpoint: Served, model_input: ModelInput) -> bool:
    """Return True if the model has to translate the text before its decoder can read anything."""
    return checkpoint.config.kind == "encoder-decoder" and model_input.target_tokens is None


def with_translations(checkpoint: Served, inputs: Sequence[ModelInput]) -> list[ModelInput]:
    """Return the inputs with the model's translation where a target is missing.

    All are translated in one batch and without interventions, so that passes with and without them
    read the same tokens.

    Raises:
        NoTarget: the model cannot translate.
        UnknownToken: the tokenizer has more tokens than the model.
    """
    lacking = [model_input for model_input in inputs if lacks_target(checkpoint, model_input)]
    if not lacking:
        return list(inputs)
    if reason := checkpoint.description.omitted.get("translate"):
        raise NoTarget(f"the model '{checkpoint.id}' writes no target: {reason}; give one")
    began = perf_counter()
    tokenizer, max_tokens = checkpoint.tokenizer, checkpoint.config.max_tokens
    translations = checkpoint.translate([_ids(model_input.tokens) for model_input in lacking])
    targets = [tokenizer.decode(ids) for ids in translations]
    tokens = [tuple(tokenizer.encode_target(target)[:max_tokens]) for target in targets]
    for translated_tokens in tokens:
        require_known(checkpoint, translated_tokens)
    took = 1e3 * (perf_counter() - began)
    translated = {
        id(model_input): replace(
            model_input,
            target=target,
            target_tokens=translated_tokens,
            timings={**model_input.timings, "translate": took},
        )
        for model_input, target, translated_tokens in zip(lacking, targets, tokens, strict=True)
    }
    return [translated.get(id(model_input), model_input) for model_input in inputs]


def count_elements(
    description: Description,
    spec: PassSpec,
    model_input: ModelInput,
    derived: Iterable[tuple[str, tuple[str, ...]]] = (),
    *,
    n_queries: int | None = None,
    n_keys: int | None = None,
) -> int:
    """Count the numbers that a pass captures for one input, before it runs.

    Attention grows as layers × heads × tokens², so a short request can ask for gigabytes.

    Args:
        description: of the model.
        spec: the captures of the pass.
        model_input: the input.
        derived: arrays made of sites: a site, and the axes of the array.
        n_queries: the rows that are captured of each array, as in a step of generation; None: all.
        n_keys: the tokens that they see; None: those of the input.
    """
    chosen = {"query": n_queries, "position": n_queries, "key": n_keys}
    lengths = {axis: length for axis, length in chosen.items() if length is not None}
    sites = description.capturable
    arrays = [*((site, sites[site].axes) for site in spec.sites), *derived]
    count = 0
    for site, axes in arrays:
        sizes = {"batch": 1, "d_model": description.config.d_model, **sites[site].sizes}
        sizes |= spec.sizes | model_input.axis_lengths(site) | lengths
        if spec.resolution is not None:
            for axis in ("query", "key"):
                sizes[f"{axis}_bin"] = n_bins(sizes[axis], spec.resolution)
        count += prod([sizes[axis] for axis in axes])
    return count


def require_fitting_edits(
    description: Description, spec: PassSpec, model_input: ModelInput
) -> None:
    """Check the edits of sites, and the queries of rows, against the length of a text.

    Raises:
        UnknownPosition: the text has no such position.
        ImpossibleIntervention: the values of an edit do not fit the tensor.
    """
    for site in spec.sites if spec.queries else ():
        if site.endswith(f".{ROWS}"):
            require_positions(spec.queries or (), model_input.axis_lengths(site)["query"], site)
    if not spec.interventions:
        return
    sites = {site.name: site for site in description.sites}

    def sizes_at(site: str) -> dict[str, int]:
        sizes = {"d_model": description.config.d_model, **sites[site].sizes}
        return {**sizes, **model_input.axis_lengths(site)}

    for each in spec.interventions:
        each.require_fitting(sizes_at)


# --- the pass -------------------------------------------------------------------------------------


def trace(
    checkpoint: Served,
    text: str | None = None,
    target: str | None = None,
    *,
    ids: Sequence[int] | None = None,
    messages: Sequence[Message] | None = None,
    text_pair: str | None = None,
    special_tokens: bool = True,
    read_special_tokens: bool = False,
    capture: str | Iterable[str] | None = None,
    layers: SupportsIndex | Iterable[SupportsIndex] | None = None,
    heads: SupportsIndex | Iterable[SupportsIndex] | None = None,
    interventions: Sequence[Intervention] = (),
    resolution: int | None = None,
    queries: SupportsIndex | Iterable[SupportsIndex] | None = None,
    on_progress: Callable[[float], object] | None = None,
) -> Trace:
    """Read a text in one forward pass and keep the activations asked for.

    Args:
        checkpoint: the model and its tokenizer.
        text: the text; None: `ids` or `messages` are given.
        target: the target of an encoder–decoder; None: its own translation.
        ids: token ids in place of a text, read as they are.
        messages: in place of a text, those that the model's chat template makes it of.
        text_pair: a second text, for a model that compares two.
        special_tokens: whether the model's special tokens, such as a start token, are added.
        read_special_tokens: whether a special token typed in the text is that token.
        capture: globs over site names; None: `DEFAULT_CAPTURE`.
        layers: of the sites in a layer, only those in these layers.
        heads: of the arrays with a head axis, only these heads.
        interventions: the changes to the pass: `HeadAblation`, `ExpertAblation`, `NoScaling` and
            `Temperature` of `headlight.model.interventions.intervene`, `SiteEdit` of
            `headlight.model.interventions.site_edit`, `Quantization` of
            `headlight.model.quantization.affine`. The API takes the same as ``edits``.
        resolution: capture ``mean_map`` and ``max_map`` of every attention, at most that many bins
            on each side, and keep what `Trace.tile` needs. A text may then have tens of thousands
            of tokens, as far as the positions of the model reach.
        queries: capture the exact ``rows`` of these positions of every attention.
        on_progress: called with the share of the pass that is done, if maps or rows are captured.

    Raises:
        TypeError: `checkpoint` is not a loaded model.
        EmptyText, TooManyTokens, NoTarget, UnknownToken, ValueError: as `tokenize`.
        UnknownSite, UnknownLayer, UnknownHead, UnknownExpert, UnknownPosition, UnknownPart,
            ImpossibleIntervention: as `pass_spec` and `run_batch`.
    """
    if isinstance(checkpoint, str | Path):
        name = f'load("{checkpoint}")'
        raise TypeError(f"'{checkpoint}' is not a loaded model; pass {name} in its place")
    spec = pass_spec(
        checkpoint.description,
        capture=capture,
        layers=layers,
        heads=heads,
        interventions=interventions,
        resolution=resolution,
        queries=queries,
    )
    spec = replace(
        spec, interventions=tuple(each.with_model(checkpoint) for each in spec.interventions)
    )
    model_input = tokenize(
        checkpoint,
        text,
        target,
        ids=ids,
        messages=messages,
        text_pair=text_pair,
        special_tokens=special_tokens,
        read_special_tokens=read_special_tokens,
        is_observed=spec.is_observed,
    )
    inputs = with_translations(checkpoint, [model_input])
    return run_batch(checkpoint, spec, inputs, on_progress)[0]


def run_batch(
    checkpoint: Served,
    spec: PassSpec,
    inputs: Sequence[ModelInput],
    on_progress: Callable[[float], object] | None = None,
    on_map: OnMap | None = None,
    reduction: Reduction | None = None,
) -> list[Trace]:
    """Run one pass in which every input is a row.

    Each trace holds the numbers of a pass by itself, to 1e-5 in float32: the order in which a
    processor adds up may depend on how much there is to add.

    Args:
        checkpoint: the model.
        spec: the captures and interventions.
        inputs: at least one, of any lengths.
        on_progress: called with the share of the pass that is done, if maps or rows are captured.
        on_map: called with the maps so far, if there is one input and maps are captured.
        reduction: of a pass over one input; the trace lacks the sites that it drops.

    Returns:
        The traces in the order of the inputs: arrays by site without a batch axis, float32 or
        int32, on the CPU. Each has the milliseconds of the whole pass. With edits of sites, maps
        or rows, each input has its own pass.

    Raises:
        UnknownPosition, ImpossibleIntervention: an edit of a site does not fit a text.
    """
    if spec.is_observed or not all(each.shares_pass for each in spec.interventions):
        for model_input in inputs:
            require_fitting_edits(checkpoint.description, spec, model_input)
        if len(inputs) > 1:  # a mean must not count padding, and bins must not hold it
            return [run_batch(checkpoint, spec, [model_input])[0] for model_input in inputs]
    began = perf_counter()
    targets = [
        _ids(model_input.target_tokens) for model_input in inputs if model_input.target_tokens
    ]
    watch = _watch_of(spec, on_progress, on_map)
    attentions = {facts.path: facts for facts in checkpoint.description.attentions}

    def make_trace(model_input: ModelInput, arrays: Mapping[str, NamedArray], took: float) -> Trace:
        return Trace(
            model=checkpoint.id,
            revision=checkpoint.description.revision,
            precision=checkpoint.precision,
            text=model_input.text,
            tokens=model_input.tokens,
            target=model_input.target,
            target_tokens=model_input.target_tokens,
            tensors=arrays,
            heads=spec.heads,
            attentions=attentions,
            timings={**model_input.timings, "forward": took},
            resolution=spec.resolution,
            queries=spec.queries,
            kept=watch.kept,
        )

    if reduction is not None:
        (only,) = inputs
        reduction.make_trace = lambda some: make_trace(
            only, _arrays(some, checkpoint, inputs)[0], 0
        )
    with watching(watch), reducing(reduction.take if reduction else None):
        captured = checkpoint.read(
            [_ids(model_input.tokens) for model_input in inputs],
            targets or None,
            sites=spec.sites,
            heads=spec.heads,
            interventions=spec.interventions,
        )
    dropped = reduction.dropped if reduction else ()
    held = {site: tensor for site, tensor in captured.items() if site not in dropped}
    tensors = _arrays(held, checkpoint, inputs)
    took = 1e3 * (perf_counter() - began)
    return [
        make_trace(model_input, arrays, took)
        for model_input, arrays in zip(inputs, tensors, strict=True)
    ]


def _watch_of(
    spec: PassSpec, on_progress: Callable[[float], object] | None, on_map: OnMap | None
) -> Watch:
    """Return the observation of a pass, with the resolution of its maps if one was asked for."""
    parts = (site.rpartition(".") for site in spec.sites)
    watch = Watch(
        queries=spec.queries or (),
        keeps=spec.resolution is not None,
        n_attentions=len({path for path, _, name in parts if name in OBSERVED_AXES}),
        on_progress=on_progress,
        on_map=on_map,
    )
    return watch if spec.resolution is None else replace(watch, resolution=spec.resolution)


def _ids(tokens: Sequence[Token]) -> list[int]:
    return [token.id for token in tokens]


def _arrays(
    captured: Mapping[str, Tensor], checkpoint: Served, inputs: Sequence[ModelInput]
) -> list[dict[str, NamedArray]]:
    """Return the arrays of each input by site: its own row, as long as its own text."""
    sites = checkpoint.description.capturable
    arrays: list[dict[str, NamedArray]] = [{} for _ in inputs]
    for site, tensor in captured.items():
        dtype = torch.float32 if tensor.is_floating_point() else torch.int32
        batch, axes = tensor.detach().to("cpu", dtype).numpy(), sites[site].axes
        has_rows = axes[0] == "batch"
        for row, model_input in enumerate(inputs):
            lengths = model_input.axis_lengths(site)
            whole, own_axes = (batch[row], axes[1:]) if has_rows else (batch, axes)
            of_row = whole[tuple([slice(lengths.get(axis)) for axis in own_axes])]
            # A copy, so that writing into a trace changes neither the model nor another trace; but
            # weights and logits of one text, the largest, are nobody else's.
            is_own = len(inputs) == 1 and site.endswith(_OWN) and of_row.flags.c_contiguous
            arrays[row][site] = NamedArray(own_axes, of_row if is_own else of_row.copy())
    return arrays


# --- texts of different lengths in one pass -------------------------------------------------------


def group_by_length(
    lengths: Sequence[int], sizes: Sequence[int] | None = None, max_size: int | None = None
) -> list[list[int]]:
    """Distribute texts over passes so that all passes together are cheapest.

    A pass costs `PASS_TOKENS` and its rows, each as long as its longest. Texts of similar lengths
    go together, so this is the cheapest of all ways to cut the texts, sorted by length.

    Args:
        lengths: the tokens of each text.
        sizes: the size of each text in a pass, in any unit; None: its tokens.
        max_size: the most that a pass of several texts may hold, counting every row as large as
            the largest; None: anything.

    Returns:
        The indices of the texts of each pass, shortest text first; every index once.
    """
    sizes = lengths if sizes is None else sizes
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    # cheapest[end]: the cost of the first `end` texts, and the start of their last pass.
    cheapest: list[tuple[int, int]] = [(0, 0)]
    for end in range(1, len(order) + 1):
        choices = []
        largest = 0
        for begin in reversed(range(end)):
            n_rows, largest = end - begin, max(largest, sizes[order[begin]])
            if max_size is not None and n_rows > 1 and n_rows * largest > max_size:
                break
            cost = PASS_TOKENS + n_rows * lengths[order[end - 1]]
            choices.append((cheapest[begin][0] + cost, begin))
        cheapest.append(min(choices))
    passes, end = [], len(order)
    while end:
        begin = cheapest[end][1]
        passes.append(order[begin:end])
        end = begin
    return passes[::-1]
