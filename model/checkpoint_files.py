"""The files of a model's folder, which may be a stranger's: whole, of bounded size, and inside it.

A file that is really a pipe would be waited for without end, a link could lead anywhere on the
machine, and a config of a few bytes can ask for more memory than there is. All of that is looked at
before anything is opened or made.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

CONFIG, TOKENIZER, WEIGHTS, CARD = "config.json", "tokenizer.json", "model.safetensors", "CARD.md"

# Several times the largest that anybody has: a config is a dozen lines, a card some pages with
# tables, and a tokenizer of a quarter of a million pieces has 35 MB.
LARGEST = {CONFIG: 2**16, CARD: 2**17, TOKENIZER: 2**26}


RUN = "run.json"
"""In the folder of a training run, from its first minute on."""


class CheckpointError(ValueError):
    """A folder that holds no sound model; the message names the file and what is wrong."""


class UnfinishedRun(CheckpointError):
    """The folder of a training run that has not written its model yet."""


def require_finished(folder: Path) -> None:
    """Check that a folder is not that of a training run without its model.

    Raises:
        UnfinishedRun: it is.
    """
    if (folder / RUN).exists() and not (folder / CONFIG).exists():
        raise UnfinishedRun(
            f"{folder}: the training run is not finished; `headlight train … --resume` continues it"
        )


def require_file(folder: Path, name: str, most_bytes: int) -> Path:
    """The path of a file, once it is one that can be read.

    Args:
        folder: the model's.
        name: of the file.
        most_bytes: that it may have.

    Raises:
        CheckpointError: it is missing, no regular file, larger, or outside the folder.
    """
    path = folder / name
    try:
        target = path.resolve(strict=True)
        found = target.stat()
        home = folder.resolve(strict=True)
    except (OSError, RuntimeError) as error:  # RuntimeError: links that lead in a circle
        raise CheckpointError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if not target.is_relative_to(home):
        raise CheckpointError(f"{path}: a link that leads out of the folder is not followed")
    if not stat.S_ISREG(found.st_mode):
        raise CheckpointError(f"{path}: this is no file with contents, but a folder or a device")
    if found.st_size > most_bytes:
        raise CheckpointError(
            f"{path}: {found.st_size:,} bytes are more than the {most_bytes:,} that it can need"
        )
    return path


def require_memory(path: Path, n_numbers: int) -> None:
    """Refuse a model that this machine could not hold, before it tries.

    Args:
        path: the file that says how large it is.
        n_numbers: parameters and tables, of 4 bytes each.

    Raises:
        CheckpointError: there is less memory, whoever else needs some.
    """
    needed, there_is = 4 * n_numbers, memory_bytes()
    if there_is is not None and needed > there_is:
        raise CheckpointError(
            f"{path}: a model of these sizes needs {_in_gb(needed)} of memory; this machine has "
            f"{_in_gb(there_is)}"
        )


def memory_bytes() -> int | None:
    """How much memory this machine, or its container, has; None: it does not say."""
    found = []
    try:
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
        found += [int(limit)] if limit.isdecimal() else []
    except (AttributeError, OSError, ValueError):
        pass  # another system, or no container
    return min(found, default=None)


def _in_gb(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:,.1f} GB"
