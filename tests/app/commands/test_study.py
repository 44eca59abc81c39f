"""headlight study: tables and a page of a small study, written again without computing."""

import json

import pytest

PAIR = {"clean": "the cat sat on", "corrupted": "the cat sat mat", "right": " the", "wrong": " mat"}


@pytest.fixture
def study(tmp_path):
    (tmp_path / "pairs.jsonl").write_text(f"{json.dumps(PAIR)}\n" * 4)
    path = tmp_path / "study.toml"
    path.write_text(
        'title = "A <b>study</b>"\nquestion = "Why?"\nmodels = ["tiny"]\ntask = "pairs.jsonl"\n'
        '[[circuits]]\nname = "few"\nn_edges = 9\nrule = "top"\n'
        '[[cuts]]\nname = "last"\nedges = ["1.ff→logits"]\n'
    )
    return path


def test_a_study_is_tables_and_a_page(headlight, zoo, study, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra lab is not installed")
    out = tmp_path / "out"
    asked = ["study", str(study), "--out", str(out), "--models-dir", str(zoo)]
    result = headlight(*asked)
    assert result.exit_code == 0, result.output
    rows = parquet.read_table(out / "figures.parquet").to_pylist()
    assert [(row["kind"], row["pairs"]) for row in rows] == [
        ("circuits", "chosen"),
        ("circuits", "held_out"),
        ("cuts", "chosen"),
    ]
    assert len(parquet.read_table(out / "edges.parquet")) == rows[0]["n_edges"]
    page = (out / "study.html").read_text()
    assert "A &lt;b&gt;study" in page
    assert "<b>study" not in page
    before = {path.name: path.stat().st_mtime_ns for path in (out / "parts").iterdir()}
    assert headlight(*asked).exit_code == 0
    assert before == {path.name: path.stat().st_mtime_ns for path in (out / "parts").iterdir()}


def test_without_a_file_the_studies_are_listed(headlight):
    lines = headlight("study").stdout.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["agreement", "carrying"]


def test_an_edge_that_is_not_there_is_named(headlight, zoo, study, tmp_path):
    pytest.importorskip("pyarrow.parquet", reason="the extra lab is not installed")
    study.write_text(study.read_text().replace("1.ff→logits", "9.ff→logits"))
    result = headlight("study", str(study), "--out", str(tmp_path / "o"), "--models-dir", str(zoo))
    assert result.exit_code == 1
    assert "last, tiny: the graph has no edge" in result.output
