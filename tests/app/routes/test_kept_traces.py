"""GET /api/v1/traces/{id}: a trace that was computed before, byte for byte, while it is kept."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest

from headlight.tracing import service
from tests.app.connections import wait_for

TEXT = "The cat sat on the mat because it was tired, and the little dog ran over to the river."
JSON, SAFETENSORS = "application/json", "application/x-safetensors"
FORMS = [
    {"accept": accept, "coding": coding, "query": query}
    for accept, coding, query in itertools.product(
        (JSON, SAFETENSORS),
        ("identity", "gzip", "br", "zstd"),
        ("", "?dtype=uint16", "?triangle=true", "?dtype=uint16&triangle=true"),
    )
]


@pytest.fixture(scope="module")
def keeping(serving, settings):
    """Yield a real server that keeps traces."""
    with serving(settings.model_copy(update={"cache_bytes": 10_000_000})) as server:
        yield server


@pytest.fixture(scope="module")
def client(keeping):
    with httpx.Client(base_url=keeping.url, timeout=60) as client:
        yield client


def post(client, text=TEXT, *, accept=JSON, coding="identity", **options):
    headers = {"accept": accept, "accept-encoding": coding}
    return client.post("/api/v1/trace", json={"text": text, **options}, headers=headers)


def get(client, trace_id, *, accept=JSON, coding="identity", query="", **headers):
    given = {"accept": accept, "accept-encoding": coding, **headers}
    return client.get(f"/api/v1/traces/{trace_id}{query}", headers=given)


def get_raw(client, trace_id, *, accept, coding, query):
    """Return the answer, and its bytes as they were sent."""
    headers = {"accept": accept, "accept-encoding": coding}
    address = f"/api/v1/traces/{trace_id}{query}"
    with client.stream("GET", address, headers=headers) as answer:
        return answer, b"".join(answer.iter_raw())


def n_passes(monkeypatch, text):
    """Return a function that counts the passes that read a text from now on."""
    made = []
    real = service.solve

    def solve(checkpoint, jobs, *options, **limits):
        made.extend(job for job in jobs if job.request.text == text)
        return real(checkpoint, jobs, *options, **limits)

    monkeypatch.setattr(service, "solve", solve)
    return made


def counted(client, name):
    lines = client.get("/metrics").text.splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"headlight_{name} "))


def test_a_trace_can_be_had_again_under_its_id(client, monkeypatch):
    first = post(client, "again and again")
    made = n_passes(monkeypatch, "again and again")
    again = client.get(first.headers["content-location"])
    assert again.status_code == 200
    assert again.json() == first.json() | {"timings": {}}
    assert post(client, "again and again").json() == again.json()
    assert made == []


def test_hits_and_misses_of_the_cache_are_counted(client):
    names = ("cache_hits_total", "cache_misses_total")

    def change(answered):
        before = [counted(client, name) for name in names]
        assert answered().status_code in (200, 404)
        return [counted(client, name) - number for name, number in zip(names, before, strict=True)]

    text = "hits and misses"
    assert change(lambda: post(client, text)) == [0, 1]
    assert change(lambda: post(client, text)) == [1, 0]
    trace_id = post(client, text).json()["id"]
    assert change(lambda: get(client, trace_id)) == [1, 0]
    assert change(lambda: get(client, "0" * 32)) == [0, 1]


def test_the_bytes_of_the_cache_are_measured(client, keeping):
    post(client)
    assert counted(client, "cache_bytes") == keeping.services.traces.cache.n_bytes > 0


def test_it_is_named_in_the_form_in_which_it_was_sent(client):
    sent = post(client, dtype="uint16", triangle=True, accept=SAFETENSORS)
    address = sent.headers["content-location"]
    assert address.endswith("?dtype=uint16&triangle=true")
    again = post(client, dtype="uint16", triangle=True, accept=SAFETENSORS)
    assert client.get(address, headers={"accept": SAFETENSORS}).content == again.content


def test_every_form_has_its_own_tag_and_equal_tags_are_equal_bytes(client, keeping):
    """Also after the trace was dropped and computed again."""
    trace_id = post(client).json()["id"]
    seen = {}
    for _ in range(2):
        for form in FORMS:
            answer, sent = get_raw(client, trace_id, **form)
            assert answer.status_code == 200
            assert answer.headers.get("content-encoding", "identity") == form["coding"]
            assert answer.headers["cache-control"] == "private, immutable, max-age=31536000"
            assert set(answer.headers["vary"].split(", ")) >= {"Accept", "Accept-Encoding"}
            assert seen.setdefault(answer.headers["etag"], sent) == sent
        assert len(seen) == len(FORMS)
        drop_all(keeping)
        assert get(client, trace_id).status_code == 404
        assert post(client).json()["id"] == trace_id


def drop_all(keeping):
    keeping.services.traces.cache._answers.clear()


def test_a_trace_of_other_last_bits_has_another_tag(client, keeping):
    trace_id = post(client).json()["id"]
    before = get(client, trace_id).headers["etag"]
    answer = keeping.services.traces.kept(trace_id).untimed()
    array = next(iter(answer.trace.tensors.values())).data
    array.flat[0] = np.nextafter(array.flat[0], np.float32(2))
    keeping.services.traces.cache.put(answer)
    assert get(client, trace_id).headers["etag"] != before
    drop_all(keeping)


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("{}", 304),
        ("W/{}", 304),
        ("*", 304),
        ('"other", {} , "third"', 304),
        ('W/"other",W/{}', 304),
        ('"other"', 200),
        ("", 200),
        ("{}x", 304),
        ("not quoted", 200),
    ],
)
def test_what_the_client_has_is_not_sent_again(client, header, status):
    trace_id = post(client).json()["id"]
    tag = get(client, trace_id).headers["etag"]
    answer = get(client, trace_id, **{"if-none-match": header.replace("{}", tag)})
    assert answer.status_code == status
    assert (answer.headers["etag"], bool(answer.content)) == (tag, status == 200)
    assert answer.headers["cache-control"] == "private, immutable, max-age=31536000"
    assert "accept-encoding" in answer.headers["vary"].lower()


def test_head_says_what_get_would_and_sends_nothing(client):
    trace_id = post(client).json()["id"]
    full = get(client, trace_id, coding="gzip", query="?dtype=uint16")
    head = client.head(
        f"/api/v1/traces/{trace_id}?dtype=uint16",
        headers={"accept": JSON, "accept-encoding": "gzip"},
    )
    assert head.status_code == 200
    assert head.content == b""
    for name in ("etag", "content-length", "content-type", "content-encoding", "cache-control"):
        assert head.headers[name] == full.headers[name]


def test_what_is_not_kept_is_a_problem_that_says_how_to_get_it(client, problem):
    body = problem(get(client, "0" * 32), 404, "unknown-trace")
    assert body["detail"].endswith("is not kept here; POST it to /api/v1/trace again")
    assert get(client, "0" * 32).headers["cache-control"] == "no-store"


def test_with_several_workers_another_one_may_hold_a_trace(client_with, problem):
    body = problem(get(client_with(workers=2), "0" * 32), 404, "unknown-trace")
    assert "another one may hold it" in body["detail"]


def test_what_is_too_large_to_be_kept_is_named_nowhere(serving, settings):
    small = settings.model_copy(update={"cache_bytes": 1000})
    with serving(small) as server, httpx.Client(base_url=server.url, timeout=60) as client:
        answer = post(client)
        assert "content-location" not in answer.headers
        assert get(client, answer.json()["id"]).status_code == 404


@pytest.fixture
def held(keeping, monkeypatch):
    """Hold passes until they may go on; note the texts of those begun."""
    begun, may_end = [], threading.Event()
    real = service.solve

    def solve(checkpoint, jobs, *options, **limits):
        begun.extend(job.request.text for job in jobs)
        may_end.wait(20)
        return real(checkpoint, jobs, *options, **limits)

    monkeypatch.setattr(service, "solve", solve)
    yield begun, may_end
    may_end.set()


def test_equal_requests_in_flight_share_one_pass_whatever_form_they_ask_for(client, keeping, held):
    begun, may_end = held
    before, misses = counted(client, "shared_total"), counted(client, "cache_misses_total")
    forms = [{"accept": JSON}, {"accept": SAFETENSORS}, {"dtype": "uint16"}, {"triangle": True}]
    with ThreadPoolExecutor() as pool:
        waiting = [pool.submit(post, client, "all ask this", **form) for form in forms]
        wait_for(lambda: counted(client, "shared_total") == before + 3)
        may_end.set()
        assert [answer.result().status_code for answer in waiting] == [200] * 4
    assert begun == ["all ask this"]
    assert counted(client, "cache_misses_total") == misses + 1, "who shares has missed nothing"
