"""A server process with the shipped models: stop signals, fatal errors, and a log without texts."""

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tests.app.connections import wait_for
from tests.server_process import serving

N_CLIENTS = 20
SECRET = "xyzzy-plugh"

running = partial(serving, "--device", "cpu")

# A pass goes on only while the gate is there.
GATED = """
import os, time
from headlight.model.transformer import Stack
read = Stack.forward
def forward(self, ids, **options):
    while not os.path.exists(os.environ['GATE']):
        time.sleep(0.01)
    return read(self, ids, **options)
Stack.forward = forward
"""

# The accelerator is lost with the first text after the one that warms up.
BROKEN = """
import torch
from headlight.tracing import service
solve, texts = service.solve, set()
def break_down(checkpoint, jobs, *others, **options):
    texts.update(job.request.text for job in jobs)
    if len(texts) > 1:
        raise torch.AcceleratorError('CUDA error: unspecified launch failure')
    return solve(checkpoint, jobs, *others, **options)
service.solve = break_down
"""


def is_closed(server):
    try:
        socket.create_connection(server.address, timeout=5).close()
    except OSError:
        return True
    return False


@pytest.fixture
def gate(tmp_path, monkeypatch):
    path = tmp_path / "gate"
    path.touch()
    monkeypatch.setenv("GATE", str(path))
    return path


def test_requests_in_flight_are_answered_after_a_stop_signal(gate):
    with (
        running(trouble=GATED, SHUTDOWN_SECONDS=20) as server,
        ThreadPoolExecutor(N_CLIENTS) as clients,
    ):
        gate.unlink()
        asked = [
            clients.submit(server.post, "trace", text=f"the cat {n}") for n in range(N_CLIENTS)
        ]
        wait_for(lambda: server.gauge("queue_length") == N_CLIENTS)
        server.process.terminate()
        wait_for(lambda: is_closed(server))
        gate.touch()
        assert [answer.result().status_code for answer in asked] == [200] * N_CLIENTS
        assert {answer.result().headers["connection"] for answer in asked} == {"close"}
        assert (server.process.wait(20), server.errors) == (0, "")


def test_an_open_stream_ends_with_an_end_event_after_a_stop_signal():
    with running() as server, ThreadPoolExecutor() as clients:
        asked = clients.submit(server.post, "generate", text="Once", n_tokens=200)
        wait_for(lambda: server.gauge("streams_open"))
        server.process.terminate()
        assert asked.result().text.strip().split("\n\n")[-1].startswith("event: end")
        assert (server.process.wait(20), server.errors) == (0, "")


def test_a_server_that_lost_its_device_ends_and_says_why():
    with running(trouble=BROKEN) as server:
        assert server.post("trace", text="cat").status_code == 503
        assert server.process.wait(30) == 1
        assert "CUDA error: unspecified launch failure" in server.errors


def secret_requests():
    """Yield the secret in every place of every kind of request, valid and invalid."""
    yield "GET", f"/{SECRET}", {}
    yield "GET", f"/?text={SECRET}", {}
    yield SECRET.upper(), "/", {}
    yield "GET", "/", {"headers": {"host": SECRET}}
    yield "GET", "/healthz", {"headers": {"cookie": SECRET, "user-agent": SECRET}}
    yield "GET", f"/api/v1/models/{SECRET}", {}
    yield "GET", f"/models/{SECRET}/card", {}
    yield "GET", f"/static/{SECRET}", {}
    yield "GET", f"/docs/files/{SECRET}", {}
    yield "GET", f"/api/v1/traces/{SECRET}", {}
    yield "GET", f"/api/v1/positional?scheme={SECRET}&length={SECRET}", {}
    for path in ("trace", "tokenize", "generate"):
        for body in (
            {"text": SECRET},
            {"text": SECRET, "model": SECRET},
            {"text": SECRET, SECRET: SECRET},
            {"text": [SECRET]},
            {"text": SECRET * 5000},
            {"text": SECRET, "capture": [SECRET]},
            SECRET,
        ):
            yield "POST", f"/api/v1/{path}", {"json": body}
        headers = {"content-type": "application/json"}
        yield "POST", f"/api/v1/{path}", {"content": f'{{"text": "{SECRET}', "headers": headers}
        yield "POST", f"/api/v1/{path}", {"content": SECRET, "headers": {"content-type": SECRET}}
        yield "POST", f"/api/v1/{path}", {"json": {"text": SECRET}, "headers": {"accept": SECRET}}


def test_no_process_ever_logs_a_text():
    with running(LOG_FORMAT="json", LOG_LEVEL="debug") as server:
        statuses = {
            server.client.request(method, path, **options).status_code
            for method, path, options in secret_requests()
        }
        with socket.create_connection(server.address, timeout=5) as connection:
            connection.sendall(f"GET /{SECRET} HTTP/1.1\r\n{SECRET}\r\n\r\n".encode())
            connection.recv(4096)
        server.stop()
        said = (server.output + server.errors).replace(server.url, "")
    assert {200, 400, 404, 405, 422} <= statuses
    assert 500 not in statuses
    assert "/api/v1/trace" in said
    assert "text_hash" in said
    assert SECRET not in said.lower()
    assert "127.0.0.1:" not in said, "no address of a client is logged"
    assert "\x1b" not in said
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    requests = [line for line in lines if line["message"] == "request"]
    assert all({"time", "level", "request_id", "route", "status"} <= set(line) for line in requests)
