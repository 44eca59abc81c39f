"""`headlight train` and `headlight evaluate`, from a text file to figures on a card."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from app.cli import app
from model.card import read_card, write_card
from model.checkpoint import load
from model.config import ExpertsConfig, TransformerConfig
from model.training import run
from model.training.loop import LoopConfig
from model.training.stories import Stage, StoriesConfig

ROOT = Path(__file__).parents[2]
ON_CPU = ["--device", "cpu", "--precision", "float32"]
SMALL = run.Run(
    corpus=(),
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
    stories_run = run.stories_run

    def small_run(corpus: list[Path], *, steps: int | None, **options: Any) -> run.Run:
        asked = stories_run(corpus, steps=steps or 3, **options)
        loop = replace(SMALL.loop, steps=asked.loop.steps, seed=asked.loop.seed)
        kept = {"corpus": asked.corpus, "commands": asked.commands, "precision": asked.precision}
        return replace(SMALL, **kept, loop=loop)

    monkeypatch.setattr(run, "stories_run", small_run)


def headlight(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments])


def train(*arguments: str) -> Result:
    return headlight("train", "stories", "--out", "out", *ON_CPU, *arguments)


def logged_steps() -> list[int]:
    lines = Path("out/metrics.jsonl").read_text().splitlines()
    return [json.loads(line)["step"] for line in lines]


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
    assert_sentence(train(), "there is no corpus; name at least one text file")


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


def test_a_run_is_not_overwritten(corpus: str) -> None:
    Path("out").mkdir()
    Path("out/training.safetensors").write_bytes(b"a run")
    assert_sentence(train("--corpus", corpus), "out already holds a run; continue it with --resume")
    assert Path("out/training.safetensors").read_bytes() == b"a run"


def test_a_run_that_is_not_there_cannot_be_resumed() -> None:
    result = train("--resume")
    assert result.stderr.startswith("out holds no run to resume: ")
    assert result.stderr.count("\n") == 1
    assert result.exit_code == 1


def test_a_damaged_run_cannot_be_resumed() -> None:
    Path("out").mkdir()
    Path("out/run.json").write_text("{")
    result = train("--resume")
    assert result.stderr.startswith("out holds no run to resume: ")
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
    changed = f"{Path(corpus).resolve()} has changed since the run began, so it cannot go on"
    assert_sentence(train("--resume"), changed)


@pytest.mark.parametrize("option", [["--corpus", "corpus.txt"], ["--seed", "0"]])
def test_a_resumed_run_takes_no_other_corpus_or_seed(
    corpus: str, small_recipe: None, option: list[str]
) -> None:
    train("--corpus", corpus)
    assert_sentence(
        train("--resume", *option), "a resumed run keeps its corpus and its seed; leave both out"
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


# --- Ctrl-C ---------------------------------------------------------------------------------------


@pytest.fixture
def start_training(corpus: str) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start the command as a person does, in a process of its own."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "app.cli", "train", "stories", "--out", "out", *ON_CPU]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(
            [*command, *arguments],
            env=environment,
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


def wait_for_a_step(process: subprocess.Popen[str]) -> None:
    metrics = Path("out/metrics.jsonl")
    while not metrics.exists() or not metrics.read_text().endswith("\n"):
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)


@pytest.mark.timeout(600)
def test_ctrl_c_saves_and_the_run_goes_on(
    corpus: str, start_training: Callable[..., subprocess.Popen[str]]
) -> None:
    process = start_training("--corpus", corpus, "--steps", "100000")
    wait_for_a_step(process)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate()
    assert process.returncode == 130
    assert errors == ""
    stopped = re.search(r"stopped after step (\d+) and saved; go on with --out out --res", output)
    assert stopped, output
    step = int(stopped[1])
    assert step >= 1
    assert load(Path("out")).description.card.training["steps"] == step

    resumed = start_training("--resume", "--steps", str(step + 1))
    output, errors = resumed.communicate()
    assert resumed.returncode == 0, errors
    assert f"trained {step + 1} steps; the model is in out" in output
    assert logged_steps() == list(range(1, step + 2))


# --- evaluate -------------------------------------------------------------------------------------


@pytest.fixture
def trained(corpus: str, small_recipe: None) -> str:
    """The folder of a small trained model."""
    assert train("--corpus", corpus).exit_code == 0
    return "out"


def test_figures_are_printed_and_written_to_the_card(trained: str, corpus: str) -> None:
    Path("pairs.jsonl").write_text('{"paradigm": "verbs", "good": "a cat", "bad": "cat a"}\n')
    before = read_card(Path("out/CARD.md"))
    result = headlight(
        "evaluate", trained, "--text", corpus, "--pairs", "pairs.jsonl", "--device", "cpu"
    )
    assert result.exit_code == 0, result.output
    card = read_card(Path("out/CARD.md"))
    assert replace(card, metrics={}) == before
    assert 0 < card.metrics["bits_per_byte"] < 8
    assert set(card.metrics["expert_load_entropy"]) == {"layer_0"}
    assert set(card.metrics["minimal_pairs_by_paradigm"]) == {"verbs"}
    shown = result.stdout
    assert str(card.metrics["bits_per_byte"]) in shown
    assert str(card.metrics["induction_head"]["weight"]) in shown
    assert "minimal_pairs_by_paradigm.verbs" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--text", "none.txt"], "none.txt cannot be read: No such file or directory"),
        (["--text", "short.txt"], "the text has 3 tokens; evaluation needs at least 23"),
        (["--text", "corpus.txt", "--pairs", "short.txt"], "short.txt, line 1 is no minimal pair"),
        (["--text", "corpus.txt", "--device", "tpu"], "device 'tpu' is unknown"),
    ],
)
def test_what_cannot_be_measured_is_one_sentence_and_leaves_the_card(
    trained: str, arguments: list[str], message: str
) -> None:
    Path("short.txt").write_text("a\n")
    before = Path("out/CARD.md").read_bytes()
    result = headlight("evaluate", trained, *arguments)
    assert result.stderr.startswith(message)
    assert result.stderr.count("\n") == 1
    assert result.exit_code == 1
    assert Path("out/CARD.md").read_bytes() == before


def test_who_names_no_text_is_told_what_the_card_knows(trained: str) -> None:
    assert_sentence(headlight("evaluate", trained), "name held-out text with --text")
    path = Path("out/CARD.md")
    card = read_card(path)
    known = {**card.training, "evaluation": "headlight evaluate out --text valid.txt"}
    write_card(path, replace(card, training=known))
    assert_sentence(
        headlight("evaluate", trained),
        "name held-out text with --text; the figures on the card come from: "
        "headlight evaluate out --text valid.txt",
    )


def test_a_model_that_is_not_there_is_one_sentence(corpus: str) -> None:
    result = headlight("evaluate", "nowhere", "--text", corpus)
    assert result.stderr.startswith("nowhere/config.json: ")
    assert result.stderr.count("\n") == 1
    assert result.exit_code == 1
