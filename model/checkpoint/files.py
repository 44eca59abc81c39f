"""Checks of the files of an untrusted checkpoint folder, before anything is opened or allocated.

A file may be a named pipe, which blocks the reader forever. A symbolic link may point anywhere on
the machine. A config of a few bytes may ask for more memory than there is.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

from platformdirs import user_data_path
from safetensors import SafetensorError, safe_open

CONFIG, TOKENIZER, WEIGHTS, CARD = "config.json", "tokenizer.json", "model.safetensors", "CARD.md"

# Several times the largest known: a config has a dozen lines, a card some pages with tables, and a
# tokenizer with a vocabulary of 250,000 has 35 MB.
MAX_BYTES = {CONFIG: 2**16, CARD: 2**17, TOKENIZER: 2**26}

RUN = "run.json"
"""The file of a training run, which is there from its start."""


def added_models_dir() -> Path:
    """Return the directory that `headlight add` adds models to, if the command names none."""
    named = os.environ.get("HEADLIGHT_MODELS_DIR")
    return Path(named) if named else user_data_path("headlight", appauthor=False) / "models"


class CheckpointError(ValueError):
    """The folder is not a valid checkpoint; the message names the file and the reason."""


class UnfinishedRun(CheckpointError):
    """The folder of a training run that has not written its model yet."""


def require_finished(folder: Path) -> None:
    """Check that a folder is not that of a training run without a model.

    Raises:
        UnfinishedRun: it is.
    """
    if (folder / RUN).exists() and not (folder / CONFIG).exists():
        raise UnfinishedRun(
            f"{folder}: the training run is not finished; `headlight train … --resume` continues it"
        )


def require_file(folder: Path, name: str, max_bytes: int) -> Path:
    """Return the path of a regular file inside the folder.

    Raises:
        CheckpointError: the file is missing, not a regular file, too large, or outside the folder.
    """
    path = folder / name
    try:
        target = path.resolve(strict=True)
        status = target.stat()
        home = folder.resolve(strict=True)
    except (OSError, RuntimeError) as error:  # RuntimeError: a cycle of symbolic links
        if name == CONFIG and isinstance(error, FileNotFoundError) and not path.is_symlink():
            raise CheckpointError(f"{folder} holds no model ({name} is missing)") from error
        raise CheckpointError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if not target.is_relative_to(home):
        raise CheckpointError(f"{path}: a symbolic link must not leave the folder")
    if not stat.S_ISREG(status.st_mode):
        raise CheckpointError(f"{path}: not a regular file")
    if status.st_size > max_bytes:
        raise CheckpointError(f"{path}: {status.st_size:,} bytes exceed the limit of {max_bytes:,}")
    return path


def open_file(folder: Path, name: str, max_bytes: int) -> BufferedReader:
    """Open a regular file inside the folder for reading; a pipe or device is never waited for.

    Its kind and size are checked again on the open file: it may have been replaced after the check
    of its path.

    Raises:
        CheckpointError: as `require_file`.
    """
    path = require_file(folder, name, max_bytes)
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    flags |= getattr(os, "O_BINARY", 0)
    try:
        file = os.fdopen(os.open(path.resolve(), flags), "rb")
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}") from error
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode) or status.st_size > max_bytes:
        file.close()
        raise CheckpointError(f"{path}: not a regular file of at most {max_bytes:,} bytes")
    return file


def read_file(folder: Path, name: str, max_bytes: int) -> bytes:
    """Return the bytes of a regular file inside the folder.

    Raises:
        CheckpointError: as `require_file`, or the file grows while it is read.
    """
    with open_file(folder, name, max_bytes) as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise CheckpointError(f"{folder / name}: exceeds the limit of {max_bytes:,} bytes")
    return content


@contextmanager
def path_of_open_file(folder: Path, name: str, max_bytes: int) -> Iterator[Path]:
    """Open a regular file inside the folder for a library that opens files by their paths.

    By its name the library would open, and wait for, a pipe that has replaced the file since it was
    checked. The path is that of the open file if the system has such paths, else the name.

    Raises:
        CheckpointError: as `require_file`.
    """
    with open_file(folder, name, max_bytes) as file:
        path = Path(f"/dev/fd/{file.fileno()}")
        yield path if path.exists() else folder / name


@contextmanager
def open_tensors(folder: Path, name: str, max_bytes: int) -> Iterator[Any]:
    """Open a safetensors file inside the folder, as `safe_open` does, for a ``with`` block.

    Raises:
        CheckpointError: as `require_file`.
            Or the file is damaged: the library's words name neither file nor way out.
    """
    with path_of_open_file(folder, name, max_bytes) as path, ExitStack() as stack:
        try:
            file = stack.enter_context(safe_open(path, framework="pt"))
        except (OSError, SafetensorError) as error:
            why = "is empty" if not (folder / name).stat().st_size else "is damaged or cut short"
            raise CheckpointError(
                f"{folder / name} {why}; copy or download it again ({error})"
            ) from error
        yield file


def unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return a JSON object; a duplicate key is an error, as JSON does not define which one counts.

    Raises:
        ValueError: a key occurs twice.
    """
    members: dict[str, object] = {}
    for key, value in pairs:
        if key in members:
            raise ValueError(f"the key {key!r} occurs twice")
        members[key] = value
    return members


def require_memory(path: Path, n_numbers: int, itemsize: int = 4) -> None:
    """Check that the machine has enough memory for a model, before it is allocated.

    Args:
        path: the file that determines the size, for the message.
        n_numbers: parameters and buffers.
        itemsize: bytes of each.

    Raises:
        CheckpointError: the model needs more than the machine's whole memory.
    """
    needed, available = itemsize * n_numbers, memory_bytes()
    if available is not None and needed > available:
        raise CheckpointError(
            f"{path}: a model of these sizes needs {_in_gb(needed)} of memory; this machine has "
            f"{_in_gb(available)}"
        )


def memory_bytes() -> int | None:
    """Return the memory of this machine or of its container, in bytes; None if unknown."""
    limits = []
    try:
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
        limits += [int(limit)] if limit.isdecimal() else []
    except (AttributeError, OSError, ValueError):
        pass  # not Linux, or not in a container
    return min(limits, default=None)


def _in_gb(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:,.1f} GB"
