"""The web server process: take the port, say where, run until told to stop."""

import asyncio
import errno
import logging
import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, NoReturn, cast

import uvicorn
from fastapi import FastAPI
from rich.console import Console

from headlight import log_format
from headlight.errors import Problem
from headlight.request_log import Ledger
from headlight.server.banner import greet
from headlight.server.connection import Connection
from headlight.server.memory import set_aside_what_stays
from headlight.settings import ANY_ADDRESS, Settings
from headlight.variables import warnings_of

if TYPE_CHECKING:
    from headlight.services import Services

logger = logging.getLogger(__name__)

LAST_WORDS_SECONDS = 1
"""What the refusals of answers that took too long to end may take to be sent."""


MOST_UNSENT = 131_072
"""Bytes of one connection that the system may keep before it sends them."""

FILES_BESIDE_CONNECTIONS = 256
"""What else the process has open: models, libraries, the log."""


SWITCH_SECONDS = 5e-4
"""How long one thread of Python may keep the others waiting.

At Python's own 5 ms each of the event loop's system calls, after which it waits for its turn
beside the inference thread, may cost that much: a request makes half a dozen.
"""


class PortError(OSError):
    """The address cannot be listened on; the message says why and what to do."""


_NOT_HERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on an address; port 0 takes a free one.

    Raises:
        PortError: the address is taken or not ours.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        takes_both = host == "::" and socket.has_dualstack_ipv6()
        listener = socket.create_server((host, port), family=family, dualstack_ipv6=takes_both)
    except OSError as error:
        raise PortError(f"cannot listen on {host}:{port}: {_reason(error)}") from error
    # Every connection inherits it. asyncio would set it only where the socket names its protocol;
    # without it a body waits 40 ms for the client to confirm the headers that were sent before it.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # What is sent waits here and not in the system's buffers, where nobody sees whether it is read.
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, MOST_UNSENT)
    return listener


def _reason(error: OSError) -> str:
    """Why an address cannot be listened on, and the way out."""
    if isinstance(error.__context__, socket.gaierror) or error.errno in _NOT_HERE:
        return "there is no such address here; choose another with --host"
    why = (error.strerror or str(error)).partition(" (while")[0].lower()
    if error.errno == errno.EADDRINUSE:
        return f"{why}; stop what runs there, or choose another with --port"
    return f"{why}; choose another with --port or --host"


class EngineLost(RuntimeError):
    """No inference thread comes to life any more; the message says why."""


class Server(uvicorn.Server):
    """A server that stops in order: streams end by themselves, and what is asked is answered.

    Args:
        config: what to serve, and how; from `config_of`.
        services: of the application that is served.
        on_ready: called once, when the server is ready for the first time.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        services: "Services",
        on_ready: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__(config)
        self.services = services
        self._on_ready = on_ready
        self._was_ready = False

    async def on_tick(self, counter: int) -> bool:
        """Whether to stop: told to, or unable to go on."""
        if self.services.is_ready and not self._was_ready:
            self._was_ready = True
            self._on_ready()
        return await super().on_tick(counter) or self.services.has_failed

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no connections, let open answers end for as long as allowed, refuse the rest."""
        self.services.streams.stop()
        seconds = self.services.settings.shutdown_seconds
        refusal = asyncio.get_running_loop().call_later(seconds, self.services.stop)
        await super().shutdown(sockets)
        refusal.cancel()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop in order at the first signal, at once at the second."""
        if self.should_exit:
            _leave(128 + sig)
        self.should_exit = True


def serve(listener: socket.socket, host: str, settings: Settings) -> None:
    """Serve until a signal comes, then let open answers finish.

    Args:
        listener: from `listen`.
        host: the host that was asked for; the server answers to it, too.
        settings: what to run with.

    Raises:
        ValueError: the default model or the device is not there.
        EngineLost: the server ended because it could not compute any more.
    """
    log_format.configure(settings.log_level, settings.log_format)
    for warning in warnings_of(os.environ):
        logger.warning("%s", warning)
    _allow_files(settings.max_connections)
    sys.setswitchinterval(SWITCH_SECONDS)
    from headlight.main import create_app  # PyTorch loads here, after the port is known to be free

    application = create_app(settings.answering_to(host))
    registry = application.state.services.registry
    try:
        registry.describe()
    except Problem as problem:
        raise ValueError(problem.detail) from problem
    console = Console(highlight=False, markup=False)
    greet(console, address_of(listener), application.state.services.settings, registry)
    services = application.state.services
    Server(config_of(application, settings), services, set_aside_what_stays).run(sockets=[listener])
    has_ended = services.has_failed
    if services.engine.is_alive:
        _leave(int(has_ended))
    if has_ended:
        raise EngineLost(services.why_not_ready)


def config_of(application: FastAPI, settings: Settings) -> uvicorn.Config:
    """How an application is served.

    What is logged of requests, and whom to believe about the client's address, is the
    application's own affair.
    """
    ledger = Ledger(application.state.services.metrics, has_clients=settings.log_clients)
    return uvicorn.Config(
        application,
        http=cast("type[asyncio.Protocol]", partial(Connection, settings, ledger)),
        h11_max_incomplete_event_size=settings.max_header_bytes,
        ws="none",
        log_config=None,
        log_level=settings.log_level,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=settings.keep_alive_seconds,
        timeout_graceful_shutdown=settings.shutdown_seconds + LAST_WORDS_SECONDS,
    )


def _allow_files(n_connections: int) -> None:
    """Let the process open a file for every connection, as far as the system allows."""
    if sys.platform == "win32":
        return
    import resource

    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = n_connections + FILES_BESIDE_CONNECTIONS
    if most != resource.RLIM_INFINITY:
        wanted = min(wanted, most)
    if now != resource.RLIM_INFINITY and now < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def _leave(status: int) -> NoReturn:
    """End the process without waiting for any thread: one may hang in a kernel."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(RuntimeError, ValueError):  # a signal came while it was written to
            stream.flush()
    os._exit(status)


def address_of(listener: socket.socket) -> str:
    """The URL to open in a browser on this machine."""
    host, port = listener.getsockname()[:2]
    if host in ANY_ADDRESS:
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
