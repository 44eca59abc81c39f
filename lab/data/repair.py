"""Repair of text that was decoded wrongly, by ftfy: ``Ã©`` becomes ``é`` again.

ftfy knows the ways in which UTF-8 is read as another encoding, twice too, and changes only what is
then good text. Of its other steps none is used: quotes, ligatures and widths stay as they are.
"""

from __future__ import annotations

from dataclasses import replace

from headlight.lab import lab_libraries
from headlight.lab.data.documents import Document


def repair(text: str) -> str:
    """Undo wrong decodings and HTML entities outside of tags, and drop control characters."""
    with lab_libraries():
        from ftfy import TextFixerConfig, fix_text
    config = TextFixerConfig(
        unescape_html="auto",
        uncurl_quotes=False,
        fix_latin_ligatures=False,
        fix_character_width=False,
        normalization=None,
    )
    return fix_text(text, config)


def repaired(document: Document) -> Document:
    """Return a document with its text repaired."""
    return replace(document, text=repair(document.text))
