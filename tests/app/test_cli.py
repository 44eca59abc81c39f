"""The command line as a whole: exit codes, and a start that does not wait for PyTorch."""

import os
import socket
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "words", [[], ["trace", "a", "--sing"], ["serve", "--log-level", "loud"]], ids=" ".join
)
def test_an_unknown_command_option_or_value_exits_with_2(headlight, words):
    assert headlight(*words).exit_code == 2


@pytest.mark.parametrize(
    ("words", "named"), [(["--model", "gpt"], "dense, filler"), (["--device", "tpu"], "tpu")]
)
def test_a_server_with_an_unknown_model_or_device_does_not_start(headlight, words, named):
    result = headlight("serve", "--port", "0", *words)
    assert result.exit_code == 2
    assert named in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_port_in_use_is_a_failure(headlight):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = headlight("serve", "--port", str(taken.getsockname()[1]))
    assert result.exit_code == 1
    assert "address already in use" in result.stderr


WITHOUT_LAB = """
import sys
sys.modules["headlight.lab"] = None
from typer.testing import CliRunner
from headlight.cli import app
for words in (["--help"], ["trace", "A bird sang."]):
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    print(result.output)
from fastapi.testclient import TestClient
from headlight.main import create_app
from headlight.settings import Settings
with TestClient(create_app(Settings()), base_url="http://localhost") as client:
    answers = [
        client.get("/"),
        client.post("/api/v1/trace", json={"text": "A bird sang."}),
        client.post("/api/v1/experiments/scaling", json={}),
    ]
    assert [answer.status_code for answer in answers] == [200] * 3, answers
"""


def test_commands_pages_and_experiments_need_nothing_of_the_lab(zoo):
    of_tests = {"HEADLIGHT_ZOO_DIR": str(zoo), "HEADLIGHT_DEFAULT_MODEL": "tiny"}
    command, environment = [sys.executable, "-c", WITHOUT_LAB], os.environ | of_tests
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "likely to come next" in done.stdout
    assert " train " not in done.stdout


def test_help_does_not_import_pytorch():
    code = "import sys, headlight.cli; print(*sys.modules)"
    process = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert {"torch", "pydantic", "fastapi"} & set(process.stdout.split()) == set()
