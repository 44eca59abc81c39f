"""Figures as a card holds them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def rounded(figures: Mapping[Any, Any]) -> dict[Any, Any]:
    """The same figures with every float rounded to four digits, however deep it lies."""
    return {
        name: rounded(value)
        if isinstance(value, Mapping)
        else round(float(value), 4)  # a NumPy float is no plain data
        if isinstance(value, float)
        else value
        for name, value in figures.items()
    }
