"""`headlight train`, from a text file to a model and its card."""

import json
import math
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, get_args

import pytest
import torch
from click.testing import Result
from safetensors.torch import load_file
from typer.testing import CliRunner

from headlight.cli import Recipe, app
from headlight.model.card import read_card, write_card
from headlight.model.checkpoint import load
from headlight.model.config import ExpertsConfig, TransformerConfig
from headlight.model.tokenizer import read_tokenizer
from headlight.model.training import run
from headlight.model.training.config import LoopConfig
from headlight.model.training.stories import Stage, StoriesConfig

ROOT = Path(__file__).parents[3]
ON_CPU = ["--device", "cpu", "--precision", "float32"]
SMALL = replace(
    run.RECIPES["stories"],
    model=TransformerConfig(
        n_layers=1,
        n_heads=2,
        d_model=16,
        d_ff=24,
        vocab_size=300,
        max_tokens=24,
        moe=ExpertsConfig(n_experts=4, top_k=2, layers=(0,)),
    ),
    rows=StoriesConfig(
        stages=(
            Stage(1, tokens=16, drawn_by_frequency=4),
            Stage(1, tokens=24, text=3, drawn_by_frequency=1),
        ),
        held_out=4,
    ),
    loop=LoopConfig(steps=3, warmup=1),
)
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
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, so that messages hold short paths."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEADLIGHT_DEVICE", raising=False)
    return tmp_path


@pytest.fixture
def corpus() -> str:
    """The name of a file of two hundred paragraphs."""
    names, verbs = ["cat", "dog", "fox", "hen", "boy"], ["saw", "met", "lost", "found"]
    lines = [
        f"The {names[n % 5]} {verbs[n % 4]} the {names[n % 3]} and then, at last, number {n}."
        for n in range(200)
    ]
    Path("corpus.txt").write_text("\n".join(lines) + "\n")
    return "corpus.txt"


@pytest.fixture
def small_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the recipe be one of milliseconds a step; all else is as it is."""
    monkeypatch.setitem(run.RECIPES, "stories", SMALL)


@pytest.fixture
def small_translator() -> list[str]:
    """What makes `train` learn from eighty pairs in milliseconds a step."""
    Path("small.yaml").write_text(SMALL_TRANSLATOR)
    nouns = {"cat": "chat", "dog": "chien", "king": "roi", "tree": "arbre"}
    pairs = [
        f"the {one} number {n} sees the {other}\tle {nouns[one]} {n} voit le {nouns[other]}\n"
        for n, (one, other) in enumerate([*product(nouns, nouns)] * 5)
    ]
    Path("pairs.tsv").write_text("".join(pairs))
    return ["--corpus", "pairs.tsv", "--config", "small.yaml"]


def headlight(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments])


def train(*arguments: str, recipe: str = "stories") -> Result:
    return headlight("train", recipe, "--out", "out", *ON_CPU, *arguments)


def logged(name: str, out: str = "out") -> list[Any]:
    lines = Path(out, "metrics.jsonl").read_text().splitlines()
    return [json.loads(line)[name] for line in lines]


def logged_steps() -> list[int]:
    return logged("step")


def assert_sentence(result: Result, message: str) -> None:
    """Check that a command failed with this sentence and nothing else."""
    assert result.stderr == message + "\n"
    assert result.stdout == ""
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)


# --- what cannot be trained -----------------------------------------------------------------------


def test_a_corpus_that_is_not_there_is_one_sentence() -> None:
    assert_sentence(
        train("--corpus", "none.txt"), "none.txt cannot be read: No such file or directory"
    )
    assert not Path("out").exists()


def test_no_corpus_is_one_sentence() -> None:
    assert_sentence(train(), "no corpus was given; name at least one text file")


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_an_empty_file_is_one_sentence(text: str) -> None:
    Path("empty.txt").write_text(text)
    assert_sentence(
        train("--corpus", "empty.txt"), "empty.txt is empty; it needs text, one paragraph a line"
    )


def test_a_file_that_is_not_utf_8_is_named_with_its_line() -> None:
    Path("latin.txt").write_bytes("one\ntwo é\n".encode("latin-1"))
    assert_sentence(train("--corpus", "latin.txt"), "latin.txt is not UTF-8: line 2 holds 0xe9")


def test_one_bad_file_among_good_ones_is_named(corpus: str) -> None:
    assert_sentence(
        train("--corpus", corpus, "--corpus", "none.txt"),
        "none.txt cannot be read: No such file or directory",
    )


def test_a_corpus_that_is_too_short_is_one_sentence() -> None:
    Path("short.txt").write_text("Once upon a time there was a very short story.\n")
    result = train("--corpus", "short.txt")
    assert re.fullmatch(r"the corpus has \d+ tokens; training needs at least 256\n", result.stderr)
    assert result.exit_code == 1
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--steps", "0"], "steps (0) must be at least 1"),
        (["--seed", "-1"], "seed (-1) must lie between 0 and 2^62"),
        (["--device", "tpu"], "device 'tpu' is unknown; choose one of auto, cpu, cuda, mps"),
        (
            ["--precision", "int8"],
            "precision 'int8' is unknown; choose one of auto, float32, bfloat16",
        ),
    ],
)
def test_an_option_out_of_range_is_one_sentence(
    corpus: str, arguments: list[str], message: str
) -> None:
    assert_sentence(train("--corpus", corpus, *arguments), message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["loop.steps=ten"], "loop.steps is 'ten'; it must be a valid integer"),
        (["model.n_heads=2.5"], "model.n_heads is 2.5; it must be a valid integer"),
        (["rows.held_out=[]"], "rows.held_out is []; it must be a valid integer"),
        (["loop.step=5"], "there is no setting 'loop.step'; did you mean 'loop.steps'?"),
        (["loop.steps"], "'loop.steps' sets nothing; write NAME=VALUE"),
        (["loop=fast"], "loop is 'fast'; it must be a mapping of names to values"),
        (["model.d_model=100"], "n_heads (6) must divide d_model (100)"),
        (["loop.seed=[", "loop.steps=5"], "the value of loop.seed is no YAML: "),
        (["model.d_ff=1000000000000000"], "d_ff (1000000000000000) must be at most "),
        (["model.vocab_size=1000000000000"], "vocab_size (1000000000000) must be at most "),
        (
            ["rows.stages=[[1, 20, 1000000000000000]]"],
            "Stage(steps=1, tokens=20, text=1000000000000000, ",
        ),
    ],
)
def test_a_setting_that_is_wrong_is_one_sentence(
    corpus: str, arguments: list[str], message: str
) -> None:
    Path(corpus).write_text(Path(corpus).read_text() * 3)
    result = train("--corpus", corpus, *(f"--set={argument}" for argument in arguments))
    assert result.stderr.startswith(message)
    assert_sentence(result, result.stderr.rstrip("\n"))
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "settings.yaml cannot be read: No such file or directory"),
        ("loop: [", "settings.yaml is no YAML: "),
        ("loops:\n  steps: 5\n", "there is no setting 'loops'; every name begins with "),
        ("loop:\n  stepz: 5\n", "there is no setting 'loop.stepz'; did you mean 'loop.steps'?"),
        ("loop: 5\n", "loop is 5; it must be a mapping of names to values"),
    ],
)
def test_a_file_of_settings_that_is_wrong_is_one_sentence(
    corpus: str, content: str | None, message: str
) -> None:
    if content is not None:
        Path("settings.yaml").write_text(content)
    result = train("--corpus", corpus, "--config", "settings.yaml")
    assert result.stderr.startswith(message)
    assert_sentence(result, result.stderr.rstrip("\n"))


def test_every_recipe_can_be_asked_for() -> None:
    assert set(get_args(Recipe)) == set(run.RECIPES)


def test_a_run_is_not_overwritten(corpus: str) -> None:
    Path("out").mkdir()
    Path("out/training.safetensors").write_bytes(b"a run")
    assert_sentence(train("--corpus", corpus), "out already holds a run; continue it with --resume")
    assert Path("out/training.safetensors").read_bytes() == b"a run"


def test_a_run_that_is_not_there_cannot_be_resumed() -> None:
    result = train("--resume")
    assert result.stderr.startswith("out holds no run: ")
    assert result.stderr.count("\n") == 1
    assert result.exit_code == 1


def test_a_damaged_run_cannot_be_resumed() -> None:
    Path("out").mkdir()
    Path("out/run.json").write_text("{")
    result = train("--resume")
    assert result.stderr.startswith("out holds no run: ")
    assert result.exit_code == 1


def test_an_unknown_recipe_is_a_usage_error() -> None:
    result = headlight("train", "poems", "--out", "out")
    assert result.exit_code == 2
    assert "poems" in result.stderr
    assert "stories" in result.stderr


# --- a run from end to end ------------------------------------------------------------------------


def test_a_run_ends_in_a_model_and_a_card(corpus: str, small_recipe: None) -> None:
    result = train("--corpus", corpus, "--steps", "4", "--seed", "5")
    assert result.exit_code == 0, result.output
    assert result.stdout.endswith("trained 4 steps; the model is in out\n")
    assert re.search(r"step +4 +loss \d\.\d{3} +[\d,]+ tokens/s +held-out loss \d", result.stdout)
    checkpoint = load(Path("out"))
    assert checkpoint.config.max_tokens == 24
    card = checkpoint.description.card
    assert card.title == "out"
    assert card.training["seed"] == 5
    assert card.training["steps"] == 4
    assert card.training["tokens"] == 4 * 16 + 3 * 4 * 24
    assert card.training["machine"] == f"{os.cpu_count()} CPU cores"
    assert card.training["precision"] == "float32"


def test_what_is_trained_is_said_at_the_start(corpus: str, small_recipe: None) -> None:
    result = train("--corpus", corpus)
    n_parameters = sum(tensor.numel() for tensor in load(Path("out")).model.parameters())
    assert result.stdout.splitlines()[0] == (
        f"out: decoder, {n_parameters:,} parameters, 300 tokens in the vocabulary, "
        f"float32 on {os.cpu_count()} CPU cores"
    )


def test_a_flag_wins_over_an_assignment_and_that_over_the_file(
    corpus: str, small_recipe: None
) -> None:
    Path("settings.yaml").write_text(
        "loop:\n  steps: 5\n  seed: 6\n  clip: 3\n  warmup: 2\nmodel:\n  d_ff: 40\n"
    )
    result = train(
        *["--corpus", corpus, "--config", "settings.yaml"],
        *["--set", "loop.seed=7", "--set", "loop.clip=4", "--set", "loop.steps=9", "--steps", "2"],
    )
    assert result.exit_code == 0, result.output
    asked = run.read_run(Path("out"))
    assert asked.loop == replace(SMALL.loop, steps=2, seed=7, clip=4.0, warmup=2)
    assert asked.model == replace(SMALL.model, d_ff=40)


def test_a_translator_is_trained_from_pairs(small_translator: list[str]) -> None:
    result = train(*small_translator, "--steps", "3", recipe="translate")
    assert result.exit_code == 0, result.output
    assert load(Path("out")).config.kind == "encoder-decoder"
    assert logged_steps() == [1, 2, 3]
    resumed = headlight("train", "translate", "--out", "out", *ON_CPU, "--resume", "--steps", "4")
    assert resumed.exit_code == 0, resumed.output
    assert logged_steps() == [1, 2, 3, 4]


def test_a_run_can_be_in_bfloat16(corpus: str, small_recipe: None) -> None:
    result = train("--corpus", corpus, "--precision", "bfloat16")
    assert result.exit_code == 0, result.output
    assert load(Path("out")).description.card.training["precision"] == "bfloat16"
    assert all(math.isfinite(loss) for loss in logged("loss"))


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB."),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
    ],
)
def test_who_runs_out_of_memory_is_told_what_helps(
    corpus: str, small_recipe: None, monkeypatch: pytest.MonkeyPatch, error: RuntimeError
) -> None:
    def fail(*arguments: object) -> None:
        raise error

    monkeypatch.setattr("headlight.model.training.loop.Loop._update", fail)
    result = train("--corpus", corpus)
    assert result.exit_code == 1
    assert result.stderr == (
        "memory ran out in step 1; read each batch in more parts with --set loop.accumulate=2, "
        "or make the model smaller\n"
    )


def test_a_run_can_be_prolonged(corpus: str, small_recipe: None) -> None:
    train("--corpus", corpus, "--steps", "2")
    result = train("--resume", "--steps", "4")
    assert result.exit_code == 0, result.output
    assert "trained 4 steps; the model is in out" in result.stdout
    assert logged_steps() == [1, 2, 3, 4]


def test_a_resumed_run_without_its_corpus_is_one_sentence(corpus: str, small_recipe: None) -> None:
    train("--corpus", corpus)
    Path(corpus).unlink()
    gone = Path(corpus).resolve()
    assert_sentence(train("--resume"), f"{gone} cannot be read: No such file or directory")


def test_a_resumed_run_with_another_corpus_is_one_sentence(corpus: str, small_recipe: None) -> None:
    train("--corpus", corpus)
    with Path(corpus).open("a") as file:
        file.write("One more line.\n")
    changed = f"{Path(corpus).resolve()} has changed since the run began; restore it to continue"
    assert_sentence(train("--resume"), changed)


@pytest.mark.parametrize(
    "option",
    [
        ["--corpus", "corpus.txt"],
        ["--seed", "0"],
        ["--set", "loop.clip=2"],
        ["--config", "none.yaml"],
    ],
)
def test_a_resumed_run_takes_no_other_corpus_seed_or_settings(
    corpus: str, small_recipe: None, option: list[str]
) -> None:
    train("--corpus", corpus)
    assert_sentence(
        train("--resume", *option),
        "a resumed run keeps its corpus, its seed and its settings; leave them out",
    )


def test_a_run_can_be_resumed_from_another_directory(
    corpus: str, small_recipe: None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train("--corpus", corpus, "--steps", "2")
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    result = headlight("train", "stories", "--out", str(folder / "out"), *ON_CPU, "--resume")
    assert result.exit_code == 0, result.output


def test_a_resumed_run_keeps_what_was_written_on_the_card(
    corpus: str, small_recipe: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["headlight", "train", "stories", "--corpus", corpus])
    train("--corpus", corpus, "--steps", "2")
    path = Path("out/CARD.md")
    written = replace(
        read_card(path), licence="CC0", prose="# Mine\n\nFor tests.", metrics={"loss": 1.0}
    )
    write_card(path, written)
    train("--resume")
    assert read_card(path) == written, "no step was made, so the figures are still true"
    monkeypatch.setattr("sys.argv", ["headlight", "train", "stories", "--resume", "--steps", "4"])
    train("--resume", "--steps", "4")
    card = read_card(path)
    assert (card.licence, card.prose, card.metrics) == ("CC0", "# Mine\n\nFor tests.", {})
    assert card.training["steps"] == 4
    assert card.training["command"] == (
        f"headlight train stories --corpus {corpus} && headlight train stories --resume --steps 4"
    )


# --- processes that are stopped, killed, and several at once --------------------------------------

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start_process() -> Iterator[Start]:
    """Start Python as a person does, in a process of its own: ``start_process("-m", …)``."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "OMP_NUM_THREADS": "1",
                "GLOO_SOCKET_IFNAME": "lo",
            },
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


def wait_for(process: subprocess.Popen[str], is_there: Callable[[], bool]) -> None:
    while not is_there():
        assert process.poll() is None, process.communicate()
        time.sleep(0.001)


def n_logged() -> int:
    metrics = Path("out/metrics.jsonl")
    return metrics.read_text().count("\n") if metrics.exists() else 0


@pytest.mark.timeout(600)
def test_ctrl_c_saves_and_the_run_goes_on(
    small_translator: list[str], start_process: Start
) -> None:
    process = start_process(*TRAIN, *small_translator, "--steps", "100000")
    wait_for(process, lambda: n_logged() > 0)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate()
    assert process.returncode == 130
    assert errors == ""
    stopped = re.search(r"stopped after step (\d+) and saved; go on with --out out --res", output)
    assert stopped, output
    step = int(stopped[1])
    assert step >= 1
    assert load(Path("out")).description.card.training["steps"] == step

    resumed = start_process(*TRAIN, "--resume", "--steps", str(step + 1))
    output, errors = resumed.communicate()
    assert resumed.returncode == 0, errors
    assert f"trained {step + 1} steps; the model is in out" in output
    assert logged_steps() == list(range(1, step + 2))


def assert_every_file_is_whole() -> None:
    """Check what can be read of a run that was killed; what has no name yet does not count."""
    readers: dict[str, Callable[[Path], object]] = {
        "run.json": lambda path: json.loads(path.read_text()),
        "tokenizer.json": read_tokenizer,
        "training.safetensors": load_file,
        "metrics.jsonl": lambda path: [json.loads(line) for line in path.read_text().splitlines()],
    }
    for path in Path("out").glob("[!.]*"):
        readers[path.name](path)


@pytest.mark.timeout(600)
def test_a_run_killed_again_and_again_has_the_loss_curve_of_one_left_alone(
    small_translator: list[str], start_process: Start
) -> None:
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


@pytest.mark.timeout(600)
def test_torchrun_trains_one_model_in_two_processes(
    small_translator: list[str], start_process: Start
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(port)]
    quick = [*small_translator, "--set", "model.dropout=0", "--steps", "6"]
    process = start_process(*launcher, *TRAIN, *quick)
    output, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    assert output.splitlines()[0].endswith(", 2 processes")
    assert output.count("trained 6 steps; the model is in out") == 1
    training = load(Path("out")).description.card.training
    assert training["processes"] == 2
    assert training["command"].startswith(
        "torchrun --nproc-per-node 2 -m headlight.cli train translate"
    )

    alone = headlight("train", "translate", "--out", "alone", *ON_CPU, *quick)
    assert alone.exit_code == 0, alone.output
    # Sums are made in another order; nothing else differs.
    for name in ("loss", "tokens"):
        assert logged(name) == pytest.approx(logged(name, "alone"), abs=1e-4), name
    valid_losses = [each[-1] for each in (logged("valid_loss"), logged("valid_loss", "alone"))]
    assert valid_losses[0] == pytest.approx(valid_losses[1], abs=1e-4)
