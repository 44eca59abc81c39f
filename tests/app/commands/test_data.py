"""`headlight data`: folders of clean text, reasons for what was dropped, and reports."""

import json

import pytest

from headlight.model.data import deduplication
from headlight.model.training.corpus import read_documents

TEXT = "the little fox ran to the old barn and found a grey hen near her warm nest"
WORDS = TEXT.split()


def story(number, n_words=60):
    return " ".join(WORDS[(number * place + place // 3) % len(WORDS)] for place in range(n_words))


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """Six stories, of which one comes back in capitals and one with another ending."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(deduplication, "N_PAIRS", 20)
    stories = [story(number) for number in (1, 3, 5, 7, 9, 11)]
    stories += [stories[1].upper(), f"{stories[2]} today"]
    path = tmp_path / "stories.txt"
    path.write_text("\n<|endofstory|>\n".join(stories))
    return path.name


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_dedup_writes_what_it_keeps_and_why_it_drops(headlight, corpus, tmp_path):
    result = headlight("data", "dedup", corpus, "--out", "clean")
    assert result.exit_code == 0, result.stderr
    kept, dropped = (lines_of(tmp_path / "clean" / f"{name}.jsonl") for name in ("kept", "dropped"))
    assert [line["source"] for line in kept] == [f"stories.txt:{n}" for n in (1, 3, 5, 7, 9, 11)]
    assert [line["reason"]["kind"] for line in dropped] == ["exact_duplicate", "near_duplicate"]
    assert [line["reason"]["of"] for line in dropped] == ["stories.txt:3", "stories.txt:5"]
    assert read_documents([tmp_path / "clean" / "kept.jsonl"]) == [line["text"] for line in kept]
    report = json.loads((tmp_path / "clean" / "report.json").read_text())
    assert report["before"]["documents"] == 8
    assert report["after"] == {
        "documents": 6,
        "words": 360,
        "bytes": sum(len(line["text"].encode()) for line in kept),
    }
    assert report["dropped"] == {"exact_duplicate": 1, "near_duplicate": 1}
    assert report["dedup"]["examples"][0]["source"] == "stories.txt:15"


def test_an_earlier_result_is_replaced_only_by_force(headlight, corpus, tmp_path):
    assert headlight("data", "dedup", corpus, "--out", "clean").exit_code == 0
    before = (tmp_path / "clean" / "kept.jsonl").read_bytes()
    again = headlight("data", "dedup", corpus, "--out", "clean")
    assert again.exit_code == 1
    assert "already exists; name another file, or add --force" in again.stderr
    forced = headlight("data", "dedup", corpus, "--out", "clean", "--force")
    assert forced.exit_code == 0
    assert (tmp_path / "clean" / "kept.jsonl").read_bytes() == before


def test_a_run_that_fails_leaves_no_file(headlight, corpus, tmp_path):
    (tmp_path / "bad.jsonl").write_text('{"text": "fine"}\n{"text": 3}\n')
    result = headlight("data", "dedup", corpus, "bad.jsonl", "--out", "clean")
    assert result.exit_code == 1
    assert "bad.jsonl, line 2: the member 'text' is not a string" in result.stderr
    assert list((tmp_path / "clean").iterdir()) == []


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["gone.txt"], 1, "gone.txt cannot be read"),
        (["empty.txt"], 1, "empty.txt is empty"),
        (["image.txt"], 1, "image.txt is binary: line 1"),
        (["stories.txt", "--threshold", "0"], 2, "threshold is 0.0"),
        (["stories.txt", "--by", "page"], 2, "'page' is not one of"),
        ([], 2, "Missing argument"),
    ],
)
def test_bad_input_is_one_sentence(headlight, corpus, tmp_path, words, code, message):
    (tmp_path / "empty.txt").touch()
    (tmp_path / "image.txt").write_bytes(b"\0\1\2")
    result = headlight("data", "dedup", *words, "--out", "clean")
    assert result.exit_code == code
    assert message in result.stderr
    assert "Traceback" not in result.stderr
