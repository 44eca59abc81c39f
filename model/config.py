"""The architecture of a transformer as a validated, immutable config."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

KINDS = ("decoder", "encoder", "encoder-decoder")
POSITIONALS = ("sinusoidal", "learned", "rotary", "alibi", "none")
NORMS = ("layer_norm", "rms_norm")
NORM_PLACES = ("pre", "post")
ACTIVATIONS = ("relu", "gelu", "swiglu")
# Larger than any trained model. The limits stop a typing error or a malicious config before the
# mere names of its layers fill the memory.
MAXIMA = {
    "n_layers": 1_000,
    "n_heads": 1_000,
    "n_experts": 1_000,
    **dict.fromkeys(("d_model", "d_ff", "vocab_size", "max_tokens"), 2**24),
}
MAX_EXPERTS_IN_TOTAL = 10_000
_BIASES = ("attention_bias", "feed_forward_bias")


@dataclass(frozen=True, kw_only=True)
class RoutedExperts:
    """The mixture of experts of a model.

    Args:
        n_experts: experts in each layer that has them.
        top_k: experts that each token is routed to.
        layers: the numbers of the layers with experts in place of a feed-forward network.
    """

    n_experts: int
    top_k: int
    layers: tuple[int, ...]


Predicts = Literal["token", "label", "labels", "token_label", "score", "answer", "vector"]
"""The kinds of output of a model."""


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """The sizes and choices of a model, of this project or of another library.

    Args:
        n_layers: number of layers of each stack.
        n_heads: number of query heads.
        d_model: width of the residual stream.
        d_ff: hidden width of the feed-forward network, or of one expert.
        vocab_size: number of tokens in the vocabulary.
        max_tokens: greatest length of a text, in tokens; of source and target each.
        kind: ``decoder``: causal self-attention. ``encoder``: bidirectional self-attention.
            ``encoder-decoder``: an encoder, and a decoder with cross-attention to its output.
        positional: the positional encoding.
        norm: LayerNorm or RMSNorm.
        norm_place: ``pre``: before each part and after the last layer. ``post``: after each part.
            ``both``: on both sides of each part, in models of other libraries.
        activation: of the feed-forward network.
        moe: the mixture of experts; None for a dense model.
    """

    n_layers: int
    n_heads: int
    d_model: int
    d_ff: int
    vocab_size: int
    max_tokens: int
    kind: str = "decoder"
    positional: str = "sinusoidal"
    norm: str = "layer_norm"
    norm_place: str = "pre"
    activation: str = "gelu"
    moe: RoutedExperts | None = None

    if TYPE_CHECKING:

        @property
        def n_groups(self) -> int:
            """The number of key and value heads."""

        @property
        def d_head(self) -> int:
            """The width of a head's queries and keys."""

    @property
    def has_encoder(self) -> bool:
        """Whether there is a stack with bidirectional self-attention."""
        return self.kind != "decoder"

    @property
    def has_decoder(self) -> bool:
        """Whether there is a stack with causal self-attention."""
        return self.kind != "encoder"

    def has_experts(self, layer: int) -> bool:
        """Return True if that layer has experts instead of a feed-forward network."""
        return self.moe is not None and layer in self.moe.layers


@dataclass(frozen=True, kw_only=True)
class ExpertsConfig(RoutedExperts):
    """The mixture of experts of a model of this project, with at least 2 experts.

    Raises:
        ValueError: a number is out of range, or a layer is listed twice.
    """

    def __post_init__(self) -> None:
        for value in (self.n_experts, self.top_k, *self.layers):
            _require_whole("every number of moe", value)
        object.__setattr__(self, "layers", tuple(sorted(self.layers)))
        if len(set(self.layers)) < len(self.layers):
            raise ValueError(f"moe.layers {list(self.layers)} lists a layer twice")
        if self.n_experts < 2:
            raise ValueError(f"n_experts ({self.n_experts}) must be at least 2")
        _require_at_most("n_experts", self.n_experts)
        if (in_all := self.n_experts * len(self.layers)) > MAX_EXPERTS_IN_TOTAL:
            raise ValueError(
                f"{in_all} experts in total exceed the limit of {MAX_EXPERTS_IN_TOTAL}"
            )
        if not 1 <= self.top_k <= self.n_experts:
            raise ValueError(f"top_k ({self.top_k}) must lie between 1 and {self.n_experts}")


@dataclass(frozen=True, kw_only=True)
class TransformerConfig(Architecture):
    """The whole architecture of a model of this project.

    Args:
        n_kv_heads: number of key and value heads: `n_heads` for multi-head attention, 1 for
            multi-query, a divisor for grouped-query. None: `n_heads`.
        norm_epsilon: ε, added to the variance.
        has_embedding_norm: whether the embedding's output is normalised, as in BERT.
        scales_embedding: whether token embeddings are multiplied by √d_model, as in the paper.
        attention_bias: whether the four projections of attention have a bias.
        feed_forward_bias: whether the projections of the feed-forward network have a bias.
        dropout: share of values set to 0 in training.
        has_reward: whether a scalar head rates the text after each token: a reward model, which is
            a decoder.

    Raises:
        ValueError: a size is out of range or does not divide another, or a choice is unknown.
    """

    n_kv_heads: int | None = None
    norm_epsilon: float = 1e-5
    has_embedding_norm: bool = False
    scales_embedding: bool = True
    attention_bias: bool = False
    feed_forward_bias: bool = True
    dropout: float = 0.0
    moe: ExpertsConfig | None = None
    has_reward: bool = False

    def __post_init__(self) -> None:
        self._check_sizes()
        self._check_choices()
        if self.positional in ("sinusoidal", "rotary"):
            name = "d_model" if self.positional == "sinusoidal" else "d_head"
            if (width := getattr(self, name)) % 2:
                raise ValueError(f"{self.positional} positions need an even {name}, not {width}")
        if self.moe and not set(self.moe.layers) <= set(range(self.n_layers)):
            raise ValueError(
                f"moe.layers {list(self.moe.layers)} must lie between 0 and {self.n_layers - 1}"
            )

    def _check_sizes(self) -> None:
        for name in ("n_layers", "n_heads", "d_model", "d_ff", "vocab_size", "max_tokens"):
            _require_positive(name, getattr(self, name))
            _require_at_most(name, getattr(self, name))
        _require_positive("n_kv_heads", self.n_groups)
        if self.d_model % self.n_heads:
            raise ValueError(f"n_heads ({self.n_heads}) must divide d_model ({self.d_model})")
        if self.n_heads % self.n_groups:
            raise ValueError(f"n_kv_heads ({self.n_kv_heads}) must divide n_heads ({self.n_heads})")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout ({self.dropout}) must lie in [0, 1)")
        if not 0 < self.norm_epsilon < 1:
            raise ValueError(f"norm_epsilon ({self.norm_epsilon}) must lie in (0, 1)")

    def _check_choices(self) -> None:
        for name in ("has_embedding_norm", "scales_embedding", "has_reward", *_BIASES):
            if type(value := getattr(self, name)) is not bool:
                raise ValueError(f"{name} ({value!r}) must be true or false")
        require_known("kind", self.kind, KINDS)
        if self.has_reward and self.kind != "decoder":
            raise ValueError(f"a model of kind {self.kind!r} has no reward; use a decoder")
        require_known("positional", self.positional, POSITIONALS)
        require_known("norm", self.norm, NORMS)
        require_known("norm_place", self.norm_place, NORM_PLACES)
        require_known("activation", self.activation, ACTIVATIONS)

    @property
    def n_groups(self) -> int:
        """The number of key and value heads: `n_kv_heads`, or `n_heads` if that is None."""
        return self.n_heads if self.n_kv_heads is None else self.n_kv_heads

    @property
    def d_head(self) -> int:
        """The width of one head, d_model / n_heads."""
        return self.d_model // self.n_heads

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; `from_dict` reads it back."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TransformerConfig:
        """Build a config from plain data.

        Raises:
            ValueError: a key is unknown or missing, or a value is not allowed.
        """
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(data) - known):
            raise ValueError(f"unknown config keys {unknown}; known are {sorted(known)}")
        values = dict(data)
        try:
            if (moe := values.get("moe")) is not None:
                values["moe"] = ExpertsConfig(**{**moe, "layers": tuple(moe["layers"])})
            return cls(**values)
        except (KeyError, TypeError) as error:
            named = re.findall(r"'(\w+)'", str(error)) or ["a member of moe"]
            raise ValueError(f"{' and '.join(named)} is missing or of the wrong type") from error


def _require_whole(name: str, value: object) -> None:
    if type(value) is not int:
        raise ValueError(f"{name} ({value!r}) must be an integer")


def _require_positive(name: str, value: int) -> None:
    _require_whole(name, value)
    if value < 1:
        raise ValueError(f"{name} ({value}) must be at least 1")


def _require_at_most(name: str, value: int) -> None:
    if value > MAXIMA[name]:
        raise ValueError(f"{name} ({value}) must be at most {MAXIMA[name]}")


def require_known(name: str, value: str, allowed: Sequence[str]) -> None:
    """Raise ValueError if a choice is none of those that there are."""
    if value not in allowed:
        raise ValueError(f"{name} {value!r} is unknown; choose one of {', '.join(allowed)}")
