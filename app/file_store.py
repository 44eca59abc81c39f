"""Files for browsers, each compressed once and kept in memory, up to a bound."""

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from headlight.serialization.compression import SMALL, compressed
from headlight.serialization.formats import Coding

STORE_BYTES = 16 * 2**20
"""Plotly, Swagger UI and our own files take 2 MB in one coding."""

_Key = tuple[Path, int, int, Coding]


@dataclass(frozen=True)
class StoredFile:
    """A file in a content coding, and the name of exactly these bytes."""

    content: bytes
    etag: str


class FileStore:
    """Files in a coding by path, least recently used ones forgotten first; any thread may ask.

    Args:
        max_bytes: how much is kept.
    """

    def __init__(self, max_bytes: int = STORE_BYTES) -> None:
        self.max_bytes = max_bytes
        self.n_bytes = 0
        self._files: OrderedDict[_Key, StoredFile] = OrderedDict()
        # Whoever asks for what is being compressed waits for it, rather than do it as well.
        self._lock = Lock()

    def get(self, path: Path, coding: Coding) -> StoredFile:
        """The file as it is now; it blocks, so it belongs off the event loop.

        Raises:
            OSError: the file cannot be read.
        """
        facts = path.stat()
        key = (path, facts.st_mtime_ns, facts.st_size, coding)
        with self._lock:
            found = self._files.get(key)
            if found is not None:
                self._files.move_to_end(key)
                return found
            found = _read(path, coding)
            self._keep(key, found)
            return found

    def _keep(self, key: _Key, file: StoredFile) -> None:
        if len(file.content) > self.max_bytes:
            return
        self._files[key] = file
        self.n_bytes += len(file.content)
        while self.n_bytes > self.max_bytes:
            _, forgotten = self._files.popitem(last=False)
            self.n_bytes -= len(forgotten.content)


def _read(path: Path, coding: Coding) -> StoredFile:
    plain = path.read_bytes()
    name = hashlib.sha256(plain).hexdigest()[:16]
    etag = f'"{name}"' if coding == "identity" else f'"{name}-{coding}"'
    return StoredFile(b"".join(compressed([plain], coding, SMALL)), etag)
