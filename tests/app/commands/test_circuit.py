"""headlight circuit: the tasks, a circuit as a table, and its files."""

import csv
import json

import pytest

from headlight.circuits.files import written
from headlight.schemas.circuits import CircuitAnswer

PAIR = {"clean": "the cat sat on", "corrupted": "the cat sat mat", "right": " the", "wrong": " mat"}


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text(f"{json.dumps(PAIR)}\n" * 2)
    return path


@pytest.fixture(scope="module")
def answer(client):
    body = {"pairs": [PAIR], "n_edges": 10, "holds_out": False}
    return CircuitAnswer.model_validate(
        client.post("/api/v1/models/tiny/circuit", json=body).json()
    )


def test_without_a_model_the_tasks_are_listed(headlight):
    lines = headlight("circuit").stdout.splitlines()
    assert [line.split()[0] for line in lines][:3] == ["task", "agreement", "repetition"]


def test_a_circuit_of_a_file_is_printed_and_saved(headlight, zoo, pairs, tmp_path):
    out, kept = tmp_path / "circuit.json", tmp_path / "kept.jsonl"
    asked = ["circuit", str(zoo / "tiny"), "--task", str(pairs), "--edges", "10"]
    result = headlight(*asked)
    assert result.exit_code == 0, result.output
    assert "faithfulness" in result.stdout
    saved = ["--format", "json", "--out", str(out), "--save-pairs", str(kept)]
    assert headlight(*asked, *saved).exit_code == 0
    read = CircuitAnswer.model_validate_json(out.read_text())
    assert all(edge.name in result.stdout for edge in read.edges)
    assert json.loads(kept.read_text().splitlines()[0])["clean"] == PAIR["clean"]
    assert headlight(*asked, *saved).exit_code == 1  # the files exist


def test_the_table_has_a_line_for_each_edge(answer):
    rows = list(csv.DictReader(written(answer, "csv").splitlines()))
    names = [edge.name.split("→") for edge in answer.edges]
    assert [[row["writer"], row["reader"]] for row in rows] == names
    assert float(rows[0]["effect"]) == pytest.approx(-answer.edges[0].score)
    assert {row["model"] for row in rows} == {answer.model}
    assert float(rows[0]["faithfulness"]) == pytest.approx(answer.chosen.value)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--task", "nothing"], "neither a file nor a task"),
        ([], "name a --task"),
        (["--task", "agreement", "--rule", "odd"], "rule"),
        (["--task", "agreement", "--format", "odd"], "no format"),
        (["--task", "agreement", "--out", "x.json"], "--format"),
    ],
)
def test_a_wrong_option_is_named(headlight, zoo, more, message):
    result = headlight("circuit", str(zoo / "tiny"), *more)
    assert result.exit_code == 2
    assert message in result.output
