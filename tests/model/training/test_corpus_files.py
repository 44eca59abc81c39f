"""Files as text, lines and members of JSON objects; what is broken is named with its line."""

import json
import os
import re
from pathlib import Path

import pytest

from headlight.model.training.corpus_files import (
    CorpusError,
    corpus_files,
    read_lines,
    read_members,
    read_text,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lines.jsonl"


def refusal(message: str) -> pytest.RaisesExc[CorpusError]:
    return pytest.raises(CorpusError, match=f"^{re.escape(message)}$")


# --- folders --------------------------------------------------------------------------------------


def test_files_stand_for_themselves_there_or_not(path: Path) -> None:
    assert corpus_files([path, Path("b"), Path("a")]) == [path, Path("b"), Path("a")]


def test_text_files_are_found_however_deep_and_however_spelled(tmp_path: Path) -> None:
    names = ["b/a.TXT", "b/c/d.txt", "b.txt", "a.txt", "a.txt.bak", "atxt"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = [str(path.relative_to(tmp_path)) for path in corpus_files([tmp_path])]
    assert found == ["a.txt", "b/a.TXT", "b/c/d.txt", "b.txt"]


def test_a_folder_named_like_a_text_file_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "book.txt").mkdir()
    (tmp_path / "book.txt" / "chapter.txt").touch()
    assert corpus_files([tmp_path]) == [tmp_path / "book.txt" / "chapter.txt"]


def test_a_folder_without_text_files_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.md").touch()
    message = f"{tmp_path} holds no .txt file; put text files into it or name them"
    with refusal(message):
        corpus_files([tmp_path])


def test_a_folder_that_cannot_be_listed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").touch()
    locked = tmp_path / "locked"
    locked.mkdir()
    scandir = os.scandir

    def refuse(place: str | Path) -> object:
        if Path(place) == locked:
            raise PermissionError(13, "Permission denied", str(locked))
        return scandir(place)

    monkeypatch.setattr(os, "scandir", refuse)
    with refusal(f"{locked} cannot be read: Permission denied"):
        corpus_files([tmp_path])


def test_a_link_to_nothing_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "gone.txt").symlink_to(tmp_path / "nowhere")
    assert corpus_files([tmp_path]) == [tmp_path / "gone.txt"]
    with refusal(f"{tmp_path / 'gone.txt'} cannot be read: No such file or directory"):
        read_text(tmp_path / "gone.txt")


# --- text -----------------------------------------------------------------------------------------


def test_a_byte_order_mark_is_dropped_at_the_beginning_alone(path: Path) -> None:
    path.write_bytes(b"\xef\xbb\xbfone\n\xef\xbb\xbftwo")
    assert read_text(path) == "one\n\ufefftwo"


def test_the_line_of_a_wrong_byte_is_right_after_a_byte_order_mark(path: Path) -> None:
    path.write_bytes(b"\xef\xbb\xbfone\n\xe9\n\n")
    with refusal(f"{path} is not UTF-8: line 2 holds 0xe9"):
        read_text(path)


def test_the_unicode_form_is_kept(path: Path) -> None:
    path.write_text("e\u0301 \u00e9", encoding="utf-8")
    assert read_text(path) == "e\u0301 \u00e9"


def test_a_folder_is_no_text(tmp_path: Path) -> None:
    with refusal(f"{tmp_path} cannot be read: Is a directory"):
        read_text(tmp_path)


@pytest.mark.parametrize("text", ["a\nb", "a\nb\n", "a\r\nb\r\n"])
def test_a_line_feed_or_both_signs_end_a_line(path: Path, text: str) -> None:
    path.write_bytes(text.encode())
    assert read_lines(path) == ["a", "b"]


def test_nothing_else_ends_a_line(path: Path) -> None:
    line = "a\u2028b\u0085c\vd\fe\rf"
    path.write_bytes(f"{line}\n\n{line}\n\n".encode())
    assert read_lines(path) == [line, "", line, ""]


@pytest.mark.parametrize("text", ["", "\n", " \r\n\t\n", "\ufeff"])
def test_a_file_without_a_line_is_named(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    with refusal(f"{path} is empty; it needs at least one line"):
        read_lines(path)


# --- members of JSON objects ----------------------------------------------------------------------


def test_members_come_in_the_order_asked_for_and_blank_lines_do_not_count(path: Path) -> None:
    lines = [{"fr": "Salut.", "en": "Hi.", "n": 1}, {"en": " a\tb ", "fr": "é"}]
    path.write_text("\n\n".join(map(json.dumps, lines)) + "\n \n")
    assert read_members(path, ["en", "fr"]) == [("Hi.", "Salut."), (" a\tb ", "é")]


def test_the_ends_of_lines_inside_a_member_become_line_feeds(path: Path) -> None:
    path.write_text(json.dumps({"text": "a\r\nb\rc\n"}))
    assert read_members(path, ["text"]) == [("a\nb\rc\n",)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"en": "a"', ", line 3 is not JSON: Expecting ',' delimiter at column 11;"),
        ("text", ", line 3 is not JSON: Expecting value at column 1; write one object a line"),
        ('{"en": 1}{}', ", line 3 is not JSON: Extra data at column 10; write one object a line"),
        ('["a", "b"]', ', line 3 is no JSON object; write it as {"en": "…", "fr": "…"}'),
        ('{"fr": "b"}', """, line 3 has no member 'en'; write it as {"en": "…", "fr": "…"}"""),
        ('{"en": "b"}', """, line 3 has no member 'fr'; write it as {"en": "…", "fr": "…"}"""),
        (
            '{"en": ["a"], "fr": "b"}',
            ", line 3: the member 'en' is no string; write text in quotes",
        ),
        ('{"en": "a", "fr": null}', ", line 3: the member 'fr' is no string; write text in quotes"),
        (
            '{"en": " \\n", "fr": "b"}',
            ", line 3: the member 'en' is empty; fill it or remove the line",
        ),
        (
            '{"en": "a", "fr": "b\\ud800"}',
            ", line 3: the member 'fr' holds a lone surrogate (U+D800), which is no text; "
            "write the whole character",
        ),
    ],
)
def test_a_line_that_lacks_the_members_is_named(path: Path, line: str, message: str) -> None:
    path.write_text(f'{{"en": "a", "fr": "b"}}\n\n{line}\n')
    with pytest.raises(CorpusError, match=f"^{re.escape(str(path) + message)}"):
        read_members(path, ["en", "fr"])


@pytest.mark.parametrize("line", ["[" * 200_000, '{"text": ' + "9" * 10_000 + "}"])
def test_a_line_beyond_all_measure_is_named(path: Path, line: str) -> None:
    path.write_text(line)
    start, end = re.escape(f"{path}, line 1 cannot be decoded: "), "; write a simpler object"
    with pytest.raises(CorpusError, match=f"^{start}.*{end}$"):
        read_members(path, ["text"])
