"""The lab, which made the models that ship: training, evaluation, and cleaning of text.

    training     a method of training is one file of `recipes`; `run` begins it, `loop` makes steps
    evaluation   the figures on a card, by the recipe of its model (`figures`)
    data         what a corpus loses before it is read, and the report on it
    commands     `headlight train`, `comparisons`, `evaluate`, `quantize` and `data`

The product, `headlight` and `headlight.model`, imports nothing of it. Libraries that only the lab
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
            f"{library} is not installed; install it with: pip install 'headlight-viz[lab]'"
        ) from error
