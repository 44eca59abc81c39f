"""A server process that is told to stop, or cannot go on, under load."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import httpx
import pytest

N_CLIENTS = 20

SERVE = "from headlight.cli import app; app(['serve', '--port', '0', '--device', 'cpu'])"

# No pass goes on while there is no gate.
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

# A text of the word 'hang' never ends, in something that asks nobody whether to go on.
HANGING = """
import threading
from headlight.tracing import service
solve = service.solve
def hang(checkpoint, jobs, max_elements):
    if jobs[0].request.text == 'hang':
        threading.Event().wait()
    return solve(checkpoint, jobs, max_elements)
service.solve = hang
"""

# The accelerator is lost with the first text after the one that warms up, and stays so.
BROKEN = """
import torch
from headlight.tracing import service
solve, texts = service.solve, set()
def break_down(checkpoint, jobs, max_elements):
    texts.update(job.request.text for job in jobs)
    if len(texts) > 1:
        raise torch.AcceleratorError('CUDA error: unspecified launch failure')
    return solve(checkpoint, jobs, max_elements)
service.solve = break_down
"""


class Running:
    """A server process, ready."""

    def __init__(self, process):
        self.process = process
        self.client = httpx.Client(timeout=60)
        line = next(line for line in process.stdout if "http://" in line)
        self.url = re.search(r"http://[\d.]+:\d+", line).group()
        wait_for(self.is_ready, 60)

    def is_ready(self):
        with suppress(httpx.ConnectError):
            return self.client.get(f"{self.url}/readyz").status_code == 200

    def post(self, text):
        return self.client.post(f"{self.url}/api/v1/trace", json={"text": text})

    def post_slowly(self):
        """Begin a body and leave it at that."""

        def body():
            yield b'{"text": "'
            self.process.wait(20)

        headers = {"Content-Type": "application/json"}
        return self.client.post(f"{self.url}/api/v1/trace", content=body(), headers=headers)

    def n_waiting(self):
        return self.gauge("queue_length")

    def n_in_flight(self):
        return self.gauge("requests_in_flight")

    def gauge(self, name):
        text = self.client.get(f"{self.url}/metrics").text
        return float(re.search(rf"^headlight_{name} (\S+)$", text, re.M).group(1))

    def is_refusing(self):
        address = httpx.URL(self.url)
        try:
            socket.create_connection((address.host, address.port), timeout=5).close()
        except OSError:
            return True
        return False

    def children(self):
        found = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return "".join(path.read_text() for path in found).split()


def wait_for(condition, seconds=20):
    until = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < until
        time.sleep(0.02)
    return found


@pytest.fixture
def running(zoo):
    @contextmanager
    def run(trouble="", **settings):
        given = {"ZOO_DIR": zoo, "DEFAULT_MODEL": "tiny"} | settings
        with subprocess.Popen(
            [sys.executable, "-c", trouble + SERVE],
            env=os.environ | {f"HEADLIGHT_{name}": str(value) for name, value in given.items()},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                server = Running(process)
                with closing(server.client):
                    yield server
            finally:
                process.kill()

    return run


def test_what_is_in_flight_is_answered_and_what_is_new_is_refused(running, tmp_path, monkeypatch):
    gate = tmp_path / "gate"
    gate.touch()
    monkeypatch.setenv("GATE", str(gate))
    with running(GATED, SHUTDOWN_SECONDS=20) as server, ThreadPoolExecutor(N_CLIENTS) as clients:
        gate.unlink()
        answers = [clients.submit(server.post, f"the cat {n}") for n in range(N_CLIENTS)]
        wait_for(lambda: server.n_waiting() == N_CLIENTS)
        assert server.children() == []
        server.process.terminate()
        wait_for(server.is_refusing)
        gate.touch()
        statuses = [answer.result().status_code for answer in answers]
        _, errors = server.process.communicate(timeout=20)
    assert statuses == [200] * N_CLIENTS
    assert (server.process.returncode, errors) == (0, "")


def test_what_does_not_end_in_time_is_refused_and_the_process_is_gone(running, problem):
    with running(HANGING, SHUTDOWN_SECONDS=1) as server, ThreadPoolExecutor() as clients:
        asked = [clients.submit(server.post, text) for text in ("hang", "cat")]
        wait_for(lambda: server.n_waiting() == 2)
        asked.append(clients.submit(server.post_slowly))
        wait_for(lambda: server.n_in_flight() == 4)  # this question is one of them
        began = time.monotonic()
        server.process.terminate()
        for answer in asked:
            problem(answer.result(), 503, "server-stopping")
            assert answer.result().headers["connection"] == "close"
            assert answer.result().headers["retry-after"] == "1"
        _, errors = server.process.communicate(timeout=20)
    assert time.monotonic() - began < 10
    assert server.process.returncode == 0
    assert "Traceback" not in errors


def test_a_second_signal_ends_the_process_at_once(running):
    with running(HANGING, SHUTDOWN_SECONDS=600) as server, ThreadPoolExecutor() as clients:
        hanging = clients.submit(server.post, "hang")
        wait_for(lambda: server.n_waiting() == 1)
        server.process.terminate()
        wait_for(server.is_refusing)
        server.process.terminate()
        server.process.communicate(timeout=20)
        with pytest.raises(httpx.TransportError):
            hanging.result()
    assert server.process.returncode == 128 + signal.SIGTERM


def test_a_server_that_can_compute_no_more_ends_and_says_why(running, problem):
    with running(BROKEN) as server:
        problem(server.post("cat"), 503, "engine-failed")
        assert not server.is_ready()
        _, errors = server.process.communicate(timeout=30)
    assert server.process.returncode == 1
    assert "the inference engine failed" in errors
    assert "CUDA error: unspecified launch failure" in errors
