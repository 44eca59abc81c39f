"""Hide keys from queries: attention knock-out (Geva et al. 2023).

    KnockOut(layer=3, heads=(3,), queries=(5,), keys=(2,))     a query may not see a key

https://arxiv.org/abs/2304.14767
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from headlight.model.interventions.intervention import (
    ImpossibleIntervention,
    PlacedIntervention,
    Places,
    SiteEdits,
)
from headlight.model.interventions.site_edit import require_positions
from headlight.model.sites import Site, require_heads


@dataclass(frozen=True, kw_only=True)
class KnockOut(PlacedIntervention):
    """Hide keys from queries: their weights are 0.

    ``heads`` None: all. ``renormalised``: the rest of a row sums to 1, as after a mask; otherwise
    it keeps its weights.
    """

    stage = 4
    shares_pass = False
    queries: tuple[int, ...]
    keys: tuple[int, ...]
    heads: tuple[int, ...] | None = None
    renormalised: bool = True
    start: int = 0

    def bind(self, sites: Iterable[Site], start: int | None = None) -> KnockOut:
        """As `Intervention.bind`: set the start of a pass."""
        return self if start is None else replace(self, start=start)

    def edits(self, places: Places) -> SiteEdits:
        """As `Intervention.edits`."""
        if self.heads is not None:
            require_heads(self.heads, places.config.n_heads)
        for positions, what in ((self.queries, "a row"), (self.keys, "a row of keys")):
            require_positions(positions, None, what)
        for path in places.attentions(self):
            site = f"{path}.scores" if self.renormalised else f"{path}.weights"
            yield site, partial(self._hidden, path=path)

    def _hidden(self, tensor: Tensor, path: str) -> Tensor:
        n_queries, n_keys = tensor.shape[-2:]
        rows = [at - self.start for at in self.queries if 0 <= at - self.start < n_queries]
        columns = [at for at in self.keys if at < n_keys]
        if not rows or not columns:
            return tensor
        heads = list(self.heads) if self.heads is not None else list(range(tensor.shape[1]))
        hidden = tensor.clone()
        index = (
            torch.tensor(heads)[:, None, None],
            torch.tensor(rows)[:, None],
            torch.tensor(columns),
        )
        hidden[:, index[0], index[1], index[2]] = -math.inf if self.renormalised else 0.0
        if self.renormalised and bool(hidden[:, :, rows].isneginf().all(-1).any()):
            raise ImpossibleIntervention(
                f"a row of {path} would see no key at all; leave it one, or do not renormalise"
            )
        return hidden
