"""Every example of the README and of docs/ runs, against a real server and the models that ship."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from headlight.cli import app
from tests.server_process import serving

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [
    block
    for document in DOCUMENTS
    for block in re.findall(
        r"^```(\w*)\n(.*?)^```$", document.read_text(), re.MULTILINE | re.DOTALL
    )
]
PYTHON = [text for language, text in BLOCKS if language == "python"]
SHELL = [text for language, text in BLOCKS if language == "sh"]
ADDRESS = "http://127.0.0.1:8000"
RUN = re.compile(
    r"(curl -sN? http://127\.0\.0\.1:8000|headlight (trace|why|generate|models|limits)\b)"
)


def commands_in(block):
    """Return the commands of a block, each on one line."""
    joined = block.replace("\\\n", " ")
    lines = re.split(r"\n(?=[a-zA-Z#])", joined.strip())
    return [line for line in lines if line and not line.startswith("#")]


RUN_HERE = [block for block in SHELL if all(RUN.match(each) for each in commands_in(block))]


@pytest.fixture(scope="module")
def address():
    """Yield a server as anybody starts it."""
    with serving("--device", "cpu") as server:
        yield server.url


def typed(command, folder):
    """Return a command's output. `headlight` runs in this process, which has PyTorch already."""
    words = shlex.split(command, comments=True)
    if words[0] == "headlight":
        result = CliRunner().invoke(app, words[1:])
        assert result.exit_code == 0, result.output
        return result.output
    if shutil.which(words[0]) is None:
        pytest.skip(f"there is no {words[0]} here")
    done = subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.mark.parametrize("at", range(len(RUN_HERE)))
def test_what_is_typed_into_a_shell_does_what_it_says(at, address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADLIGHT_DEVICE", "cpu")
    for command in commands_in(RUN_HERE[at].replace(ADDRESS, address)):
        said = typed(command, tmp_path)
        assert said.strip()
        assert "urn:headlight:problem" not in said
        for name in re.findall(r"--(?:out|html|safetensors) (\S+)", command):
            assert (tmp_path / name).stat().st_size > 1000


def test_there_are_examples_of_every_kind():
    everything = "\n".join(RUN_HERE)
    for part in ("/api/v1/trace", "/api/v1/generate", "headlight trace", "--html", "--csv"):
        assert part in everything
    assert len(PYTHON) >= 2


def test_what_is_not_run_here_is_at_least_a_command_that_exists():
    commands: Any = get_command(app)
    for block in SHELL:
        subprocess.run(["bash", "-n", "-c", block], check=True)
        for name, options in re.findall(r"^headlight (\w+)([^#\n]*)", block, re.MULTILINE):
            command = commands.commands[name]
            if members := getattr(command, "commands", None):  # a group, such as `data`
                command = members[options.split()[0]]
            params = command.get_params(typer.Context(command))
            known = {option for each in params for option in each.opts}
            assert set(re.findall(r"(?<=\s)--[a-z-]+", options)) <= known


@pytest.mark.parametrize("at", range(len(PYTHON)))
def test_what_is_typed_into_python_does_what_it_says(at, address):
    namespace: dict[str, Any] = {}
    exec(compile(PYTHON[at].replace(ADDRESS, address), "the documents", "exec"), namespace)
    if "sums" in namespace:
        np.testing.assert_allclose(namespace["sums"], 1, atol=1e-5)
        assert isinstance(namespace["likeliest"], str)
        assert namespace["end"].text == "".join(token.text for token in namespace["tokens"])
        assert namespace["figure"].data[0].type == "heatmap"
    if "weights" in namespace:
        assert namespace["weights"].shape[0] == namespace["stories"].config.n_heads


def test_the_readme_is_short_and_its_links_lead_somewhere():
    assert len(DOCUMENTS[0].read_text().splitlines()) <= 180
    for document in [*DOCUMENTS, *sorted((ROOT / "docs" / "decisions").glob("*.md"))]:
        targets = re.findall(r"\]\((?!https?:|[#/])([^)#]+)", document.read_text())
        missing = [target for target in targets if not (document.parent / target).exists()]
        assert missing == [], document.name
