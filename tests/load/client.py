"""One client's connection to a server, kept open between requests as a browser does."""

import asyncio
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass

import httpx

PATIENCE_SECONDS = 60.0
LIKE_A_BROWSER = {"Accept-Encoding": "gzip, deflate, br, zstd", "User-Agent": "load"}

# A thousand transports share one context, which takes longer to make than they do.
TLS = ssl.create_default_context()


class Broken(Exception):
    """The server did not answer, or not to the end."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """One answer, or a piece of one."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    """Decompressed."""
    n_bytes: int = 0
    """As they were received."""
    seconds: float
    """From the request to here."""


class Connection:
    """One connection.

    Args:
        address: the server's.
        source: the client's own address; None: any.
    """

    def __init__(self, address, source=None):
        transport = httpx.AsyncHTTPTransport(
            local_address=source, verify=TLS, limits=httpx.Limits(max_connections=1)
        )
        self._client = httpx.AsyncClient(
            base_url=address, transport=transport, headers=LIKE_A_BROWSER, timeout=PATIENCE_SECONDS
        )

    async def ask(self, method, path, *, body=None, headers=None):
        """Send one request and return its whole answer.

        Raises:
            Broken: there was none, or it was cut.
        """
        began = time.perf_counter()
        kind = {} if body is None else {"Content-Type": "application/json"}
        headers = {**kind, **(headers or {})}
        try:
            response = await self._client.request(method, path, content=body, headers=headers)
        except httpx.HTTPError as error:
            raise Broken(f"{type(error).__name__}: {error}") from error
        return Reply(
            status=response.status_code,
            headers=response.headers,
            body=response.content,
            n_bytes=response.num_bytes_downloaded,
            seconds=time.perf_counter() - began,
        )

    async def listen(self, path, body):
        """Yield an answer in pieces as they come; leaving before the end closes the connection.

        Raises:
            Broken: there was no answer, or it was cut.
        """
        began = time.perf_counter()
        headers = {"Content-Type": "application/json"}
        try:
            async with self._client.stream("POST", path, content=body, headers=headers) as response:
                async for piece in response.aiter_bytes():
                    yield Reply(
                        status=response.status_code,
                        headers=response.headers,
                        body=piece,
                        n_bytes=len(piece),
                        seconds=time.perf_counter() - began,
                    )
        except httpx.HTTPError as error:
            raise Broken(f"{type(error).__name__}: {error}") from error

    async def send_and_leave(self, path, body, seconds):
        """Ask, wait a moment, and close the connection without reading the answer."""
        request = asyncio.create_task(self.ask("POST", path, body=body))
        await asyncio.wait([request], timeout=seconds)
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)

    async def close(self):
        """Close the connection, if there is one."""
        await self._client.aclose()
