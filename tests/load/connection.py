"""A small HTTP/1.1 client: one connection, kept open between requests as a browser does.

A thousand people share one processor core with everything that measures them, and a full client
library would take most of it: this one does no more than the load needs.
"""

import asyncio
import re
import time
from collections.abc import Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

PATIENCE_SECONDS = 60.0

_STATUS = slice(9, 12)
_HEADER = re.compile(rb"\r\n([^:\r\n]+):[ \t]*([^\r\n]*)")
_NO_BODY = (204, 304)


class Broken(Exception):
    """The server did not answer, or not to the end."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """One answer, whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    seconds: float
    """From the first byte sent to the last byte read."""

    @property
    def etag(self):
        """The name of what was sent."""
        return self.headers.get("etag")


@dataclass
class Connection:
    """One client's connection to a server.

    Args:
        host: where the server listens.
        port: where the server listens.
        source: the client's own address; None: any.
        headers: sent with every request.
    """

    host: str
    port: int
    source: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    _pair: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method, path, *, body=None, headers=None):
        """One request and its whole answer.

        Raises:
            Broken: there was none, or it was cut.
        """
        began = time.perf_counter()
        async with self._patiently():
            status, told, reader = await self._send(method, path, body, headers)
            content = b"".join([piece async for piece in _body(method, status, told, reader)])
        if told.get("connection") == "close":
            self.close()
        return Reply(status=status, headers=told, body=content, seconds=time.perf_counter() - began)

    async def listen(self, path, body):
        """An answer in pieces, as they come, each with the time since the request.

        Leaving before the end closes the connection.

        Raises:
            Broken: there was no answer, or it was cut.
        """
        began, is_whole = time.perf_counter(), False
        try:
            async with self._patiently():
                status, told, reader = await self._send("POST", path, body, None)
                async for piece in _body("POST", status, told, reader):
                    seconds = time.perf_counter() - began
                    yield Reply(status=status, headers=told, body=piece, seconds=seconds)
            is_whole = True
        finally:
            if not is_whole:
                self.close()

    async def send_and_leave(self, path, body, seconds):
        """Ask, wait a moment, and close the connection before the answer is read."""
        async with self._patiently():
            await self._write("POST", path, body, None)
        await asyncio.sleep(seconds)
        self.close()

    def close(self):
        """Close the connection, if there is one."""
        if self._pair:
            self._pair[1].transport.abort()
            self._pair = None

    async def _send(self, method, path, body, headers):
        """Send a request; again where the server had closed the idle line in that moment."""
        is_used = self._pair is not None
        try:
            reader = await self._write(method, path, body, headers)
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            if not is_used or getattr(error, "partial", b""):
                raise
            self.close()
            reader = await self._write(method, path, body, headers)
            head = await reader.readuntil(b"\r\n\r\n")
        told = {name.decode().lower(): value.decode() for name, value in _HEADER.findall(head)}
        return int(head[_STATUS]), told, reader

    async def _write(self, method, path, body, headers):
        if self._pair and (self._pair[0].at_eof() or self._pair[1].is_closing()):
            self.close()
        if not self._pair:
            local = (self.source, 0) if self.source else None
            self._pair = await asyncio.open_connection(self.host, self.port, local_addr=local)
        reader, writer = self._pair
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self.host}:{self.port}"]
        lines += [f"{name}: {value}" for name, value in {**self.headers, **(headers or {})}.items()]
        if body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        writer.write("\r\n".join([*lines, "\r\n"]).encode() + (body or b""))
        return reader

    @asynccontextmanager
    async def _patiently(self):
        """Turns every way in which an answer can fail to come into `Broken`."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                yield
        except (asyncio.IncompleteReadError, OSError) as error:
            self.close()
            raise Broken(_reason(error)) from error


def _reason(error):
    if isinstance(error, TimeoutError):
        return f"no answer in {PATIENCE_SECONDS:g} s"
    if isinstance(error, asyncio.IncompleteReadError):
        return "the answer was cut"
    return f"the connection failed: {error}"


async def _body(method, status, headers, reader):
    if method == "HEAD" or status in _NO_BODY:
        return
    if headers.get("transfer-encoding") == "chunked":
        while size := int(await reader.readuntil(b"\r\n"), 16):
            yield (await reader.readexactly(size + 2))[:-2]
        await reader.readexactly(2)
    else:
        yield await reader.readexactly(int(headers.get("content-length", 0)))
