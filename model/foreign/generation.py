"""Continue texts token by token with a foreign model's own cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from headlight.model.config import Architecture
from headlight.model.foreign.passes import ForeignPasses
from headlight.model.foreign.rotations import separates
from headlight.model.generation.sampling import last_query
from headlight.model.interventions.intervene import bound
from headlight.model.interventions.intervention import Intervention
from headlight.model.served import RowCapture


@dataclass
class ForeignCache:
    """The tokens of a text that were read, and the model's keys and values of them.

    ``kept`` is the argument that continues from them, by its name in the installed Transformers.
    None: nothing was read yet, or the model reads the whole text at every step.
    """

    ids: list[int] = field(default_factory=list)
    kept: dict[str, Any] | None = None


class ForeignWriter:
    """Decodes with a foreign model; see `Writer`. Every text has its own pass.

    Args:
        model: a decoder.
        use_cache: whether a step reads only the new token; it does if the self-check found the
            rows of cached passes right.
        interventions: act in every pass. Edits of keys and values need the whole text, as a sliding
            cache holds only the last ones.
    """

    def __init__(
        self,
        model: ForeignPasses,
        *,
        use_cache: bool = True,
        interventions: Sequence[Intervention] = (),
    ) -> None:
        self.model = model
        self.interventions = bound(model.points.sites, interventions) if interventions else []
        self.use_cache = use_cache and not any(each.needs_every_key for each in self.interventions)

    @property
    def config(self) -> Architecture:
        """The architecture."""
        return self.model.config

    def new_cache(self) -> ForeignCache:
        """Return an empty cache."""
        return ForeignCache()

    def n_cached(self, cache: ForeignCache) -> int:
        """Return the number of tokens in a cache."""
        return len(cache.ids)

    def extend(self, cache: ForeignCache, ids: Sequence[int]) -> None:
        """Read tokens into a cache."""
        if not self.use_cache:
            cache.ids += ids
        elif cache.ids:  # a state-space layer continues its state by one token at a time
            for token in ids:
                self._read(cache, [token])
        else:
            self._read(cache, ids)

    def step(
        self, caches: Sequence[ForeignCache], ids: Sequence[int], captures: Sequence[RowCapture]
    ) -> tuple[Tensor, list[dict[str, Tensor]]]:
        """As `Writer.step`."""
        points = self.model.points
        axes = {site.name: site.axes for site in self.model.points.sites}
        logits, rows = [], []
        for cache, last, capture in zip(caches, ids, captures, strict=True):
            with points.capture(
                capture.sites, layers=capture.layers, heads=capture.heads
            ) as captured:
                logits.append(self._read(cache, [last]))
            n_keys = len(cache.ids)
            rows.append(
                {
                    site: last_query(
                        _whole(site, tensor, axes[site], n_keys), axes[site], 0, n_keys
                    )
                    for site, tensor in captured.items()
                }
            )
        return torch.stack(logits).float().cpu(), rows

    def _read(self, cache: ForeignCache, ids: Sequence[int]) -> Tensor:
        """Read more tokens, and return the logits after the last of them.

        A cache whose keys have the rotation of a shorter text is left, and the whole text is read.
        """
        n_read = len(cache.ids)
        is_turned = separates(self.model.switches, (n_read, n_read + len(ids))) and n_read > 0
        is_continued = self.use_cache and not is_turned
        unread = list(ids) if is_continued else [*cache.ids, *ids]
        inputs = torch.tensor([unread], device=self.model.device)
        start = n_read if is_continued else 0
        with torch.inference_mode(), self.model.passing(1, self.interventions, start):
            out = self.model.module(
                input_ids=inputs,
                use_cache=self.use_cache,
                **(cache.kept or {} if is_continued else {}),
            )
            logits = self.model.points.hook_points["logits"](out.logits)
        cache.ids += ids
        if self.use_cache:
            name = "cache" if hasattr(out, "cache") else "past_key_values"  # from 5.24 on, before
            cache.kept = {name: getattr(out, name)}
        last_logits: Tensor = logits[0, -1]
        return last_logits


def _whole(site: str, tensor: Tensor, axes: tuple[str, ...], n_keys: int) -> Tensor:
    """Return a tensor with an entry for every key: a sliding cache holds only the last ones."""
    if "key" not in axes:
        return tensor
    axis = axes.index("key")
    missing = n_keys - tensor.shape[axis]
    if missing <= 0:
        return tensor
    padding = [0, 0] * (tensor.ndim - 1 - axis) + [missing, 0]
    return F.pad(tensor, padding, value=-inf if site.endswith(".scores") else 0.0)
