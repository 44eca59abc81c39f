"""The types of the client's arguments; `make openapi` makes them of the requests."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, Required, SupportsIndex, TypeAlias, TypedDict

Integers: TypeAlias = SupportsIndex | Iterable[SupportsIndex]
Strings: TypeAlias = str | Iterable[str]
Edits: TypeAlias = Mapping[str, Any] | Iterable[Mapping[str, Any]]


class TokenizeArguments(TypedDict, total=False):
    """The fields of `TokenizeRequest` that are given by name."""

    step: SupportsIndex | None
    ids: Integers | None
    messages: Iterable[Mapping[str, Any]] | None
    text_pair: str | None
    model: str | None
    special_tokens: bool | None
    read_special_tokens: bool | None


class TraceOptionsArguments(TypedDict, total=False):
    """The fields of `TraceOptions` that are given by name."""

    logit_difference: Mapping[str, Any] | None
    predictions: Mapping[str, Any] | None
    patching: Mapping[str, Any] | None
    score_attribution: Mapping[str, Any] | None
    similarity: Mapping[str, Any] | None
    capture: Strings | None
    layers: Integers | None
    heads: Integers | None
    analyses: Strings | None
    edits: Edits | None
    resolution: SupportsIndex | None
    queries: Integers | None
    dtype: Literal["float32", "uint16"] | None
    triangle: bool | None


class TraceArguments(TokenizeArguments, TraceOptionsArguments, total=False):
    """The fields of `TraceRequest` that are given by name."""

    target: str | None


class TracesArguments(TraceOptionsArguments, total=False):
    """The fields of `TracesRequest` that are given by name."""

    step: SupportsIndex | None
    ids: Iterable[Integers] | None
    targets: Strings | None
    model: str | None
    special_tokens: bool | None


class GenerateArguments(TokenizeArguments, total=False):
    """The fields of `GenerateRequest` that are given by name."""

    forced: Integers | None
    skip: SupportsIndex | None
    n_tokens: Required[SupportsIndex]
    temperature: float | None
    top_k: SupportsIndex | None
    top_p: float | None
    repetition_penalty: float | None
    stop: Strings | None
    beams: SupportsIndex | None
    length_penalty: float | None
    best_of: SupportsIndex | None
    reward: str | None
    seed: SupportsIndex | None
    n_alternatives: SupportsIndex | None
    layers: Integers | None
    heads: Integers | None
    capture: Strings | None
    edits: Edits | None


class CircuitArguments(TypedDict, total=False):
    """The fields of `CircuitRequest` that are given by name."""

    task: str | None
    n_pairs: SupportsIndex | None
    score: Literal["eap", "eap_ig", "noising", "denoising", "exact"] | None
    steps: SupportsIndex | None
    rule: Literal["top", "greedy", "pruned"] | None
    baseline: Literal["corrupted", "zero", "mean"] | None
    n_edges: SupportsIndex | None
    faithfulness: float | None
    holds_out: bool | None
    by_position: bool | None
    by_expert: bool | None
    pairs: Iterable[Mapping[str, Any]] | None
    edges: Strings | None


class PositionalArguments(TypedDict, total=False):
    """The fields of `PositionalRequest` that are given by name."""

    scheme: Literal["sinusoidal", "learned", "rotary", "alibi", "relative"] | None
    model: str | None
    width: SupportsIndex | None
    heads: SupportsIndex | None


class AtlasSearchArguments(TypedDict, total=False):
    """The fields of `AtlasSearchRequest` that are given by name."""

    from_word: str | None
    to_word: str | None
    from_tag: str | None
    to_tag: str | None
    same_word: bool | None
    attention: str | None
    head: SupportsIndex | None
    n_sentences: SupportsIndex | None
