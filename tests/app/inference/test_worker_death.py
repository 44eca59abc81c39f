"""An inference thread that dies, over real connections."""

import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from headlight.tracing.generation import Writing
from headlight.tracing.tracer import Tracer

TEXT = "the cat sat on the mat because it was tired"


class PanicError(BaseException):
    """What a panic in a compiled library looks like."""


@pytest.fixture(scope="module")
def mortal(serving, settings):
    """A server of this file's own: its threads are going to die."""
    with serving(settings) as server:
        yield server


@pytest.fixture
def panicking(mortal):
    """Lets the tokenizer of a loaded model panic for real: its own assertion fails."""

    def spoil():
        tokenizer = mortal.services.registry.checkpoint().tokenizer
        tokenizer._backend.enable_truncation(4, stride=4)

    return spoil


def post(server, text=TEXT):
    return httpx.post(f"{server.url}/api/v1/trace", json={"text": text}, timeout=30)


def test_a_panic_inside_the_tokenizer_fails_its_request_and_the_service_goes_on(
    mortal, panicking, problem, capfd
):
    n_deaths = mortal.services.metrics.registry.get_sample_value
    before = n_deaths("headlight_worker_deaths_total")
    panicking()
    answer = post(mortal)
    problem(answer, 503, "worker-died")
    assert answer.headers["retry-after"] == "1"
    assert "panicked" in capfd.readouterr().err, "this was no panic"
    assert post(mortal).status_code == 200, "the model was loaded anew"
    assert n_deaths("headlight_worker_deaths_total") == before + 1


def test_a_server_whose_thread_died_says_that_it_is_not_ready_and_serves_who_waited(
    mortal, panicking, problem, monkeypatch
):
    is_preparing, may_prepare = threading.Event(), threading.Event()
    real = Tracer.trace

    def trace(self, request):
        if self is not mortal.services.tracer:
            is_preparing.set()
            may_prepare.wait(20)
        return real(self, request)

    panicking()
    monkeypatch.setattr(Tracer, "trace", trace)
    with ThreadPoolExecutor() as clients:
        problem(post(mortal), 503, "worker-died")
        assert is_preparing.wait(20)
        waiting = [clients.submit(post, mortal, f"who waits {n}") for n in range(5)]
        body = problem(httpx.get(f"{mortal.url}/readyz"), 503, "not-ready")
        assert body["detail"] == (
            "the inference thread died (PanicException); a new one is being prepared"
        )
        assert httpx.get(f"{mortal.url}/healthz").status_code == 200
        may_prepare.set()
        assert [answer.result().status_code for answer in waiting] == [200] * 5
    assert httpx.get(f"{mortal.url}/readyz").status_code == 200


def test_a_text_that_is_written_on_ends_with_an_event_that_says_so(mortal, monkeypatch):
    real = Writing._describe

    def describe(self, token):
        if self.written:
            raise PanicError
        return real(self, token)

    monkeypatch.setattr(Writing, "_describe", describe)
    order = {"text": TEXT, "n_tokens": 3}
    events = httpx.post(f"{mortal.url}/api/v1/generate", json=order, timeout=30).text
    assert [line[7:] for line in events.splitlines() if line.startswith("event: ")] == [
        "start",
        "token",
        "error",
    ]
    assert "worker-died" in events
