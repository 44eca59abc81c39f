"""Every figure on the card of `fill`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headlight.model.checkpoint import Checkpoint
from headlight.model.evaluation.figures import rounded
from headlight.model.evaluation.masked_words import masked_words


def evaluate(
    checkpoint: Checkpoint, documents: Sequence[str], *, n_blanks: int = 2000
) -> dict[str, Any]:
    """Measure how well the model fills in words of a held-out text.

    Args:
        checkpoint: an encoder with a mask token.
        documents: held-out text.
        n_blanks: how many words to hide.

    Returns:
        The figures by name, rounded to four digits, ready for the card.

    Raises:
        CorpusError: the text has no word of one token.
    """
    return rounded(masked_words(checkpoint, documents, n_blanks=n_blanks))
