"""Files that a command writes: whole or not at all, and never over another by accident."""

import errno
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

STANDARD_OUTPUT = Path("-")

_REASONS = {
    errno.ENOENT: "there is no such file or folder",
    errno.EISDIR: "it is a folder, not a file",
    errno.EEXIST: "it is there already",
    errno.EACCES: "you may not do that there",
    errno.EPERM: "you may not do that there",
    errno.EROFS: "nothing can be written there: the file system is read-only",
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "your share of the disk is full",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ELOOP: "it is a link that leads back to itself",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
}


class DestinationError(ValueError):
    """A file cannot be written; the message says why and what to do."""


@contextmanager
def writing(path: Path, *, is_forced: bool = False) -> Iterator[BinaryIO]:
    """A file to write into, for a `with` block; `-` is standard output.

    The file is there once the block is left; a block that raises leaves what was there before.

    Args:
        path: of the file.
        is_forced: whether it may take the place of another.

    Raises:
        DestinationError: it cannot be written, or is there already.
    """
    if path == STANDARD_OUTPUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    check(path, is_forced=is_forced)
    try:
        with _beside(path) if _is_replaced(path) else path.open("wb") as file:
            yield file
    except OSError as error:
        raise DestinationError(f"cannot write {path}: {_reason(error)}") from error


def check(path: Path, *, is_forced: bool = False) -> None:
    """Refuse a file that cannot be written, before anything is computed for it.

    Raises:
        DestinationError: as `writing`.
    """
    if path == STANDARD_OUTPUT:
        return
    try:
        if path.is_dir():
            raise DestinationError(f"cannot write {path}: it is a folder; name a file in it")
        if not path.parent.is_dir():
            folder = f"there is no folder {path.parent}; make it, or name another"
            raise DestinationError(f"cannot write {path}: {folder}")
        if path.is_file() and not is_forced:
            way_out = "name another file, or give --force to write over it"
            raise DestinationError(f"{path} is there already; {way_out}")
    except OSError as error:
        raise DestinationError(f"cannot write {path}: {_reason(error)}") from error


def _is_replaced(path: Path) -> bool:
    """Whether a new file takes the name; what is no file, a pipe or a device, is written into."""
    return path.is_file() or not path.exists()


@contextmanager
def _beside(path: Path) -> Iterator[BinaryIO]:
    """A new file in the same folder, which takes the name when it is whole."""
    target = path.resolve()
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".headlight-", delete=False) as file:
        try:
            yield file  # type: ignore[misc]
            file.close()
            Path(file.name).chmod(0o666 & ~_umask())
            os.replace(file.name, target)  # noqa: PTH105 - the file may hold another's name
        except BaseException:
            with suppress(FileNotFoundError):
                Path(file.name).unlink()
            raise


def _umask() -> int:
    """What the user's new files are not: a temporary file is nobody else's to read."""
    umask = os.umask(0)
    os.umask(umask)
    return umask


def in_words(error: Exception) -> str:
    """What went wrong, without the system's numbers. An error that is told already stays."""
    if isinstance(error, OSError) and error.errno and error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {_reason(error)}"
    return str(error)


def _reason(error: OSError) -> str:
    return _REASONS.get(error.errno or 0) or (error.strerror or str(error)).lower()
