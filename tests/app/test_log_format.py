"""A log record is one line in either format, and never holds a word that a client sent."""

import io
import json
import logging
import re
import sys
import threading

import pytest
import torch

import headlight.tracing.service
from headlight import log_format
from headlight.request_log import RequestContext, current

SECRET = "xyzzy-plugh"


def formatted(formatter, message, *args, error=None, name="headlight.engine", **extra):
    record = logging.LogRecord(name, logging.WARNING, "f.py", 1, message, args, None)
    vars(record).update(extra)
    if error is not None:
        try:
            raise error
        except BaseException:
            record.exc_info = sys.exc_info()
    return formatter.format(record)


@pytest.fixture(params=[log_format.TextFormatter, log_format.JsonLines])
def formatter(request):
    return request.param()


def test_a_line_of_text_says_when_who_and_what():
    line = formatted(log_format.TextFormatter(), "%d models", 3)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d warning headlight.engine: 3 models", line)


def test_a_line_of_json_has_the_same_members():
    line = json.loads(formatted(log_format.JsonLines(), "%d models", 3, status=200))
    assert line.pop("time").endswith("+00:00")
    expected = {
        "level": "WARNING",
        "logger": "headlight.engine",
        "message": "3 models",
        "status": 200,
    }
    assert line == expected


def test_colours_for_a_terminal_are_left_out():
    line = formatted(log_format.JsonLines(), "started", color_message="\x1b[36mstarted")
    assert set(json.loads(line)) == {"time", "level", "logger", "message"}


def test_every_line_names_the_request_it_belongs_to(formatter):
    token = current.set(RequestContext(id="job-7", method="GET"))
    try:
        assert "job-7" in formatted(formatter, "so it is")
    finally:
        current.reset(token)


@pytest.mark.parametrize(
    "hostile",
    ["a\nforged line", "a\r\nforged", "\x1b[31mred", "\x00", "\x7f", "\x9b31m", "\u2028", "\ud800"],
)
def test_nothing_breaks_out_of_its_line(formatter, hostile):
    line = formatted(formatter, "%s", hostile, method=hostile)
    assert all(code not in line for code in "\n\r\x1b\x00\x7f\x9b\u2028\ud800")
    assert line.encode()


def test_of_an_exception_type_and_places_are_logged_and_no_message(formatter):
    line = formatted(formatter, "a piece of work crashed", error=ValueError(SECRET))
    assert SECRET not in line
    assert "builtins.ValueError" in line
    assert re.search(r"test_log_format.py:\d+ in formatted", line)


def test_nor_is_the_message_of_what_it_came_from(formatter):
    caused = RuntimeError(SECRET)
    caused.__cause__ = KeyError(SECRET)
    grouped = ExceptionGroup(SECRET, [TypeError(SECRET)])
    for error, named in ((caused, "KeyError"), (grouped, "TypeError")):
        error.add_note(SECRET)
        line = formatted(formatter, "crashed", error=error)
        assert named in line
        assert SECRET not in line


def test_what_another_handler_made_of_an_exception_is_not_repeated(formatter):
    record = logging.LogRecord("app", logging.ERROR, "f.py", 1, "crashed", (), None)
    record.exc_text = record.stack_info = f"Traceback: {SECRET}"
    assert SECRET not in formatter.format(record)


def test_the_message_stays_where_no_text_can_be_in_it(formatter):
    full = OSError(28, "No space left on device", SECRET)
    assert "No space left on device" in formatted(formatter, "crashed", error=full)
    assert SECRET not in formatted(formatter, "crashed", error=full)
    memory = torch.OutOfMemoryError("tried to allocate 2 GiB")
    assert "2 GiB" in formatted(formatter, "crashed", error=memory)
    told = formatted(formatter, "did not start", error=ValueError("bad file"), tells_why=True)
    assert "bad file" in told


def test_the_event_loop_does_not_repeat_what_it_worked_on(formatter):
    message = f"Task exception was never retrieved\nfuture: <Task {SECRET}>"
    line = formatted(formatter, message, name="asyncio", error=ValueError(SECRET))
    assert "Task exception was never retrieved" in line
    assert SECRET not in line


@pytest.fixture
def log(monkeypatch):
    """The whole log at its most talkative, in both formats."""
    root, out = logging.getLogger(), io.StringIO()
    handlers = [logging.StreamHandler(out), logging.StreamHandler(out)]
    for handler, formatter in zip(
        handlers, (log_format.TextFormatter(), log_format.JsonLines()), strict=True
    ):
        handler.setFormatter(formatter)
        root.addHandler(handler)
    level = root.level
    root.setLevel(logging.DEBUG)
    yield out
    root.setLevel(level)
    for handler in handlers:
        root.removeHandler(handler)


def test_no_text_is_logged_where_the_server_itself_makes_a_mistake(client_with, log, monkeypatch):
    client = client_with()

    def fail(request, *_, **__):
        raise RuntimeError(f"cannot read {request.text}")

    monkeypatch.setattr(headlight.tracing.service, "job_of", fail)
    monkeypatch.setattr(client.app.state.services.generator, "begin", fail)
    for path, more in (("trace", {}), ("generate", {"n_tokens": 2})):
        answer = client.post(f"/api/v1/{path}", json={"text": SECRET, **more})
        assert answer.status_code == 500
        assert SECRET not in answer.text
    assert "RuntimeError" in log.getvalue()
    assert SECRET not in log.getvalue()


def test_a_thread_that_ends_is_logged_without_what_it_worked_on(log, monkeypatch):
    def fail():
        raise RuntimeError(SECRET)

    monkeypatch.setattr(threading, "excepthook", log_format.log_end_of_thread)
    thread = threading.Thread(target=fail, name="inference")
    thread.start()
    thread.join()
    assert "inference ended" in log.getvalue()
    assert SECRET not in log.getvalue()
