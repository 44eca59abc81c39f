"""`headlight runs`: a table of training runs and a page with their curves."""

import json
import re

import pytest
from typer.testing import CliRunner

from headlight.cli import app
from headlight.lab.training import runs
from headlight.lab.training.run import start
from headlight.lab.training.runs import figure_of, read_training_run
from headlight.model.checkpoint.files import CheckpointError
from tests.lab.training.conftest import *  # noqa: F403 - the fixtures of small runs


@pytest.fixture
def folders(tmp_path, run):
    """Return the folders of two runs that differ in their seed."""
    from dataclasses import replace

    for seed in (0, 1):
        asked = replace(run, loop=replace(run.loop, seed=seed))
        start(asked, tmp_path / f"seed{seed}", device="cpu").run()
    return [tmp_path / "seed0", tmp_path / "seed1"]


def test_the_table_has_the_figures_and_only_the_settings_that_differ(folders):
    result = CliRunner().invoke(app, ["runs", *map(str, folders)])
    assert result.exit_code == 0, result.output
    rows = {
        re.split(r"\s{2,}|[│┃]", line.strip(" │┃"))[0].strip(): line
        for line in result.output.splitlines()
    }
    assert "loop.seed" in rows
    assert "loop.steps" not in rows
    losses = [read_training_run(folder).validations() for folder in folders]
    for values in losses:
        assert f"{min(values)[0]:.4f}" in rows["held-out loss, lowest"]
        assert f"{values[-1][0]:.4f}" in rows["held-out loss, last"]


def test_the_page_draws_every_run_in_its_colour(folders, tmp_path):
    out = tmp_path / "runs.html"
    result = CliRunner().invoke(app, ["runs", *map(str, folders), "--out", str(out)])
    assert result.exit_code == 0, result.output
    written = re.search(r'id="curves">(.*?)</script>', out.read_text())[1]
    figure = json.loads(written)
    assert figure == figure_of([read_training_run(folder) for folder in folders])
    assert {line["legendgroup"] for line in figure["data"]} == {"seed0", "seed1"}
    colours = {line["legendgroup"]: line["line"]["color"] for line in figure["data"]}
    assert len({*colours.values()}) == 2
    again = CliRunner().invoke(app, ["runs", *map(str, folders), "--out", str(out)])
    assert again.exit_code != 0, "an existing page is kept"


def test_runs_in_folders_of_one_name_are_numbered(folders, tmp_path):
    (tmp_path / "other").mkdir()
    folders[1].rename(tmp_path / "other" / "seed0")
    named = runs._with_names_apart(
        [read_training_run(folder) for folder in (folders[0], tmp_path / "other" / "seed0")]
    )
    assert [run.name for run in named] == ["seed0 (1)", "seed0 (2)"]


def test_a_folder_is_read_as_the_runs_in_it(folders, tmp_path):
    assert list(runs._runs_in([tmp_path])) == folders
    assert list(runs._runs_in(folders)) == folders


def test_a_folder_without_a_run_or_a_step_is_named(folders, tmp_path):
    with pytest.raises(CheckpointError, match="holds no run"):
        read_training_run(tmp_path)
    (folders[0] / "metrics.jsonl").unlink()
    with pytest.raises(CheckpointError, match="has made no step yet"):
        read_training_run(folders[0])


def test_a_line_that_is_being_written_is_left_out(folders):
    path = folders[0] / "metrics.jsonl"
    whole = read_training_run(folders[0]).metrics
    path.write_text(path.read_text() + '{"step": 9, "lo')
    assert read_training_run(folders[0]).metrics == whole
