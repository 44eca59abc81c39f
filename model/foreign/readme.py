"""A card from the README of an untrusted checkpoint: its licence, its data sets and its text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from headlight.model.checkpoint.card import FENCE, ModelCard, parse_yaml
from headlight.model.checkpoint.files import CheckpointError, read_file

README = "README.md"
MAX_README_BYTES = 2**20
MAX_CHARACTERS = 20_000
MAX_NAMES = 20
NO_LICENCE = "not stated"

# Comments, and tags with what only a browser would run or show.
_UNSEEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|svg|table)\b.*?(?:</\1\s*>|\Z)", re.S | re.I
)
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,2000}>")
_IMAGE = re.compile(r"!\[([^\[\]\n]{0,500})\]\([^)\n]{0,2000}\)")
_LINES = re.compile(r"\n{3,}")
_CUT = "\n\n(The rest of the README is left out.)"


def readme_card(folder: Path) -> ModelCard:
    """Return a card of the folder's name with the licence, data sets and text of its README.

    A README that is missing, too large, damaged or outside the folder gives a card without them.
    """
    try:
        text = read_file(folder, README, MAX_README_BYTES).decode(errors="replace")
    except (CheckpointError, OSError):
        text = ""
    head, prose = _parts(text.replace("\r\n", "\n"))
    licence = _names(head.get("license_name") or head.get("license"))
    return ModelCard(
        title=_line(folder.resolve().name),
        licence=", ".join(licence) or NO_LICENCE,
        trained_on=_names(head.get("datasets")),
        prose=plain_markdown(prose),
    )


def plain_markdown(text: str) -> str:
    """Return Markdown without HTML, images and control characters, and of bounded length."""
    text = text[: 4 * MAX_CHARACTERS]
    text = _TAG.sub("", _UNSEEN.sub("", text))
    text = _IMAGE.sub(r"\1", text)
    text = "".join(letter for letter in text if letter.isprintable() or letter in "\n\t")
    text = _LINES.sub("\n\n", text).strip()
    return text if len(text) <= MAX_CHARACTERS else text[:MAX_CHARACTERS].rstrip() + _CUT


def _parts(text: str) -> tuple[dict[str, Any], str]:
    """Return the front matter and the text below it; damaged front matter is left out."""
    parts = FENCE.split(text, maxsplit=2)
    if len(parts) != 3 or parts[0]:
        return {}, text
    try:
        head = parse_yaml(parts[1])
    except (yaml.YAMLError, ValueError, RecursionError):
        head = None
    return (head if isinstance(head, dict) else {}), parts[2]


def _names(value: object) -> tuple[str, ...]:
    several = value if isinstance(value, list) else [value]
    named = [
        _line(str(item)) for item in several if isinstance(item, str | int) and str(item).strip()
    ]
    return tuple(named[:MAX_NAMES])


def _line(text: str) -> str:
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text.strip())[:200]
