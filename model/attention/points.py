"""The hook points of attention: those of a softmax, and those of an attention of this project.

`kernels.attend` reads from `SoftmaxPoints` what a pass asks for, and passes its tensors through
them. A model of another library has the same points (`foreign.points`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor, nn

from headlight.model.attention.observer import OBSERVED_AXES
from headlight.model.attention.scores import ScoreTerms
from headlight.model.config import TransformerConfig
from headlight.model.hooks import HookPoint, hooked_heads, is_edited, is_hooked, site_of

WHOLE_ELEMENTS = 2**22
"""The elements of a bias or a mask beyond which attention runs in blocks, which need neither."""


@dataclass(kw_only=True, eq=False)
class SoftmaxPoints:
    """The hook points of one softmax; None: the model has no such tensor.

    Args:
        n_heads: heads of queries.
        n_groups: heads of keys and values.
        scores: before the softmax.
        weights: after it.
        bias: what is added to scale·Q·Kᵀ.
        sink: the weight that goes to no key.
        repeated: of keys and values that are repeated for the heads that share them.
        observed: the points of the numbers of rows, the maps and the rows, by name
            (`observation.OBSERVED_AXES`).
    """

    n_heads: int
    n_groups: int
    scores: HookPoint
    weights: HookPoint
    bias: HookPoint | None = None
    sink: HookPoint | None = None
    repeated: tuple[HookPoint, ...] = ()
    observed: dict[str, HookPoint] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The path of the attention, if something of it is observed."""
        names = self.observed_names
        return site_of(self.observed[names[0]]).rpartition(".")[0] if names else ""

    @property
    def observed_names(self) -> list[str]:
        """Return the names of the numbers of rows, the maps and the rows that are observed."""
        return [name for name, point in self.observed.items() if is_hooked(point)]

    @property
    def hooked_heads(self) -> tuple[int, ...]:
        """The heads whose scores or weights the pass captures or edits."""
        return hooked_heads((self.scores, self.weights), self.n_heads)

    @property
    def sees_weights(self) -> bool:
        """Whether the pass captures, edits or observes anything of the scores or the weights."""
        points = (self.scores, self.weights, self.sink, *self.observed.values())
        return any(point is not None and is_hooked(point) for point in points)

    @property
    def needs_matrix(self) -> bool:
        """Whether the pass needs a matrix of every query and every key."""
        points = (self.scores, self.weights, self.sink, self.bias)
        return any(point is not None and is_hooked(point) for point in points)

    @property
    def is_edited(self) -> bool:
        """Whether the pass edits the matrices, so that they no longer follow from the terms."""
        points = (self.scores, self.weights, self.bias)
        return any(point is not None and is_edited(point) for point in points)

    @property
    def has_equal_keys(self) -> bool:
        """Whether heads that share keys and values have equal ones: an edit may change one head."""
        return not any(map(is_edited, self.repeated))

    @property
    def may_fuse(self) -> bool:
        """Whether the fused kernel computes this attention."""
        return True

    def wants_blocks(self, terms: ScoreTerms, n_queries: int, n_keys: int) -> bool:
        """Return True if the pass asks for blocks, or a bias or a mask would be too large."""
        has_matrix = terms.slopes is not None or terms.is_token is not None
        is_large = has_matrix and n_queries * n_keys > WHOLE_ELEMENTS
        return is_large or bool(self.observed_names)

    def report(self, observed: Mapping[str, Tensor]) -> None:
        """Pass what was observed through its points."""
        for name, tensor in observed.items():
            self.observed[name](tensor)


class HookedAttention(nn.Module):
    """The hook points of an attention of this project, in the order of its pass.

    Args:
        config: the architecture.
        is_cross: whether the keys come from another text: they then have no position, and no
            distance from the queries.
    """

    def __init__(self, config: TransformerConfig, *, is_cross: bool) -> None:
        super().__init__()
        n_heads, d_head = config.n_heads, config.d_head
        self.is_rotary = config.positional == "rotary" and not is_cross
        self.is_biased = config.positional == "alibi" and not is_cross
        self.queries = HookPoint("batch head query d_head", head=n_heads, d_head=d_head)
        self.keys = HookPoint("batch head key d_head", head=n_heads, d_head=d_head)
        self.values = HookPoint("batch head key d_head", head=n_heads, d_head=d_head)
        repeated = [self.keys, self.values]
        if self.is_rotary:
            self.rotated_queries = HookPoint("batch head query d_head", head=n_heads, d_head=d_head)
            self.rotated_keys = HookPoint("batch head key d_head", head=n_heads, d_head=d_head)
            repeated.append(self.rotated_keys)
        if self.is_biased:
            self.bias = HookPoint("head query key", head=n_heads)
        self.scores = HookPoint("batch head query key", head=n_heads)
        self.weights = HookPoint("batch head query key", head=n_heads)
        observed = {
            name: HookPoint(axes, head=n_heads)
            for name, axes in OBSERVED_AXES.items()
            if not (is_cross and name == "mean_distance")
        }
        for name, point in observed.items():
            self.add_module(name, point)
        self.context = HookPoint("batch head query d_head", head=n_heads, d_head=d_head)
        self.output = HookPoint("batch query d_model", d_model=config.d_model)
        self.points = SoftmaxPoints(
            n_heads=n_heads,
            n_groups=config.n_groups,
            scores=self.scores,
            weights=self.weights,
            bias=self.bias if self.is_biased else None,
            repeated=tuple(repeated),
            observed=observed,
        )
