"""Which tokens the places of an axis are, by the name of its site."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

AXES = ("query", "key", "position")


@runtime_checkable
class Texts(Protocol):
    """What was read: the tokens of a text, and of a target where there is one."""

    @property
    def tokens(self) -> Sequence[Any]:
        """Of the text."""

    @property
    def target_tokens(self) -> Sequence[Any] | None:
        """Of the target, where there is one."""


def tokens_along(texts: Texts, site: str, axis: str, size: int) -> Sequence[Any]:
    """The tokens along an axis; none where its places are no tokens.

    An encoder–decoder reads its target everywhere but in the encoder, and its cross-attention looks
    at the source.

    Args:
        texts: what was read.
        site: of the array, or a name that holds that of a site or of a stack.
        axis: its name.
        size: how many places it has.
    """
    is_source = "encoder" in site.split(".") or (axis == "key" and "cross_attention" in site)
    has_target = texts.target_tokens is not None and not is_source
    tokens = (texts.target_tokens if has_target else texts.tokens) or ()
    return tokens if axis in AXES and len(tokens) == size else ()
