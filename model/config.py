"""What a transformer is built from: every size and every choice, validated once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

KINDS = ("decoder",)
POSITIONALS = ("sinusoidal",)
ACTIVATIONS = ("relu", "gelu")


@dataclass(frozen=True, kw_only=True)
class ExpertsConfig:
    """The mixture of experts: how many there are, how many a token visits, in which layers.

    Raises:
        ValueError: a number is out of its range.
    """

    n_experts: int
    top_k: int
    layers: tuple[int, ...]

    def __post_init__(self) -> None:
        for value in (self.n_experts, self.top_k, *self.layers):
            _require_whole("every number of moe", value)
        object.__setattr__(self, "layers", tuple(sorted(self.layers)))
        if len(set(self.layers)) < len(self.layers):
            raise ValueError(f"moe.layers {list(self.layers)} names a layer twice")
        if self.n_experts < 2:
            raise ValueError(f"n_experts ({self.n_experts}) must be at least 2")
        if not 1 <= self.top_k <= self.n_experts:
            raise ValueError(f"top_k ({self.top_k}) must lie between 1 and {self.n_experts}")


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """The whole architecture of one model.

    ``d_ff`` is the hidden width of one feed-forward network, or of one expert in the layers
    that `moe` names. ``max_tokens`` is the longest text the model was trained to read.

    Raises:
        ValueError: a size is not positive, does not divide, or a choice is unknown.
    """

    n_layers: int
    n_heads: int
    d_model: int
    d_ff: int
    vocab_size: int
    max_tokens: int
    kind: str = "decoder"
    positional: str = "sinusoidal"
    activation: str = "gelu"
    dropout: float = 0.0
    moe: ExpertsConfig | None = None

    def __post_init__(self) -> None:
        for name in ("n_layers", "n_heads", "d_model", "d_ff", "vocab_size", "max_tokens"):
            _require_whole(name, getattr(self, name))
            if getattr(self, name) < 1:
                raise ValueError(f"{name} ({getattr(self, name)}) must be at least 1")
        if self.d_model % self.n_heads:
            raise ValueError(f"n_heads ({self.n_heads}) must divide d_model ({self.d_model})")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout ({self.dropout}) must lie in [0, 1)")
        _require_known("kind", self.kind, KINDS)
        _require_known("positional", self.positional, POSITIONALS)
        _require_known("activation", self.activation, ACTIVATIONS)
        if self.positional == "sinusoidal" and self.d_model % 2:
            raise ValueError(f"sinusoidal positions need an even d_model, not {self.d_model}")
        if self.moe and not set(self.moe.layers) <= set(range(self.n_layers)):
            raise ValueError(
                f"moe.layers {list(self.moe.layers)} must lie between 0 and {self.n_layers - 1}"
            )

    @property
    def d_head(self) -> int:
        """Width of one head: d_model / n_heads."""
        return self.d_model // self.n_heads

    def has_experts(self, layer: int) -> bool:
        """Whether that layer routes its tokens to experts."""
        return self.moe is not None and layer in self.moe.layers

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
            raise ValueError(f"incomplete config: {error}") from error


def _require_whole(name: str, value: object) -> None:
    if type(value) is not int:
        raise ValueError(f"{name} ({value!r}) must be a whole number")


def _require_known(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} {value!r} is unknown; choose one of {', '.join(allowed)}")
