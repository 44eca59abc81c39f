"""The lab: training, evaluation, cleaning of text, and experiments.

The visualizer, the rest of `headlight.model`, imports nothing of it. Libraries that only the lab
uses come with the extra `lab`.
"""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def lab_libraries() -> Iterator[None]:
    """Say how to install the libraries that are imported inside the block.

    Raises:
        ImportError: one of them is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "a library").partition(".")[0]
        raise ImportError(
            f"{library} is not installed; install it with: pip install 'headlight[lab]'"
        ) from error
