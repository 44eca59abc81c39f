"""`headlight atlas`: from a model and a corpus to a folder."""

import json
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from headlight.cli import app
from headlight.models.foreign import load_folder
from tests.tiny_checkpoints import save_checkpoint

WITHOUT_CLUSTER = """
import sys
sys.modules.update(dict.fromkeys(["ray", "pyarrow", "duckdb"]))
from importlib import util
real = util.find_spec
util.find_spec = lambda name, *of: None if name in ("pyarrow", "duckdb") else real(name, *of)
"""


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def built(zoo, tmp_path_factory):
    """Return the folder of an atlas, its text, and what the command said."""
    folder = tmp_path_factory.mktemp("atlas")
    line = "The cat sat on the mat because it was tired. A small light reads the words aloud.\n"
    (folder / "text.txt").write_text(line * 4)
    said = run(
        *("atlas", "build", zoo / "tiny", folder / "text.txt", "--out", folder / "atlas"),
        *("--threshold", "0.05", "--sample", "2"),
    )
    assert said.exit_code == 0, said.output
    return folder / "atlas", folder / "text.txt", said


def test_a_build_tells_its_progress_and_what_it_made(built):
    folder, _, said = built
    assert re.search(r"100\.0% read · [\d,]+ tokens · [\d,]+ tokens/s · 0:00:00 left", said.stderr)
    assert str(folder) in said.stdout.replace("\n", "")
    assert {"atlas.json", "heads.json", "summary.json"} <= {path.name for path in folder.iterdir()}


def test_a_model_of_hugging_face_has_an_atlas_too(built, tmp_path):
    _, text, _ = built
    folder = save_checkpoint("llama", tmp_path / "llama")
    out = tmp_path / "atlas"
    said = run("atlas", "build", folder, text, "--out", out, "--sample", "2", "--threshold", "0.05")
    assert said.exit_code == 0, said.output
    attentions = json.loads((out / "atlas.json").read_bytes())["attentions"]
    facts = load_folder(folder, None, device="cpu").description.attentions
    assert attentions.keys() == {each.path for each in facts}
    assert all(each["n_edges"] for each in attentions.values())


def test_the_folder_of_another_atlas_is_refused(built, zoo):
    folder, text, _ = built
    again = ("atlas", "build", zoo / "dense", text, "--out", folder, "--sample", "2")
    said = run(*again)
    assert said.exit_code == 2
    assert "add --force" in " ".join(said.output.split())


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("atlas build {zoo}/tiny {text} --out {out}", "an atlas needs PyArrow"),
        ("cluster serve --port 1", "a cluster needs Ray Serve"),
    ],
)
def test_without_the_extra_a_sentence_says_what_to_install(built, zoo, tmp_path, command, says):
    _, text, _ = built
    line = command.format(zoo=zoo, text=text, out=tmp_path / "out")
    program = WITHOUT_CLUSTER + "from headlight.cli import app; app()"
    done = subprocess.run(
        [sys.executable, "-c", program, *line.split()], capture_output=True, text=True
    )
    assert done.returncode == 1, done.stderr
    (said,) = done.stderr.strip().splitlines()
    assert says in said
    assert said.endswith("pip install 'headlight-viz[cluster]'")
