"""The analysis of roles: where attention goes, by message or by the two texts of a pair."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headlight.analyses.analysis import Analysis, Choices, Result
from headlight.forms import ArraysAnswer
from headlight.model.trace import ROLES, SEGMENTS, TEMPLATE, NamedArray, Trace

if TYPE_CHECKING:
    from headlight.model.description import Description
    from headlight.model.served import Served


class RoleSharesAnswer(ArraysAnswer):
    """Of each attention (head, query_role, key_role): the mean weight on all keys of a role.

    The mean is over the queries of a role, so each row sums to 1. Both axes are in the order of
    `roles`.
    """

    roles: list[str]


class RoleShares(Analysis):
    """The share of each head's attention that every role, or each text of a pair, has."""

    id = "role_shares"
    needs = ("*.self_attention.weights",)
    answer = RoleSharesAnswer
    is_by_layer = True

    def reason_against(self, description: Description) -> str | None:
        """Return why a model reads neither messages nor pairs; None: it does."""
        has_roles = not description.features.isdisjoint({"chat", "pairs"})
        return None if has_roles else "it has no chat template, and reads no pairs"

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        """Average over the queries of a role, and add up over the keys of one.

        Raises:
            ValueError: the trace is of one text.
        """
        of_token = [token.role for token in trace.tokens]
        roles = [role for role in (TEMPLATE, *ROLES, *SEGMENTS) if role in of_token]
        if not roles:
            raise ValueError("a text has no roles; send messages, or a pair")
        members = np.array([[each == role for each in of_token] for role in roles], np.float32)
        means = members / members.sum(1, keepdims=True)
        axes = ("head", "query_role", "key_role")
        arrays = {
            site.removesuffix(".weights"): NamedArray(axes, means @ weights.data @ members.T)
            for site, weights in trace.tensors.items()
            if site.endswith(".self_attention.weights")
        }
        return Result(arrays, {"roles": roles})
