"""Every error leaves as a problem, whoever made it, and every answer with safe headers."""

import pytest

SAFE_HEADERS = {
    "content-security-policy": "default-src 'self'; style-src-attr 'unsafe-inline'; "
    "img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
}


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/healthz"), ("GET", "/docs"), ("GET", "/nowhere"), ("POST", "/api/v1/trace")],
)
def test_every_answer_has_the_security_headers(client, method, path):
    response = client.request(method, path)
    assert {name: response.headers[name] for name in SAFE_HEADERS} == SAFE_HEADERS


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "", "a b", "[::2]"])
def test_a_host_that_is_not_ours_is_refused(client, problem, host):
    body = problem(client.get("/api/v1/limits", headers={"host": host}), 400, "host-refused")
    assert "HEADLIGHT_ALLOWED_HOSTS" in body["detail"]


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "127.0.0.1:9", "[::1]:8000"])
def test_our_own_names_are_answered(client, host):
    assert client.get("/api/v1/limits", headers={"host": host}).status_code == 200


def test_any_host_is_answered_where_that_is_set(client_with):
    client = client_with(allowed_hosts=("*",))
    assert client.get("/api/v1/limits", headers={"host": "pod-7"}).status_code == 200


def test_probes_are_answered_by_whatever_name_they_ask(client_with, problem):
    client = client_with(allowed_hosts=("headlight.example.org",))
    probe = {"host": "127.0.0.1:8000"}
    assert client.get("/healthz", headers=probe).status_code == 200
    assert client.get("/readyz", headers=probe).status_code in (200, 503)
    problem(client.get("/healthz/..", headers=probe), 400, "host-refused")
    problem(client.get("/", headers=probe), 400, "host-refused")


def test_a_long_body_is_refused_by_its_declared_length(client, problem):
    response = client.post("/api/v1/trace", json={"text": "a" * 140_000})
    body = problem(response, 413, "body-too-large")
    assert body["limit"] == 131_072
    assert body["actual"] > 140_000
    assert body["detail"] == "the body is longer than 131,072 bytes; send a shorter text"


def test_a_long_body_is_refused_where_it_declares_no_length(client, problem):
    chunks = (b" " * 10_000 for _ in range(20))
    headers = {"content-type": "application/json"}
    body = problem(
        client.post("/api/v1/trace", content=chunks, headers=headers), 413, "body-too-large"
    )
    assert body["limit"] == 131_072
    assert "actual" not in body


@pytest.mark.parametrize("path", ["/healthz", "/nowhere", "/static/nothing.js"])
def test_a_long_body_is_refused_where_nobody_reads_it(client, problem, path):
    problem(client.request("GET", path, content=b"a" * 140_000), 413, "body-too-large")


def test_an_exception_nobody_expected_is_a_problem_that_tells_nothing(
    client_with, problem, monkeypatch, caplog
):
    client = client_with()

    def fail(*_):
        raise RuntimeError("the secret path /etc/shadow")

    monkeypatch.setattr(client.app.state.shared.tracer, "answer", fail)
    response = client.post("/api/v1/trace", json={"text": "a"})
    problem(response, 500, "internal-error")
    assert "secret" not in response.text
    assert "the secret path" in caplog.text
    assert client.get("/healthz").status_code == 200


def test_an_exception_after_the_answer_began_is_not_hidden(settings):
    import asyncio

    from app.middleware import ProblemResponses

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError("too late")

    sent = []

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "path": "/", "headers": [], "method": "GET"}
    with pytest.raises(RuntimeError, match="too late"):
        asyncio.run(ProblemResponses(app)(scope, None, send))
    assert [message["type"] for message in sent] == ["http.response.start"]
