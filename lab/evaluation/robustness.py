"""The reach of a language model's figures: typed forms and other texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any

from headlight.lab.evaluation import fill
from headlight.lab.evaluation.text import bits_per_byte
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.corpus import CorpusError

MOST_BYTES = 50_000
"""As much of a text is read, from the beginning of each document."""

N_BLANKS = 500

OPENING = re.compile(r'(?<!\S)"')


def typographic(text: str) -> str:
    """Write quotation marks, apostrophes, dashes and ellipses as word processors do."""
    curved = OPENING.sub("\u201c", text).replace('"', "\u201d").replace("'", "\u2019")
    return curved.replace("--", "\u2014").replace("...", "\u2026")


FORMS: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {
        "as_written": lambda text: text,
        "lower_case": str.lower,
        "capitals": str.upper,
        "typographic": typographic,
    }
)


def robustness(
    checkpoint: Checkpoint, documents: Sequence[str], others: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Measure the main figure of a model on texts of other kinds.

    The figure of a decoder is bits per byte; a form counts the bytes of the text as written. The
    figure of an encoder is the accuracy at masked words, in [0, 1]. See `MOST_BYTES` and
    `N_BLANKS`.

    Args:
        checkpoint: a decoder, or an encoder with a mask token.
        documents: held-out text.
        others: other texts by name, by other authors for instance.

    Returns:
        ``figure``: its name. ``bytes``, those of the text that were read. ``forms``: the figure by
        form of `FORMS`; an encoder has none of a form without a word of one token.
        ``other_texts``: the figure by name.

    Raises:
        CorpusError: a text is shorter than one context.
    """
    is_encoder = checkpoint.config.kind == "encoder"
    measured = _accuracy if is_encoder else _bits
    written = beginning(documents)
    figures: dict[str, Any] = {
        "figure": "masked_word_accuracy" if is_encoder else "bits_per_byte",
        "bytes": _size(written),
        "forms": {},
    }
    for name, typed in FORMS.items():
        with suppress(CorpusError):  # a word in capitals may have several tokens, for instance
            form = [typed(text) for text in written]
            figures["forms"][name] = measured(checkpoint, form, _size(written))
    if others:
        excerpts = {name: beginning(texts) for name, texts in others.items()}
        figures["other_texts"] = {
            name: measured(checkpoint, texts, _size(texts)) for name, texts in excerpts.items()
        }
    return figures


def beginning(documents: Sequence[str]) -> list[str]:
    """Cut each document to an equal share of `MOST_BYTES`, at the end of a line."""
    share = MOST_BYTES // max(1, len(documents))
    cut = []
    for document in documents:
        lines: list[str] = []
        size = 0
        for line in document.splitlines(keepends=True):
            size += len(line.encode())
            if size > share and lines:
                break
            lines.append(line)
        cut.append("".join(lines))
    return cut


def _size(documents: Sequence[str]) -> int:
    return sum(len(document.encode()) for document in documents)


def _bits(checkpoint: Checkpoint, documents: Sequence[str], n_bytes: int) -> float:
    figures = bits_per_byte(checkpoint, documents)
    return figures["bits_per_byte"] * figures["bytes"] / n_bytes


def _accuracy(checkpoint: Checkpoint, documents: Sequence[str], _n_bytes: int) -> float:
    figures = fill.evaluate(checkpoint, documents, n_blanks=N_BLANKS)
    accuracy: float = figures["masked_word_accuracy"]
    return accuracy
