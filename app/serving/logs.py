"""Logs: request ids, the access log, and the format of every line, without a word a client sent.

The log keeps of a text only its length, and a hash under a key that dies with the process: equal
texts have equal hashes, and a guessed text cannot be confirmed. An exception's message may quote a
text, so only its type and traceback are logged; its message only if no text can be in it. Control
characters are escaped, so that a line stays one line.

asgi-correlation-id was considered for the ids: it logs a warning for every malformed id a client
sends, and the log would still need its own context.
"""

import hashlib
import logging
import logging.config
import random
import re
import secrets
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any

from pythonjsonlogger.json import JsonFormatter
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headlight.serving.metrics import NO_ROUTE, Metrics, known_method
from headlight.settings import LogFormat, LogLevel

logger = logging.getLogger(__name__)
access_logger = logging.getLogger("headlight.access")

# A request's facts in the order of the text format; JSON has the same members.
FACTS = ("method", "route", "status", "ms", "bytes", "problem", "text_characters", "text_hash")

TELLS_WHY = {"tells_why": True}

CLIENT_LEFT = 499
"""The status in log and metrics of a request whose client left before it was answered."""

_KEY = secrets.token_bytes(32)

# An id is not a secret, and asking the system for each gives the interpreter away.
_ids = random.Random(secrets.randbits(128))
_SANE_ID = re.compile(rb"[A-Za-z0-9._:-]{1,64}")


@dataclass(slots=True, kw_only=True)
class RequestContext:
    """A request that is being answered, as the log, the metrics and problems see it."""

    id: str
    method: str
    began: float = field(default_factory=perf_counter)
    status: int = CLIENT_LEFT
    sent_bytes: int = 0
    problem: str | None = None
    text_characters: int | None = None
    text_hash: str | None = None


current: ContextVar[RequestContext | None] = ContextVar("request", default=None)
"""The request that the running code answers, if any."""


class RequestLog:
    """Gives each request an id, counts it, and logs one line when it is answered."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; note its response."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = RequestContext(id=_request_id(scope), method=known_method(scope["method"]))

        async def send_noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                request.status = message["status"]
                message = {
                    **message,
                    "headers": [*message["headers"], (b"x-request-id", request.id.encode())],
                }
            elif scope["method"] != "HEAD":
                request.sent_bytes += len(message.get("body", b""))
            await send(message)

        token = current.set(request)
        self.metrics.in_flight.inc()
        try:
            await self.app(scope, receive, send_noted)
        finally:
            self.metrics.in_flight.dec()
            self._finish(request, route_of(scope))
            current.reset(token)

    def _finish(self, request: RequestContext, route: str) -> None:
        seconds = perf_counter() - request.began
        self.metrics.answered(
            route=route, method=request.method, status=request.status, seconds=seconds
        )
        self.metrics.sent_bytes.inc(request.sent_bytes)
        if request.problem:
            self.metrics.refused(request.problem)
        if access_logger.isEnabledFor(logging.INFO):
            facts = {
                "method": request.method,
                "route": route,
                "status": request.status,
                "ms": round(1e3 * seconds, 1),
                "bytes": request.sent_bytes,
                "problem": request.problem,
                "text_characters": request.text_characters,
                "text_hash": request.text_hash,
            }
            known = {name: fact for name, fact in facts.items() if fact is not None}
            access_logger.info("request", extra=known)


def note_text_of(body: Any) -> None:
    """Note the length and the keyed hash of the text of a JSON body, if it has one."""
    request, text = current.get(), body.get("text") if isinstance(body, dict) else None
    if request is not None and isinstance(text, str):
        data = text.encode("utf-8", "surrogatepass")
        request.text_characters = len(text)
        request.text_hash = hashlib.blake2b(data, digest_size=6, key=_KEY).hexdigest()


def route_of(scope: Scope) -> str:
    """Return the template of the route that answered; never a path that a client made up."""
    if (route := scope.get("route")) is not None:
        return str(getattr(route, "path", NO_ROUTE))
    if scope.get("endpoint") is not None and scope.get("root_path"):
        mounted = str(scope["root_path"]).removeprefix(scope.get("app_root_path", ""))
        return f"/{mounted.split('/')[1]}" if mounted else NO_ROUTE  # mounted files are one route
    return NO_ROUTE


def _request_id(scope: Scope) -> str:
    """Return the client's own id if it is short and plain, else a new one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _SANE_ID.fullmatch(value):
            return str(value, "ascii")
    return f"{_ids.getrandbits(64):016x}"


# --- the format of a line -------------------------------------------------------------------------

_CONTROLS = (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *range(0xD800, 0xE000))
_ESCAPES = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in _CONTROLS}
_DEEPEST = 8

# By name, so that the log does not import PyTorch. Their messages are only about the device.
_OF_THE_DEVICE = {"OutOfMemoryError", "AcceleratorError"}


def configure(level: LogLevel, log_format: LogFormat) -> dict[str, Any]:
    """Send everything that is logged to standard error, in one format.

    Warnings, and exceptions that end a thread, go the same way.

    Returns:
        The configuration, as `logging.config.dictConfig` takes it.
    """
    formatter = TextFormatter if log_format == "text" else JsonLines
    config = {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": formatter}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": level.upper()},
        "loggers": {
            "uvicorn": {"handlers": [], "propagate": True},
            # A warning for every malformed request would let any scanner fill the log.
            "uvicorn.error": {"level": "ERROR"},
            # Its lines hold paths of clients; those of `headlight.access` do not.
            "uvicorn.access": {"handlers": [], "propagate": False},
        },
    }
    logging.config.dictConfig(config)
    logging.captureWarnings(capture=True)
    threading.excepthook = log_end_of_thread
    return config


class TextFormatter(logging.Formatter):
    """`12:00:01 warning headlight.main: message [request id]`; a request's line has its facts."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record, and below it one for each frame of an exception."""
        facts = [f"{name}={getattr(record, name)}" for name in FACTS if hasattr(record, name)]
        line = " ".join([harmless(record), *facts]).translate(_ESCAPES)
        time = self.formatTime(record, "%Y-%m-%d %H:%M:%S")
        line = f"{time} {record.levelname.lower()} {record.name}: {line}"
        if request := current.get():
            line += f" [{request.id}]"
        places = [f"    {place}".translate(_ESCAPES) for place in places_of(record)]
        return "\n".join([line, *places])


class JsonLines(JsonFormatter):
    """One JSON object a line: time, level, logger, message, request id, and a request's facts."""

    def __init__(self) -> None:
        super().__init__(
            "%(levelname)s %(name)s %(message)s",
            rename_fields={"levelname": "level", "name": "logger"},
            timestamp="time",
        )

    def format(self, record: logging.LogRecord) -> str:
        """Return the object as a line of ASCII."""
        harmless_record = copy(record)
        harmless_record.msg, harmless_record.args = harmless(record), None
        harmless_record.exc_info = harmless_record.exc_text = harmless_record.stack_info = None
        vars(harmless_record).pop("color_message", None)  # the web server's, for a terminal
        if request := current.get():
            harmless_record.request_id = request.id
        if places := list(places_of(record)):
            harmless_record.exception = places
        return str(super().format(harmless_record))


def harmless(record: logging.LogRecord) -> str:
    """Return a record's message; asyncio's is cut before it quotes the object it worked on."""
    message = record.getMessage()
    if record.name == "asyncio":
        message = re.split(r"[\n<(]", message)[0]
    return message.strip()


def places_of(record: logging.LogRecord) -> Iterator[str]:
    """Yield an exception and its causes: the type and the frames of each.

    Its message is left out, unless the record was logged with `extra=TELLS_WHY`: it was raised
    before any request came.
    """
    error = record.exc_info[1] if record.exc_info else None
    for _ in range(_DEEPEST):
        if error is None:
            return
        why = str(error) if hasattr(record, "tells_why") else _why(error)
        name = f"{type(error).__module__}.{type(error).__qualname__}"
        yield f"{name}: {why}" if why else name
        yield from _frames(error.__traceback__)
        if isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        else:
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _why(error: BaseException) -> str:
    """Return an exception's message, if it can hold no text."""
    if isinstance(error, OSError):
        return error.strerror or ""
    return str(error) if type(error).__name__ in _OF_THE_DEVICE else ""


def _frames(traceback: TracebackType | None) -> Iterator[str]:
    while traceback is not None:
        code = traceback.tb_frame.f_code
        path = "/".join(Path(code.co_filename).parts[-3:])
        yield f"at {path}:{traceback.tb_lineno} in {code.co_qualname}"
        traceback = traceback.tb_next


def log_end_of_thread(ended: threading.ExceptHookArgs) -> None:
    """Log an uncaught exception of a thread, as `threading.excepthook`."""
    if ended.exc_type is SystemExit:
        return
    name = ended.thread.name if ended.thread else "a thread"
    info = (ended.exc_type, ended.exc_value, ended.exc_traceback)
    logger.error("%s ended", name, exc_info=info)  # type: ignore[arg-type]
