"""Links: states of the page under short ids, in one SQLite file that all workers share.

An id is 128 random bits as 22 characters of base64url, new for each link, so neither an id nor an
equal state tells of another link. With each new link the expired ones are deleted, and the oldest
if there are too many or the disk is full; what is deleted is overwritten. To delete takes room,
which a second file holds until then. Each call opens the file, so that a file that cannot be used
is a problem of that call only; a reader makes no file, which a full or read-only disk has no place
for.

cachetools was considered: its caches belong to one process and end with it. diskcache 5.6 keeps a
SQLite file too and a link in 0.9 ms, but bounds no number of links, unpickles what its file holds,
and was last released in 2023.
"""

import logging
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from anyio import CapacityLimiter

from headlight.problems import Problem, echo, service_unavailable
from headlight.settings import Settings

logger = logging.getLogger(__name__)

FILE, ROOM = "links.sqlite3", "room"
ROOM_BYTES = 2**19
"""The second file's: more than the journal of a deletion of the largest link."""

ID_BYTES = 16
DAY = 86_400
BUSY_SECONDS = 2.0
"""How long a call waits for another worker that writes."""

N_THREADS = 2
"""Of the links only: a folder that hangs holds up nothing else."""

# The index has all that the bounds need: to sum up 10,000 sizes takes 1 ms, and 70 from the rows.
_SCHEMA = """
PRAGMA journal_mode = DELETE;
PRAGMA secure_delete = ON;
CREATE TABLE IF NOT EXISTS links (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    expires INTEGER NOT NULL,
    n_bytes INTEGER NOT NULL,
    state TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS sizes ON links (expires, n_bytes);
"""
_INSERT = "INSERT INTO links (id, expires, n_bytes, state) VALUES (?, ?, ?, ?)"
_EXPIRE = "DELETE FROM links WHERE expires <= ?"
_COUNT = "SELECT COUNT(*), SUM(n_bytes) FROM links"
_DROP = "DELETE FROM links WHERE number = (SELECT MIN(number) FROM links) RETURNING n_bytes"
_SELECT = "SELECT state FROM links WHERE id = ? AND expires > ?"


FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC)
PAGE_BYTES = 4_096
Link = tuple[str, int, int, str]
"""Id, when it expires, bytes, state."""


class Links:
    """The links of a server; every method blocks, so it belongs off the event loop.

    Args:
        settings: of the server.
        clock: seconds since 1970.
    """

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        self.settings = settings
        self.clock = clock
        self.threads = CapacityLimiter(N_THREADS)

    def keep(self, state: str) -> tuple[str, datetime]:
        """Keep a state, which is ASCII, and return its id and when it expires.

        Raises:
            Problem: 404, links are off; 503, the file cannot be written.
        """
        settings, now = self.settings, int(self.clock())
        link_id, expires = secrets.token_urlsafe(ID_BYTES), now + DAY * settings.link_days
        with self._problems():
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._path.touch(mode=0o600)  # texts of readers; SQLite's other files are made alike
            with closing(self._connected()) as file:
                link, most = (link_id, expires, len(state), state), settings.links_bytes
                try:
                    self._add(file, now, link, most)
                except sqlite3.Error as error:
                    if getattr(error, "sqlite_errorcode", None) not in FULL:
                        raise
                    file.rollback()
                    self._room.unlink(missing_ok=True)
                    self._add_to_full(file, now, link)
            self._hold_room()
        return link_id, datetime.fromtimestamp(expires, UTC)

    def _add(self, file: sqlite3.Connection, now: int, link: Link, most: int) -> None:
        """Add a link, and delete those that expired and the oldest of too many."""
        file.executescript(_SCHEMA)
        with file:
            file.execute(_EXPIRE, (now,))
            n_links, n_bytes = file.execute(_COUNT).fetchone()
            n_bytes = (n_bytes or 0) + link[2]
            while n_links and (n_links >= self.settings.max_links or n_bytes > most):
                n_bytes -= file.execute(_DROP).fetchone()[0]
                n_links -= 1
            file.execute(_INSERT, link)

    def _add_to_full(self, file: sqlite3.Connection, now: int, link: Link) -> None:
        """Add a link in place of the oldest ones: of as many bytes, then of twice as many."""
        left = int(file.execute(_COUNT).fetchone()[1] or 0)
        freed = link[2] + PAGE_BYTES
        while True:
            try:
                self._add(file, now, link, max(left + link[2] - freed, 0))
            except sqlite3.Error:
                file.rollback()
                if freed > left:
                    raise
                freed *= 2
            else:
                logger.warning("the disk of the links is full: the oldest ones made room")
                return

    def _hold_room(self) -> None:
        """Write the file that a full disk is given back, if it is not there."""
        with suppress(OSError):
            if not self._room.exists():
                self._room.touch(mode=0o600)
                self._room.write_bytes(bytes(ROOM_BYTES))

    def state(self, link_id: str) -> str:
        """Return the state of a link.

        Raises:
            Problem: 404, there is no such link, or links are off; 503, the file cannot be read.
        """
        row = None
        with self._problems():
            if self._path.is_file():  # made by the first link
                with closing(self._connected()) as file:
                    row = file.execute(_SELECT, (link_id, int(self.clock()))).fetchone()
        if row is None:
            days = self.settings.link_days
            detail = f"the link {echo(link_id)} is unknown or no longer kept"
            way_out = f"links are kept for {days} days, so ask its sender for a new one"
            raise Problem(404, "unknown-link", f"{detail}; {way_out}")
        return str(row[0])

    @property
    def _room(self) -> Path:
        return self._path.with_name(ROOM)

    @property
    def _path(self) -> Path:
        return self.settings.own_links_dir / FILE

    def _connected(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=BUSY_SECONDS)

    @contextmanager
    def _problems(self) -> Iterator[None]:
        """Raise the problem of links that are off, or of a file that cannot be used."""
        if not self.settings.link_days:
            detail = "this server keeps no links; HEADLIGHT_LINK_DAYS sets for how long it does"
            raise Problem(404, "links-off", detail)
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
                raise service_unavailable("links-busy", "another link is being kept") from error
            why = (error.strerror if isinstance(error, OSError) else None) or str(error)
            logger.error("links cannot be used in %s: %s", self._path.parent, why)
            detail = f"the server cannot use its file of links ({why}); tell its operator"
            raise Problem(503, "links-unavailable", detail) from error
