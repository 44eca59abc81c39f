"""Every error leaves as a problem, whoever made it."""

import pytest

import headlight.tracing.service


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

    monkeypatch.setattr(headlight.tracing.service, "job_of", fail)
    response = client.post("/api/v1/trace", json={"text": "a"})
    problem(response, 500, "internal-error")
    assert "secret" not in response.text
    assert "the secret path" in caplog.text
    assert client.get("/healthz").status_code == 200


def test_an_exception_after_the_answer_began_is_not_hidden(settings):
    import asyncio

    from headlight.middleware.problem_responses import ProblemResponses

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
