"""Studies: what a file may hold, and that a part is computed once."""

import json

import pytest

from headlight.model.circuits.study import (
    STUDIES,
    StudyError,
    find_study,
    read_study,
    run_study,
    tables_of,
)

FIGURES = {
    "value": 0.9, "interval": [0.8, 1.0], "clean": 1.0, "corrupted": -1.0, "circuit": 0.8,
    "clean_right": 1.0, "corrupted_right": 0.0, "circuit_right": 1.0, "n_pairs": 4,
}  # fmt: skip
ANSWER = {
    "revision": "1", "chosen": FIGURES, "held_out": FIGURES, "complement": 0.0,
    "edges": [{"name": "3.3→logits", "score": -1.0, "loss": 0.5}],
    "curve": [{"n_edges": 1, "n_on_paths": 1, "faithfulness": 0.9, "right": 1.0}],
}  # fmt: skip
WHOLE = """
models = ["one", "other"]
task = "agreement"
[[circuits]]
name = "few"
n_edges = 5
[[cuts]]
name = "last"
models = ["one"]
edges = ["3.3→logits"]
"""


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(WHOLE)
    return read_study(path)


def test_a_part_is_made_for_each_model(study):
    assert [(part.kind, part.model, part.name) for part in study.parts] == [
        ("circuits", "one", "few"),
        ("circuits", "other", "few"),
        ("cuts", "one", "last"),
    ]
    assert study.parts[0].request == {"n_edges": 5, "n_pairs": 32, "task": "agreement"}


def test_an_interrupted_study_goes_on_where_it_stopped(study, tmp_path):
    def compute(parts):
        yield 0, ANSWER
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_study(study, tmp_path / "parts", compute, lambda model: "1")
    again = []

    def rest(parts):
        for number, part in reversed(list(enumerate(parts))):  # in any order
            again.append((part.model, part.name))
            yield number, ANSWER

    answers = run_study(study, tmp_path / "parts", rest, lambda model: "1")
    assert sorted(again) == [("one", "last"), ("other", "few")]
    assert [part for part, _ in answers] == list(study.parts)
    run_study(study, tmp_path / "parts", rest, lambda model: "1")
    assert len(again) == 2
    run_study(study, tmp_path / "parts", rest, lambda model: "2")  # another revision
    assert len(again) == 5


def test_a_damaged_part_is_computed_again(study, tmp_path):
    made = []

    def compute(parts):
        made.append(list(parts))
        yield from ((number, ANSWER) for number, _ in enumerate(parts))

    run_study(study, tmp_path, compute, lambda model: "1")
    (tmp_path / f"{study.parts[0].key('1')}.json").write_text("{")
    run_study(study, tmp_path, compute, lambda model: "1")
    assert made == [list(study.parts), [study.parts[0]]]


def test_tables_have_a_row_for_each_figure_edge_and_point(study):
    tables = tables_of([(part, ANSWER) for part in study.parts])
    assert {name: len(rows) for name, rows in tables.items()} == {
        "figures": 6,
        "curve": 3,
        "edges": 2,
    }
    assert json.dumps(tables)
    assert (tables["figures"][0]["low"], tables["figures"][0]["high"]) == (0.8, 1.0)


@pytest.mark.parametrize("path", sorted(STUDIES.glob("*.toml")), ids=lambda path: path.stem)
def test_the_studies_that_ship_can_be_read(path):
    study = read_study(path)
    assert study.question.endswith("?")
    assert find_study(path.stem) == path


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("title = ", "cannot be read"),
        ("title = 1", "must be of type str"),
        ("models = ['a']", "no \\[\\[circuits\\]\\]"),
        ("surprise = 1", "unknown 'surprise'"),
        ("[[circuits]]\nn_edges = 1", "needs a name"),
        ("[[circuits]]\nname = 'a'\ntask = 'agreement'", "needs models"),
        ("models = ['a']\n[[circuits]]\nname = 'a'", "needs a task"),
        ("models = ['a']\ntask = 'agreement'\n[[cuts]]\nname = 'a'", "needs edges"),
        ("models = ['a']\ntask = 'no.jsonl'\n[[circuits]]\nname = 'a'", "cannot be read"),
    ],
)
def test_a_file_that_is_no_study_is_refused(tmp_path, content, message):
    path = tmp_path / "study.toml"
    path.write_text(content)
    with pytest.raises(StudyError, match=message):
        read_study(path)


def test_an_unknown_study_is_answered_with_those_that_ship():
    with pytest.raises(StudyError, match="there are agreement, carrying"):
        find_study("nothing")
