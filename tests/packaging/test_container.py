"""The promises of the container image that can be read off its files."""

import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
BUILD_STAGE = DOCKERFILE[: DOCKERFILE.rindex("\nFROM ")]
FINAL_STAGE = DOCKERFILE[DOCKERFILE.rindex("\nFROM ") :]


def instruction(name):
    """The text of the only instruction of that name in the final stage."""
    (text,) = re.findall(rf"^{name} ((?:.*\\\n)*.*)$", FINAL_STAGE, flags=re.MULTILINE)
    return text


def test_the_process_is_not_root_and_gets_its_signals():
    assert int(instruction("USER")) >= 1000
    assert instruction("ENTRYPOINT").startswith("[")
    assert instruction("CMD") == '["serve"]'


def test_health_means_ready_and_is_asked_from_the_first_second():
    for part in ('CMD ["python", ', "/readyz", "--start-interval=1s", "--start-period="):
        assert part in instruction("HEALTHCHECK")


def test_the_probe_of_health_tells_ready_from_not(serve_readiness):
    """The command of HEALTHCHECK, as it is, against something that answers /readyz."""
    _, _, command = instruction("HEALTHCHECK").partition("CMD ")
    for status, is_healthy in ((200, True), (503, False)):
        environment = os.environ | {"HEADLIGHT_PORT": str(serve_readiness(status))}
        words = [sys.executable, *json.loads(command)[1:]]
        probe = subprocess.run(words, env=environment, capture_output=True, check=False)
        assert (probe.returncode == 0) == is_healthy


@pytest.fixture
def serve_readiness():
    """Starts servers that answer /readyz with a status; gives their ports."""
    servers: list[HTTPServer] = []

    def start(status):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(status if self.path == "/readyz" else 404)
                self.end_headers()

            def log_message(self, *_):
                pass

        servers.append(HTTPServer(("127.0.0.1", 0), Handler))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return int(servers[-1].server_port)

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_it_listens_where_the_container_can_be_reached():
    told = dict(re.findall(r"(HEADLIGHT_\w+)=(\S+)", FINAL_STAGE))
    assert told == {"HEADLIGHT_HOST": "0.0.0.0", "HEADLIGHT_PORT": instruction("EXPOSE")}


def test_bytecode_is_read_where_the_build_wrote_it():
    """A read-only container compiles nothing: without it each start would compile everything."""
    folder = "PYTHONPYCACHEPREFIX=/headlight/bytecode"
    assert folder in BUILD_STAGE
    assert folder in FINAL_STAGE
    assert "COPY --from=build /headlight /headlight" in FINAL_STAGE


def test_the_dependencies_are_a_layer_that_a_change_of_code_leaves_alone():
    before, after = BUILD_STAGE.split("\nCOPY . .\n")
    assert re.findall(r"^COPY (.*)$", before, flags=re.MULTILINE) == [
        "constraints.txt pyproject.toml ./"
    ]
    assert "--no-deps --force-reinstall ." in after


def test_what_the_image_drops_is_imported_by_nothing():
    dropped = (
        "torch/include",
        "torch/share",
        "plotly/labextension",
        "plotly/package_data/datasets",
    )
    assert all(f"site-packages/{folder} " in BUILD_STAGE for folder in dropped)
    sources = [path for folder in ("app", "model") for path in (ROOT / folder).rglob("*.py")]
    imports = re.compile(r"^\s*(?:import|from) (?:plotly\.data|hf_xet)\b", re.MULTILINE)
    assert [path for path in sources if imports.search(path.read_text())] == []


def test_only_what_the_build_needs_is_sent_to_it():
    sent = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), flags=re.MULTILINE)
    assert set(sent) == {
        "LICENSE",
        "README.md",
        "app",
        "constraints.txt",
        "model",
        "pyproject.toml",
        "static",
        "templates",
    }
