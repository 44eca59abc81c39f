"""Requests that are nearly right: none is a 500, none stops the server, each takes bounded time.

`HEADLIGHT_EXAMPLES=5000 pytest tests/slow/app/test_fuzz.py` looks longer, at other requests. It
mutates the examples of the API; `tests/app/faults/openapi_fuzz.py` draws from its schemas.
"""

import copy
import json
import os
import random
import sys
import time
from collections import Counter

import pytest
from fastapi.testclient import TestClient

from headlight.main import create_app, examples
from headlight.settings import Settings
from tests.app.chapters.test_chapter import HEAD, STEP

N = int(os.environ.get("HEADLIGHT_EXAMPLES", "400"))
SEED = N
MOST_SECONDS = 60
OF_LOAD = {"too-slow", "queue-timeout", "model-too-large", "links-busy", "server-busy"}
"""Refusals of what a server cannot do now; one that has a request at a time hardly gives any."""
ODD = [
    *("", "a" * 5_000, "\ud800", "\0", "é\u0301" * 400, "../../etc/passwd", "<script>", "1:60:60"),
    *(0, -1, 2**31, 2**63, 10**30, 1.5, 1e308, True, None),
    *([], {}, [[]] * 40, {"a": {"a": {}}}, ["*"] * 200, list(range(2_000))),
]
PUT_IN = ["\0", "\u202e", "[" * 50, ": ", "\n- ", "e\u0301" * 9]
MORE = {"POST /api/v1/chapters/read": {"name": "a", "text": HEAD + STEP}}


@pytest.fixture(scope="module")
def client():
    """Yield a client of the shipped models; an error of the server is its answer."""
    app = create_app(Settings(device="cpu", work_seconds=10, long_seconds=20))
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        yield client


def requests_of(client):
    """Return method, path and body of each example of the API."""
    shown = examples()["operations"]
    found = []
    for path, methods in client.app.openapi()["paths"].items():
        for method, operation in methods.items():
            for each in shown.get(operation["operationId"], {}).values():
                names = each.get("parameters", {})
                given = path.format_map({n: names.get(n, "stories") for n in path_names(path)})
                query = {n: v for n, v in names.items() if n not in path_names(path)}
                found.append((method.upper(), given, query, each.get("request")))
    posts = [(*place.split(" "), {}, body) for place, body in MORE.items()]
    return found + posts


def path_names(path):
    return [part[1:-1] for part in path.split("/") if part.startswith("{")]


def mutated(draw, value):
    """Return a copy with one part removed, repeated, renamed, or replaced by something odd."""
    value = copy.deepcopy(value)
    if isinstance(value, dict) and value and draw.random() < 0.8:
        name = draw.choice(list(value))
        match draw.randrange(5):
            case 0:
                del value[name]
            case 1:
                value[name + "x"] = value[name]
            case _:
                value[name] = mutated(draw, value[name])
        return value
    if isinstance(value, list) and value and draw.random() < 0.6:
        at = draw.randrange(len(value))
        value[at : at + 1] = [mutated(draw, value[at])] * draw.choice([0, 1, 1, 2, 50])
        return value
    if isinstance(value, str) and draw.random() < 0.5:
        at = draw.randrange(len(value) + 1)
        return (
            value[:at]
            + draw.choice(["\0", "\u202e", "[" * 50, ": ", "\n- ", "e\u0301" * 9])
            + value[at:]
        )
    return draw.choice(ODD)


def bytes_of(draw, body):
    """Return a body as JSON, sometimes damaged."""
    text = json.dumps(body)
    if draw.random() < 0.1:
        at = draw.randrange(len(text))
        text = text[:at] + draw.choice(["", "\xff", "{", '"', "NaN", "[" * 2_000]) + text[at + 1 :]
    return text.encode("utf-8", "surrogatepass")


def test_requests_that_are_nearly_right(client, capsys):
    draw, known, statuses, slowest = random.Random(SEED), requests_of(client), Counter(), 0.0
    why = Counter()
    for _ in range(N):
        method, path, query, body = draw.choice(known)
        query = {name: mutated(draw, each) for name, each in query.items()}
        sent = bytes_of(draw, mutated(draw, body)) if body is not None else None
        try:
            request = client.build_request(
                method,
                path,
                params={name: str(each) for name, each in query.items()} if query else None,
                content=sent,
                headers={"content-type": "application/json"},
            )
        except Exception:
            continue
        began = time.monotonic()
        answer = client.send(request)
        slowest = max(slowest, time.monotonic() - began)
        statuses[answer.status_code] += 1
        if answer.status_code >= 500:
            kind = answer.json().get("type", "").rpartition(":")[2]
            why[answer.status_code, kind, f"{method} {path}"] += 1
        assert answer.status_code < 500 or answer.status_code in (503, 504), (method, path, sent)
        assert "Traceback" not in answer.text[:5_000]
    with capsys.disabled():
        told = f"{sum(statuses.values())} requests, {slowest:.1f} s the slowest: {statuses}\n"
        sys.stdout.write(told + "".join(f"{n} {each}\n" for each, n in why.most_common()))
    assert {kind for _, kind, _ in why} <= OF_LOAD, why
    assert slowest < MOST_SECONDS
    assert client.get("/healthz").status_code == 200
    assert len(statuses) >= 3
