"""Every request leaves one line in the log; no line holds a word that a client sent."""

import hashlib
import io
import json
import logging
import re
import sys
import threading

import pytest
import torch

import headlight.tracing.service
from headlight.serving import logs
from headlight.serving.logs import RequestContext, current
from headlight.static_files import STATIC_URL

SECRET = "xyzzy-plugh"
SANE = re.compile(r"[0-9a-f]{16}")


def formatted(formatter, message, *args, error=None, name="headlight.serving.engine", **extra):
    record = logging.LogRecord(name, logging.WARNING, "f.py", 1, message, args, None)
    vars(record).update(extra)
    if error is not None:
        try:
            raise error
        except BaseException:
            record.exc_info = sys.exc_info()
    return formatter.format(record)


@pytest.fixture(params=[logs.TextFormatter, logs.JsonLines])
def formatter(request):
    return request.param()


def test_a_line_of_text_says_when_who_and_what():
    line = formatted(logs.TextFormatter(), "%d models", 3)
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d warning headlight.serving.engine: 3 models", line
    )


def test_a_line_of_json_has_the_same_members():
    line = json.loads(formatted(logs.JsonLines(), "%d models", 3, status=200))
    assert line.pop("time").endswith("+00:00")
    expected = {
        "level": "WARNING",
        "logger": "headlight.serving.engine",
        "message": "3 models",
        "status": 200,
    }
    assert line == expected


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
    assert re.search(r"test_logs.py:\d+ in formatted", line)


def test_nor_is_the_message_of_what_it_came_from(formatter):
    caused = RuntimeError(SECRET)
    caused.__cause__ = KeyError(SECRET)
    grouped = ExceptionGroup(SECRET, [TypeError(SECRET)])
    for error, named in ((caused, "KeyError"), (grouped, "TypeError")):
        error.add_note(SECRET)
        line = formatted(formatter, "crashed", error=error)
        assert named in line
        assert SECRET not in line


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
    """Yield the whole log at its most verbose level, in both formats."""
    root, out = logging.getLogger(), io.StringIO()
    handlers = [logging.StreamHandler(out), logging.StreamHandler(out)]
    for handler, formatter in zip(handlers, (logs.TextFormatter(), logs.JsonLines()), strict=True):
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

    monkeypatch.setattr(threading, "excepthook", logs.log_end_of_thread)
    thread = threading.Thread(target=fail, name="inference")
    thread.start()
    thread.join()
    assert "inference ended" in log.getvalue()
    assert SECRET not in log.getvalue()


@pytest.fixture
def lines(caplog):
    """Return a function that sends a request and returns its lines in the log."""
    caplog.set_level(logging.INFO, logger="headlight.access")

    def ask(client, method, path, **options):
        caplog.clear()
        client.request(method, path, **options)
        return [record for record in caplog.records if record.name == "headlight.access"]

    return ask


def counted(client, **labels):
    registry = client.app.state.services.metrics.registry
    return registry.get_sample_value("headlight_requests_total", labels) or 0


def test_the_client_names_its_request(client):
    answer = client.get("/healthz", headers={"x-request-id": "job-7:3"})
    assert answer.headers["x-request-id"] == "job-7:3"


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, "é", "a\tb", "<b>", "\x1b[31m"])
def test_a_name_that_is_long_or_strange_is_replaced(client, given):
    answer = client.get("/healthz", headers={"x-request-id": given.encode()})
    assert SANE.fullmatch(answer.headers["x-request-id"])


@pytest.mark.parametrize(
    ("method", "path", "status", "kind"),
    [
        ("GET", "/nowhere", 404, "not-found"),
        ("GET", "/api/v1/models/nobody", 404, "unknown-model"),
        ("POST", "/healthz", 405, "method-not-allowed"),
    ],
)
def test_a_problem_says_what_the_log_calls_its_request(client, problem, method, path, status, kind):
    answer = client.request(method, path, headers={"x-request-id": "mine"})
    assert problem(answer, status, kind)["request_id"] == "mine"


@pytest.mark.parametrize(
    ("method", "path", "route"),
    [
        ("GET", "/api/v1/models/tiny", "/api/v1/models/{model}"),
        ("GET", "/api/v1/models/nobody", "/api/v1/models/{model}"),
        ("DELETE", "/api/v1/models/tiny", "/api/v1/models/{model}"),
        ("GET", f"{STATIC_URL}/css/page.css", "/static"),
        ("GET", f"{STATIC_URL}/nothing", "/static"),
        ("GET", "/wp-login.php", "none"),
        ("GET", "/", "/"),
    ],
)
def test_requests_are_counted_by_the_template_of_their_route(client, method, path, route):
    status = str(client.request(method, path).status_code)
    before = counted(client, route=route, method=method, status=status)
    client.request(method, path)
    assert counted(client, route=route, method=method, status=status) == before + 1


def test_no_label_holds_what_a_client_made_up(client):
    for made_up in ("sesame-1", "sesame-2"):
        client.request(made_up.upper(), f"/{made_up}", params={"q": made_up})
        client.get(f"/api/v1/models/{made_up}", headers={"host": "localhost"})
        client.get(f"/models/{made_up}/card")
        client.get("/healthz", headers={"x-request-id": made_up, "host": made_up})
    assert "sesame" not in client.get("/metrics").text.lower()


def test_refusals_are_counted_by_kind(client):
    registry = client.app.state.services.metrics.registry

    def refused(kind):
        return registry.get_sample_value("headlight_refused_total", {"kind": kind}) or 0

    before = refused("unknown-model"), refused("host-refused")
    client.get("/api/v1/models/nobody")
    client.get("/api/v1/models", headers={"host": "evil.example"})
    assert (refused("unknown-model"), refused("host-refused")) == (before[0] + 1, before[1] + 1)


def test_a_request_leaves_one_line(client, lines):
    body = {"text": "the cat", "model": "nobody"}
    [line] = lines(client, "POST", "/api/v1/trace", json=body)
    assert (line.method, line.route, line.status) == ("POST", "/api/v1/trace", 404)
    assert line.problem == "unknown-model"
    assert line.bytes > 100
    assert line.ms > 0
    assert line.text_characters == 7


def test_equal_texts_have_equal_hashes_that_are_not_those_of_the_text(client, lines):
    texts = ["the cat", "the cat", "the dog", "\N{GRINNING FACE} ça"]
    bodies = [{"text": text} for text in texts]
    hashes = [lines(client, "POST", "/api/v1/tokenize", json=body)[0].text_hash for body in bodies]
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 3
    for name in ("blake2b", "sha256", "md5"):
        assert not hashlib.new(name, b"the cat").hexdigest().startswith(hashes[0])
