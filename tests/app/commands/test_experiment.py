"""headlight experiment: the list, descriptions, results, and wrong options."""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest

from headlight.commands.experiment import csv_lines
from headlight.model.experiments.registry import EXPERIMENTS
from headlight.model.trace import NamedArray

TINY = ["steps=2", "length=2", "d_model=8", "n_heads=1", "n_layers=1", "batch=4"]


def assigned(values):
    return [word for value in values for word in ("--set", value)]


def test_without_a_name_all_are_listed(headlight):
    lines = headlight("experiment").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["name", *EXPERIMENTS]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_description_names_every_parameter_and_array(headlight, name):
    result = headlight("experiment", name, "--describe")
    assert result.exit_code == 0
    experiment = EXPERIMENTS[name]
    for parameter in experiment.parameters.model_fields:
        assert f"\n{parameter}=" in result.stdout
    for array in experiment.quantities:
        assert f"\n{array}  (" in result.stdout
    assert next(iter(experiment.sources)) in result.stdout


def test_json_is_what_the_server_answers(headlight, client):
    words = ["--set", "example=animal", "--set", "keys=[[1,0],[0,1],[1,1],[0,0]]"]
    result = headlight("experiment", "by_hand", *words, "--json")
    body = {"example": "animal", "keys": [[1, 0], [0, 1], [1, 1], [0, 0]]}
    expected = client.post("/api/v1/experiments/by_hand", json=body).json()
    assert json.loads(result.stdout) == expected


def test_csv_has_a_line_for_each_number_and_the_values_of_the_axes(headlight, tmp_path):
    path = tmp_path / "out.csv"
    words = [*assigned(["width=4", "n_samples=50"]), "--csv", "--out", str(path)]
    assert headlight("experiment", "scaling", *words).exit_code == 0
    rows = list(csv.DictReader(path.read_text().splitlines()))
    expected = EXPERIMENTS["scaling"].result({"width": 4, "n_samples": 50})
    variance = [row for row in rows if row["array"] == "variance"]
    assert [float(row["value"]) for row in variance] == expected["variance"].data.ravel().tolist()
    assert [row["width"] for row in variance] == ["1", "2", "4"] * 2
    assert [row["scaled"] for row in variance] == ["no"] * 3 + ["yes"] * 3
    assert {row["key"] for row in variance} == {""}


def test_a_text_of_an_axis_is_no_formula_in_the_csv():
    words = NamedArray(("word",), np.array(["=1+1", "cat"]))
    result = {"word": words, "count": NamedArray(("word",), np.array([-1, 2]))}
    assert "".join(csv_lines(result)) == "array,word,value\ncount,\t=1+1,-1\ncount,cat,2\n"


def test_a_table_has_every_array(headlight):
    result = headlight("experiment", "learn_task", *assigned(TINY))
    assert result.exit_code == 0
    for name in EXPERIMENTS["learn_task"].quantities:
        assert any(line.split()[:1] == [name] for line in result.stdout.splitlines())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["alchemy"], "there is no experiment 'alchemy'; there are by_hand"),
        (["scaling", "--set", "width"], "--set width is not NAME=VALUE"),
        (["scaling", "--set", "=8"], "--set =8 is not NAME=VALUE"),
        (["scaling", "--set", "width=0"], "width: must be at least 1, not 0"),
        (["scaling", "--set", "widht=8"], "widht: unknown member"),
        (["scaling", "--set", "width=wide"], "width: 'wide' is not a whole number"),
        (["scaling", "--set", "width=wide"], "width: at least 1, at most 2048"),
        (["minhash", "--set", "first="], "first has 0 characters"),
        (["scaling", "--json", "--csv"], "choose one of --json and --csv"),
        (["scaling", "--out", "x.json"], "--out is the file for --json or --csv"),
        (
            ["learn_task", *assigned(["steps=1000", "batch=64", "d_model=48", "length=12"])],
            "more than the 60 allowed",
        ),
    ],
)
def test_a_wrong_option_is_a_usage_error(headlight, words, message):
    result = headlight("experiment", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_descriptions_and_wrong_parameters_need_no_server():
    code = """
import sys
from headlight.commands import experiment
from headlight.model.experiments.registry import EXPERIMENTS
experiment.list_experiments()
for each in EXPERIMENTS.values():
    experiment.describe_experiment(each.id)
    experiment._parameters(each, ["seed=1"])
sys.exit("fastapi" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
