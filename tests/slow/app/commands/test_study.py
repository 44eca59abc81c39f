"""The two studies that ship, computed again from their files, and one that is killed on its way."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headlight.cli import app
from headlight.commands.study import PARTS
from headlight.model.circuits.study import find_study, read_study

parquet = pytest.importorskip("pyarrow.parquet", reason="the extra lab is not installed")

SMALL = """
models = ["stories-small"]
task = "agreement"
n_pairs = 8
[[circuits]]
name = "few"
rule = "top"
n_edges = 10
[[circuits]]
name = "more"
rule = "top"
n_edges = 30
[[cuts]]
name = "last"
edges = ["3.0→logits"]
"""


def run(name, out, *more):
    result = CliRunner().invoke(app, ["study", str(name), "--out", str(out), *more])
    assert result.exit_code == 0, result.output
    return {
        (row["model"], row["name"], row["pairs"]): row
        for row in parquet.read_table(out / "figures.parquet").to_pylist()
    }


@pytest.mark.parametrize(
    ("study", "name", "model", "least"),
    [
        ("agreement", "EAP-IG, pruned", "stories", 0.9),
        ("carrying", "with a carry", "sums", 0.75),
        ("carrying", "without", "sums", 0.9),
    ],
)
def test_a_study_that_ships_says_what_it_said(shipped, study, name, model, least):
    rows = shipped(study)
    held_out = rows[model, name, "held_out"]
    assert held_out["value"] >= least
    assert held_out["complement"] < 0.1
    assert held_out["n_edges"] <= (40 if study == "agreement" else 60)


def test_the_head_that_reads_the_subject_is_what_agreement_needs(shipped):
    rows = shipped("agreement")
    names = [part.name for part in read_study(find_study("agreement")).parts if part.kind == "cuts"]
    one, both = (rows["stories", name, "chosen"] for name in names)
    assert both["value"] < one["value"] < 0.5
    assert one["circuit_right"] < 0.2 < one["clean_right"]


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    folder, done = tmp_path_factory.mktemp("studies"), {}

    def of(name):
        if name not in done:
            done[name] = run(name, folder / name)
        return done[name]

    return of


def test_a_killed_study_goes_on_and_ends_as_one_left_alone(tmp_path):
    study, out = tmp_path / "study.toml", tmp_path / "out"
    study.write_text(SMALL)
    command = [sys.executable, "-m", "headlight.cli", "study", str(study), "--out", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    end = time.monotonic() + 100
    while not list((out / PARTS).glob("*.json")) and time.monotonic() < end:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    kept = {path: path.stat().st_mtime_ns for path in (out / PARTS).glob("*.json")}
    assert 0 < len(kept) < 3
    rows = run(study, out)
    assert all(path.stat().st_mtime_ns == time_of for path, time_of in kept.items())
    assert rows == run(study, tmp_path / "alone")
    assert Path(out / "study.html").stat().st_size > 10_000


def test_workers_of_ray_compute_the_same_tables(tmp_path):
    pytest.importorskip("ray", reason="the extra cluster is not installed")
    study = tmp_path / "study.toml"
    study.write_text(SMALL)
    here, shared = run(study, tmp_path / "here"), run(study, tmp_path / "ray", "--workers", "2")
    assert here.keys() == shared.keys()
    for key, row in here.items():
        assert shared[key]["value"] == pytest.approx(row["value"], abs=1e-4)
