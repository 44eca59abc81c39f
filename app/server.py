"""The server process: listen, print the banner, run uvicorn until it is stopped.

uvicorn runs as it comes, but for how connections are closed at the end (`Connection`). Its h11
parser is chosen over httptools, which accepts a request with two Host headers and keeps a header
that never ends (94 MB after 50 MB were sent), and saves 0.15 of 0.5 ms a request. Slow clients and
too many connections are the reverse proxy's (compose.yaml).
"""

import asyncio
import errno
import faulthandler
import gc
import ipaddress
import logging
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import parent_process
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Any

import uvicorn
from fastapi import FastAPI
from h11 import RemoteProtocolError
from h11._receivebuffer import ReceiveBuffer
from rich.console import Console
from rich.table import Column, Table
from uvicorn.config import STARTUP_FAILURE
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.supervisors.multiprocess import Multiprocess, Process

from headlight.process import keep_heap_compact
from headlight.serving import logs
from headlight.settings import ANY_ADDRESS, MAX_HEADER_BYTES, Settings, warnings_of

if TYPE_CHECKING:
    from headlight.models.model_registry import Registry
    from headlight.services import Services

logger = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS = 75
"""Proxies keep idle connections for 60 s mostly; the side that sends requests must close first."""

CLOSE = (b"connection", b"close")

HEAD_END = re.compile(rb"\n\r?\n")
UNSAFE_LINE = re.compile(rb"(?<!\r)\n|\n[ \t]")

DRAIN_SECONDS = 0.2
"""How long an idle connection stays open after the server began to stop."""

STOP_SECONDS, HELD_SECONDS = 4.0, 0.5
"""After `shutdown_seconds` the process ends in so many more, by its own code or by the C library.

Both together are less than the five seconds that the setting promises.
"""

SWITCH_SECONDS = 1e-3
"""How long one Python thread may hold the interpreter while others wait.

At Python's own 5 ms each of the event loop's system calls may cost that much while the
inference thread runs, and a request makes half a dozen; at 0.5 ms the two threads interrupt each
other so often that 64 clients get 4 % fewer answers.
"""

ANSWER_SECONDS = 300
"""How long a worker may take to start, or to answer once it serves."""

PING_SECONDS = 0.2

MAX_FAILED = 3
"""Workers in a row that may end before they serve; one more would end, too."""


class PortError(OSError):
    """The address cannot be listened on; the message says why and what to do."""


class EngineLost(RuntimeError):
    """The server stopped because its inference engine failed; the message says why."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address, or `PortError`; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        takes_both = host == "::" and socket.has_dualstack_ipv6()
        listener = socket.create_server((host, port), family=family, dualstack_ipv6=takes_both)
    except OSError as error:
        raise PortError(f"cannot listen on {host}:{port}: {_reason(error)}") from error
    # Connections inherit it. asyncio sets it only if the socket names its protocol; without it a
    # body waits 40 ms for the client to acknowledge the headers.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


class SharedPort(socket.socket):
    """A bound socket that arrives in another process as a new one on the same port (SO_REUSEPORT).

    The kernel spreads connections over the workers' sockets. If they share one listening socket,
    asyncio lets the worker that wakes first accept all that wait: 64 clients who connected at once
    all got the same of two workers.
    """

    @classmethod
    def bound(cls, family: int, address: Any, v6only: int) -> "SharedPort":
        """Return a socket that does not listen yet."""
        port = cls(family, socket.SOCK_STREAM)
        port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        port.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if family == socket.AF_INET6:
            port.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, v6only)
        port.bind(address)
        return port

    def __reduce__(self) -> tuple[Any, ...]:
        return SharedPort.bound, _address(self)


def share_port(listener: socket.socket) -> socket.socket:
    """Return the port of a listener for several processes, or the listener itself."""
    if not hasattr(socket, "SO_REUSEPORT"):
        return listener
    where = _address(listener)
    listener.close()  # it bound the port exclusively, so no other server has it
    return SharedPort.bound(*where)


def _address(bound: socket.socket) -> tuple[int, Any, int]:
    """Return the family, the address, and whether it accepts only IPv6."""
    is_v6 = bound.family == socket.AF_INET6
    v6only = bound.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY) if is_v6 else 0
    return bound.family, bound.getsockname(), v6only


def _reason(error: OSError) -> str:
    if isinstance(error.__context__, socket.gaierror) or error.errno in (
        errno.EADDRNOTAVAIL,
        errno.EAFNOSUPPORT,
    ):
        return "there is no such address here; choose another with --host"
    why = (error.strerror or str(error)).partition(" (while")[0].lower()
    if error.errno == errno.EADDRINUSE:
        return f"{why}; stop what runs there, or choose another with --port"
    return f"{why}; choose another with --port or --host"


def address_of(listener: socket.socket) -> str:
    """Return the URL to open in a browser on this machine."""
    host, port = listener.getsockname()[:2]
    if host in ANY_ADDRESS:
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(listener: socket.socket, host: str, settings: Settings) -> None:
    """Serve until a signal comes, then let open responses finish; `host` is an allowed name.

    Raises:
        ValueError: the device is missing.
        Problem: the default model is unknown or cannot be used.
        EngineLost: the inference engine failed.
    """
    # uvicorn raises the signal that stopped it again when it has ended: both signals end here.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt), _shared_metrics(settings.workers):
        settings = settings.answering_to(host)
        console, address = Console(highlight=False, markup=False), address_of(listener)

        def welcome() -> None:
            announce(console, address)
            greet(console, state.services)

        def check(services: "Services") -> None:
            services.registry.describe()
            if settings.workers == 1:
                greet(console, services)

        application = build(settings, check, is_early=settings.workers == 1)
        state = application.state
        for warning in warnings_of(os.environ):
            logger.warning("%s", warning)
        if settings.workers > 1:
            console.print(f"{settings.workers} workers start", style="dim")
            config = config_of(partial(build, settings), settings)
            workers = Workers(config, share_port(listener))
            workers.on_ready = welcome
            workers.run()
            if workers.failure:
                raise EngineLost(workers.failure)
            return
        announce(console, address)
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config_of(application, settings)).run(sockets=[listener])
        if state.failure:
            raise state.failure
        if state.services and state.services.has_failed:
            raise EngineLost(state.services.why_not_ready)
        if threading.active_count() > 1:
            end_now()


class Workers(Multiprocess):
    """uvicorn's supervisor, which gives a worker minutes to start, and tells why one ended.

    uvicorn's own kills a worker that has not answered for five seconds, also while it imports
    PyTorch, which takes longer on a busy machine; a longer time would hold up its whole loop.

    Attributes:
        on_ready: called once, when the first worker serves.
        failure: the reason for which no worker was started again; empty: they served.
    """

    def __init__(self, config: uvicorn.Config, port: socket.socket) -> None:
        super().__init__(config, [port])
        self.on_ready: Callable[[], object] = lambda: None
        self.failure = ""
        self._answered: dict[Process, float] = {}
        self._serving: set[Process] = set()
        self._n_failed = 0

    def keep_subprocess_alive(self) -> None:
        """Replace each worker that ended, or that has not answered for minutes."""
        for index, worker in enumerate(self.processes):
            if self.should_exit.is_set():
                return
            if worker.process.is_alive() and self._answers(worker):
                continue
            hangs = worker.process.is_alive()
            worker.kill()
            worker.join()
            why = f"it did not answer for {ANSWER_SECONDS} s" if hangs else ended(worker.exitcode)
            self._n_failed = 0 if worker in self._serving else self._n_failed + 1
            if self._n_failed >= MAX_FAILED or worker.exitcode == STARTUP_FAILURE:
                self.failure = f"a worker ended before it served ({why})"
                self.should_exit.set()
                return
            logger.error("worker %s ended: %s; another takes its place", worker.pid, why)
            self.processes[index] = Process(self.config, self.sockets)
            self.processes[index].start()

    def _answers(self, worker: Process) -> bool:
        """Return True if a worker serves, or may still begin to."""
        began = self._answered.setdefault(worker, monotonic())
        if not worker.is_ready(PING_SECONDS):
            return monotonic() - began < ANSWER_SECONDS
        self._answered[worker] = monotonic()
        if not self._serving:
            self.on_ready()
        self._serving.add(worker)
        return True


def ended(status: int | None) -> str:
    """Return the reason for the end of a process in words."""
    if status is None or status >= 0:
        return f"its status is {status}; the lines before say why"
    name = signal.Signals(-status).name
    memory = ", as the system does when memory runs out" * (name == "SIGKILL")
    return f"{name} killed it{memory}"


def end_within(seconds: float) -> None:
    """End this process in so many seconds, whatever runs in it then. Any thread may call it."""
    end = threading.Timer(seconds, end_now)
    end.daemon = True
    end.start()
    # The timer's thread asks for the interpreter, which a library's code may hold.
    faulthandler.dump_traceback_later(seconds + HELD_SECONDS, exit=True)


def end_now() -> None:
    """End this process, and leave the threads behind that still run, such as that of a load.

    Python would wait for some, and end others where they next ask for the interpreter, which may be
    in the middle of a library's code: that aborts the process.
    """
    main = threading.main_thread()
    if names := sorted({thread.name for thread in threading.enumerate() if thread is not main}):
        logger.info("the process ends while threads run: %s", ", ".join(names))
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(0)


def end_with_parent() -> None:
    """End a worker once its supervisor has ended, by whatever signal: it would keep the port."""
    if (parent := parent_process()) is not None:

        def wait() -> None:
            parent.join()
            logger.error("the process that started this worker has ended; the worker ends, too")
            end_now()

        threading.Thread(target=wait, name="parent", daemon=True).start()


def build(
    settings: Settings,
    check: Callable[["Services"], object] = lambda _: None,
    *,
    is_early: bool = False,
) -> FastAPI:
    """Prepare this process and make its application: called once in every worker.

    `check` and `is_early` are those of `create_app`.
    """
    logs.configure(settings.log_level, settings.log_format)
    end_with_parent()
    sys.setswitchinterval(SWITCH_SECONDS)
    _raise_file_limit()
    keep_heap_compact()

    def prepare(services: "Services") -> None:
        services.registry.is_alone = True
        services.on_stop = partial(end_within, settings.shutdown_seconds + STOP_SECONDS)
        check(services)
        gc.freeze()

    # Imports make a million objects that stay; to search them for garbage takes a fifth of a start.
    # The application enables it when it starts to serve.
    gc.disable()
    from headlight.main import create_app  # what it imports is needed only once the port is free

    return create_app(settings, prepare=prepare, is_early=is_early)


class StrictBuffer(ReceiveBuffer):
    """h11's buffer, which accepts no header that a proxy may read in another way.

    h11 takes a bare LF for the end of a line, and a line that begins with a space for the rest of
    the one before. RFC 9112, sections 2.2 and 5.2, lets a server refuse both.
    """

    def maybe_extract_lines(self) -> list[bytearray] | None:
        """Return the lines up to the first empty one; None: it has not arrived."""
        end = HEAD_END.search(self._data)
        if self._data[:1] == b"\n" or (end and UNSAFE_LINE.search(self._data, 0, end.end())):
            raise RemoteProtocolError("a bare LF or a folded header", error_status_hint=400)
        return super().maybe_extract_lines()


class Connection(H11Protocol):
    """uvicorn's connection, which reads strictly, and answers what has arrived before it closes.

    uvicorn closes an idle connection as soon as the server stops, and a request that has arrived
    there is lost: its client sees a reset, and cannot know whether the request had an effect. As
    soon as the server no longer listens, each response has `Connection: close`, so that its client
    sends nothing more (RFC 9112, section 9.6). A client that is told so earlier connects again, to
    a server that is about to end.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to read."""
        super().connection_made(transport)
        self.conn._receive_buffer = StrictBuffer()

    def shutdown(self) -> None:
        """Close the connection: after the response that is open, or in a moment."""
        if CLOSE not in self.server_state.default_headers:
            self.server_state.default_headers = [*self.server_state.default_headers, CLOSE]
        if self._is_idle:
            self.loop.call_later(DRAIN_SECONDS, self._end)
            return
        if not self.cycle.response_started:
            self.cycle.default_headers = self.server_state.default_headers
        super().shutdown()

    @property
    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _end(self) -> None:
        if not self.transport.is_closing():
            super().shutdown()


def config_of(application: FastAPI | Callable[[], FastAPI], settings: Settings) -> uvicorn.Config:
    """Return uvicorn's settings; the application logs requests and resolves addresses itself."""
    return uvicorn.Config(
        application,
        factory=not isinstance(application, FastAPI),
        workers=settings.workers,
        http=Connection,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        ws="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=settings.shutdown_seconds,
    )


def _raise_file_limit() -> None:
    """Allow as many open files as the system permits: every connection is one."""
    if sys.platform == "win32":
        return
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@contextmanager
def _shared_metrics(workers: int) -> Iterator[None]:
    """Yield a folder for the counters of several workers; prometheus-client reads its name."""
    if workers == 1:
        yield
        return
    with TemporaryDirectory(prefix="headlight-metrics-") as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        yield


def announce(console: Console, address: str) -> None:
    """Print the first line of the banner, which names the address."""
    console.print(f"Headlight is at {address} (API: {address}/docs)", style="bold", soft_wrap=True)


def greet(console: Console, services: "Services") -> None:
    """Print the rest of the banner: model, limits, access and hints."""
    settings, registry = services.settings, services.registry
    facts = Table.grid(Column(style="dim"), "", padding=(0, 2))
    facts.add_row("model", _model(settings, registry))
    facts.add_row("limits", _limits(settings))
    facts.add_row("access", _access(settings))
    console.print(facts)
    for hint in _hints(settings):
        console.print(hint, style="yellow")
    console.print("Ctrl-C stops.", style="dim")


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _model(settings: Settings, registry: "Registry") -> str:
    n_others = len(registry.ids) - 1
    others = f" and {n_others} more" if n_others else ""
    threads = "PyTorch's threads"
    if settings.threads:
        threads = f"{settings.threads} thread{'s' * (settings.threads > 1)}"
    if settings.workers > 1:
        threads += f" · {settings.workers} workers"
    precision = str(registry.precision).removeprefix("torch.")
    return f"{registry.default}{others} · {registry.device} · {precision} · {threads}"


def _limits(settings: Settings) -> str:
    return (
        f"{settings.max_characters:,} characters · {settings.max_cells / 1e6:g} M numbers · "
        f"{settings.queue_length} waiting · {settings.max_streams} streams · "
        f"{settings.cache_bytes / 2**20:.0f} MiB cache"
    )


def _access(settings: Settings) -> str:
    rate = settings.requests_per_minute
    in_worker = " in each worker" if settings.workers > 1 else ""
    reach = "this machine only" if is_loopback(settings.host) else "other machines, too"
    key = "with a key" if settings.api_keys else "no key"
    pace = f"{rate} calls a minute each{in_worker}" if rate else "no rate limit"
    return f"{reach} · {key} · {pace}"


def _hints(settings: Settings) -> Iterator[str]:
    """Yield advice for a server that others can reach."""
    if is_loopback(settings.host):
        return
    yield f"It answers to {', '.join(settings.allowed_hosts)}; HEADLIGHT_ALLOWED_HOSTS names more."
    if not settings.api_keys:
        yield "It needs no key; HEADLIGHT_API_KEYS sets some."
    if not settings.requests_per_minute:
        yield "It has no rate limit; HEADLIGHT_REQUESTS_PER_MINUTE sets one."
