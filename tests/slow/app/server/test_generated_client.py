"""A client that openapi-python-client makes; `pipx` installs it apart: it wants an older Typer."""

import importlib
import shutil
import subprocess
import sys

import pytest

from tests.server_process import serving

GENERATOR = shutil.which("openapi-python-client")
PACKAGE = "generated_headlight"
# The generator knows no type of file but JSON and text: these are the two files of the API.
FILES = ["/api/v1/models/{model}/weights", "/api/v1/links/{link_id}/qr.svg"]

pytestmark = pytest.mark.skipif(GENERATOR is None, reason="openapi-python-client is not installed")


@pytest.fixture(scope="module")
def server():
    with serving() as server:
        yield server


@pytest.fixture(scope="module")
def generated(server, tmp_path_factory):
    """Return what the generator said, and a function that imports a module of the client."""
    folder = tmp_path_factory.mktemp("client")
    document = folder / "openapi.json"
    document.write_text(server.client.get("/openapi.json").text)
    command = [GENERATOR, "generate", "--path", str(document), "--meta", "none"]
    command += ["--output-path", str(folder / PACKAGE)]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    sys.path.insert(0, str(folder))
    yield made.stdout + made.stderr, lambda name: importlib.import_module(f"{PACKAGE}.{name}")
    sys.path.remove(str(folder))


def test_the_generator_takes_all_but_the_files(generated):
    said, _ = generated
    left_out = [line.split()[3] for line in said.splitlines() if line.startswith("WARNING parsing")]
    assert left_out == FILES


def test_a_trace_and_an_error_come_with_their_types(generated, server):
    _, module = generated
    models, trace = module("models"), module("api.traces.trace")
    with module("client").Client(base_url=server.url) as client:

        def traced(**ask):
            return trace.sync(client=client, body=models.TraceRequest.from_dict(ask))

        answer = traced(text="The cat sat", capture=["decoder.layers.0.self_attention.weights"])
        problem = traced(text="The cat sat", model="none-such")
    assert [token.text for token in answer.tokens][:2] == ["<s>", "The"]
    assert isinstance(problem, models.ProblemAnswer)
    assert (problem.status, problem.type_) == (404, "urn:headlight:problem:unknown-model")
