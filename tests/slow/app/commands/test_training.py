"""`headlight train` in new processes: stopped and killed."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from random import Random

import pytest
from safetensors.torch import load_file
from typer.testing import CliRunner

from headlight.cli import app
from headlight.model.checkpoint.loading import load
from headlight.model.tokenizer import read_tokenizer

ON_CPU = ["--device", "cpu", "--precision", "float32"]
SMALL_TRANSLATOR = """
model:
  n_layers: 1
  n_heads: 2
  d_model: 16
  d_ff: 24
  vocab_size: 300
  max_tokens: 40
rows:
  batch_tokens: 300
  held_out: 0.1
loop:
  steps: 300
  warmup: 5
  learning_rate: 1e-2
  validate_every: 100
  save_every: 10
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Change to an empty working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEADLIGHT_DEVICE", raising=False)


@pytest.fixture
def small_translator():
    """Return the arguments with which `train` learns eighty pairs in milliseconds a step."""
    Path("small.yaml").write_text(SMALL_TRANSLATOR)
    nouns = {"cat": "chat", "dog": "chien", "king": "roi", "tree": "arbre"}
    pairs = [
        f"the {first} number {n} sees the {second}\tle {nouns[first]} {n} voit le {nouns[second]}\n"
        for n, (first, second) in enumerate([*product(nouns, nouns)] * 5)
    ]
    Path("pairs.tsv").write_text("".join(pairs))
    return ["--corpus", "pairs.tsv", "--config", "small.yaml"]


def headlight(*arguments):
    return CliRunner().invoke(app, [*arguments])


def logged(name, out="out"):
    lines = Path(out, "metrics.jsonl").read_text().splitlines()
    return [json.loads(line)[name] for line in lines]


def logged_steps():
    return logged("step")


def test_a_translator_is_trained_from_pairs(small_translator):
    command = ["train", "translate", "--out", "out", *ON_CPU]
    result = headlight(*command, *small_translator, "--steps", "3")
    assert result.exit_code == 0, result.output
    assert load(Path("out")).config.kind == "encoder-decoder"
    assert logged_steps() == [1, 2, 3]
    resumed = headlight(*command, "--resume", "--steps", "4")
    assert resumed.exit_code == 0, resumed.output
    assert logged_steps() == [1, 2, 3, 4]


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start_process():
    """Start Python as a person does, in a new process: ``start_process("-m", …)``."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments):
        process = subprocess.Popen(
            [sys.executable, *arguments],
            env={**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


TRAIN = ["-m", "headlight.cli", "train", "translate", "--out", "out", *ON_CPU]


def wait_for(process, is_there):
    while not is_there():
        assert process.poll() is None, process.communicate()
        time.sleep(0.001)


def n_logged():
    metrics = Path("out/metrics.jsonl")
    return metrics.read_text().count("\n") if metrics.exists() else 0


@pytest.mark.timeout(600)
def test_ctrl_c_saves_and_the_run_goes_on(small_translator, start_process):
    process = start_process(*TRAIN, *small_translator, "--steps", "100000")
    wait_for(process, lambda: n_logged() > 0)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate()
    assert process.returncode == 130
    assert errors == ""
    stopped = re.search(r"stopped after step (\d+) and saved; .* --out out --resume", output)
    assert stopped, output
    step = int(stopped[1])
    assert step >= 1
    assert load(Path("out")).description.card.training["steps"] == step

    resumed = start_process(*TRAIN, "--resume", "--steps", str(step + 1))
    output, errors = resumed.communicate()
    assert resumed.returncode == 0, errors
    assert f"trained {step + 1} steps; the model is in out" in output
    assert logged_steps() == list(range(1, step + 2))


def assert_every_file_is_whole():
    """Check what can be read of a run that was killed; what has no name yet does not count."""
    readers: dict[str, Callable[[Path], object]] = {
        "run.json": lambda path: json.loads(path.read_text()),
        "tokenizer.json": read_tokenizer,
        "training.safetensors": load_file,
        "before_decay.safetensors": load_file,
        "metrics.jsonl": lambda path: [json.loads(line) for line in path.read_text().splitlines()],
        "imitation": load,  # the model as it was before reinforcement
    }
    for path in Path("out").glob("[!.]*"):
        readers[path.name](path)


@pytest.mark.timeout(600)
def test_a_run_killed_again_and_again_has_the_loss_curve_of_one_left_alone(
    small_translator, start_process
):
    through = headlight("train", "translate", "--out", "through", *ON_CPU, *small_translator)
    assert through.exit_code == 0, through.output
    chance = Random(0)
    # While it starts, before it saved anything, and twice between saves.
    moments: list[Callable[[], bool]] = [
        lambda: Path("out").exists(),
        *(lambda n=n: n_logged() >= n for n in (3, chance.randint(12, 30), chance.randint(40, 60))),
    ]
    for moment in moments:
        is_begun = Path("out/run.json").exists()
        process = start_process(*TRAIN, *(["--resume"] if is_begun else small_translator))
        wait_for(process, moment)
        time.sleep(chance.uniform(0, 0.01))
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert_every_file_is_whole()
    process = start_process(*TRAIN, "--resume")
    _, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    assert logged_steps() == list(range(1, 301))
    for name in ("loss", "valid_loss", "tokens"):
        assert logged(name) == logged(name, "through"), name


def settings(*assignments):
    return [word for each in assignments for word in ("--set", each)]


SMALL_DECODER = settings(
    *("model.n_layers=1", "model.n_heads=2", "model.d_model=16"),
    *("model.d_ff=16", "model.max_tokens=48"),
)
SMALL_LOOP = settings("loop.warmup=1", "loop.save_every=4", "loop.validate_every=5")
ROWS = {
    "reasoning": ["imitation=6", "count=4", "problems=3", "chains=4"],
    "distill": ["count=2", "tokens=32"],
    "reward": ["count=4"],
    "rlhf": ["prompts=2", "answers=2", "n_prompt=4", "n_answer=5", "held_out=2", "reference=small"],
}


@pytest.fixture
def making():
    """Return the arguments with which each recipe of a second model trains a few steps."""
    story = "The fox saw a dog, and then the cat chased the mouse over a street. "
    Path("text.txt").write_text("".join(f"{n} {story * 4}\n" for n in range(80)))
    lines = ({"prompt": f"{n}", "a": " A fox.", "b": " a a a", "preferred": "a"} for n in range(60))
    Path("pairs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    plain = settings("model.vocab_size=300", "rows.tokens=32", "rows.count=2")
    small = ["train", "positions", "--corpus", "text.txt", "--steps", "2", *plain, *SMALL_DECODER]
    assert (made := headlight(*small, "--out", "small", *ON_CPU)).exit_code == 0, made.output
    pairs = ["--from", "small", "--comparisons", "pairs.jsonl"]
    rate = ["train", "reward", *pairs, "--steps", "2", "--out", "rater", *ON_CPU]
    assert (made := headlight(*rate)).exit_code == 0, made.output
    text = ["--corpus", "text.txt"]
    return {
        "reasoning": SMALL_DECODER,
        "distill": ["--teacher", "small", *text, *SMALL_DECODER],
        "reward": pairs,
        "rlhf": ["--from", "small", "--reward", "rater", *text],
    }


@pytest.mark.timeout(900)
@pytest.mark.parametrize("recipe", sorted(ROWS))
def test_a_run_that_makes_a_model_of_a_model_survives_kill(recipe, making, start_process):
    rows = settings(*(f"rows.{row}" for row in ROWS[recipe]))
    words = [*making[recipe], *SMALL_LOOP, *rows, "--steps", "14", *ON_CPU]
    through = headlight("train", recipe, "--out", "through", *words)
    assert through.exit_code == 0, through.output
    train = ["-m", "headlight.cli", "train", recipe, "--out", "out"]
    for n in (3, 9):
        is_begun = Path("out/run.json").exists()
        process = start_process(*train, *(["--resume", *ON_CPU] if is_begun else words))
        wait_for(process, lambda n=n: n_logged() >= n)
        process.kill()
        process.communicate()
        assert_every_file_is_whole()
    process = start_process(*train, "--resume", *ON_CPU)
    _, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    assert logged_steps() == list(range(1, 15))
    assert logged("loss") == logged("loss", "through")
