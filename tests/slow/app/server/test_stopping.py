"""A server ends in time after a stop signal, whatever is running."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.app.connections import wait_for
from tests.server_process import serving

SHUTDOWN_SECONDS = 1
MORE_SECONDS = 5

# Each leaves a thread that nothing can stop, of those that Python waits for, or of the others.
ENDLESS = {
    "trace": "from headlight.tracing import service as of\nof.solve = hanging(of.solve)\n",
    "chapter": "from headlight.routes import chapters as of\nof.read_chapter = hang\n",
    "link": "from headlight.serving.links import Links\nLinks.keep = hang\n",
    "tokens": "from headlight.routes import traces as of\nof._cut = hang\n",
    "limits": "from headlight.middleware import conditional_get as of\n"
    "of.QUICK_BYTES, of._coded = 500, hang\n",
}
HANG = """
import os, time
def hang(*_, **__):
    open(os.environ['HANGS'], 'w').close()
    time.sleep(1000)
def hanging(solve):
    return lambda model, jobs, *words, **options: (
        hang() if jobs[0].request.text == 'the cat' else solve(model, jobs, *words, **options)
    )
"""
REQUESTS = {
    "trace": ("POST", "/api/v1/trace", {"text": "the cat"}),
    "chapter": ("POST", "/api/v1/chapters/read", {"text": "---\n---\n"}),
    "link": ("POST", "/api/v1/links", {"state": "text=a"}),
    "limits": ("GET", "/api/v1/limits", None),
    "tokens": ("POST", "/api/v1/tokenize", {"text": "a " * 1_500}),
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_a_thread_that_cannot_be_stopped_is_left_behind(kind, tmp_path):
    method, path, body = REQUESTS[kind]
    mark = tmp_path / "hangs"
    options = {"trouble": HANG + ENDLESS[kind], "environment": {"HANGS": str(mark)}}
    with (
        serving("--device", "cpu", SHUTDOWN_SECONDS=SHUTDOWN_SECONDS, **options) as server,
        ThreadPoolExecutor() as clients,
    ):
        clients.submit(server.client.request, method, path, json=body)
        wait_for(mark.exists)
        began = time.monotonic()
        server.process.terminate()
        assert server.process.wait(30) == 0
        assert time.monotonic() - began < SHUTDOWN_SECONDS + MORE_SECONDS
