"""The command line as a whole: exit codes, and a start that does not wait for PyTorch."""

import socket
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["trace", "a", "--sing"],
        ["train", "novels", "--out", "o"],
    ],
    ids=" ".join,
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


def test_help_does_not_import_pytorch():
    code = "import sys, headlight.cli; print(*sys.modules)"
    process = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert {"torch", "pydantic", "fastapi"} & set(process.stdout.split()) == set()
