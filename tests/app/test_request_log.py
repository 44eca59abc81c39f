"""Every request has an id, is counted by its route, and leaves one line in the log."""

import hashlib
import logging
import re

import pytest

from headlight.static_files import STATIC_URL

SANE = re.compile(r"[0-9a-f]{16}")


@pytest.fixture
def lines(caplog):
    """Asks, and gives what the log says of it."""
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


def test_bytes_that_were_sent_are_counted(client):
    registry = client.app.state.services.metrics.registry
    before = registry.get_sample_value("headlight_sent_bytes_total")
    body = client.get("/healthz").content
    client.head("/")
    assert registry.get_sample_value("headlight_sent_bytes_total") == before + len(body)


def test_a_server_that_stops_closes_its_connections(client_with):
    client = client_with()
    assert "connection" not in client.get("/healthz").headers
    client.app.state.services.streams.stop()
    assert client.get("/healthz").headers["connection"] == "close"


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
