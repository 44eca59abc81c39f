"""A recipe is one file: `headlight train` offers it, and its models' cards have its figures."""

import json
import subprocess
import sys

import pytest

from headlight.lab.training import recipes
from headlight.lab.training.recipe_registry import RECIPES
from headlight.model.discovery import summary

RECIPE = '''
"""The recipe `echo`: a decoder
of one layer.

More of it.
"""

from dataclasses import replace

from headlight.model.config import TransformerConfig
from headlight.lab.figures import Figures
from headlight.lab.training.config import LoopConfig
from headlight.lab.training.recipes import positions


class EchoFigures(Figures):
    def measure(self, checkpoint, evidence):
        names = [path.name for path in evidence.text]
        return {"layers": checkpoint.config.n_layers, "files": names}


SIZES = {"n_layers": 1, "n_heads": 2, "d_model": 16, "d_ff": 24, "vocab_size": 300}
RECIPE = replace(
    positions.RECIPE,
    model=TransformerConfig(**SIZES, max_tokens=24),
    rows=positions.PositionsConfig(tokens=16, count=2, held_out=2),
    loop=LoopConfig(steps=2, warmup=1),
    figures=EchoFigures,
)
'''
USE = """
import json, sys
from pathlib import Path
from typer.testing import CliRunner
from headlight.lab.training import recipes
recipes.__path__.append(sys.argv[1])
from headlight.cli import app
shown = CliRunner().invoke(app, ["train", "--help"]).stdout
loaded = sorted(sys.modules)
place = ["--device", "cpu"]
trained = CliRunner().invoke(app, ["train", "echo", "--corpus", "text.txt", "--out", "out", *place])
assert trained.exit_code == 0, trained.output
words = ["train", "rlhf", "--corpus", "text.txt", "--out", "rated", "--device", "cpu"]
words += ["--reward", "stories-reward", "--steps", "1", "--set", "rows.prompts=1"]
result = CliRunner().invoke(app, [*words, "--set", "rows.answers=2", "--set", "rows.held_out=1"])
assert result.exit_code == 0, result.output
of_lab = [name for name in sys.modules if name.startswith("headlight.lab.")]
measured = CliRunner().invoke(app, ["evaluate", "out", "--text", "text.txt", *place])
assert measured.exit_code == 0, measured.output
from headlight.model.checkpoint.card import read_card
card = read_card(Path("out/CARD.md"))
print(json.dumps([shown, loaded, of_lab, card.training, card.metrics]))
"""


def run(code, folder, *arguments):
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a directory with a text, and a folder of recipes in it."""
    path = tmp_path_factory.mktemp("recipes")
    end = "and then, at last, all of them ran over the hill and into the wood."
    lines = [f"The cat saw the dog and the bird number {n} of the day, {end}" for n in range(400)]
    (path / "text.txt").write_text("\n".join(lines))
    (path / "more").mkdir()
    (path / "more" / "echo.py").write_text(RECIPE)
    return path


@pytest.fixture(scope="module")
def used(folder):
    """Return the command line's words, imports and card of a recipe of another folder."""
    result = run(USE, folder, "more")
    assert result.returncode == 0, result.stderr
    names = ("help", "loaded", "of_lab", "training", "figures")
    return dict(zip(names, json.loads(result.stdout.splitlines()[-1]), strict=True))


def test_the_help_describes_a_new_recipe_without_loading_any(used):
    assert "echo: a decoder of one layer." in used["help"]
    assert "More of it" not in used["help"]
    assert {"torch", "headlight.lab.training.config"} & set(used["loaded"]) == set()


def test_a_new_recipe_trains_a_model_with_a_card_of_its_figures(used):
    assert (used["training"]["recipe"], used["training"]["steps"]) == ("echo", 2)
    of_text = {"layers": 1, "files": ["text.txt"]}
    assert used["figures"] == {**of_text, "sample": {"layers": 1, "files": ["sample.txt"]}}


def test_training_loads_nothing_of_evaluation(used):
    assert "headlight.lab.training.recipes.rlhf" in used["of_lab"]
    assert not [name for name in used["of_lab"] if name.startswith("headlight.lab.evaluation")]


def test_every_recipe_is_described():
    assert len(RECIPES) >= 8
    for name in RECIPES:
        assert summary(recipes.__path__, name)
        assert not summary(recipes.__path__, name).startswith("The recipe")
