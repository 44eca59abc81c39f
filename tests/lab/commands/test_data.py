"""`headlight data`: folders of clean text, reasons for what was dropped, and reports."""

import json

import pytest

from headlight.model.checkpoint.card import ModelCard, read_card, write_card
from headlight.model.corpus import read_documents

TEXT = "the little fox ran to the old barn and found a grey hen near her warm nest"
WORDS = TEXT.split()


def story(number, n_words=60):
    return " ".join(WORDS[(number * place + place // 3) % len(WORDS)] for place in range(n_words))


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """Six stories, of which one comes back in capitals and one with another ending."""
    monkeypatch.chdir(tmp_path)
    stories = [story(number) for number in (1, 3, 5, 7, 9, 11)]
    stories += [stories[1].upper(), f"{stories[2]} today"]
    path = tmp_path / "stories.txt"
    path.write_text("\n<|endofstory|>\n".join(stories))
    return path.name


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_report_writes_what_it_keeps_and_why_it_drops(headlight, corpus, tmp_path):
    result = headlight("data", "report", corpus, "--least-quality", "0", "--out", "clean")
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
    assert (
        headlight("data", "report", corpus, "--least-quality", "0", "--out", "clean").exit_code == 0
    )
    before = (tmp_path / "clean" / "kept.jsonl").read_bytes()
    again = headlight("data", "report", corpus, "--least-quality", "0", "--out", "clean")
    assert again.exit_code == 1
    assert "already exists; name another file, or add --force" in again.stderr
    forced = headlight(
        "data", "report", corpus, "--least-quality", "0", "--out", "clean", "--force"
    )
    assert forced.exit_code == 0
    assert (tmp_path / "clean" / "kept.jsonl").read_bytes() == before


def test_a_run_that_fails_leaves_no_file(headlight, corpus, tmp_path):
    (tmp_path / "bad.jsonl").write_text('{"text": "fine"}\n{"text": 3}\n')
    asked = ["data", "report", corpus, "bad.jsonl", "--out"]
    result = headlight(*asked, "deep/clean", "--strict")
    assert result.exit_code == 2
    assert "bad.jsonl, line 2: the member 'text' is not a string" in result.stderr
    assert not (tmp_path / "deep").exists()
    (tmp_path / "there").mkdir()
    assert headlight(*asked, "there", "--strict").exit_code == 2
    assert list((tmp_path / "there").iterdir()) == []


def test_what_cannot_be_read_is_left_out_counted_and_listed(headlight, corpus, tmp_path):
    (tmp_path / "bad.jsonl").write_text('{"text": "fine", "score": NaN}\n{"text": 3}\n{"te')
    (tmp_path / "image.txt").write_bytes(b"\x89PNG\0\0")
    asked = ["data", "report", corpus, "bad.jsonl", "image.txt", "--out", "clean"]
    result = headlight(*asked, "--least-quality", "0")
    assert result.exit_code == 0, result.stderr
    assert "left out as unreadable: 1 binary, 2 broken line" in result.stdout
    report = json.loads((tmp_path / "clean" / "report.json").read_text())
    assert report["unusable"] == {"binary": 1, "broken_line": 2}
    assert report["before"]["documents"] == 9
    dropped = lines_of(tmp_path / "clean" / "dropped.jsonl")
    unread = {line["source"] for line in dropped if line["reason"]["kind"] in report["unusable"]}
    assert unread == {"bad.jsonl:2", "bad.jsonl:3", "image.txt"}
    assert "NaN" not in (tmp_path / "clean" / "kept.jsonl").read_text()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["gone.txt"], 2, "gone.txt cannot be read"),
        (["image.txt"], 2, "image.txt is binary: line 1"),
        (["stories.txt", "--threshold", "0"], 2, "threshold is 0.0"),
    ],
)
def test_bad_input_is_one_sentence(headlight, corpus, tmp_path, words, code, message):
    (tmp_path / "empty.txt").touch()
    (tmp_path / "image.txt").write_bytes(b"\0\1\2")
    result = headlight("data", "report", *words, "--out", "clean")
    assert result.exit_code == code
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_a_report_without_documents_that_are_kept_says_what_to_do(headlight, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short.txt").write_text("not a sentence 1 2 3")
    result = headlight("data", "report", "short.txt", "--out", "clean")
    assert result.exit_code == 0, result.stderr
    assert "kept 0 of 1 documents (dropped: 1 low quality)" in result.stdout
    assert "--least-quality 0.5: lower it, or judge passages" in result.stderr
    assert json.loads((tmp_path / "clean" / "report.json").read_text())["after"]["documents"] == 0


def test_the_figures_of_a_report_go_to_a_card(headlight, corpus, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    write_card(folder / "CARD.md", ModelCard(title="Mine", licence="MIT", prose="Reads."))
    result = headlight("data", "report", corpus, "--out", "clean", "--card", "./mine")
    assert result.exit_code == 0, result.stderr
    card = read_card(folder / "CARD.md")
    report = json.loads((tmp_path / "clean" / "report.json").read_text())
    assert card.prose == "Reads."
    assert card.corpus["before"] == report["before"]
    assert card.corpus["dropped"] == report["dropped"]
    assert "## Training text" in (folder / "CARD.md").read_text()
    missing = headlight("data", "report", corpus, "--out", "other", "--card", "gone")
    assert missing.exit_code == 1
    assert "no model or folder 'gone'" in missing.stderr
    assert not (tmp_path / "other").exists()
