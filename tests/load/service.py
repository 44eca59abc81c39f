"""The server under load: started for the run, watched from another process, stopped after it."""

import http.client
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[2]

START_SECONDS = 120
STOP_SECONDS = 30
HEALTH_SECONDS = 0.25
SAMPLE_SECONDS = 10.0

_SAMPLE = re.compile(r"^(headlight_\w+|process_\w+)(\{[^}]*\})? ([-+.\dein]+)$", re.MULTILINE)

Metrics = dict[str, float]


@dataclass
class Service:
    """A server that runs.

    Args:
        address: where it listens.
        process: its process.
        log: where it writes.
    """

    address: str
    process: subprocess.Popen[bytes]
    log: Path
    stop_seconds: float = float("nan")

    @property
    def host(self):
        """The host in its address."""
        return urlsplit(self.address).hostname or ""

    @property
    def port(self):
        """The port in its address."""
        return urlsplit(self.address).port or 80

    def stop(self):
        """Tell it to stop, and measure how long that takes."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.stop_seconds = time.monotonic() - began


@contextmanager
def service(log):
    """A fresh server with default settings, whatever the environment says."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("HEADLIGHT_")}
    command = [sys.executable, "-m", "headlight.cli", "serve", "--port", "0"]
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, cwd=ROOT, env=plain, stdout=file, stderr=subprocess.STDOUT
        )
    running = None
    try:
        running = Service(_address(log, process), process, log)
        _wait_until_ready(running)
        yield running
    finally:
        if running is None:
            process.kill()
            process.wait()
        else:
            running.stop()


def get(host, port, path):
    """One answer over a connection of its own."""
    connection = http.client.HTTPConnection(host, port, timeout=60)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def metrics(service):
    """The server's metrics, summed over labels; empty if there are none."""
    status, text = get(service.host, service.port, "/metrics")
    found: Metrics = {}
    for name, _, value in _SAMPLE.findall(text) if status == 200 else ():
        found[name] = found.get(name, 0.0) + float(value)
    return found


def _address(log, process):
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        if found := re.search(r"http://\S+", log.read_text()):
            return found[0]
        time.sleep(0.05)
    raise RuntimeError(f"the server did not start:\n{log.read_text()}")


def _wait_until_ready(service):
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        try:
            if get(service.host, service.port, "/readyz")[0] == 200:
                return
        except OSError:
            pass
        time.sleep(0.05)
    raise RuntimeError(f"the server was not ready in {START_SECONDS} s")


@dataclass(frozen=True, kw_only=True)
class Sample:
    """The server's memory at a moment."""

    second: float
    rss: int
    """Bytes."""


@dataclass
class Watch:
    """A watcher's measurements."""

    health: list[float] = field(default_factory=list)
    """Seconds that each /healthz took; infinity for one that was not answered."""
    memory: list[Sample] = field(default_factory=list)


class Watcher:
    """Asks /healthz four times a second and reads the server's memory every ten seconds.

    It is a process of its own, so that it measures the server and not whoever makes the load.
    """

    def __init__(self, service, sample_seconds=SAMPLE_SECONDS):
        fresh = multiprocessing.get_context("spawn")
        self._ours, theirs = fresh.Pipe()
        self._process = fresh.Process(
            target=_watch,
            args=(theirs, service.host, service.port, service.process.pid, sample_seconds),
            daemon=True,
        )
        self._process.start()
        self._ours.recv()

    def stop(self):
        """End it and return what it saw."""
        self._ours.send("stop")
        watch: Watch = self._ours.recv()
        self._process.join()
        return watch


def _watch(pipe, host, port, pid, sample_seconds):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    seen, began, next_sample = Watch(), time.monotonic(), 0.0
    pipe.send("ready")
    while not pipe.poll(HEALTH_SECONDS):
        seen.health.append(_health(host, port))
        now = time.monotonic() - began
        if now >= next_sample:
            seen.memory.append(Sample(second=now, rss=rss_of(pid)))
            next_sample += sample_seconds
    seen.memory.append(Sample(second=time.monotonic() - began, rss=rss_of(pid)))
    pipe.send(seen)


def _health(host, port):
    began = time.perf_counter()
    try:
        status, _ = get(host, port, "/healthz")
    except OSError:
        status = 0
    return time.perf_counter() - began if status == 200 else float("inf")


def rss_of(pid):
    """Resident memory of a process, in bytes."""
    told = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, check=False)
    return 1024 * int(told.stdout or 0)
