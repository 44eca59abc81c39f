"""The names of a model's sites, and the modules, calls and points behind them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from headlight.model.attention.terms import AttentionFacts
from headlight.model.foreign.points import AttentionPoints
from headlight.model.foreign.probe import AttentionCall, Call
from headlight.model.hooks import HookPoint


@dataclass
class Hook:
    """A tensor of a module's call that passes a point.

    ``slot`` is its place among the inputs, or in the outputs if `is_output`; None: it is the
    output. ``columns`` (head, d_head) are those of each head, in a tensor that has the heads side
    by side; ``is_by_head``: the tensor has its axis of heads before that of tokens. The point sees
    the tensor times ``factor`` (d_model). With ``gain``, the weight (d_model) of a norm, it sees
    what the norm multiplies its input by.
    """

    call: Call
    slot: int | str | None
    is_output: bool
    point: HookPoint
    columns: Tensor | None = None
    is_by_head: bool = False
    factor: Tensor | None = None
    gain: Tensor | None = None


@dataclass
class Source:
    """The call whose output holds queries, keys or values, and the columns (head, d_head) there.

    They are the columns times ``factor``. ``is_rotated``: they are rotated afterwards.
    ``is_by_head``: as of a `Hook`.
    """

    call: Call
    columns: Tensor
    factor: float
    is_rotated: bool
    is_by_head: bool


@dataclass
class Matrix:
    """The module of a projection, the chosen columns (head, d_head), and a factor of them.

    ``norms`` are the modules behind it, the last first, each with the columns of its output.
    """

    module: nn.Module
    columns: Tensor
    factor: float
    norms: tuple[tuple[nn.Module, Tensor], ...] = ()


@dataclass
class Router:
    """A router's module and its points.

    ``weights_at`` is the place of the experts' weights in the module's output; None: they are its
    probabilities at the chosen experts, or not told.
    """

    call: Call
    n_experts: int
    top_k: int
    logits: HookPoint
    probs: HookPoint
    indices: HookPoint
    weights: HookPoint | None
    weights_at: int | None

    @property
    def points(self) -> list[HookPoint]:
        """The points that the router has."""
        optional = (self.logits, self.probs, self.indices, self.weights)
        return [point for point in optional if point is not None]


@dataclass
class Step:
    """A step of a stack's stream: the paths of the parts that write in it.

    ``carry`` (d_model) is the factor of the stream before it; None: 1.
    """

    stack: str
    paths: tuple[str, ...]
    carry: Tensor | None


@dataclass
class NamedLayer:
    """One call of one layer, with its number in its stack.

    ``repeated`` are the kinds of its attentions that it computes again, for other values.
    """

    stack: str
    number: int
    call: Call
    inner: list[Call]
    attentions: dict[str, AttentionCall] = field(default_factory=dict)
    repeated: set[str] = field(default_factory=set)
    before: Tensor | None = None
    after: Tensor | None = None

    @property
    def path(self) -> str:
        """The path of its sites."""
        return f"{self.stack}.layers.{self.number}"


def rows_of(table: nn.Module) -> Tensor:
    """Return the matrix of an embedding, whatever its class."""
    rows = table.weight
    assert isinstance(rows, Tensor)
    return rows


@dataclass
class Named:
    """The sites of a model, in the order of its tree, and how its tensors pass them.

    ``projections`` are the modules of W_O by attention, ``tables`` the modules of learned or
    sinusoidal positions by stack, with the row of the first position; ``embeddings`` those of
    tokens; ``matrices`` W_Q, W_K and W_V by name; ``attention_points`` the points of the attention
    calls in the order of the pass. ``factors`` (d_model) multiply what a part at that path puts
    out, ``steps`` are those of the stream, in order, ``entering`` the paths of the parts that are
    known to enter the stream, or a norm of it.
    """

    text_config: Any = None
    points: dict[str, HookPoint] = field(default_factory=dict)
    hooks: list[Hook] = field(default_factory=list)
    attention_points: list[tuple[AttentionCall | None, AttentionPoints]] = field(
        default_factory=list
    )
    layers: list[NamedLayer] = field(default_factory=list)
    projections: dict[str, nn.Module] = field(default_factory=dict)
    tables: dict[str, tuple[nn.Module, int]] = field(default_factory=dict)
    embeddings: dict[str, nn.Module] = field(default_factory=dict)
    matrices: dict[str, Matrix] = field(default_factory=dict)
    factors: dict[str, Tensor] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    entering: set[str] = field(default_factory=set)
    routers: list[Router] = field(default_factory=list)
    experts: dict[str, tuple[int, int]] = field(default_factory=dict)
    rotary_factors: list[float] = field(default_factory=list)
    is_rotary: bool = False
    omitted: dict[str, str] = field(default_factory=dict)
    d_model: int = 0
    d_ff: int = 0
    norm_place: str = "pre"
    norm: str = "layer_norm"
    activation: str = "gelu"
    kind: str = "decoder"
    n_layers: int = 0

    @property
    def facts(self) -> tuple[AttentionFacts, ...]:
        """The terms of each softmax, in the order of the pass."""
        return tuple(points.facts for _, points in self.attention_points)

    @property
    def has_bias(self) -> bool:
        """Whether positions are added to the scores."""
        return any(facts.has_bias for facts in self.facts)

    def point(self, name: str, axes: str, **sizes: int) -> HookPoint:
        """Add a site."""
        self.points[name] = HookPoint(axes, **sizes)
        return self.points[name]
