"""Edit the tensor of one site: set, add, scale, or replace by a mean, at heads and positions.

    with intervene(model, [SiteEdit(kind="scale", site="decoder.layers.0.self_attention.context",
                                    heads=(3,), positions=(5, 6), value=0.5)]):
        model(ids)

`SiteEdit.patch` sets values of another trace: activation patching (Vig et al. 2020,
https://arxiv.org/abs/2004.12265).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headlight.model.attention.observer import OBSERVED_AXES
from headlight.model.interventions.intervention import (
    ImpossibleIntervention as ImpossibleIntervention,
)
from headlight.model.interventions.intervention import Intervention, Places, SiteEdits
from headlight.model.sites import Site, match_sites, require_heads
from headlight.model.trace import Trace

Kind: TypeAlias = Literal["set", "add", "scale", "mean"]
Over: TypeAlias = Literal["positions", "heads"]

_TOKEN_AXES = ("query", "key", "position")
_NUMBERED = ("expert_indices",)


class UnknownPosition(ValueError):
    """A position that the text does not have, or one that is named twice."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SiteEdit(Intervention):
    """An edit of the tensor at one site.

    ``set`` replaces by ``value``, ``add`` adds it, ``scale`` multiplies by it, and ``mean``
    replaces by the mean of the tensor over all positions of the text, or over all heads (``over``).
    Masked numbers (−∞) stay masked under all but ``set``, and a mean does not count them.

    ``heads`` and ``positions`` are the part that is replaced; None: all. Positions are counted
    along the first axis of tokens: the queries of attention scores and weights, the keys of keys
    and values. ``value`` is broadcast, as NumPy does, to the axes of the part without ``batch``.

    ``axes`` are those of the site, ``start`` the position of the first query of a pass; `bind` sets
    them. Two edits are equal only if they are the same object.

    Raises:
        ValueError: there is no value where the kind needs one, or one where it needs none, or a
            number is not finite.
    """

    stage = Intervention.SITES
    shares_pass = is_bounded = False
    kind: Kind
    site: str
    value: float | NDArray[np.floating[Any]] | None = None
    heads: tuple[int, ...] | None = None
    positions: tuple[int, ...] | None = None
    over: Over = "positions"
    axes: tuple[str, ...] = ()
    start: int = 0

    def __post_init__(self) -> None:
        if (self.value is None) != (self.kind == "mean"):
            needs = "takes no value" if self.kind == "mean" else "needs a value"
            raise ValueError(f"an edit of kind {self.kind!r} {needs}")
        if self.value is not None:
            array = np.asarray(self.value, dtype=np.float32)
            if not np.isfinite(array).all():
                raise ValueError(f"a value of an edit at {self.site} is not finite")
            object.__setattr__(self, "value", array)

    @classmethod
    def patch(
        cls,
        trace: Trace,
        site: str,
        *,
        heads: Sequence[int] | None = None,
        positions: Sequence[int] | None = None,
        source_positions: Sequence[int] | None = None,
    ) -> SiteEdit:
        """Set a site, or a part of it, to what it is in another trace.

        Args:
            trace: a trace that holds the site.
            site: its name.
            heads: the heads to set; None: all.
            positions: the positions to set; None: all, of a text of as many tokens.
            source_positions: those of `trace` to read, as many; None: `positions`.

        Raises:
            ImpossibleIntervention: the trace lacks the site or a head, or the numbers of positions
                differ.
            UnknownPosition: the trace has no such position.
        """
        if site not in trace:
            raise ImpossibleIntervention(
                f"the trace to take values from does not hold {site}; capture it there"
            )
        array = trace.tensors[site]
        data: NDArray[np.float32] = array.data.astype(np.float32)
        source = positions if source_positions is None else source_positions
        if positions is None and source_positions is not None:
            raise ImpossibleIntervention("positions to read are given, but none to set; give both")
        if positions is not None and source is not None and len(positions) != len(source):
            raise ImpossibleIntervention(
                f"{len(source)} positions are read and {len(positions)} are set; "
                "give as many of each"
            )
        if source is not None:
            axis = _token_axis(site, array.axes)
            require_positions(source, data.shape[axis], site)
            data = data.take(list(source), axis=axis)
        if "head" in array.axes:
            present = list(trace.heads or range(data.shape[array.axes.index("head")]))
            wanted = sorted(present) if heads is None and trace.heads is None else list(heads or ())
            missing: Sequence[int | str] = ["all heads"]
            if wanted:
                missing = sorted(set(wanted) - set(present))
            if missing:
                raise ImpossibleIntervention(
                    f"the trace to take {site} from holds heads {present}, but not {missing[0]}"
                )
            index = [present.index(head) for head in wanted]
            data = data.take(index, axis=array.axes.index("head"))
        if np.isneginf(data).any():
            raise ImpossibleIntervention(
                f"{site} holds masked numbers (−∞), which cannot be set; patch the weights instead"
            )
        return cls(
            kind="set",
            site=site,
            value=data,
            heads=None if heads is None else tuple(heads),
            positions=None if positions is None else tuple(positions),
        )

    def bind(self, sites: Iterable[Site], start: int | None = None) -> SiteEdit:
        """As `Intervention.bind`: set the axes of the site, and the start of a pass."""
        edit = self if self.axes else self._at_site(sites)
        return edit if start is None else replace(edit, start=start)

    def _at_site(self, sites: Iterable[Site]) -> SiteEdit:
        """Return the edit with the axes of its site; see `bind`.

        Raises:
            UnknownSite, UnknownHead, UnknownPosition: the model has no such site or head, or a
                position is negative or named twice.
            ImpossibleIntervention: the site's tensor cannot be edited so.
        """
        known = {site.name: site for site in sites}
        if match_sites([self.site], known) != [self.site]:
            raise ImpossibleIntervention(
                f"an edit acts at one site; write {self.site!r} out in full"
            )
        site = known[self.site]
        if self.site.endswith(_NUMBERED):
            raise ImpossibleIntervention(
                f"{self.site} holds the numbers of experts, not amounts; edit router_logits instead"
            )
        path, _, part = self.site.rpartition(".")
        if part in OBSERVED_AXES:
            raise ImpossibleIntervention(
                f"{self.site} is computed from the attention weights and nothing reads it; "
                f"edit {path}.scores or {path}.weights instead"
            )
        if "head" not in site.axes and (self.heads is not None or self.over == "heads"):
            axes = " ".join(axis for axis in site.axes if axis != "batch")
            raise ImpossibleIntervention(f"{self.site} has no heads; its axes are {axes}")
        if self.heads is not None:
            require_heads(self.heads, site.sizes["head"])
        if self.positions is not None:
            require_positions(self.positions, None, self.site)
        return replace(self, axes=site.axes)

    def edits(self, places: Places) -> SiteEdits:
        """As `Intervention.edits`; the edit is bound."""
        yield self.site, self.apply

    def with_values_of(self, trace: Trace, positions: Sequence[int] | None) -> SiteEdit:
        """As `Intervention.with_values_of`; see `patch`."""
        patch = SiteEdit.patch(
            trace, self.site, heads=self.heads, positions=self.positions, source_positions=positions
        )
        return replace(self, value=patch.value)

    @property
    def needs_every_key(self) -> bool:
        """Whether the site holds keys or values."""
        return "key" in self.axes

    @property
    def n_rows(self) -> int:
        """The positions that the value has a row for; 1: the same row for all."""
        if self.value is None:
            return 1
        array, axis = np.asarray(self.value), _token_axis(self.site, self._own_axes)
        place = array.ndim - len(self._own_axes) + axis
        return int(array.shape[place]) if place >= 0 else 1

    @property
    def _own_axes(self) -> tuple[str, ...]:
        return tuple(axis for axis in self.axes if axis != "batch")

    def apply(self, tensor: Tensor) -> Tensor:
        """Return the tensor of the site, edited; with the axes of the site."""
        axis = _token_axis(self.site, self.axes)
        start = 0 if self.axes[axis] == "key" else self.start
        end = start + tensor.shape[axis]
        chosen: list[tuple[int, Tensor]] = []
        rows: list[int] | None = None
        if self.heads is not None:
            chosen.append((self.axes.index("head"), _index(self.heads, tensor)))
        if self.positions is not None:
            rows = [row for row, at in enumerate(self.positions) if start <= at < end]
            if not rows:
                return tensor
            local = [self.positions[row] - start for row in rows]
            chosen.append((axis, _index(local, tensor)))
        part = tensor
        for place, index in chosen:
            part = part.index_select(place, index)
        whole = self._mean(tensor, axis) if self.kind == "mean" else None
        if whole is not None:
            for place, index in chosen:
                is_averaged = whole.shape[place] == 1
                whole = whole if is_averaged else whole.index_select(place, index)
        return _replaced(tensor, chosen, self._edited(part, whole, rows))

    def _mean(self, tensor: Tensor, token_axis: int) -> Tensor:
        axis = token_axis if self.over == "positions" else self.axes.index("head")
        is_masked = tensor.isneginf()
        n_counted = (~is_masked).sum(dim=axis, keepdim=True).clamp(min=1)
        return tensor.masked_fill(is_masked, 0).sum(dim=axis, keepdim=True) / n_counted

    def _edited(self, part: Tensor, mean: Tensor | None, rows: list[int] | None) -> Tensor:
        if mean is not None:
            return torch.where(part.isneginf(), part, mean.to(part.dtype))
        value = torch.from_numpy(np.asarray(self.value)).to(part.device)
        if rows is not None and self.n_rows > 1:
            place = value.ndim - len(self._own_axes) + _token_axis(self.site, self._own_axes)
            value = value.index_select(place, _index(rows, value))
        value = value.to(part.dtype)
        if self.kind == "set":
            return value.expand_as(part)
        if self.kind == "add":
            return part + value
        return torch.where(part.isneginf(), part, part * value)

    def for_generation(self, n_prompt: int, max_tokens: int) -> SiteEdit:
        """As `Intervention.for_generation`: positions may lie beyond the prompt.

        Values with a row for each position, and no positions, are those of the prompt's.
        """
        if self.kind == "mean" and self.over == "positions":
            raise ImpossibleIntervention(
                "a mean over positions changes with every token; in generation take it over heads"
            )
        shape = np.shape(self.value) if self.value is not None else ()
        if self.axes[-2:] == ("query", "key") and shape and shape[-1] > 1:
            raise ImpossibleIntervention(
                f"the keys at {self.site} become more with every token; in generation give one "
                "value for all keys"
            )
        if self.positions is not None:
            require_positions(self.positions, max_tokens, self.site)
            return self
        if self.n_rows == 1:
            return self
        if self.n_rows != n_prompt:
            raise ImpossibleIntervention(
                f"there are values of {self.n_rows} positions at {self.site}, and the text has "
                f"{n_prompt}; give positions"
            )
        return replace(self, positions=tuple(range(n_prompt)))

    def require_fitting(self, sizes_at: Callable[[str], Mapping[str, int]]) -> None:
        """As `Intervention.require_fitting`: the positions, and the shape of the value."""
        known = dict(sizes_at(self.site))
        token_axis = self._own_axes[_token_axis(self.site, self._own_axes)]
        if self.positions is not None:
            require_positions(self.positions, known[token_axis], self.site)
        if self.value is None:
            return
        if self.heads is not None:
            known["head"] = len(self.heads)
        if self.positions is not None:
            known[token_axis] = len(self.positions)
        shape = tuple(known[axis] for axis in self._own_axes)
        given = np.shape(self.value)
        try:
            is_fitting = np.broadcast_shapes(given, shape) == shape
        except ValueError:
            is_fitting = False
        if not is_fitting:
            place = self._own_axes.index(token_axis)
            others = shape[:place] + shape[place + 1 :]
            if len(given) == len(shape) and given[:place] + given[place + 1 :] == others:
                raise ImpossibleIntervention(
                    f"the values are those of {given[place]} positions at {self.site}, and "
                    f"{shape[place]} are to be edited; name as many positions on both sides"
                )
            expected = ", ".join(
                f"{axis}={size}" for axis, size in zip(self._own_axes, shape, strict=True)
            )
            raise ImpossibleIntervention(
                f"a value of shape {given} does not fit {self.site}, whose part to edit is "
                f"({expected}); an axis may be left out or have 1 entry"
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class RowEdits(Intervention):
    """Edits of one site that differ from row to row of a batch; None leaves a row as it is.

    One pass then measures as many edits as it has rows.
    """

    stage = Intervention.SITES
    site: str
    rows: tuple[SiteEdit | None, ...]

    def bind(self, sites: Iterable[Site], start: int | None = None) -> RowEdits:
        """As `Intervention.bind`: bind every row's edit."""
        known = list(sites)
        return replace(self, rows=tuple(edit and edit.bind(known) for edit in self.rows))

    def edits(self, places: Places) -> SiteEdits:
        """As `Intervention.edits`; the rows are bound."""
        yield self.site, self.apply

    def apply(self, tensor: Tensor) -> Tensor:
        """Return the tensor of the site with its rows edited."""
        edited = tensor.clone()
        for row, edit in enumerate(self.rows):
            if edit is not None:
                edited[row : row + 1] = edit.apply(tensor[row : row + 1])
        return edited


def require_positions(positions: Sequence[int], n: int | None, site: str) -> None:
    """Check positions of a site that has `n` of them; None: it is not known yet.

    Raises:
        UnknownPosition: there is none, or one is named twice or out of range.
    """
    if not positions:
        raise UnknownPosition("positions is empty; leave it out for all positions")
    if len(set(positions)) < len(positions):
        raise UnknownPosition(f"positions {list(positions)} names a position twice")
    for position in positions:
        if position < 0 or (n is not None and position >= n):
            known = "positions count from 0" if n is None else f"its positions are 0 to {n - 1}"
            raise UnknownPosition(f"{site} has no position {position}; {known}")


def _token_axis(site: str, axes: Sequence[str]) -> int:
    for number, axis in enumerate(axes):
        if axis in _TOKEN_AXES:
            return number
    raise ImpossibleIntervention(f"{site} has no axis of tokens; an edit needs one")


def _index(numbers: Sequence[int], like: Tensor) -> Tensor:
    return torch.tensor(numbers, dtype=torch.int64, device=like.device)


def _replaced(tensor: Tensor, chosen: Sequence[tuple[int, Tensor]], part: Tensor) -> Tensor:
    """Return the tensor with a part of it replaced; the tensor itself stays as it is."""
    if not chosen:
        return part
    (axis, index), *rest = chosen
    inner = _replaced(tensor.index_select(axis, index), rest, part)
    return tensor.index_copy(axis, index, inner)
