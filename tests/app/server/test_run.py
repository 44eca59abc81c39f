"""A real server on a real port."""

import asyncio
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import httpx
import pytest
import torch
import uvicorn

from headlight.server.run import PortError, Server, address_of, listen
from headlight.tracing import service


def raw_trace(text):
    """A trace request as bytes, for a connection that is cut."""
    body = json.dumps({"text": text}).encode()
    head = (
        "POST /api/v1/trace HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def connect(server):
    url = httpx.URL(server.url)
    return socket.create_connection((url.host, url.port), timeout=10)


def wait_for(condition, seconds=10):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.fixture
def hold_answers(monkeypatch):
    """Makes a server's answers wait for an event; texts are noted when their work begins."""
    begun, may_end = [], threading.Event()

    def hold(server):
        real = service.solve

        def solve(checkpoint, jobs, max_elements):
            begun.extend(job.request.text for job in jobs)
            may_end.wait(20)
            return real(checkpoint, jobs, max_elements)

        monkeypatch.setattr(service, "solve", solve)
        return begun, may_end

    yield hold
    may_end.set()


def test_a_taken_port_is_one_clear_sentence():
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortError) as caught:
            listen("127.0.0.1", port)
    assert str(caught.value) == (
        f"cannot listen on 127.0.0.1:{port}: address already in use; "
        "stop what runs there, or choose another with --port"
    )


def test_an_address_that_is_not_ours_is_one_clear_sentence():
    sentence = "there is no such address here; choose another with --host"
    for host in ("192.0.2.1", "999.1.1.1"):
        with pytest.raises(PortError) as caught:
            listen(host, 0)
        assert str(caught.value) == f"cannot listen on {host}:0: {sentence}"


def test_all_addresses_of_both_kinds_can_be_opened():
    if not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    with listen("::", 0) as listener:
        port = listener.getsockname()[1]
        assert address_of(listener) == f"http://127.0.0.1:{port}"
        for host in ("127.0.0.1", "::1"):
            socket.create_connection((host, port), timeout=5).close()


def test_the_address_can_be_opened_where_every_address_is_listened_on():
    with listen("0.0.0.0", 0) as listener:
        assert address_of(listener) == f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_body_never_waits_until_its_headers_are_confirmed():
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_trace_over_a_real_connection(server):
    body = httpx.post(f"{server.url}/api/v1/trace", json={"text": "the cat"}).json()
    assert body["tokens"][1]["text"] == "the"


def test_health_answers_while_the_inference_thread_is_busy(server, monkeypatch):
    """On the event loop, each of these traces would hold up every other answer."""
    real = service.solve

    def solve(*batch):
        until = time.monotonic() + 1
        matrix = torch.ones(300, 300)
        while time.monotonic() < until:
            matrix @ matrix
        return real(*batch)

    monkeypatch.setattr(service, "solve", solve)
    with ThreadPoolExecutor() as pool, httpx.Client(base_url=server.url) as client:
        slow = pool.submit(httpx.post, f"{server.url}/api/v1/trace", json={"text": "a"}, timeout=30)
        waits = []
        while not slow.done():
            began = time.monotonic()
            assert client.get("/healthz").status_code == 200
            waits.append(time.monotonic() - began)
        assert slow.result().status_code == 200
    assert len(waits) >= 5
    assert sorted(waits)[len(waits) // 2] < 0.5


def test_a_request_whose_client_left_while_it_waited_is_never_computed(server, hold_answers):
    begun, may_end = hold_answers(server)
    with connect(server) as first, connect(server) as second:
        first.sendall(raw_trace("first"))
        wait_for(lambda: begun == ["first"])
        second.sendall(raw_trace("second"))
        wait_for(lambda: server.services.engine.n_jobs == 2)
        second.close()
        wait_for(lambda: server.services.engine.n_jobs == 1)
        may_end.set()
        assert b"200 OK" in first.recv(1000)
    assert httpx.post(f"{server.url}/api/v1/trace", json={"text": "third"}).status_code == 200
    assert begun == ["first", "third"]


def test_a_full_queue_answers_503_at_once(serving, settings, hold_answers, problem):
    strict = settings.model_copy(update={"queue_length": 0, "retry_after_seconds": 7})
    with serving(strict) as server, connect(server) as first:
        begun, may_end = hold_answers(server)
        first.sendall(raw_trace("first"))
        wait_for(lambda: begun == ["first"])
        response = httpx.post(f"{server.url}/api/v1/trace", json={"text": "b"}, timeout=5)
        problem(response, 503, "queue-full")
        assert response.headers["retry-after"] == "1"
        may_end.set()
        assert b"200 OK" in first.recv(1000)


def test_open_answers_finish_when_the_server_is_told_to_stop(serving, settings, hold_answers):
    with ThreadPoolExecutor() as pool:
        with serving(settings) as server:
            begun, may_end = hold_answers(server)
            answer = pool.submit(httpx.post, f"{server.url}/api/v1/trace", json={"text": "last"})
            wait_for(lambda: begun == ["last"])
            threading.Timer(0.3, may_end.set).start()
        assert answer.result().json()["text"] == "last"


def test_a_long_body_without_a_length_is_refused_over_a_real_connection(server, problem):
    chunks = (b" " * 10_000 for _ in range(20))
    headers = {"content-type": "application/json"}
    response = httpx.post(f"{server.url}/api/v1/tokenize", content=chunks, headers=headers)
    problem(response, 413, "body-too-large")


def test_readiness_is_noticed_once():
    services = SimpleNamespace(is_ready=False, has_failed=False)
    times = []
    server = Server(uvicorn.Config(None), services, lambda: times.append(services.is_ready))

    async def live():
        for services.is_ready in (False, True, False, True):
            assert not await server.on_tick(1)

    asyncio.run(live())
    assert times == [True]
