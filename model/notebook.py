"""Pages and sentences in a notebook, which the application makes: this package imports none of it.

The package `headlight`, which is imported before any module of this one, sets `page` and `why`.
"""

from collections.abc import Callable
from typing import Any

page: Callable[[Any, int], Any]
"""Return the page of a trace (`Trace.show`), with a height in pixels."""


why: Callable[..., Any]
"""Return the thread of a prediction of a model (`served.Explained`)."""
