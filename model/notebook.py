"""The page of a trace in a notebook, which the application makes: this package imports none of it.

The package `headlight`, which is imported before any module of this one, sets `page`.
"""

from collections.abc import Callable
from typing import Any

page: Callable[[Any, int], Any]
"""Return the page of a trace (`Trace.show`), with a height in pixels."""
