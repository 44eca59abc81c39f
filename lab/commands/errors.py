"""Errors of the lab's commands."""

from collections.abc import Iterator
from contextlib import contextmanager

from headlight.commands.parsing import UsageError
from headlight.model.checkpoint.files import CheckpointError
from headlight.model.corpus import CorpusError


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn a ValueError of the block into a `UsageError`, unless a file is at fault."""
    try:
        yield
    except (CorpusError, CheckpointError):
        raise
    except ValueError as error:
        raise UsageError(str(error)) from error
