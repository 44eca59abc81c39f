"""Tokens as people can read them on an axis: nothing invisible, nothing that becomes markup."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

MAX_LETTERS = 12
MAX_LABELS = 48
FIRST_STRONG_ISOLATE, POP_DIRECTIONAL_ISOLATE = "\u2068", "\u2069"

_NAMED = {"\n": "↵", "\r": "␍", "\t": "⇥", "\u00a0": "⍽", "\u3000": "□", "\u007f": "␡", " ": "·"}
# They join the letters or pictures beside them.
_JOINERS = frozenset("\u034f\u200c\u200d\ufe0e\ufe0f")


def label_of(text: str) -> str:
    """A token's text as a label that Plotly shows as it is.

    Spaces around it are left out; control characters and those that turn the direction of a line
    show as what they are. Letters that read right to left stay among themselves.
    """
    bare = text.strip() or text
    shown = "".join(_visible(letter) for letter in bare)
    if len(shown) > MAX_LETTERS:
        shown = f"{shown[: MAX_LETTERS - 1]}…"
    if any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in shown):
        shown = f"{FIRST_STRONG_ISOLATE}{shown}{POP_DIRECTIONAL_ISOLATE}"
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def ticks_of(labels: Sequence[str]) -> tuple[list[int], list[str]]:
    """Places on an axis and what stands there: of many labels every second, fourth, eighth."""
    step = 1
    while len(labels) > MAX_LABELS * step:
        step *= 2
    places = list(range(0, len(labels), step))
    return places, [labels[place] for place in places]


def _visible(letter: str) -> str:
    if letter in _NAMED:
        return _NAMED[letter]
    if ord(letter) < 0x20:
        return chr(0x2400 + ord(letter))
    if unicodedata.category(letter) in ("Cc", "Cf", "Zl", "Zp") and letter not in _JOINERS:
        return f"‹U+{ord(letter):04X}›"
    return letter
