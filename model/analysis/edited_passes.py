"""Passes over the text of a trace with one edit each, as rows of a batch.

passes = EditedPasses(checkpoint, trace)
passes.predict([[SiteEdit.patch(other, site, positions=[3])], …], difference)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headlight.model.analysis.logit_attribution import LogitDifference
from headlight.model.cancellation import check
from headlight.model.interventions.intervention import Intervention
from headlight.model.interventions.site_edit import RowEdits, SiteEdit
from headlight.model.served import Served
from headlight.model.trace import Trace
from headlight.model.tracing import PassSpec, run_batch, tokenize

ROWS_AT_ONCE = 64
LOGITS_AT_ONCE = 2**24

Row = Sequence[SiteEdit]


class TooManyPasses(ValueError):
    """An analysis would read more tokens than are allowed."""

    def __init__(self, actual: int, limit: int) -> None:
        super().__init__(
            f"{actual:,} tokens in passes with one edit each are more than the {limit:,} that "
            "are allowed; ask for fewer parts, or send a shorter text"
        )
        self.actual, self.limit = actual, limit


class Predictions(NamedTuple):
    """The logit difference of each row, and the probability of its token."""

    differences: Float[np.ndarray, " row"]
    probabilities: Float[np.ndarray, " row"]


@dataclass(frozen=True)
class EditedPasses:
    """The text of a trace, to be read again with edits.

    Args:
        checkpoint: the model.
        trace: of the text.
        interventions: those of the trace, which act in every row.
        max_tokens: the most tokens that all rows of one call may have together; None: no limit.
    """

    checkpoint: Served
    trace: Trace
    interventions: tuple[Intervention, ...] = ()
    max_tokens: int | None = None

    @property
    def n_tokens(self) -> int:
        """The tokens of a row."""
        return len(self.trace.tokens) + len(self.trace.target_tokens or ())

    def predict(self, rows: Sequence[Row], difference: LogitDifference) -> Predictions:
        """Return the prediction of each row.

        Args:
            rows: the edits of each.
            difference: the position, and the two tokens.

        Raises:
            TooManyPasses: the rows have too many tokens together.
            UnknownSite, UnknownPosition, ImpossibleIntervention: as `SiteEdit`.
            Cancelled: as `cancellation`.
        """
        tokens = [difference.token, difference.against]

        def read(captured: Mapping[str, Tensor]) -> Float[np.ndarray, "row 2"]:
            logits = captured["logits"][:, difference.position].double()
            probability = logits.softmax(dim=-1)[:, tokens[0]]
            apart = logits[:, tokens[0]] - logits[:, tokens[1]]
            outcomes: Float[np.ndarray, "row 2"] = (
                torch.stack([apart, probability], 1).cpu().numpy()
            )
            return outcomes

        outcomes = self.read(rows, ["logits"], read)
        return Predictions(outcomes[:, 0], outcomes[:, 1])

    def of_other_text(self, text: str, target: str | None, sites: Sequence[str]) -> Trace:
        """Return the trace of another text, with these sites and the same interventions.

        Raises:
            EmptyText, TooManyTokens, NoTarget, UnknownToken, ValueError: as `tracing.tokenize`.
        """
        spec = PassSpec(tuple(sites), None, self.interventions)
        return run_batch(self.checkpoint, spec, [tokenize(self.checkpoint, text, target)])[0]

    def read(
        self,
        rows: Sequence[Row],
        sites: Sequence[str],
        take: Callable[[Mapping[str, Tensor]], Float[np.ndarray, ...]],
    ) -> Float[np.ndarray, ...]:
        """Return the numbers that `take` makes of the tensors at some sites, row by row.

        Raises:
            TooManyPasses, UnknownSite, UnknownPosition, ImpossibleIntervention, Cancelled: as
                `predict`.
        """
        actual = len(rows) * self.n_tokens
        if self.max_tokens is not None and actual > self.max_tokens:
            raise TooManyPasses(actual, self.max_tokens)
        ids = [token.id for token in self.trace.tokens]
        targets = [token.id for token in self.trace.target_tokens or ()]
        parts = []
        for part in self._parts(rows):
            check()
            captured = self.checkpoint.read(
                [ids] * len(part),
                [targets] * len(part) if targets else None,
                sites=sites,
                interventions=(*self.interventions, *_by_site(part)),
            )
            parts.append(take(captured))
        return np.concatenate(parts)

    def _parts(self, rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
        logits = self.n_tokens * self.checkpoint.config.vocab_size
        size = max(1, min(ROWS_AT_ONCE, LOGITS_AT_ONCE // logits))
        for start in range(0, len(rows), size):
            yield rows[start : start + size]


def _by_site(rows: Sequence[Row]) -> list[RowEdits]:
    """Return the edits of all rows by site; a row has at most one edit of a site."""
    sites = dict.fromkeys(edit.site for row in rows for edit in row)
    return [
        RowEdits(
            site=site,
            rows=tuple(next((edit for edit in row if edit.site == site), None) for row in rows),
        )
        for site in sites
    ]
