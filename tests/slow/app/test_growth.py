"""The cost of a body grows in proportion to it, whatever is in it."""

import re
import time

import orjson
import pytest
from fastapi.testclient import TestClient

from headlight.main import create_app
from headlight.settings import Settings
from tests.app.chapters.test_chapter import HEAD, STEP
from tests.app.routes.test_strict_json import WITH_BODY

SIZES = 4_000, 8_000, 16_000
REPEATS = 2
LEAST_SECONDS = 0.05
MOST_GROWTH = 8
"""Four times as much takes less than eight times as long; a square would take sixteen."""

# Of a size, the front matter and the Markdown of a chapter.
CHAPTERS = {
    "unknown keys": lambda n: front("".join(f"k{i}: 1\n" for i in range(n))) + STEP,
    "sources": lambda n: front("sources:\n" + "- {titel: a}\n" * n) + STEP,
    "a long name": lambda n: front("k" * n + ": 1\n") + STEP,
    "flow": lambda n: front("next: [" + "a, " * n + "]\n") + STEP,
    "keys of a step": lambda n: (
        HEAD + STEP.replace("opens: {", "opens: {" + "".join(f"z{i}: 1, " for i in range(n)))
    ),
    "headings": lambda n: HEAD + "## a\n" * n,
    "blocks": lambda n: HEAD + "## a\n```step\n```\n" * n,
    "references": lambda n: HEAD + STEP + "".join(f"[a{i}]: b\n" for i in range(n)),
    "a link": lambda n: HEAD + STEP.replace("opens: {", 'opens: "#' + "&a=1" * n + '"\nx: {'),
    **{
        repr(text): lambda n, text=text: HEAD + STEP + text * n
        for text in ("[", "![[", "*a_ ", ">", "`", "<", "- ", "&", "\\", "1. a\n", "|-", "\t")
    },
}


@pytest.fixture(scope="module")
def client():
    with TestClient(create_app(Settings(device="cpu")), base_url="http://localhost") as client:
        yield client


def front(yaml):
    return f"---\ntitle: a\n{yaml}---\n"


def seconds(work):
    """Return the least processor time of a few runs."""
    taken = []
    for _ in range(REPEATS):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return min(taken)


def assert_linear(send, make, sizes=SIZES):
    """Check the growth over three sizes, if the largest takes long enough to be measured."""
    bodies = [orjson.dumps(make(n)) for n in sizes]
    *others, large = (seconds(lambda body=body: send(body)) for body in bodies)
    assert large < max(LEAST_SECONDS, MOST_GROWTH * others[0]), (*others, large)


def post(client, path, body):
    return client.post(path, content=body, headers={"content-type": "application/json"})


@pytest.mark.parametrize("kind", CHAPTERS)
def test_a_dropped_chapter(client, kind):
    def send(body):
        answer = post(client, "/api/v1/chapters/read", body)
        assert answer.status_code in (200, 422)
        assert len(answer.content) < 100_000 or answer.status_code == 200

    assert_linear(send, lambda n: {"text": CHAPTERS[kind](n)[:190_000]})


MEMBERS = "text", "texts", "ids", "edits", "capture", "pairs", "opens", "state", "name"
BODIES = {
    "unknown": lambda n, _: {f"unknown{number}": 1 for number in range(n)},
    "text": lambda n, member: {member: "e\u0301" * n},
    "list": lambda n, member: {member: [member] * n},
    "objects": lambda n, member: {member: [{member: number} for number in range(n)]},
    "object": lambda n, member: {member: {f"unknown{number}": 1 for number in range(n)}},
}


@pytest.mark.parametrize("route", WITH_BODY, ids=lambda route: route.name)
@pytest.mark.parametrize("kind", BODIES)
def test_a_body_of_every_route(client, route, kind):
    path = re.sub(r"\{\w+\}", "stories", route.path)

    def send(body):
        assert post(client, path, body).status_code < 500

    for member in MEMBERS:
        assert_linear(send, lambda n, member=member: BODIES[kind](n, member), (500, 1_000, 2_000))
