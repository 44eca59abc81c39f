"""What the server tells of itself, as plain data. Members that a newer server adds are left out."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from headlight.model.trace import Token

Kind = TypeVar("Kind")


@dataclass(frozen=True, kw_only=True)
class Site:
    """A place in a model whose tensor can be captured."""

    name: str
    axes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Experts:
    """A mixture of experts."""

    n_experts: int
    top_k: int
    layers: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Example:
    """A text worth reading with a model; `opens` says where to look."""

    title: str
    text: str
    opens: Mapping[str, str | int]


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model's card. `moe` is None where the model is dense."""

    id: str
    title: str
    kind: str
    n_layers: int
    n_heads: int
    d_model: int
    d_ff: int
    vocab_size: int
    max_tokens: int
    positional: str
    n_kv_heads: int
    norm: str
    norm_place: str
    activation: str
    has_mask: bool
    moe: Experts | None
    parameters: int
    revision: str
    licence: str
    trained_on: tuple[str, ...]
    attribution: tuple[str, ...]
    metrics: Mapping[str, Any]
    expert_tokens: Mapping[str, Any] | None
    sites: tuple[Site, ...]
    analyses: tuple[str, ...]
    examples: tuple[Example, ...]


@dataclass(frozen=True, kw_only=True)
class Models:
    """Every model that can be asked, and by id why others cannot."""

    default: str
    models: tuple[Model, ...]
    unavailable: Mapping[str, str]

    def __getitem__(self, model: str) -> Model:
        for found in self.models:
            if found.id == model:
                return found
        there_is = ", ".join(found.id for found in self.models)
        raise KeyError(f"there is no model {model!r}; there is {there_is}")


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A limit in force. `value` is a mapping where it differs by model.

    `refusal` is the status and the kind of the problem that more is answered with; None: none.
    """

    value: float | Mapping[str, int]
    unit: str
    reason: str
    refusal: str | None
    env: str | None


def read_models(found: Mapping[str, Any]) -> Models:
    """The answer to `GET /api/v1/models`."""
    return Models(
        default=found["default"],
        models=tuple(read_model(each) for each in found["models"]),
        unavailable={each["id"]: each["reason"] for each in found["unavailable"]},
    )


def read_model(found: Mapping[str, Any]) -> Model:
    """The answer to `GET /api/v1/models/{model}`."""
    nested = {
        "moe": found["moe"] and read(Experts, found["moe"]),
        "sites": tuple(read(Site, each) for each in found["sites"]),
        "examples": tuple(read(Example, each) for each in found["examples"]),
    }
    return read(Model, {**found, **nested})


def read_limits(found: Mapping[str, Any]) -> dict[str, Limit]:
    """The answer to `GET /api/v1/limits`."""
    return {name: read(Limit, limit) for name, limit in found.items()}


def read_tokens(found: list[Mapping[str, Any]]) -> tuple[Token, ...]:
    """Tokens, as every answer has them."""
    return tuple(read(Token, token) for token in found)


def read(kind: type[Kind], members: Mapping[str, Any]) -> Kind:
    """A dataclass from the members it has; lists become tuples, and others are left out."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: _frozen(members[name]) for name in names if name in members})


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
