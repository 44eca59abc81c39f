"""Sentence pairs from tabs, JSON lines and parallel files."""

import json
import re
from pathlib import Path

import pytest

from headlight.model.training.corpus_files import CorpusError
from headlight.model.training.sentence_pairs import SentencePair, read_pairs

PAIRS = [SentencePair("Hi.", "Salut."), SentencePair('Say "no".', "Dis « non »\u00a0!")]


def refused(message: str, *paths: Path) -> None:
    with pytest.raises(CorpusError, match=f"^{re.escape(message)}$"):
        read_pairs(paths)


@pytest.fixture
def tabbed(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS))
    return path


@pytest.fixture
def parallel(tmp_path: Path) -> tuple[Path, Path]:
    """Two files whose names sort against the order in which they are given."""
    source, target = tmp_path / "z.en.txt", tmp_path / "a.fr.txt"
    source.write_text("".join(f"{pair.source}\n" for pair in PAIRS))
    target.write_text("".join(f"{pair.target}\n" for pair in PAIRS))
    return source, target


# --- what is read ---------------------------------------------------------------------------------


def test_a_tab_stands_between_source_and_target(tabbed: Path) -> None:
    assert read_pairs([tabbed]) == PAIRS
    assert read_pairs([tabbed])[0].target == "Salut."


def test_a_file_of_windows_reads_like_any_other(tabbed: Path) -> None:
    tabbed.write_bytes(b"\xef\xbb\xbf" + tabbed.read_bytes().replace(b"\n", b"\r\n"))
    assert read_pairs([tabbed]) == PAIRS


def test_blank_lines_between_pairs_do_not_count(tabbed: Path) -> None:
    tabbed.write_text(tabbed.read_text().replace("\n", "\n\n"))
    assert read_pairs([tabbed]) == PAIRS


def test_a_line_of_json_holds_source_and_target(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(pair._asdict()) + "\n" for pair in PAIRS))
    assert read_pairs([path]) == PAIRS


def test_the_members_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps({"fr": fr, "en": en}) + "\n" for en, fr in PAIRS))
    assert read_pairs([path], source_field="en", target_field="fr") == PAIRS
    assert read_pairs([path], source_field="fr", target_field="en")[0] == ("Salut.", "Hi.")


def test_two_text_files_are_read_line_by_line(parallel: tuple[Path, Path]) -> None:
    assert read_pairs(parallel) == PAIRS


def test_files_are_read_in_the_order_given(tabbed: Path, tmp_path: Path) -> None:
    other = tmp_path / "a.JSONL"
    other.write_text('{"source": "a", "target": "b"}')
    assert read_pairs([tabbed, other]) == [*PAIRS, ("a", "b")]
    assert read_pairs([other, tabbed]) == [("a", "b"), *PAIRS]


def test_two_text_files_are_told_by_their_names_however_spelled(tmp_path: Path) -> None:
    paths = [tmp_path / "en.TXT", tmp_path / "fr.txt"]
    for path in paths:
        path.write_text(path.name)
    assert read_pairs(paths) == [("en.TXT", "fr.txt")]


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("Hi.", " has 1 column; it needs exactly two, source and target"),
        (" ", " has 1 column; it needs exactly two, source and target"),
        ("Hi.\tSalut.\tCC BY", " has 3 columns; it needs exactly two, source and target"),
        ("\tSalut.", " has an empty source; fill it or remove the line"),
        ("Hi.\t \r", " has an empty target; fill it or remove the line"),
    ],
)
def test_a_line_that_is_no_pair_is_named(tabbed: Path, line: str, message: str) -> None:
    tabbed.write_text(f"\na\tb\n{line}\na\n")
    refused(f"{tabbed}, line 3{message}", tabbed)


def test_a_line_of_json_that_is_no_pair_is_named(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"source": "a", "target": "b"}\n{"source": "a"}\n')
    example = '{"source": "…", "target": "…"}'
    refused(f"{path}, line 2 has no member 'target'; write it as {example}", path)


def test_parallel_files_of_unequal_length_are_named_with_their_lines(
    parallel: tuple[Path, Path],
) -> None:
    source, target = parallel
    target.write_text(target.read_text() + "Encore.\n\n")
    refused(
        f"{source} has 2 lines and {target} has 4; "
        "each line needs its translation on the same line of the other file",
        *parallel,
    )


@pytest.mark.parametrize("side", [0, 1])
def test_a_blank_line_of_a_parallel_file_is_named(parallel: tuple[Path, Path], side: int) -> None:
    parallel[side].write_text("a\n \n")
    message = ", line 2 is empty; fill it or remove that line from both files"
    refused(f"{parallel[side]}{message}", *parallel)


@pytest.mark.parametrize("suffix", [".tsv", ".jsonl"])
@pytest.mark.parametrize("content", [b"", b"\n\r\n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_named(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"pairs{suffix}"
    path.write_bytes(content)
    refused(f"{path} is empty; it needs at least one line", path)


@pytest.mark.parametrize("side", [0, 1])
def test_an_empty_parallel_file_is_named(parallel: tuple[Path, Path], side: int) -> None:
    parallel[side].write_text("")
    refused(f"{parallel[side]} is empty; it needs at least one line", *parallel)


@pytest.mark.parametrize("suffix", [".tsv", ".jsonl"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"pairs{suffix}"
    refused(f"{path} cannot be read: No such file or directory", path)
    path.write_bytes(b"a\tb\nc\t\xe9")
    refused(f"{path} is not UTF-8: line 2 holds 0xe9", path)


@pytest.mark.parametrize("names", [["data"], ["data.tsv"], ["data.txt", "other.txt"]])
def test_a_folder_is_named(tmp_path: Path, names: list[str]) -> None:
    paths = [tmp_path / name for name in names]
    paths[0].mkdir()
    refused(f"{paths[0]} is a folder; name the files of pairs in it", *paths)


@pytest.mark.parametrize("names", [["a.txt"], ["a.txt", "b.txt", "c.txt"], ["a.txt", "b.tsv"]])
def test_one_language_alone_is_refused(tmp_path: Path, names: list[str]) -> None:
    message = "holds one language; name exactly two .txt files, the source and the target"
    refused(f"{tmp_path / 'a.txt'} {message}", *(tmp_path / name for name in names))


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("a\tb\n")
    refused(f"{path} is no file of pairs; name a .tsv, a .jsonl or two .txt files", path)


def test_no_file_at_all_is_refused() -> None:
    refused("there are no pairs; name a .tsv or .jsonl file, or two .txt files line by line")
