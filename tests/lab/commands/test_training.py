"""`headlight train`, from a text file to a model and its card."""

import errno
import json
import os
import re
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
import torch
from typer.testing import CliRunner

from headlight.cli import app
from headlight.lab.commands.train import Recipe
from headlight.lab.commands.training import _run_loop, read_settings, read_settings_file
from headlight.lab.training import run
from headlight.lab.training.config import LoopConfig
from headlight.lab.training.loop import STATE
from headlight.lab.training.preference import Comparison
from headlight.lab.training.recipes.stories import Stage, StoriesConfig
from headlight.model.checkpoint.card import read_card, write_card
from headlight.model.checkpoint.loading import load
from tests.lab.commands.test_evaluate import SMALL as SMALL_MODEL
from tests.lab.commands.test_evaluate import assert_fails

SMALL = replace(
    run.RECIPES["stories"],
    model=SMALL_MODEL,
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
def folder(tmp_path, monkeypatch):
    """Return an empty working directory, one thread, and a recipe of milliseconds a step."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEADLIGHT_DEVICE", raising=False)
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    monkeypatch.setitem(run.RECIPES, "stories", SMALL)
    return tmp_path


@pytest.fixture
def corpus():
    """Return the name of a file of two hundred paragraphs."""
    names, verbs = ["cat", "dog", "fox", "hen", "boy"], ["saw", "met", "lost", "found"]
    lines = [
        f"The {names[n % 5]} {verbs[n % 4]} the {names[n % 3]} and then, at last, number {n}."
        for n in range(200)
    ]
    Path("corpus.txt").write_text("\n".join(lines) + "\n")
    return "corpus.txt"


def train(*arguments, recipe="stories", out="out"):
    on_cpu = ["--device", "cpu", "--precision", "float32"]
    return CliRunner().invoke(app, ["train", recipe, "--out", out, *on_cpu, *arguments])


def logged_steps():
    lines = Path("out", "metrics.jsonl").read_text().splitlines()
    return [json.loads(line)["step"] for line in lines]


# --- what cannot be trained -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "fault", "code"),
    [(None, "cannot be read", 2), (b"Once upon a time.\n", "at least 24", 2)],
)
def test_an_unusable_corpus_leaves_no_run(corpus, content, fault, code):
    if content is not None:
        Path("bad.txt").write_bytes(content)
    first = ["--corpus", corpus] if content is None else []
    assert_fails(train(*first, "--corpus", "bad.txt"), fault, code=code)
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ([], "--corpus"),
        (["--steps", "0"], "steps (0)"),
        (["--device", "tpu"], "'tpu'"),
        (["--set", "loop.step=5"], "'loop.steps'"),
        (["--set", "loop.steps"], "NAME=VALUE"),
        (["--set", "rows.stages=[[1, 20, 1000000000000000]]"], "text=1000000000000000"),
        (["--config", "none.yaml"], "none.yaml"),
        (["--reward", "stories-reward"], "uses no reward model; leave out --reward"),
        (["--config", "bad.yaml"], "'loops'"),
    ],
)
def test_a_wrong_option_is_a_usage_error(corpus, arguments, fault):
    Path("bad.yaml").write_text("loops:\n  steps: 5\n")
    given = ["--corpus", corpus] if arguments else []
    assert_fails(train(*given, *arguments), fault, code=2)
    assert not Path("out").exists()


@pytest.mark.parametrize("arguments", [["poems"], ["stories", "--precision", "int8"]])
def test_an_unknown_name_is_a_usage_error(arguments):
    result = CliRunner().invoke(app, ["train", *arguments, "--out", "out"])
    assert result.exit_code == 2
    assert arguments[-1] in result.stderr
    assert set(get_args(Recipe)) == set(run.RECIPES)


def test_a_folder_without_a_run_cannot_be_resumed():
    assert_fails(train("--resume"), "out holds no run", code=2)


# --- a run from end to end ------------------------------------------------------------------------


def test_a_run_ends_in_a_model_and_a_card(corpus):
    result = train("--corpus", corpus, "--steps", "4", "--seed", "5")
    assert result.exit_code == 0, result.output
    checkpoint = load(Path("out"))
    n_parameters = sum(tensor.numel() for tensor in checkpoint.model.parameters())
    first, second, *_, last = result.stdout.splitlines()
    assert first == (
        f"out: decoder, {n_parameters:,} parameters, 300 tokens in the vocabulary, "
        f"float32 on {os.cpu_count()} CPU cores, 1 thread"
    )
    assert second.startswith("steps 1 to 1 read no line of the corpus")
    assert last == "trained 4 steps; the model is in out"
    assert re.search(r"step +4 +loss \d\.\d{3} +[\d,]+ tokens/s +held-out loss \d", result.stdout)
    assert checkpoint.config.max_tokens == 24
    card = checkpoint.description.card
    assert card.title == "out"
    assert card.training["seed"] == 5
    assert card.training["steps"] == 4
    assert card.training["tokens"] == 4 * 16 + 3 * 4 * 24
    assert card.training["machine"] == f"{os.cpu_count()} CPU cores"
    assert card.training["precision"] == "float32"


def test_a_flag_wins_over_an_assignment_and_that_over_the_file(corpus):
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


@pytest.mark.parametrize(
    ("arguments", "load_average", "n_threads"),
    [([], 0.0, 3), ([], 1e3, 1), (["--threads", "2"], 1e3, 2), (["--threads", "5"], 0.0, 5)],
)
def test_the_threads_are_those_asked_for_or_one_on_a_busy_machine(
    corpus, monkeypatch, arguments, load_average, n_threads
):
    threads = [3]
    monkeypatch.setattr(os, "getloadavg", lambda: (load_average, 0.0, 0.0))
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads[-1])
    monkeypatch.setattr(torch, "set_num_threads", threads.append)
    result = train("--corpus", corpus, "--steps", "2", *arguments)
    first, second, *_ = result.stdout.splitlines()
    assert threads[-1] == n_threads
    assert first.endswith(", 1 thread" if n_threads == 1 else f", {n_threads} threads")
    assert ("--threads" in second) == (n_threads == 1)


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB."),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
    ],
)
def test_out_of_memory_the_error_says_what_helps(corpus, monkeypatch, error):
    def fail(*arguments):
        raise error

    monkeypatch.setattr("headlight.lab.training.loop.Loop._update", fail)
    result = train("--corpus", corpus)
    assert result.exit_code == 1
    assert "step 1" in result.stderr
    assert "--set loop.accumulate=2" in result.stderr


# --- a run that is resumed ------------------------------------------------------------------------


def test_a_run_can_be_extended_from_another_directory(corpus, folder, monkeypatch):
    train("--corpus", corpus, "--steps", "2")
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    result = train("--resume", "--steps", "4", out=str(folder / "out"))
    assert result.exit_code == 0, result.output
    monkeypatch.chdir(folder)
    assert logged_steps() == [1, 2, 3, 4]


def test_a_run_goes_on_with_the_command_that_began_it(corpus):
    train("--corpus", corpus, "--steps", "2")
    Path("other.txt").write_text(Path(corpus).read_text())
    refused = train("--corpus", "other.txt", "--steps", "4", "--resume")
    assert_fails(refused, "leave them out", code=2)
    result = train("--corpus", corpus, "--steps", "4", "--resume")
    assert result.exit_code == 0, result.output
    assert logged_steps() == [1, 2, 3, 4]


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of file sizes")
def test_a_disk_without_room_leaves_the_last_state_whole(corpus):
    import resource

    train("--corpus", corpus, "--steps", "2")
    state = Path("out", STATE)
    before = state.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    loop = run.resume(Path("out"), steps=4)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, limits[1]))
    try:
        with pytest.raises(ValueError, match="what was saved before is whole") as caught:
            _run_loop(loop, "out", "")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert "file too large" in str(caught.value)
    assert state.read_bytes() == before
    assert not list(Path("out").glob(".*.partial"))
    assert train("--resume", "--steps", "4").exit_code == 0
    assert logged_steps() == [1, 2, 3, 4]


def test_a_log_without_room_is_one_sentence(corpus, monkeypatch):
    def append(path, report):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("headlight.lab.training.loop.append_report", append)
    result = train("--corpus", corpus)
    assert result.exit_code == 1
    assert "no space left on device" in result.stderr
    assert "--resume" in result.stderr


def test_comparisons_are_counted_and_fewer_than_asked_for_explained(corpus, monkeypatch):
    few = [Comparison("a", "b", "c", "a")] * 3
    monkeypatch.setattr("headlight.lab.training.preference.make_comparisons", lambda *_, **__: few)
    words = ["comparisons", "--corpus", corpus, "--out", "pairs.jsonl", "--count"]
    result = CliRunner().invoke(app, [*words, "5"])
    assert result.exit_code == 0, result.output
    assert "3/5 comparisons" in result.stderr
    assert "3 of 5" in result.stderr
    assert "of 3" not in CliRunner().invoke(app, [*words, "3", "--force"]).stderr.split("3/3")[-1]


def test_a_resumed_run_needs_the_same_corpus(corpus):
    train("--corpus", corpus)
    text = Path(corpus).read_text()
    Path(corpus).write_text(text + "One more line.\n")
    assert_fails(train("--resume"), str(Path(corpus).resolve()), "has changed", code=2)
    Path(corpus).unlink()
    assert_fails(train("--resume"), str(Path(corpus).resolve()), "cannot be read", code=2)


@pytest.mark.parametrize(
    "option", [["--corpus", "corpus.txt"], ["--config", "a.yaml"], ["--from", "stories"]]
)
def test_a_resumed_run_takes_no_other_corpus_seed_or_settings(option):
    assert_fails(train("--resume", *option), "leave them out", code=2)


def test_a_resumed_run_keeps_what_was_written_on_the_card(corpus, monkeypatch):
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


# --- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("5", 5),
        ("1e-3", 0.001),
        ("{n_experts: 4}", {"n_experts": 4}),
        ("e5", "e5"),
        ("", ""),
        ("null", None),
    ],
)
def test_a_value_is_read_as_yaml(written, value):
    settings = read_settings([f"loop.x={written}"])
    assert settings == {"loop": {"x": value}}
    assert type(settings["loop"]["x"]) is type(value)


@pytest.mark.parametrize("value", ["[", "!!python/name:os.system x", "{[1]: 2}"])
def test_a_value_that_is_not_yaml_is_named_in_one_line(value):
    with pytest.raises(ValueError, match=r"^the value of loop\.steps is not YAML: ") as caught:
        read_settings([f"loop.steps={value}"])
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_file_holds_parts_with_names_and_values():
    path = Path("small.yaml")
    path.write_text("# mine\nmodel:\n  d_model: 64\nloop:\n  learning_rate: 1e-3\nrows:\n")
    assert read_settings_file(path) == {"model": {"d_model": 64}, "loop": {"learning_rate": 0.001}}


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "holds no settings"),
        (b"loop:\n  steps: 1\nloop:\n  seed: 2\n", "line 3"),
        (b"loop: caf\xe9\n", "UTF-8"),
        (None, "Is a directory"),
    ],
)
def test_an_unusable_file_of_settings_is_named(content, fault):
    path = Path("bad.yaml")
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"^bad\.yaml.*{fault}"):
        read_settings_file(path)
