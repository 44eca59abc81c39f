"""The server on a real port: addresses, concurrency, stop signals and memory."""

import ctypes
import os
import re
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpx
import pytest
import torch

from headlight.process import MALLOC_VARIABLES, keep_heap_compact
from headlight.server import PortError, address_of, listen
from headlight.tracing import service
from tests.app.connections import wait_for


def test_a_taken_port_is_one_clear_sentence():
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortError) as caught:
            listen("127.0.0.1", port)
    assert str(caught.value) == (
        f"cannot listen on 127.0.0.1:{port}: address already in use; "
        "stop what runs there, or choose another with --port"
    )


@pytest.mark.parametrize("host", ["192.0.2.1", "999.1.1.1"])
def test_an_address_of_another_machine_is_rejected(host):
    with pytest.raises(PortError, match="--host"):
        listen(host, 0)


def test_all_addresses_of_both_kinds_can_be_opened():
    if not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    with listen("::", 0) as listener:
        port = listener.getsockname()[1]
        assert address_of(listener) == f"http://127.0.0.1:{port}"
        for host in ("127.0.0.1", "::1"):
            socket.create_connection((host, port), timeout=5).close()


def test_connections_send_a_body_without_waiting_for_an_acknowledgement():
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_health_answers_while_the_inference_thread_is_busy(server, monkeypatch):
    real, is_busy, may_end = service.solve, threading.Event(), threading.Event()

    def solve(*batch, **limits):
        matrix = torch.ones(300, 300)
        is_busy.set()
        while not may_end.is_set():
            matrix @ matrix
        return real(*batch, **limits)

    monkeypatch.setattr(service, "solve", solve)
    with ThreadPoolExecutor() as pool, httpx.Client(base_url=server.url) as client:
        slow = pool.submit(httpx.post, f"{server.url}/api/v1/trace", json={"text": "a"}, timeout=30)
        assert is_busy.wait(30)
        try:
            answers = [client.get("/healthz").status_code for _ in range(3)]
        finally:
            may_end.set()
        assert slow.result().status_code == 200
    assert answers == [200] * 3


# Prepares a server's process up to the import of PyTorch. Frees a tensor of 30 MB, keeps a small
# object after each of 100 tensors that it frees, and allocates in four threads at a time; then
# prints what the C library knows of its heaps.
ALLOCATE = """
import ctypes, sys, threading
from contextlib import suppress
from headlight.server import build
from headlight.settings import Settings

sys.modules["headlight.main"] = None
with suppress(ModuleNotFoundError):
    build(Settings())
c = ctypes.CDLL(None)
c.malloc.argtypes, c.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
c.free.argtypes = c.fflush.argtypes = [ctypes.c_void_p]
c.fdopen.restype, c.malloc_info.argtypes = ctypes.c_void_p, [ctypes.c_int, ctypes.c_void_p]
c.free(c.malloc(30_000_000))
blocks = [(c.malloc(2_000_000), c.malloc(5_000)) for _ in range(100)]
for tensor, _ in blocks:
    c.free(tensor)
together = threading.Barrier(4)
allocate = lambda: (together.wait(), c.malloc(5_000), together.wait())
threads = [threading.Thread(target=allocate) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
output = c.fdopen(1, b"w")
c.malloc_info(0, output)
c.fflush(output)
"""


def heaps(**variables):
    """Return the number of heaps and the free bytes in them, in a process that allocates."""
    plain = {name: of for name, of in os.environ.items() if name not in MALLOC_VARIABLES}
    done = subprocess.run(
        [sys.executable, "-c", ALLOCATE],
        env=plain | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    free = re.findall(r'<total type="(?:fast|rest)" count="\d+" size="(\d+)"/>', done.stdout)
    return done.stdout.count("<heap nr="), sum(map(int, free[-2:]))


needs_glibc = pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="no glibc")


@needs_glibc
def test_the_server_has_one_heap_without_holes_where_tensors_were():
    n_heaps, free_bytes = heaps()
    assert n_heaps == 1
    assert free_bytes < 20e6


@needs_glibc
def test_an_operator_may_tune_the_allocator():
    n_heaps, free_bytes = heaps(MALLOC_ARENA_MAX="8")
    assert n_heaps > 1
    assert free_bytes > 100e6


def test_a_server_with_another_c_library_starts(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    keep_heap_compact()


@pytest.mark.slow
def test_two_workers_share_a_port_and_stop_cleanly(zoo):
    code = "from headlight.cli import app; app()"
    words = ["serve", "--port", "0", "--workers", "2"]
    told = {"HEADLIGHT_ZOO_DIR": str(zoo), "HEADLIGHT_DEFAULT_MODEL": "tiny"}
    with subprocess.Popen(
        [sys.executable, "-c", code, *words],
        env={**os.environ, **told, "HEADLIGHT_DEVICE": "cpu"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            line = next(line for line in process.stdout if "http://" in line)
            url = "http:" + line.partition("http:")[2].split()[0]
            ids = []
            wait_for(lambda: answers(url) and ids.append(trace_id(url)) is None, 60)
            # Each worker has its own cache, so two misses show that both have answered.
            wait_for(
                lambda: ids.append(trace_id(url)) or sample(url, "cache_misses_total") == 2, 60
            )
            assert len(set(ids)) == 1, "a trace's id is a pure function"
            assert sample(url, "cache_hits_total") == len(ids) - 2, "of both workers together"
            process.terminate()
            _, errors = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, errors) == (0, "")


def answers(url):
    with suppress(httpx.TransportError):
        return httpx.get(f"{url}/readyz").status_code == 200


def trace_id(url):
    return httpx.post(f"{url}/api/v1/trace", json={"text": "the cat"}, timeout=60).json()["id"]


def sample(url, name):
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    return float(next(x for x in lines if x.startswith(f"headlight_{name} ")).split()[1])
