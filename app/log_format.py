"""Log lines as text or JSON, without a word that a client sent.

An exception's message may quote a text, so only its type and traceback are logged; its message only
if no text can be in it. Control characters are escaped, so that a line stays one line.
"""

import logging
import logging.config
import re
import threading
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from types import TracebackType
from typing import Any

from pythonjsonlogger.json import JsonFormatter

from headlight import request_log
from headlight.settings import LogFormat, LogLevel

# A request's facts in the order of the text format; JSON has the same members.
FACTS = ("method", "route", "status", "ms", "bytes", "problem", "text_characters", "text_hash")

TELLS_WHY = {"tells_why": True}

_CONTROLS = (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *range(0xD800, 0xE000))
_ESCAPES = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in _CONTROLS}
_DEEPEST = 8

# By name, so that the log does not import PyTorch. Their messages are about the device alone.
_OF_THE_DEVICE = {"OutOfMemoryError", "AcceleratorError"}

logger = logging.getLogger(__name__)


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
    """`12:00:01 warning headlight.errors: message [request id]`; a request's line has its facts."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, and below it one for each frame of an exception."""
        facts = [f"{name}={getattr(record, name)}" for name in FACTS if hasattr(record, name)]
        line = " ".join([harmless(record), *facts]).translate(_ESCAPES)
        time = self.formatTime(record, "%Y-%m-%d %H:%M:%S")
        line = f"{time} {record.levelname.lower()} {record.name}: {line}"
        if found := request_log.current.get():
            line += f" [{found.id}]"
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
        """The object as a line of ASCII."""
        harmless_record = copy(record)
        harmless_record.msg, harmless_record.args = harmless(record), None
        harmless_record.exc_info = harmless_record.exc_text = harmless_record.stack_info = None
        vars(harmless_record).pop("color_message", None)  # the web server's, for a terminal
        if found := request_log.current.get():
            harmless_record.request_id = found.id
        if places := list(places_of(record)):
            harmless_record.exception = places
        return str(super().format(harmless_record))


def harmless(record: logging.LogRecord) -> str:
    """A record's message; asyncio's is cut before it quotes the object it worked on."""
    message = record.getMessage()
    if record.name == "asyncio":
        message = re.split(r"[\n<(]", message)[0]
    return message.strip()


def places_of(record: logging.LogRecord) -> Iterator[str]:
    """An exception and its causes: the type and the frames of each.

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
    """An exception's message, if it can hold no text."""
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
