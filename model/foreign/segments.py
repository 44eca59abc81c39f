"""The two texts of a pair: the types of its tokens, which some models embed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

TYPES = "token_type_ids"
_FIRST, _SECOND = "one two", "three four"


@dataclass(frozen=True)
class Segments:
    """The type of each token, by the number of special tokens of the template before it."""

    special: frozenset[int]
    types: tuple[int, ...]

    def of(self, ids: Sequence[int]) -> list[int]:
        """Return the types of a text or pair in tokens."""
        types, n_before = [], 0
        for token in ids:
            types.append(self.types[min(n_before, len(self.types) - 1)])
            n_before += token in self.special
        return types


def learn_segments(backend: Any) -> Segments | None:
    """Learn the types from how a fast tokenizer of Transformers encodes a text and a pair.

    Returns:
        None: the type of a token does not follow from the special tokens before it.
    """
    rust = backend.backend_tokenizer
    known: dict[int, int] = {}
    special: set[int] = set()
    for texts in ((_FIRST,), (_FIRST, _SECOND)):
        encoding, n_before = rust.encode(*texts), 0
        for token, kind, is_special in zip(
            encoding.ids, encoding.type_ids, encoding.special_tokens_mask, strict=True
        ):
            if known.setdefault(n_before, kind) != kind:
                return None
            n_before += is_special
            special |= {token} if is_special else set()
    has_types = TYPES in backend.model_input_names
    types = tuple(known[at] if has_types else 0 for at in range(len(known)))
    return Segments(frozenset(special), types)
