"""Several workers: they start without a processor, and one that dies is replaced and named."""

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.app.connections import wait_for
from tests.server_process import serving

N_LOOPS = 8
LOOP = "import time\nuntil = time.monotonic() + 240\nwhile time.monotonic() < until: pass"
pytestmark = pytest.mark.timeout(600)


@contextmanager
def taking_the_processor():
    """Run busy loops, next to which a worker imports PyTorch for far longer than five seconds."""
    loops = [subprocess.Popen([sys.executable, "-c", LOOP]) for _ in range(N_LOOPS)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def test_workers_come_up_without_a_processor_and_are_announced_when_they_serve():
    with taking_the_processor():
        with serving("--device", "cpu", "--workers", "2") as server:
            assert server.client.get("/readyz").status_code == 200
            assert "ended" not in server.errors
        assert server.process.returncode == 0


def workers_of(server):
    """Return the processes that hold a model: those that were spawned to serve."""
    listed = subprocess.run(
        ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(server.process.pid)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [int(line.split()[0]) for line in listed.splitlines() if "spawn_main" in line]


def test_workers_end_with_a_supervisor_that_is_killed():
    with serving("--device", "cpu", "--workers", "2") as server:
        wait_for(lambda: len(workers_of(server)) == 2, 60)
        workers = workers_of(server)
        server.process.kill()
        server.process.wait()
        wait_for(lambda: not any(map(is_running, workers)), 10)


def is_running(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().split(") ")[1][0] != "Z"
    except OSError:
        return False


def test_a_worker_that_is_killed_under_load_is_named_and_replaced():
    with serving("--device", "cpu", "--workers", "2") as server, ThreadPoolExecutor(4) as clients:
        wait_for(lambda: len(workers_of(server)) == 2, 60)
        may_end = time.monotonic() + 20

        def ask(number):
            lost = answered = 0
            while time.monotonic() < may_end:
                try:
                    text = f"the cat {number} {answered}"
                    with httpx.Client(base_url=server.url, timeout=60) as client:
                        answer = client.post("/api/v1/trace", json={"text": text})
                    assert answer.status_code in (200, 503)
                    answered += 1
                except httpx.TransportError:
                    lost += 1
            return answered, lost

        asked = [clients.submit(ask, number) for number in range(4)]
        time.sleep(3)
        killed = workers_of(server)[0]
        os.kill(killed, signal.SIGKILL)
        counts = [each.result() for each in asked]
        assert sum(answered for answered, _ in counts) > 20
        assert all(lost <= 3 for _, lost in counts), counts
        wait_for(lambda: len(workers_of(server)) == 2 and killed not in workers_of(server), 60)
        assert re.search(rf"worker {killed} ended: SIGKILL killed it", server.errors)
        server.process.terminate()
        assert server.process.wait(30) == 0
