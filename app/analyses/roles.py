"""The analysis of conversations: where attention goes, by the roles of messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headlight.analyses.analysis import Analysis, Choices, Result
from headlight.forms import ArraysAnswer
from headlight.model.trace import ROLES, TEMPLATE, NamedArray, Trace

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
    """The share of each head's attention that every role of a conversation has."""

    id = "role_shares"
    needs = ("decoder.*.self_attention.weights",)
    answer = RoleSharesAnswer
    is_by_layer = True

    def reason_against(self, description: Description) -> str | None:
        """Return why a model reads no messages; None: it does."""
        return None if "chat" in description.features else "it has no chat template"

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        """Average over the queries of a role, and add up over the keys of one.

        Raises:
            ValueError: the trace is not of messages.
        """
        of_token = [token.role for token in trace.tokens]
        roles = [role for role in (TEMPLATE, *ROLES) if role in of_token]
        if not roles:
            raise ValueError("a text has no roles; send messages")
        members = np.array([[each == role for each in of_token] for role in roles], np.float32)
        means = members / members.sum(1, keepdims=True)
        axes = ("head", "query_role", "key_role")
        arrays = {
            site.removesuffix(".weights"): NamedArray(axes, means @ weights.data @ members.T)
            for site, weights in trace.tensors.items()
            if site.endswith(".self_attention.weights")
        }
        return Result(arrays, {"roles": roles})
