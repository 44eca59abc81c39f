"""A server in a process of its own, for the tests that look at one from the outside."""

import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

START_SECONDS = 240
STOP_SECONDS = 30
SERVE = "from headlight.cli import app; app()"


@dataclass(frozen=True)
class ServerProcess:
    """A server that is ready, and a client of it."""

    process: subprocess.Popen[bytes]
    client: httpx.Client
    folder: Path

    @property
    def url(self):
        return str(self.client.base_url).rstrip("/")

    @property
    def address(self):
        """Its host and port."""
        return self.client.base_url.host, self.client.base_url.port

    @property
    def output(self):
        """Its standard output so far."""
        return (self.folder / "output").read_text(errors="replace")

    @property
    def errors(self):
        """Its standard error so far."""
        return (self.folder / "errors").read_text(errors="replace")

    def post(self, path, **body):
        return self.client.post(f"/api/v1/{path}", json=body)

    def gauge(self, name):
        text = self.client.get("/metrics").text
        return float(re.search(rf"^headlight_{name} (\S+)$", text, re.M).group(1))

    def is_ready(self):
        try:
            return self.client.get("/readyz").status_code == 200
        except httpx.TransportError:
            return False

    def stop(self):
        """Tell it to stop and wait until it has."""
        self.process.terminate()
        return self.process.wait(STOP_SECONDS)


@contextmanager
def serving(*options, trouble="", script=None, environment=None, **settings):
    """Start a server and wait until it is ready.

    Args:
        options: words of the command line of `headlight serve`.
        trouble: Python that runs in the process before it serves.
        script: a file of Python that serves in place of `headlight serve`.
        environment: further variables; HEADLIGHT_ variables of the environment are ignored.
        settings: settings by their names in the environment, without the prefix.
    """
    plain = {name: value for name, value in os.environ.items() if not name.startswith("HEADLIGHT_")}
    chosen = {f"HEADLIGHT_{name}": str(value) for name, value in settings.items()}
    code = [script] if script else ["-c", trouble + SERVE, "serve", "--port", "0", *options]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "output").open("wb") as output, (folder / "errors").open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, *code],
                env=plain
                | {"HEADLIGHT_LINKS_DIR": str(folder / "links")}
                | chosen
                | (environment or {}),
                stdout=output,
                stderr=errors,
            )
        try:
            with httpx.Client(base_url="http://", timeout=60) as client:
                server = ServerProcess(process, client, folder)
                wait_until_ready(server)
                yield server
                server.stop()
        finally:
            process.kill()
            process.wait()


def wait_until_ready(server):
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and server.process.poll() is None:
        if found := re.search(r"http://[\d.]+:\d+", server.output):
            server.client.base_url = found[0]
            if server.is_ready():
                return
        time.sleep(0.02)
    raise AssertionError(f"the server did not start:\n{server.output}{server.errors}")
