"""A corpus that cannot be used is a usage error of every command that reads one."""

from pathlib import Path

import pytest

FAULTS = {
    "missing": lambda path: None,
    "a folder without texts": Path.mkdir,
    "empty": Path.touch,
    "blank": lambda path: path.write_bytes(b" \n\n"),
    "binary": lambda path: path.write_bytes(b"\x7fELF\0\1\2 and then, a word.\n"),
    "not UTF-8": lambda path: path.write_bytes(b"caf\xe9 and the cat sat on the mat\n"),
}

COMMANDS = {
    "train stories": "train stories --out out --device cpu --corpus BAD",
    "train stories, second": "train stories --out out --device cpu --corpus good.txt --corpus BAD",
    "train fill": "train fill --out out --device cpu --corpus BAD",
    "train positions": "train positions --out out --device cpu --corpus BAD",
    "train translate": "train translate --out out --device cpu --corpus BAD",
    "train distill": "train distill --out out --device cpu --teacher TINY --corpus BAD",
    "train reward": "train reward --out out --device cpu --from TINY --comparisons BAD",
    "comparisons": "comparisons --model TINY --out out.jsonl --corpus BAD",
    "evaluate --text": "evaluate TINY --text BAD",
    "evaluate --corpus": "evaluate TINY --text good.txt --corpus BAD",
    "profile": "profile TINY --text BAD",
    "evaluate a translator": "evaluate TRANSLATOR --text BAD",
    "evaluate --gold": "evaluate TRANSLATOR --gold BAD",
    "data report": "data report BAD --out out",
}
SUFFIXES = {
    "train translate": ".tsv",
    "evaluate a translator": ".tsv",
    "train reward": ".jsonl",
    "evaluate --gold": ".jsonl",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.txt").write_text("the cat sat on the mat because it was tired\n" * 60)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "fault"),
    dict.fromkeys(
        [("train stories", fault) for fault in FAULTS]
        + [(command, fault) for command in COMMANDS for fault in ("blank", "binary")]
    ),
)
def test_an_unusable_corpus_is_a_usage_error_of_one_line(command, fault, headlight, zoo, folder):
    path = folder / f"bad{SUFFIXES.get(command, '.txt')}"
    FAULTS[fault](path)
    given = {"BAD": path.name, "TINY": str(zoo / "tiny"), "TRANSLATOR": str(zoo / "translator")}
    result = headlight(*(given.get(word, word) for word in COMMANDS[command].split()))
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    *_, said = result.stderr.splitlines()
    assert path.name in said
    assert "Traceback" not in result.stderr
